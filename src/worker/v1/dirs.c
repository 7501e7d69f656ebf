/* Makes and lists directories for the pickers of V1 clients, which choose a workspace. A directory
 * whose name is not UTF-8 is not listed. */
#include "config.h"

#include "worker/v1/v1.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/strv.h"
#include "base/text/utf8.h"
#include "files/place/oserror.h"
#include "files/place/reach.h"
#include "files/place/target.h"
#include "files/purepath.h"
#include "proto/python/lower.h"

#define FAVORITES 50
#define KEY_MAX (16u * 256)
#define KEYS_MAX (64u << 20) /* bytes of a directory's keys */

static void
fail(struct hr_rex_call *c, const struct hr_buf *why, int sys, const char *otherwise)
{
	HR_BUF(text, HR_TARGET_TEXT_MAX);
	bool denied = sys == EACCES || sys == EPERM;

	hr_buf_addf(&text, "%s: %s", denied ? "Permission denied" : otherwise, hr_buf_str(why));
	hr_answer_detail(c->ret, denied ? 403 : 500, hr_buf_str(&text));
}

/* Returns true if the path or one of its parents is no directory: hr_target_mkdirs() accepts any
 * that exists, and refuses a link that leads nowhere as if it were forbidden. */
static bool
is_taken(const struct hr_buf *path)
{
	HR_BUF(part, HR_TARGET_TEXT_MAX);
	struct stat st;
	size_t n;
	bool taken = false;

	for (n = 1; n <= path->len && !taken; n++) {
		if (path->p[n] != '/' && path->p[n] != '\0')
			continue;
		hr_buf_reset(&part);
		hr_buf_add(&part, path->p, n);
		taken = stat(hr_buf_str(&part), &st) == 0
			    ? !S_ISDIR(st.st_mode)
			    : errno != EACCES && lstat(part.p, &st) == 0;
	}
	return taken;
}

void
hr_v1_make_directory(struct hr_rex_call *c, const struct hr_buf *path)
{
	HR_BUF(why, HR_TARGET_TEXT_MAX);
	struct hr_account_own own;
	bool fine, taken;
	size_t made;
	int sys = 0;

	/* the directory is for commands, which run as the shell's account */
	if (hr_reach_enter(&own) < 0) {
		hr_answer_generic(c->ret);
		return;
	}
	fine = hr_target_mkdirs(path->p, &made, &why) == 0;
	taken = is_taken(path); /* as far as that account sees */
	hr_account_leave(&own);
	(void)sscanf(hr_buf_str(&why), "[Errno %d]", &sys);
	if (sys == EEXIST || sys == ENOTDIR || taken)
		hr_answer_detail(c->ret, 400, "Path exists and is not a directory");
	else if (fine)
		hr_buf_adds(&c->ret->body, "{\"success\":true}");
	else
		fail(c, &why, sys, "Failed to create directory");
}

/* ---- lists ---- */

/* Returns the name of a key, which is the name in lower case, a NUL, and the name. */
static const char *
name_of(const char *key)
{
	return key + strlen(key) + 1;
}

static int
compare(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	int c = strcmp(x, y);

	return c != 0 ? c : strcmp(name_of(x), name_of(y));
}

/* Reads the sorted keys of the directories in a directory. Returns 0 or an errno. */
static int
read_keys(const struct hr_rex_call *c, const char *path, bool hidden, struct hr_strv *keys)
{
	HR_CLOSEDIR DIR *d = hr_dir_take(hr_reach_keep_out(
	    c->w->run_dir, hr_reach_open_as(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, false), false));
	struct dirent *e;
	size_t bytes = 0;
	int sys;

	while (d != NULL && (e = hr_dir_next(d)) != NULL) {
		HR_BUF(key, KEY_MAX);
		size_t n = strlen(e->d_name);

		if ((e->d_name[0] == '.' && !hidden) || !hr_utf8_strict(e->d_name, n) ||
		    !hr_dir_is_directory(dirfd(d), e))
			continue;
		hr_pylower(&key, e->d_name, n);
		hr_buf_addc(&key, '\0');
		hr_buf_adds(&key, e->d_name);
		bytes += key.room + sizeof(*keys->v);
		if (bytes > KEYS_MAX)
			return EFBIG;
		hr_strv_take(keys, hr_buf_take(&key));
	}
	sys = errno;
	if (keys->n > 0 && !keys->failed)
		qsort(keys->v, keys->n, sizeof(*keys->v), compare);
	return sys;
}

