/* Archives a directory: as a patch against the base that its repository came from, or the files. */
#include "config.h"

#include "git/archive.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/strv.h"
#include "base/text/percent.h"
#include "files/archive/zip.h"
#include "proto/json.h"
#include "proto/python/repr.h"

#define NESTED_MAX 3 /* levels below the directory at which a repository is looked for */
#define HEAD_MAX (1u << 20)
#define UNRESERVED "_.-~"
#define MANIFEST "archive_manifest.json"

/* ---- names that are left out ---- */

/* Returns true if the pattern names the entry. One with a slash names a path from the top on,
 * another one a part of any path; a slash at the end means directories only. */
static bool
leaves_out(const char *pattern, const char *name, bool directory)
{
	HR_BUF(text, HEAD_MAX);
	size_t len = strlen(pattern);
	const char *p;

	while (len > 0 && pattern[len - 1] == '/')
		len--;
	if (pattern[len] == '/' && !directory)
		return false;
	hr_buf_add(&text, pattern, len);
	p = hr_buf_str(&text);
	return fnmatch(p, strchr(p, '/') != NULL ? name : hr_path_leaf(name),
		   FNM_NOESCAPE | FNM_PATHNAME) == 0;
}

/* Returns true for an entry that may hold a password, such as that of a remote. `git`: the top is
 * a .git, or below one. */
static bool
is_secret(const char *name, bool git)
{
	static const char *const files[] = {
	    "config", "config.worktree", "credentials", "FETCH_HEAD", "logs"};
	const char *leaf = hr_path_leaf(name);
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (strcmp(leaf, files[i]) == 0)
			return git || strncmp(name, ".git/", 5) == 0 ||
			       strstr(name, "/.git/") != NULL;
	return strcmp(leaf, ".git-credentials") == 0;
}

/* ---- the files ---- */

struct files {
	const char *top;
	const char *const *patterns;
	bool git;   /* the top is a .git, or below one */
	bool taken; /* a file has the manifest's name */
};

/* Gets a directory before the entries in it, which are not asked for if it is left out. */
static bool
file_leaves_out(void *arg, const char *rel, bool directory)
{
	struct files *f = arg;
	const char *const *p = f->patterns;

	while (*p != NULL && !leaves_out(*p, rel, directory))
		p++;
	if (*p != NULL || is_secret(rel, f->git))
		return true;
	f->taken = f->taken || strcmp(rel, MANIFEST) == 0;
	return false;
}

/* Appends what json.dumps() makes of it with indent=2. */
static void
put_manifest(void *arg, uint64_t files, uint64_t bytes, struct hr_buf *json)
{
	const struct files *f = arg;
	size_t i;

	if (f->taken) /* the workspace's own file stays */
		return;
	hr_buf_adds(json, "{\n  \"excludes\": [");
	for (i = 0; f->patterns[i] != NULL; i++) {
		hr_buf_adds(json, i > 0 ? ",\n    " : "\n    ");
		hr_git_put_ascii(json, f->patterns[i], strlen(f->patterns[i]));
	}
	hr_buf_addf(json, "%s],\n  \"file_count\": %" PRIu64, i > 0 ? "\n  " : "", files);
	hr_buf_adds(json, ",\n  \"format\": \"tar.gz\",\n  \"source\": ");
	hr_git_put_ascii(json, f->top, strlen(f->top));
	hr_buf_addf(json, ",\n  \"total_bytes\": %" PRIu64 "\n}", bytes);
}

static int
write_out(void *arg, const void *p, size_t len)
{
	(void)arg;
	return hr_fd_write_full(STDOUT_FILENO, p, len, NULL);
}

