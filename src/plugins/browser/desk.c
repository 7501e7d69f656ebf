/* Keeps the state that outlives a Chromium: the download directory, the downloads already reported,
 * and the open tabs. It is saved after each action, in case this process ends. */
#include "config.h"

#include "plugins/browser/step.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/text/percent.h"
#include "proto/json.h"

#define STATE_MAX (8u << 20)
#define SEEN_MAX 100000
#define COPY_STEP 65536

static char *
state_file(const struct br_desk *d)
{
	return hr_path_join(d->state_dir, "desk.json");
}

static void
read_state(struct br_desk *d)
{
	struct json_object *seen, *tabs;
	HR_PUT struct json_object *o = NULL;
	HR_BUF(text, STATE_MAX);
	HR_FREE char *path = state_file(d);

	if (path == NULL || hr_path_read(path, &text, NULL) != 0 ||
	    hr_json_decode(text.p, text.len, &o, NULL) != 0)
		return;
	seen = hr_json_at(o, "seen");
	tabs = hr_json_at(o, "tabs");
	if (hr_json_type(seen) == HR_PY_LIST)
		d->seen = json_object_get(seen);
	if (hr_json_type(tabs) == HR_PY_LIST && hr_json_count(tabs) > 0) {
		d->tabs = json_object_get(tabs);
		d->active = hr_json_int_at(o, "active");
		d->lost = true;
	}
}

void
br_desk_save(const struct br_desk *d)
{
	struct hr_err err = {0};
	HR_BUF(text, STATE_MAX);
	HR_FREE char *path = state_file(d);

	hr_buf_adds(&text, "{\"seen\":");
	(void)hr_json_put(&text, d->seen);
	hr_buf_adds(&text, ",\"tabs\":");
	(void)hr_json_put(&text, d->tabs);
	hr_buf_addf(&text, ",\"active\":%lld}", (long long)d->active);
	if (path == NULL || hr_buf_check(&text, &err) != 0 ||
	    hr_path_write(path, text.p, text.len, 0600, &err) != 0)
		hr_log(HR_LOG_WARNING, "cannot save the list of tabs: %s", err.msg);
}

int
br_desk_open(struct br_desk *d, const char *dir, const char *state_dir, struct hr_err *err)
{
	memset(d, 0, sizeof(*d));
	d->dir = dir;
	d->state_dir = state_dir;
	d->downloads = hr_path_join(dir, ".downloads");
	if (d->downloads == NULL)
		return hr_err_nomem(err);
	read_state(d);
	if (d->seen == NULL)
		d->seen = json_object_new_array();
	if (d->tabs == NULL)
		d->tabs = json_object_new_array();
	return d->seen != NULL && d->tabs != NULL ? 0 : hr_err_nomem(err);
}

void
br_desk_close(struct br_desk *d)
{
	json_object_put(d->seen);
	json_object_put(d->tabs);
	free(d->downloads);
	d->seen = d->tabs = NULL;
	d->downloads = NULL;
}

/* ---- downloads ---- */

static bool
was_seen(const struct br_desk *d, const char *name)
{
	size_t i, n = json_object_array_length(d->seen);

	for (i = 0; i < n; i++)
		if (hr_json_str_is(json_object_array_get_idx(d->seen, i), name))
			return true;
	return false;
}

/* Returns the extension for a file's content, or "" if it is unknown. */
static const char *
extension(const unsigned char *p, size_t len)
{
	static const struct {
		const char *ext, *magic;
		size_t len, at;
	} known[] = {
	    {".pdf", "%PDF", 4, 0},
	    {".zip", "PK\3\4", 4, 0},
	    {".zip", "PK\5\6", 4, 0},
	    {".png", "\x89PNG\r\n\x1a\n", 8, 0},
	    {".jpg", "\xff\xd8\xff", 3, 0},
	    {".gif", "GIF8", 4, 0},
	    {".webp", "WEBP", 4, 8},
	    {".gz", "\x1f\x8b", 2, 0},
	    {".bz2", "BZh", 3, 0},
	    {".xz",
		"\xfd"
		"7zXZ\0",
		6, 0},
	    {".7z", "7z\xbc\xaf\x27\x1c", 6, 0},
	    {".rar", "Rar!\x1a\x07", 6, 0},
	    {".tar", "ustar", 5, 257},
	    {".mp4", "ftyp", 4, 4},
	    {".mp3", "ID3", 3, 0},
	    {".wav", "WAVE", 4, 8},
	    {".ogg", "OggS", 4, 0},
	    {".rtf", "{\\rtf", 5, 0},
	    {".xml", "<?xml", 5, 0},
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (len >= known[i].at + known[i].len &&
		    memcmp(p + known[i].at, known[i].magic, known[i].len) == 0)
			return known[i].ext;
	return "";
}

/* Copies the file into the workspace. An existing file is replaced, as by the original, but a
 * link's target is not. */
static int
copy_in(const struct br_desk *d, const char *name, size_t number, char **ret, struct hr_err *err)
{
	char step[COPY_STEP], target[64];
	HR_FREE char *from = hr_path_join(d->downloads, name);
	HR_CLOSE int in = -1;
	HR_CLOSE int out = -1;
	int r = -1;
	ssize_t n;

	if (from == NULL)
		return hr_err_nomem(err);
	in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (in < 0)
		return hr_err_sys(err, errno, "%s", from);
	n = hr_fd_read_full(in, step, sizeof(step), err);
	if (n < 0)
		return -1;
	(void)snprintf(target, sizeof(target), "file_%zu%s", number,
	    extension((const unsigned char *)step, (size_t)n));
	*ret = hr_path_join(d->dir, target);
	if (*ret != NULL) {
		(void)unlink(*ret);
		out = open(*ret, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	}
	if (out < 0) {
		(void)hr_err_sys(err, errno, "%s", target);
	} else {
		do
			r = hr_fd_write_full(out, step, (size_t)n, err);
		while (r == 0 && (n = hr_fd_read_full(in, step, sizeof(step), err)) > 0);
		if (n < 0)
			r = -1;
	}
	if (r != 0) {
		free(*ret);
		*ret = NULL;
	}
	return r;
}

int
br_desk_download(struct br_desk *d, char **ret, struct hr_err *err)
{
	DIR *dir = opendir(d->downloads);
	struct dirent *e;
	HR_FREE char *name = NULL;
	HR_BUF(seen, 3 * NAME_MAX); /* holds the name in ASCII, as names need not be UTF-8 */

	*ret = NULL;
	if (dir == NULL && errno == ENOENT)
		return 0; /* Chromium makes the directory with the first download */
	if (dir == NULL)
		return hr_err_sys(err, errno, "%s", d->downloads);
	while (name == NULL && (e = readdir(dir)) != NULL) {
		size_t len = strlen(e->d_name);
		struct stat st;

		hr_buf_reset(&seen);
		hr_percent_encode(&seen, e->d_name, " ");
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode) || was_seen(d, hr_buf_str(&seen)))
			continue;
		if (len > 11 && strcmp(e->d_name + len - 11, ".crdownload") == 0)
			continue; /* the download is incomplete */
		name = strdup(e->d_name);
	}
	(void)closedir(dir);
	if (name == NULL)
		return 0;
	if (json_object_array_length(d->seen) < SEEN_MAX)
		(void)json_object_array_add(d->seen, json_object_new_string(hr_buf_str(&seen)));
	return copy_in(d, name, json_object_array_length(d->seen), ret, err);
}
