/* Finds the two sides of one file's diff, of the work tree or of a commit. */
#include "config.h"

#include "git/git.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/text/utf8.h"
#include "git/git_int.h"

static const char too_large[] = "the original is too large";

void
hr_git_join_lines(struct hr_buf *b, const char *p, size_t len)
{
	const char *end = p + len;
	size_t n;
	int32_t cp;

	for (; p < end; p += n) {
		cp = hr_utf8_next(p, end, &n);
		if (cp == '\r' && p + 1 < end && p[1] == '\n')
			n = 2;
		if ((cp >= '\n' && cp <= '\r') || (cp >= 0x1C && cp <= 0x1E) || cp == 0x85 ||
		    cp == 0x2028 || cp == 0x2029) {
			if (p + n < end) /* the last line end is dropped */
				hr_buf_addc(b, '\n');
		} else {
			hr_buf_add(b, p, n);
		}
	}
}

bool
hr_git_closest(char *path, bool any, const char **ret_rest)
{
	HR_BUF(git, PATH_MAX + 8);
	struct stat st;
	char *slash;
	bool found = false;

	for (slash = strrchr(path, '/'); slash != NULL && !found;) {
		hr_buf_reset(&git);
		hr_buf_add(&git, path, (size_t)(slash - path));
		hr_buf_adds(&git, "/.git");
		found = git.fail == HR_OK && stat(git.p, &st) == 0 && (any || S_ISDIR(st.st_mode));
		if (found) {
			*slash = '\0';
			*ret_rest = slash + 1;
		} else {
			slash = memrchr(path, '/', (size_t)(slash - path));
		}
	}
	return found;
}

static int
read_text(const char *path, struct hr_buf *text, struct hr_buf *why)
{
	struct hr_err err = {.code = HR_OK};
	struct stat st;

	if (stat(path, &st) < 0)
		return hr_git_fail(why, strerror(errno));
	if (st.st_size > (off_t)HR_GIT_FILE_MAX)
		return hr_git_fail(why, "file_to_large");
	if (hr_path_read(path, text, &err) < 0)
		return hr_git_fail(why, err.code == HR_E_TOOLARGE ? "file_to_large" : err.msg);
	if (!hr_utf8_valid(hr_buf_str(text), text->len))
		return hr_git_fail(why, "the file is not UTF-8");
	return 0;
}

/* Reads a file of a commit; a missing file is empty. */
static int
show(
    const char *repo, const char *commit, const char *file, struct hr_buf *text, struct hr_buf *why)
{
	HR_BUF(name, HR_GIT_OUTPUT_MAX);

	hr_buf_addf(&name, "%s:%s", commit, file);
	if (HR_GIT_RUN(text, repo, "show", hr_buf_str(&name)) < 0 && text->fail == HR_OK)
		hr_buf_reset(text);
	if (text->fail != HR_OK)
		return hr_git_fail(why, too_large);
	if (!hr_utf8_valid(hr_buf_str(text), text->len))
		return hr_git_fail(why, "the original is not UTF-8");
	return 0;
}

/* Reads a file of a commit; for a directory it reads nothing and sets *ret_directory. */
static int
show_file(const char *repo, const char *commit, const char *file, struct hr_buf *text,
    bool *ret_directory, struct hr_buf *why)
{
	HR_BUF(name, HR_GIT_OUTPUT_MAX);
	HR_BUF(type, HR_GIT_OUTPUT_MAX);
	bool directory;

	hr_buf_addf(&name, "%s:%s", commit, file);
	directory = HR_GIT_RUN(&type, repo, "cat-file", "-t", hr_buf_str(&name)) == 0 &&
		    strcmp(hr_buf_str(&type), "tree") == 0;
	*ret_directory |= directory;
	return directory ? 0 : show(repo, commit, file, text, why);
}

static void
put_sides(struct hr_buf *json, const struct hr_buf *modified, const struct hr_buf *original)
{
	hr_buf_adds(json, "{\"modified\": ");
	hr_git_put_ascii(json, hr_buf_str(modified), modified->len);
	hr_buf_adds(json, ", \"original\": ");
	hr_git_put_ascii(json, hr_buf_str(original), original->len);
	hr_buf_addc(json, '}');
}

/* Returns the name of a repository that hr_git_closest() cut from a path. */
static const char *
cut_name(const char *path)
{
	return path[0] != '\0' ? path : "/"; /* the repository is in the root directory */
}

static int
put_diff(char *path, const char *wanted, struct hr_buf *json, struct hr_buf *why)
{
	HR_BUF(modified, HR_GIT_FILE_MAX);
	HR_BUF(original, HR_GIT_OUTPUT_MAX);
	HR_BUF(ref, HR_GIT_OUTPUT_MAX);
	HR_BUF(lines, HR_GIT_FILE_MAX);
	const char *rest = NULL;
	int r = -1;

	if (read_text(path, &modified, why) < 0) {
		/* read_text() has set why */
	} else if (!hr_git_closest(path, false, &rest)) {
		(void)hr_git_fail(why, "no_repository");
	} else if (!hr_git_reference(cut_name(path), wanted, &ref) && wanted != NULL) {
		(void)hr_git_fail(why, HR_GIT_NO_COMMIT);
	} else if (show(cut_name(path), ref.len > 0 ? ref.p : "None", rest, &original, why) == 0) {
		hr_git_join_lines(&lines, hr_buf_str(&modified), modified.len);
		put_sides(json, &lines, &original);
		r = 0;
	}
	return r;
}

