/* Copies files to and from sandboxes without a server, one by one. */
#include "config.h"

#include "host/cloud/actions_int.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dir.h"
#include "base/path.h"
#include "base/err.h"
#include "host/transfer/zip.h"
#include "proto/json.h"
#include "shell/quote.h"

#define FILES_MAX 20000 /* maximum files per copy */
#define NAMES_MAX (FILES_MAX * 4096u)
/* maximum bytes: a command is one argument of a shell, and Linux allows 128 KiB */
#define LINE_FULL (32u << 10)

struct sending {
	struct hr_cloud *c;
	unsigned n;
	struct hr_buf programs,
	    empty; /* names of executable files, and of empty directories, each with its NUL */
};

static void
add_name(struct hr_buf *names, const char *name)
{
	hr_buf_add(names, name, strlen(name) + 1);
}

static int
send_file(struct sending *s, const char *from, const char *to, struct hr_err *err)
{
	struct hr_err e = {0};
	HR_BUF(b, HR_CLOUD_FILE_MAX);
	struct stat st;
	int r;

	if (++s->n > FILES_MAX)
		return hr_err_set(err, HR_E_INVAL,
		    "there are more than %d files: send an archive and unpack it there", FILES_MAX);
	if (stat(from, &st) != 0)
		r = hr_err_sys(err, errno, "%s", from);
	else if (!S_ISREG(st.st_mode))
		r = hr_err_set(
		    err, HR_E_NOTFOUND, "Source path '%s' is not a valid file or directory.", from);
	else if (hr_path_read(from, &b, &e) != 0)
		r = hr_err_from(err, HR_E_SYS, &e);
	else
		r = s->c->ops->put(s->c, to, hr_buf_str(&b), b.len, err);
	if (r == 0 && (st.st_mode & 0111) != 0)
		add_name(&s->programs, to);
	return r;
}

static int
send_tree(struct sending *s, const char *from, const char *to, int depth, struct hr_err *err)
{
	HR_CLOSEDIR DIR *dir = depth < 100 ? opendir(from) : NULL;
	struct dirent *e;
	struct stat st;
	bool any = false;
	int r = 0;

	if (dir == NULL)
		return hr_err_sys(err, depth < 100 ? errno : ELOOP, "%s", from);
	while (r == 0 && (e = hr_dir_next(dir)) != NULL) {
		HR_FREE char *target = NULL;
		HR_FREE char *source = NULL;

		any = true;
		source = hr_path_join(from, e->d_name);
		target = hr_path_join(to, e->d_name);
		if (source == NULL || target == NULL)
			r = hr_err_nomem(err);
		else if (stat(source, &st) == 0 && S_ISDIR(st.st_mode))
			r = send_tree(s, source, target, depth + 1, err);
		else
			r = send_file(s, source, target, err);
	}
	if (r == 0 && errno != 0)
		r = hr_err_sys(err, errno, "read %s", from);
	if (r == 0 && !any)
		add_name(&s->empty, to);
	return r;
}

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* Runs the command on all names, with as many command lines as needed. */
static int
on_names(struct sending *s, const char *command, const struct hr_buf *names, const char *failed,
    struct hr_err *err)
{
	int status = 0, r = hr_buf_check(names, err);
	HR_BUF(b, HR_CLOUD_LINE_MAX);
	size_t at = 0;

	while (r == 0 && at < names->len) {
		hr_buf_reset(&b);
		hr_buf_adds(&b, command);
		for (; at < names->len && b.len < LINE_FULL; at += strlen(names->p + at) + 1) {
			hr_buf_addc(&b, ' ');
			hr_shell_quote(&b, names->p + at, strlen(names->p + at));
		}
		r = hr_buf_check(&b, err);
		if (r == 0)
			r = hr_cloud_helper(s->c, b.p, NULL, &status, err);
		if (r == 0 && status != 0)
			r = hr_err_set(err, HR_E_RUNTIME, "%s", failed);
	}
	return r;
}

int
hr_cloud_copy_to(void *self, const char *from, const char *to, bool recursive, struct hr_err *err)
{
	struct hr_cloud *c = self;
	struct sending s = {.c = c};
	HR_FREE char *place = hr_cloud_absolute(c, to, err);
	HR_FREE char *target = NULL;
	struct stat st;
	int status = 1, r = place != NULL ? 0 : -1;
	bool into;

	if (r == 0 && stat(from, &st) != 0)
		r = hr_err_set(err, HR_E_NOTFOUND, "Source path '%s' does not exist.", from);
	if (r == 0 && S_ISDIR(st.st_mode) && !recursive)
		r = hr_err_set(
		    err, HR_E_NOTFOUND, "Source path '%s' is not a valid file or directory.", from);
	if (r == 0)
		r = hr_cloud_keep(c, 0, err);
	into = r == 0 && (S_ISDIR(st.st_mode) || to[strlen(to) - 1] == '/');
	if (r == 0 && !into) {
		r = hr_cloud_helper_on(c, "[ -d ", place, " ]", NULL, &status, err);
		into = status == 0;
	}
	if (r == 0 && into && (target = hr_path_join(place, base_name(from))) == NULL)
		r = hr_err_nomem(err);
	hr_buf_init(&s.programs, NAMES_MAX);
	hr_buf_init(&s.empty, NAMES_MAX);
	if (r == 0)
		r = S_ISDIR(st.st_mode) ? send_tree(&s, from, target, 0, err)
					: send_file(&s, from, into ? target : place, err);
	if (r == 0)
		r = on_names(
		    &s, "mkdir -p --", &s.empty, "empty directories could not be made", err);
	if (r == 0)
		r = on_names(
		    &s, "chmod +x --", &s.programs, "programs could not be made executable", err);
	hr_buf_done(&s.programs);
	hr_buf_done(&s.empty);
	return r;
}