static void
put_entries(struct hr_buf *b, const char *label, const struct hr_buf *directory,
    const struct hr_strv *keys, size_t from, size_t to)
{
	HR_BUF(path, HR_TARGET_TEXT_MAX);
	size_t i;

	hr_buf_addc(b, '[');
	for (i = from; i < to; i++) {
		hr_buf_reset(&path);
		hr_buf_addf(&path, "%s%s%s", directory->p,
		    directory->p[directory->len - 1] == '/' ? "" : "/", name_of(keys->v[i]));
		hr_buf_adds(b, i > from ? ",{" : "{");
		hr_json_put_named(b, label, name_of(keys->v[i]));
		hr_json_put_named(b, "path", hr_buf_str(&path));
		hr_buf_addc(b, '}');
		if (path.fail != HR_OK)
			b->fail = path.fail;
	}
	hr_buf_addc(b, ']');
	if (keys->failed)
		b->fail = HR_E_NOMEM;
}

static void
refuse(struct hr_rex_call *c, const char *path, int sys)
{
	HR_BUF(why, HR_TARGET_TEXT_MAX);
	HR_CLOSE int fd = sys == ENOTDIR ? hr_reach_open_as(AT_FDCWD, path, O_PATH, false) : -1;

	if (fd >= 0) {
		hr_answer_detail(c->ret, 400, "Path is not a directory");
	} else if (sys == ENOENT || sys == ENOTDIR || sys == ELOOP) {
		hr_answer_detail(c->ret, 404, "Directory not found");
	} else {
		(void)hr_oserror_put(&why, sys, path);
		fail(c, &why, sys, "Failed to list directory");
	}
}

/* Finds the first entry of a page: the name itself or, from clients of older servers, the name in
 * lower case. */
static size_t
find_page(const struct hr_strv *keys, const char *page)
{
	size_t i, old = 0;

	for (i = keys->n; i > 0; i--) {
		if (strcmp(name_of(keys->v[i - 1]), page) == 0)
			return i - 1;
		if (strcmp(keys->v[i - 1], page) == 0)
			old = i - 1;
	}
	return old;
}

void
hr_v1_subdirectories(
    struct hr_rex_call *c, const struct hr_buf *path, const struct hr_v1_listing *l)
{
	HR_CLEAN(hr_strv_done) struct hr_strv keys = {0};
	HR_BUF(page, KEY_MAX);
	struct hr_buf *b = &c->ret->body;
	size_t from, to;
	int sys;

	sys = read_keys(c, path->p, l->hidden, &keys);
	if (sys != 0) {
		refuse(c, path->p, sys);
		return;
	}
	(void)hr_request_query(c->r, "page_id", &page);
	from = find_page(&keys, hr_buf_str(&page));
	to = keys.n - from > (size_t)l->limit ? from + (size_t)l->limit : keys.n;
	hr_buf_adds(b, "{\"items\":");
	put_entries(b, "name", path, &keys, from, to);
	hr_json_put_named(b, "next_page_id", to < keys.n ? name_of(keys.v[to]) : NULL);
	hr_buf_addc(b, '}');
}

/* Finds the home of the shell's account, which the shell gets, too. */
static void
put_home(const struct hr_rex_call *c, struct hr_buf *b)
{
	const char *own = getenv("HOME");
	const struct passwd *pw = getpwuid(c->w->shell_uid);

	if (c->w->shell_uid != geteuid() || own == NULL || own[0] != '/')
		own = pw != NULL && pw->pw_dir[0] == '/' ? pw->pw_dir : "/";
	hr_purepath_put(b, own, strlen(own));
}

void
hr_v1_home(struct hr_rex_call *c)
{
	HR_CLEAN(hr_strv_done) struct hr_strv keys = {0};
	HR_BUF(home, HR_TARGET_TEXT_MAX);
	struct hr_buf *b = &c->ret->body;
	bool hidden = false;

	if (!hr_v1_truth(c, "include_hidden", &hidden))
		return;
	put_home(c, &home);
	(void)read_keys(
	    c, hr_buf_str(&home), hidden, &keys); /* an unreadable home has no entries */
	hr_buf_addc(b, '{');
	hr_json_put_named(b, "home", hr_buf_str(&home));
	hr_buf_adds(b, ",\"favorites\":");
	put_entries(b, "label", &home, &keys, 0, keys.n < FAVORITES ? keys.n : FAVORITES);
	hr_buf_adds(b, ",\"locations\":[{\"label\":\"/\",\"path\":\"/\"}]}");
}