int
hr_git_diff(const char *path, const char *wanted, struct hr_buf *json, struct hr_buf *why)
{
	HR_FREE char *real = realpath(path, NULL);
	int r;

	if (real == NULL)
		return hr_git_fail(why, strerror(errno));
	r = put_diff(real, wanted, json, why);
	if (r == 0 && json->fail != HR_OK)
		return hr_git_fail(why, "out of memory");
	return r;
}

/* Joins as Python resolves a path: ".." leaves even a directory that does not exist. The caller
 * frees the result; NULL with errno. */
static char *
join_missing(const char *real, const char *rest)
{
	HR_BUF(text, HR_GIT_OUTPUT_MAX);
	char *found;
	size_t n;

	hr_buf_adds(&text, strcmp(real, "/") == 0 ? "" : real);
	for (; *rest != '\0'; rest += n + (rest[n] == '/')) {
		n = strcspn(rest, "/");
		if (n == 2 && memcmp(rest, "..", 2) == 0) {
			while (text.len > 0 && text.p[--text.len] != '/')
				;
			if (text.p != NULL)
				text.p[text.len] = '\0';
		} else if (n > 0 && !(n == 1 && rest[0] == '.')) {
			hr_buf_addc(&text, '/');
			hr_buf_add(&text, rest, n);
		}
	}
	if (text.len == 0)
		hr_buf_addc(&text, '/');
	found = realpath(hr_buf_str(&text), NULL); /* the name after ".." may be a link */
	return found != NULL ? found : hr_buf_take(&text);
}

char *
hr_git_real(const char *path, bool follow)
{
	HR_FREE char *text = strdup(path);
	char *slash = text, *real = NULL, *ret = follow ? realpath(path, NULL) : NULL;
	const char *rest = path;

	if (ret != NULL)
		return ret;
	while (slash != NULL && real == NULL) {
		slash = strrchr(text, '/');
		rest = slash != NULL ? path + (slash - text) + 1 : path;
		if (slash != NULL)
			*slash = '\0';
		real = realpath(slash == NULL ? "." : slash > text ? text : "/", NULL);
	}
	if (real != NULL)
		ret = follow ? join_missing(real, rest) : hr_path_join(real, rest);
	free(real);
	return ret;
}

char *
hr_git_real_file(const char *path)
{
	HR_FREE char *real = hr_git_real(path, true);
	HR_FREE char *own = real != NULL ? hr_path_join(real, ".git") : NULL;
	char *ret = real;

	if (own != NULL && access(own, F_OK) == 0)
		return hr_path_join(real, ".");
	real = NULL;
	return ret;
}

int
hr_git_commit_diff(
    const char *path, const char *commit, bool v1, struct hr_buf *json, struct hr_buf *why)
{
	HR_BUF(sha, HR_GIT_OUTPUT_MAX);
	HR_BUF(parent, HR_GIT_OUTPUT_MAX);
	HR_BUF(before, 2 * HR_GIT_FILE_MAX);
	HR_BUF(after, 2 * HR_GIT_FILE_MAX);
	HR_FREE char *real = v1 ? hr_git_real_file(path) : hr_git_real(path, false);
	const char *rest = NULL;
	bool directory = false;
	int r = -1;

	if (real == NULL) {
		(void)hr_git_fail(why, strerror(errno));
	} else if (!hr_git_closest(real, true, &rest) ||
		   (v1 && !hr_git_is_repository(cut_name(real)))) {
		if (!v1)
			return hr_git_fail(why, "no_repository");
		hr_buf_adds(json, "{\"modified\": null, \"original\": null}");
		r = 0;
	} else if (!hr_git_is_commit(cut_name(real), commit, &sha)) {
		(void)hr_git_fail(why, HR_GIT_NO_COMMIT);
	} else {
		if (!hr_git_is_ref(cut_name(real), hr_buf_str(&sha), "^", &parent)) {
			hr_buf_reset(&parent);
			hr_buf_adds(&parent, HR_GIT_EMPTY_TREE);
		}
		r = show_file(cut_name(real), hr_buf_str(&parent), rest, &before, &directory, why);
		if (r == 0)
			r = show_file(
			    cut_name(real), hr_buf_str(&sha), rest, &after, &directory, why);
		if (r == 0 && directory && before.len + after.len == 0)
			r = hr_git_fail(why, "that is a directory");
		if (r == 0 && (before.len > HR_GIT_FILE_MAX || after.len > HR_GIT_FILE_MAX))
			r = hr_git_fail(why, too_large);
		if (r == 0)
			put_sides(json, &after, &before);
	}
	return r;
}
