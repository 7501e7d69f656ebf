/* Finds the changes and the two sides of a file as the agent server of OpenHands V1 (1.58.2) shows
 * them: its base keeps committed and even pushed work visible. */
#include "config.h"

#include "git/git.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/text/utf8.h"
#include "git/git_int.h"

/* ---- the base ---- */

/* Finds the name of origin's default branch. */
static bool
default_branch(const char *repo, struct hr_buf *name)
{
	static const char prefix[] = "origin/", head[] = "HEAD branch:";
	HR_BUF(out, HR_GIT_OUTPUT_MAX);
	const char *line, *p;
	size_t n;

	hr_buf_reset(name);
	if (HR_GIT_RUN(&out, repo, "rev-parse", "--abbrev-ref", "origin/HEAD") == 0 &&
	    strncmp(hr_buf_str(&out), prefix, sizeof(prefix) - 1) == 0 &&
	    out.len > sizeof(prefix) - 1) {
		hr_buf_adds(name, out.p + sizeof(prefix) - 1);
		return true;
	}
	if (HR_GIT_RUN(&out, repo, "remote", "show", "origin") < 0)
		return false;
	line = strstr(hr_buf_str(&out), head);
	if (line == NULL)
		return false;
	p = line + sizeof(head) - 1;
	n = strcspn(p, "\n");
	hr_utf8_strip(&p, &n);
	if (n > 0 && !(n == 9 && memcmp(p, "(unknown)", 9) == 0))
		hr_buf_add(name, p, n);
	return name->len > 0;
}

static bool
has_tracked_changes(const char *repo)
{
	HR_BUF(out, HR_GIT_OUTPUT_MAX);

	return HR_GIT_RUN(&out, repo, "status", "--porcelain", "--untracked-files=no") < 0 ||
	       out.len > 0;
}

/* Finds the fork point from origin's default branch, or that branch. */
static bool
default_base(const char *repo, const char *branch, struct hr_buf *ret)
{
	HR_BUF(name, HR_GIT_OUTPUT_MAX);

	hr_buf_addf(&name, "origin/%s", branch);
	return name.fail == HR_OK &&
	       ((HR_GIT_RUN(ret, repo, "merge-base", "HEAD", name.p) == 0 && ret->len > 0) ||
		   hr_git_is_ref(repo, "", name.p, ret));
}

/* Finds where HEAD forked from a local main or master, if there is no origin. */
static bool
local_base(const char *repo, const char *branch, struct hr_buf *ret)
{
	static const char *const names[] = {"main", "master"};
	HR_BUF(tip, HR_GIT_OUTPUT_MAX);
	size_t i = 0;

	while (i < 2 && !hr_git_is_ref(repo, "", names[i], &tip))
		i++;
	return i < 2 && strcmp(names[i], branch) != 0 &&
	       HR_GIT_RUN(ret, repo, "merge-base", "HEAD", names[i]) == 0 && ret->len > 0 &&
	       strcmp(ret->p, hr_buf_str(&tip)) == 0;
}

static void
display_base(const char *repo, struct hr_buf *ret)
{
	HR_BUF(head, HR_GIT_OUTPUT_MAX);
	HR_BUF(branch, HR_GIT_OUTPUT_MAX);
	HR_BUF(name, HR_GIT_OUTPUT_MAX);
	bool has_head = hr_git_is_ref(repo, "", "HEAD", &head);

	/* a detached HEAD has no branch, and rev-parse fails for a branch without commits */
	if (HR_GIT_RUN(&branch, repo, "rev-parse", "--abbrev-ref", "HEAD") < 0 ||
	    strcmp(hr_buf_str(&branch), "HEAD") == 0)
		hr_buf_reset(&branch);
	if (branch.len > 0 && hr_git_is_ref(repo, "origin/", branch.p, ret) &&
	    (!has_head || strcmp(hr_buf_str(ret), head.p) != 0 || has_tracked_changes(repo)))
		return;
	if (default_branch(repo, &name) ? default_base(repo, name.p, ret)
					: local_base(repo, hr_buf_str(&branch), ret))
		return;
	hr_buf_reset(ret);
	hr_buf_adds(ret, has_head ? head.p : HR_GIT_EMPTY_TREE);
}