static int
send_files(const char *root, const char *top, const char *const *patterns, const char *libexec)
{
	struct files f = {.top = top, .patterns = patterns};
	size_t len = strlen(root);
	const struct hr_tree_choice choice = {.top = top[0] != '\0' ? top : ".",
	    .leaves_out = file_leaves_out,
	    .put_last = put_manifest,
	    .last = MANIFEST,
	    .arg = &f};
	const struct hr_tree_options o = {.choice = &choice};
	HR_CLEAN(hr_tree_report_done) struct hr_tree_report report;
	struct hr_err err = {0};
	const struct hr_zip *zip = hr_zip_load(libexec, &err);
	struct hr_tree *t = zip != NULL ? zip->tree_open(root, &o, &err) : NULL;
	int r = -1;

	f.git =
	    strstr(root, "/.git/") != NULL || (len >= 5 && strcmp(root + len - 5, "/.git") == 0);
	hr_tree_report_init(&report);
	if (t != NULL) {
		r = zip->tree_send(t, write_out, NULL, &report, &err);
		zip->tree_free(t);
	}
	if (r < 0)
		(void)fprintf(stderr, "%s\n", err.msg);
	return r;
}

/* ---- the repository ---- */

static bool
has_git(const char *directory)
{
	HR_FREE char *path = hr_path_join(directory, ".git");

	return path != NULL && access(path, F_OK) == 0;
}

/* Looks for repositories below the directory and stops at the second one. The first one is kept in
 * *io_found. Returns their number. */
static unsigned
find_repositories(const char *directory, int levels, char **io_found)
{
	static const char *const skipped[] = {"node_modules", "venv", "site-packages", "vendor"};
	HR_CLOSEDIR DIR *d = opendir(directory);
	const struct dirent *e;
	unsigned n = 0;
	size_t i;

	while (n < 2 && d != NULL && (e = hr_dir_next(d)) != NULL) {
		HR_FREE char *path = NULL;

		for (i = 0; i < 4 && strcmp(e->d_name, skipped[i]) != 0; i++)
			;
		if (i < 4 || e->d_name[0] == '.' || !hr_dir_is_directory(dirfd(d), e))
			continue;
		path = hr_path_join(directory, e->d_name);
		if (path != NULL && !has_git(path)) {
			n += levels > 1 ? find_repositories(path, levels - 1, io_found) : 0;
		} else if (path != NULL) {
			n++;
			if (*io_found == NULL) {
				*io_found = path;
				path = NULL;
			}
		}
	}
	return n;
}

/* Returns the repository or, if there are none or several, the directory. The caller frees it. */
static char *
choose_root(const char *directory)
{
	char *found = NULL;

	if (!has_git(directory) && find_repositories(directory, NESTED_MAX, &found) == 1)
		return found;
	free(found);
	return strdup(directory);
}

/* ---- answers ---- */

static int
put_line(const struct hr_buf *json)
{
	if (json->fail != HR_OK)
		return -1;
	return hr_fd_write_full(STDOUT_FILENO, json->p, json->len, NULL);
}

static int
refuse(int status, const char *what, const char *which)
{
	HR_BUF(json, HEAD_MAX);
	HR_BUF(text, HEAD_MAX);

	hr_buf_addf(&text, "%s%s", what, which);
	hr_buf_addf(&json, "{\"status\":%d", status);
	hr_json_put_named(&json, "detail", hr_buf_str(&text));
	hr_buf_adds(&json, "}\n");
	return put_line(&json);
}

static void
put_header(struct hr_buf *json, const char *name, const char *value)
{
	HR_BUF(text, HEAD_MAX);

	hr_percent_encode(&text, value, UNRESERVED);
	hr_json_put_named(json, name, hr_buf_str(&text));
}

