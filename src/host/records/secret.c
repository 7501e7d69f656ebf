/* Keeps secrets in files. */
#include "config.h"

#include "host/records/secret.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/dir.h"
#include "base/err.h"
#include "base/path.h"
#include "base/strv.h"
#include "base/text/utf8.h"
#include "host/common/statedir.h"
#include "host/config/settings.h"
#include "host/records/record.h"

#define BELOW "secrets"
#define NAME_MAX_BYTES 64

int
hr_secret_name(const char *name, struct hr_err *err)
{
	size_t n = strlen(name);

	if (n > 0 && n <= NAME_MAX_BYTES &&
	    strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == n)
		return 0;
	return hr_err_set(err, HR_E_INVAL,
	    "invalid name of a secret \"%.80s\": use 1 to %d letters, digits, '-' and '_'", name,
	    NAME_MAX_BYTES);
}

/* Returns the path of a secret, or of their directory for NULL, which the caller frees; NULL with
 * *err set. The pool's sandboxes have the secrets of the directory above. */
static char *
path_of(const char *state_dir, const char *name, struct hr_err *err)
{
	HR_FREE char *top = NULL;
	HR_FREE char *dir = NULL;
	size_t n = strlen(state_dir), pool = strlen(HR_POOL_BELOW);
	char *path;

	if (name != NULL && hr_secret_name(name, err) < 0)
		return NULL;
	if (n > pool && strcmp(state_dir + n - pool, HR_POOL_BELOW) == 0)
		n -= pool;
	top = strndup(state_dir, n);
	dir = top != NULL ? hr_path_join(top, BELOW) : NULL;
	path = dir == NULL ? NULL : name != NULL ? hr_path_join(dir, name) : strdup(dir);
	return path != NULL ? path : hr_err_null(err);
}

/* Refuses a value that cannot become part of a header and of JSON. */
static int
check(const char *name, const char *value, size_t len, struct hr_err *err)
{
	const char *at, *end = value + len;
	size_t n;
	int32_t cp;

	if (len < HR_SECRET_MIN || len > HR_SECRET_MAX)
		return hr_err_set(err, HR_E_INVAL,
		    "the secret \"%s\" has %zu bytes: it must have %d to %u", name, len,
		    HR_SECRET_MIN, HR_SECRET_MAX);
	for (at = value; at < end; at += n) {
		cp = hr_utf8_next(at, end, &n);
		if (cp < 0x20 || cp == 0x7f)
			return hr_err_set(err, HR_E_INVAL,
			    "the secret \"%s\" must be UTF-8 without line ends and other control "
			    "characters",
			    name);
	}
	return 0;
}

int
hr_secret_set(
    const char *state_dir, const char *name, const char *value, size_t len, struct hr_err *err)
{
	HR_FREE char *path = path_of(state_dir, name, err);
	HR_FREE char *dir = path != NULL ? path_of(state_dir, NULL, err) : NULL;

	return dir != NULL && check(name, value, len, err) == 0 &&
		       hr_state_directory(dir, true, err) == 0
		   ? hr_path_write(path, value, len, 0600, err)
		   : -1;
}

/* Reads a file without its final line end. Returns 1, 0 if there is none, or -1 with *err set. */
static int
read_file(const char *path, struct hr_buf *ret, struct hr_err *err)
{
	struct hr_err e = {0};

	if (hr_path_read(path, ret, &e) < 0)
		return e.sys == ENOENT ? 0 : hr_err_pass(err, &e);
	while (ret->len > 0 && (ret->p[ret->len - 1] == '\n' || ret->p[ret->len - 1] == '\r'))
		ret->p[--ret->len] = '\0';
	return 1;
}

int
hr_secret_get(const char *state_dir, const char *const *env, const char *name, struct hr_buf *ret,
    struct hr_err *err)
{
	HR_FREE char *path = path_of(state_dir != NULL ? state_dir : "", name, err);
	const char *credentials = hr_env_get(env, "CREDENTIALS_DIRECTORY");
	HR_FREE char *other = NULL;
	HR_BUF(text, HR_SECRET_MAX + 2);
	int r;

	if (path == NULL)
		return -1;
	r = state_dir != NULL ? read_file(path, &text, err) : 0;
	if (r == 0 && credentials != NULL) {
		other = hr_path_join(credentials, name);
		r = other != NULL ? read_file(other, &text, err) : hr_err_nomem(err);
	}
	if (r == 0)
		return hr_err_set(err, HR_E_NOTFOUND,
		    "there is no secret \"%s\": \"handrail secret set %s\" reads its value from "
		    "standard input",
		    name, name);
	if (r < 0 || check(name, hr_buf_str(&text), text.len, err) < 0)
		return -1;
	hr_buf_add(ret, text.p, text.len);
	return hr_buf_check(ret, err);
}

int
hr_secret_remove(const char *state_dir, const char *name, struct hr_err *err)
{
	HR_FREE char *path = path_of(state_dir, name, err);

	if (path == NULL)
		return -1;
	if (hr_path_unlink(path) == 0)
		return 0;
	return errno == ENOENT
		   ? hr_err_set(err, HR_E_NOTFOUND,
			 "there is no secret \"%s\"; \"handrail secret list\" lists them", name)
		   : hr_err_sys(err, errno, "remove %s", path);
}

/* Adds the names in a directory that are not in the list yet; a missing directory has none. */
static int
add_names(const char *path, struct hr_strv *ret, struct hr_err *err)
{
	HR_CLOSEDIR DIR *dir = opendir(path);
	const size_t before = ret->n;
	const struct dirent *e;
	size_t i;

	if (dir == NULL)
		return errno == ENOENT ? 0 : hr_err_sys(err, errno, "read %s", path);
	while ((e = hr_dir_next(dir)) != NULL) {
		for (i = 0; i < before && strcmp(ret->v[i], e->d_name) != 0;)
			i++;
		if (i == before && hr_secret_name(e->d_name, NULL) == 0)
			hr_strv_add(ret, e->d_name);
	}
	return ret->failed  ? hr_err_nomem(err)
	       : errno != 0 ? hr_err_sys(err, errno, "read %s", path)
			    : 0;
}

int
hr_secret_list(
    const char *state_dir, const char *const *env, struct hr_strv *ret, struct hr_err *err)
{
	HR_FREE char *dir = path_of(state_dir, NULL, err);
	const char *credentials = hr_env_get(env, "CREDENTIALS_DIRECTORY");

	if (dir == NULL || add_names(dir, ret, err) < 0 ||
	    (credentials != NULL && add_names(credentials, ret, err) < 0))
		return -1;
	if (ret->n > 1)
		qsort(ret->v, ret->n, sizeof(*ret->v), hr_strv_compare);
	return 0;
}