/* Finds the base. Returns false if `wanted` names no commit. HEAD may have no commit yet. */
static bool
find_base(const char *repo, const char *wanted, struct hr_buf *ret)
{
	HR_BUF(count, HR_GIT_OUTPUT_MAX);

	if (wanted != NULL && hr_git_is_commit(repo, wanted, ret))
		return true;
	if (wanted != NULL && strcmp(wanted, "HEAD") != 0)
		return false;
	hr_buf_reset(ret);
	if (wanted != NULL || HR_GIT_RUN(&count, repo, "rev-list", "--count", "--all") < 0 ||
	    strcmp(hr_buf_str(&count), "0") == 0)
		hr_buf_adds(ret, HR_GIT_EMPTY_TREE);
	else
		display_base(repo, ret);
	return true;
}

/* ---- changes ---- */

/* Lists a repository's changes. Returns 1; 0 if there is no repository; -1 with the reason in
 * why. */
static int
changes_of(struct hr_buf *list, const char *repo, const char *prefix, const char *wanted,
    struct hr_buf *why)
{
	HR_BUF(base, HR_GIT_OUTPUT_MAX);
	HR_BUF(out, HR_GIT_OUTPUT_MAX);
	const char *p;
	size_t n;

	if (!hr_git_is_repository(repo))
		return 0;
	if (!find_base(repo, wanted, &base))
		return hr_git_fail(why, HR_GIT_NO_COMMIT);
	if (HR_GIT_RUN_EXACT(
		&out, repo, "diff", "--name-status", "--relative", "-z", hr_buf_str(&base)) < 0)
		return hr_git_fail(why, hr_buf_str(&out));
	hr_git_changes_take(list, false, prefix, &out);
	if (HR_GIT_RUN_EXACT(&out, repo, "ls-files", "--others", "--exclude-standard", "-z") < 0)
		return 1; /* the original also keeps the list so far */
	for (p = hr_buf_str(&out); p < out.p + out.len; p += strlen(p) + 1) {
		n = strlen(p);
		/* a repository that is no submodule is listed as a directory */
		hr_git_changes_add(list, 'A', prefix, p, n - (n > 1 && p[n - 1] == '/'));
	}
	return 1;
}

int
hr_git_v1_changes(
    const char *directory, const char *wanted, struct hr_buf *json, struct hr_buf *why)
{
	HR_BUF(nested, HR_GIT_OUTPUT_MAX);
	HR_BUF(ignored, HR_GIT_OUTPUT_MAX);
	HR_CLEAN(hr_git_changes_done) struct hr_buf list = {0};
	const char *name;

	hr_buf_init(&list, HR_GIT_OUTPUT_MAX);
	hr_git_nested(directory, &nested);
	if (changes_of(&list, directory, NULL, wanted, why) < 0)
		return -1;
	/* a nested repository lists its own files */
	hr_git_changes_drop(&list, &nested, hr_path_is_within);
	for (name = hr_buf_str(&nested); name < nested.p + nested.len; name += strlen(name) + 1) {
		HR_FREE char *repo = hr_path_join(directory, name);

		if (repo == NULL)
			return hr_git_fail(why, "out of memory");
		/* a broken repository is skipped */
		(void)changes_of(&list, repo, name, wanted, &ignored);
	}
	if (list.fail != HR_OK || nested.fail != HR_OK)
		return hr_git_fail(why, "out of memory");
	hr_git_changes_put(&list, hr_git_by_path, json);
	return json->fail == HR_OK ? 0 : hr_git_fail(why, "out of memory");
}