/* Hides a password in the address, and drops its parameters. */
static void
put_remote(struct hr_buf *json, const char *url)
{
	HR_BUF(text, HEAD_MAX);
	const char *colon = strstr(url, "://");
	size_t scheme = colon != NULL ? (size_t)(colon + 3 - url) : 0;
	size_t n = strcspn(url, "?"), user = scheme + strcspn(url + scheme, "/ \t");
	const char *at = scheme > 0 ? memrchr(url + scheme, '@', user - scheme) : NULL;

	if (at != NULL && at > url + scheme)
		hr_buf_addf(&text, "%.*s****", (int)scheme, url);
	else
		at = url;
	hr_buf_add(&text, at, n > (size_t)(at - url) ? n - (size_t)(at - url) : 0);
	put_header(json, "X-Archive-Repo-Remote", hr_buf_str(&text));
}

static void
put_repository(struct hr_buf *json, const char *root)
{
	HR_BUF(out, HR_GIT_OUTPUT_MAX);
	char *branch;

	if (!has_git(root))
		return;
	if (HR_GIT_RUN(&out, root, "remote", "get-url", "origin") == 0 && out.len > 0)
		put_remote(json, out.p);
	if (HR_GIT_RUN(&out, root, "rev-parse", "HEAD", "--abbrev-ref", "HEAD") == 0 &&
	    (branch = strchr(hr_buf_str(&out), '\n')) != NULL) {
		*branch++ = '\0';
		put_header(
		    json, "X-Archive-Branch", strcmp(branch, "HEAD") == 0 ? "DETACHED" : branch);
		put_header(json, "X-Archive-Head-Commit", out.p);
	}
	put_header(json, "X-Archive-Repo-Root", root);
}

/* ---- changes as a patch ---- */

/* Finds the base. Returns false if wanted names no commit. */
static bool
find_base(const char *root, const char *wanted, struct hr_buf *ret)
{
	HR_BUF(branch, HR_GIT_OUTPUT_MAX);

	if (wanted == NULL && HR_GIT_RUN(&branch, root, "rev-parse", "--abbrev-ref", "HEAD") == 0 &&
	    strcmp(hr_buf_str(&branch), "HEAD") == 0)
		wanted = "HEAD";
	if (wanted != NULL && hr_git_is_commit(root, wanted, ret))
		return true;
	if (wanted != NULL && strcmp(wanted, "HEAD") != 0)
		return false;
	if (wanted == NULL && branch.len > 0 && hr_git_is_ref(root, "origin/", branch.p, ret))
		return true;
	if (wanted == NULL && hr_git_remote_head(root, &branch) &&
	    hr_git_is_ref(root, "origin/", branch.p, ret))
		return true;
	hr_buf_reset(ret);
	hr_buf_adds(ret, HR_GIT_EMPTY_TREE);
	return true;
}

/* Runs git with the arguments and the patterns, which are at most twice HR_ARCHIVE_PATTERNS for
 * git. */
static int
run_with(
    const char *root, const char *const *first, const char *const *patterns, struct hr_buf *out)
{
	HR_CLEAN(hr_strv_done) struct hr_strv args = {0};

	hr_strv_add_all(&args, first);
	hr_strv_add(&args, ":(glob,exclude)**/.git-credentials");
	for (; *patterns != NULL; patterns++) {
		size_t len = strlen(*patterns), all = len;
		const char *deep;

		while (len > 0 && (*patterns)[len - 1] == '/')
			len--;
		deep = memchr(*patterns, '/', len) != NULL ? "" : "**/";
		if (len > 0 && len == all)
			hr_strv_addf(&args, ":(glob,exclude)%s%.*s", deep, (int)len, *patterns);
		if (len > 0)
			hr_strv_addf(&args, ":(glob,exclude)%s%.*s/**", deep, (int)len, *patterns);
	}
	if (args.failed)
		return hr_git_fail(out, "out of memory");
	return hr_gitrun_exact(root, hr_strv_list(&args), out);
}