/* Parses the mode before a name and returns the name. */
static const char *
mode_of(const char *entry, mode_t *ret)
{
	char *end;
	const unsigned long mode = strtoul(entry, &end, 8);

	*ret = (mode_t)mode & 0777;
	return *end == ' ' ? end + 1 : end;
}

/* Downloads the files below path to `dir`; a name that ends with a slash makes an empty directory.
 * The sandbox chooses the names, so none may leave `dir`. */
static int
fetch_all(struct hr_cloud *c, const char *path, const struct hr_buf *names, const char *dir,
    struct hr_err *err)
{
	unsigned n = 0;
	int r = 0;
	size_t at;

	for (at = 0; r == 0 && at < names->len;) {
		mode_t mode;
		const char *name = mode_of(names->p + at, &mode);
		HR_FREE char *target = NULL;
		HR_FREE char *source = NULL;
		struct hr_err e = {0};
		HR_BUF(b, HR_CLOUD_FILE_MAX);

		at += strlen(names->p + at) + 1;
		if (++n > FILES_MAX)
			return hr_err_set(err, HR_E_INVAL,
			    "there are more than %d files in %s: copy a part of it", FILES_MAX,
			    path);
		if (hr_path_leads_out(name))
			return hr_err_set(
			    err, HR_E_INVAL, "the sandbox names a file that is not in %s", path);
		source = *name != '\0' ? hr_path_join(path, name) : strdup(path);
		target = hr_path_join(dir, *name != '\0' ? name : base_name(path));
		if (source == NULL || target == NULL)
			r = hr_err_nomem(err);
		else if (*name != '\0' && names->p[at - 2] == '/')
			r = hr_path_mkdirs(target, 0755, NULL, &e) < 0
				? hr_err_from(err, HR_E_SYS, &e)
				: 0;
		else if ((r = c->ops->get(c, source, &b, err)) == 0 &&
			 (r = hr_cloud_save(target, hr_buf_str(&b), b.len, err)) == 0 &&
			 chmod(target, mode | 0400) != 0)
			r = hr_err_sys(err, errno, "%s", target);
	}
	return r;
}

int
hr_cloud_copy_from(void *self, const char *path, char **ret_file, struct hr_err *err)
{
	struct hr_cloud *c = self;
	HR_FREE char *all = hr_cloud_absolute(c, path, err);
	HR_FREE char *dir = NULL;
	struct hr_err e = {0};
	HR_BUF(names, HR_CLOUD_REPLY_MAX);
	int status = 0, r;

	if (all == NULL || hr_cloud_mirror(c, err) < 0)
		return -1;
	r = hr_cloud_helper_on(c, "find -H ", all,
	    " \\( -type f -printf '%m %P\\0' -o -type d -empty -printf '%m ./%P/\\0' \\)", &names,
	    &status, err);
	if (r == 0 && status != 0)
		r = hr_err_set(err, HR_E_NOTFOUND, "Path not found: %s", path);
	if (r == 0 && (dir = hr_path_join(c->mirror, ".copy")) == NULL)
		r = hr_err_nomem(err);
	if (r == 0 && hr_path_mkdirs(dir, 0700, NULL, &e) < 0)
		r = hr_err_from(err, HR_E_SYS, &e);
	if (r == 0)
		r = hr_cloud_keep(c, 0, err);
	if (r == 0)
		r = fetch_all(c, all, &names, dir, err);
	if (r == 0 && (*ret_file = hr_zip_directory(dir, false, true, err)) == NULL)
		r = -1;
	if (dir != NULL)
		(void)hr_path_remove(dir, NULL);
	return r;
}

/* Lists names as the server does: directories with a slash; a file gives its own path. */
int
hr_cloud_list_files(void *self, const char *path, char **ret_json, struct hr_err *err)
{
	struct hr_cloud *c = self;
	HR_FREE char *all = hr_cloud_absolute(c, path != NULL ? path : ".", err);
	HR_BUF(names, HR_CLOUD_REPLY_MAX);
	HR_BUF(b, HR_CLOUD_REPLY_MAX);
	int status = 0, r;
	size_t at;

	if (all == NULL)
		return -1;
	r = hr_cloud_helper_on(c, "d=", all,
	    "; if [ -d \"$d\" ]; then find \"$d/\" -mindepth 1 -maxdepth 1 "
	    "\\( -type d -printf '%f/\\0' -o -printf '%f\\0' \\) | LC_ALL=C sort -z; "
	    "elif [ -e \"$d\" ]; then printf '%s\\0' \"$d\"; fi",
	    &names, &status, err);
	hr_buf_addc(&b, '[');
	for (at = 0; r == 0 && status == 0 && at < names.len;) {
		const char *name = names.p + at;

		at += strlen(name) + 1;
		hr_buf_adds(&b, b.len > 1 ? "," : "");
		(void)hr_json_put_str(&b, name, strlen(name), HR_JSON_REPLACE);
	}
	hr_buf_addc(&b, ']');
	if (r == 0 && (*ret_json = hr_buf_take(&b)) == NULL)
		r = hr_err_nomem(err);
	return r;
}