/* ---- the two sides of a file ---- */

/* Reads what the base has under that name, byte for byte: a directory's is a list, as in the
 * original, but not for a file that is gone. Returns false if there is nothing. */
static bool
read_base(const char *repo, const char *base, const char *file, bool gone, struct hr_buf *ret)
{
	HR_BUF(name, HR_GIT_OUTPUT_MAX);
	HR_BUF(type, HR_GIT_OUTPUT_MAX);

	hr_buf_addf(&name, "%s:%s", base, file);
	if (name.fail != HR_OK || (gone && (HR_GIT_RUN(&type, repo, "cat-file", "-t", name.p) < 0 ||
					       strcmp(hr_buf_str(&type), "blob") != 0)))
		return false;
	if (HR_GIT_RUN_EXACT(ret, repo, "show", name.p) == 0)
		return true;
	hr_buf_reset(ret); /* the error of git */
	return false;
}

static void
put_lines(struct hr_buf *json, const struct hr_buf *text)
{
	HR_BUF(lines, HR_GIT_OUTPUT_MAX);

	hr_git_join_lines(&lines, hr_buf_str(text), text->len);
	hr_git_put_ascii(json, hr_buf_str(&lines), lines.len);
	if (lines.fail != HR_OK)
		json->fail = lines.fail;
}

/* Reads the modified side: "" for a deleted file or one that is not text. */
static int
read_work(const char *path, bool *ret_gone, struct hr_buf *ret, struct hr_buf *why)
{
	struct hr_err err = {.code = HR_OK};
	struct stat st;

	*ret_gone = stat(path, &st) < 0 && (errno == ENOENT || errno == ENOTDIR);
	if (*ret_gone)
		return 0;
	if (stat(path, &st) < 0)
		return hr_git_fail(why, strerror(errno));
	if (st.st_size > (off_t)HR_GIT_FILE_MAX)
		return hr_git_fail(why, "the file is too large");
	if (hr_path_read(path, ret, &err) < 0 || !hr_utf8_valid(hr_buf_str(ret), ret->len)) {
		hr_buf_done(ret);
		hr_buf_init(ret, HR_GIT_FILE_MAX);
	}
	return 0;
}

int
hr_git_v1_diff(const char *path, const char *wanted, struct hr_buf *json, struct hr_buf *why)
{
	HR_BUF(modified, HR_GIT_FILE_MAX);
	HR_BUF(original, HR_GIT_OUTPUT_MAX);
	HR_BUF(base, HR_GIT_OUTPUT_MAX);
	HR_FREE char *real = hr_git_real_file(path);
	const char *rest = NULL, *repo;
	bool gone, found, inside;

	if (real == NULL)
		return hr_git_fail(why, strerror(errno));
	if (read_work(real, &gone, &modified, why) < 0)
		return -1;
	inside = hr_git_closest(real, true, &rest);
	repo = real[0] != '\0' ? real : "/";
	if (!inside || !hr_git_is_repository(repo)) {
		if (gone && !inside)
			return hr_git_fail(why, "there is no such file");
		hr_buf_adds(json, "{\"modified\": null, \"original\": null}");
		return 0;
	}
	if (!find_base(repo, wanted, &base))
		return hr_git_fail(why, HR_GIT_NO_COMMIT);
	found = read_base(repo, hr_buf_str(&base), rest, gone, &original);
	if (gone && !found)
		return hr_git_fail(why, "there is no such file, nor was there");
	if (gone && original.len > HR_GIT_FILE_MAX)
		return hr_git_fail(why, "the file was too large");
	hr_buf_adds(json, "{\"modified\": ");
	put_lines(json, &modified);
	hr_buf_adds(json, ", \"original\": ");
	put_lines(json, &original);
	hr_buf_addc(json, '}');
	return json->fail == HR_OK ? 0 : hr_git_fail(why, "out of memory");
}