/* Makes the patch with an index of its own, so that the repository's stays as it is. */
static int
make_patch(const char *root, const char *base, const char *const *patterns, struct hr_buf *out)
{
	const char *const add[] = {"add", "-A", "--", ".", NULL};
	const char *const diff[] = {"diff", "--binary", "--no-ext-diff", "--no-textconv",
	    "--no-color", "--src-prefix=a/", "--dst-prefix=b/", "--cached", base, "--", ".", NULL};
	const char *tmp = getenv("TMPDIR");
	HR_FREE char *dir = hr_path_join(tmp != NULL ? tmp : "/tmp", "handrail-archive-XXXXXX");
	HR_FREE char *index = NULL;
	int r = -1;

	if (dir == NULL || mkdtemp(dir) == NULL)
		return hr_git_fail(out, "no temporary directory can be made");
	index = hr_path_join(dir, "index");
	if (index != NULL && setenv("GIT_INDEX_FILE", index, 1) == 0 &&
	    HR_GIT_RUN(out, root, "read-tree", base) == 0 &&
	    run_with(root, add, patterns, out) == 0)
		r = run_with(root, diff, patterns, out);
	(void)unsetenv("GIT_INDEX_FILE");
	(void)hr_path_remove(dir, NULL); /* a killed git may have left a lock */
	return r;
}

static int
send_patch(const char *root, const char *wanted, const char *const *patterns, struct hr_buf *json)
{
	HR_BUF(base, HR_GIT_OUTPUT_MAX);
	HR_BUF(commit, HR_GIT_OUTPUT_MAX);
	HR_BUF(out, HR_GIT_OUTPUT_MAX);
	HR_BUF(text, HEAD_MAX);

	if (!hr_git_is_repository(root))
		return refuse(400, "Not a git repository: Not a git repository: ", root);
	if (!find_base(root, wanted, &base)) {
		hr_pyrepr_str(&text, wanted, strlen(wanted));
		hr_buf_adds(&text, " could not be resolved");
		return refuse(400, "base_ref ", hr_buf_str(&text));
	}
	if (make_patch(root, hr_buf_str(&base), patterns, &out) < 0)
		return refuse(500, "Failed to generate git delta: ", hr_buf_str(&out));
	put_repository(json, root);
	if (strcmp(base.p, HR_GIT_EMPTY_TREE) != 0 && hr_git_is_commit(root, base.p, &commit)) {
		hr_json_put_named(json, "X-Archive-Base-Commit", hr_buf_str(&commit));
		hr_json_put_named(json, "X-Archive-Base-Ref", wanted != NULL ? wanted : "auto");
	}
	hr_buf_adds(json, "}\n");
	return put_line(json) < 0
		   ? -1
		   : hr_fd_write_full(STDOUT_FILENO, hr_buf_str(&out), out.len, NULL);
}

int
hr_git_v1_archive(const char *format, const char *directory, const char *wanted,
    const char *const *patterns, const char *libexec)
{
	bool tar = strcmp(format, "tar.gz") == 0;
	HR_FREE char *real = realpath(directory, NULL);
	HR_FREE char *root = NULL;
	HR_BUF(json, HEAD_MAX);
	HR_BUF(name, HEAD_MAX);
	const char *top;
	struct stat st;

	if (real == NULL)
		return refuse(404, "Directory not found", "");
	if (stat(real, &st) < 0 || !S_ISDIR(st.st_mode))
		return refuse(400, "Path is not a directory", "");
	if (wanted != NULL && wanted[0] == '-')
		return refuse(400, "base_ref must not start with '-'", "");
	root = choose_root(real);
	if (root == NULL)
		return -1;
	top = strrchr(root, '/') + 1;
	hr_buf_addf(&name, "%s%s", top, tar ? ".tar.gz" : ".patch");
	hr_buf_addc(&json, '{');
	hr_json_put_named(&json, "name", hr_buf_str(&name));
	if (!tar)
		return send_patch(root, wanted, patterns, &json);
	put_repository(&json, root);
	hr_buf_adds(&json, "}\n");
	return put_line(&json) < 0 ? -1 : send_files(root, top, patterns, libexec);
}
