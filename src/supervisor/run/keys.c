/* Keeps session keys. Invariant: after each call no copy of a key is left in this process's
 * memory. */
#include "config.h"

#include "supervisor/run/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/random.h"

#define KEYS_MAX 65536 /* maximum bytes of a key file, and so at most half as many keys */

/* Handles a key; no other function sees one. */
static void
key_take(struct hr_key *ret, const struct hr_keys *k, const char *key, size_t len)
{
	hr_keysum(k->salt, key, len, ret->sum);
	hr_edgekey_sum(k->salt, key, len, ret->edge);
}

static void
keys_replace(struct hr_keys *k, struct hr_keys *by)
{
	by->from_environment = k->from_environment;
	hr_keys_done(k);
	*k = *by;
}

/* Parses one key per line; ignores empty lines and trailing carriage returns. */
static int
keys_take(struct hr_keys *k, const char *text, size_t len, struct hr_err *err)
{
	const char *at, *nl, *end = text + len;
	struct hr_keys fresh = {.count = 0};
	size_t lines = 1, n;

	for (at = text; at < end && (nl = memchr(at, '\n', (size_t)(end - at))) != NULL;
	     at = nl + 1)
		lines++;
	fresh.v = calloc(lines, sizeof(*fresh.v));
	if (fresh.v == NULL)
		return hr_err_nomem(err);
	if (hr_random(fresh.salt, sizeof(fresh.salt), err) < 0) {
		hr_err_prefix(err, "salt for the keys");
		hr_keys_done(&fresh);
		return -1;
	}
	for (at = text; at < end; at = nl + 1) {
		nl = memchr(at, '\n', (size_t)(end - at));
		if (nl == NULL)
			nl = end;
		n = (size_t)(nl - at);
		if (n > 0 && at[n - 1] == '\r')
			n--;
		if (n == 0)
			continue;
		key_take(&fresh.v[fresh.count++], &fresh, at, n);
		if (n > fresh.longest)
			fresh.longest = (uint32_t)n;
	}
	keys_replace(k, &fresh);
	return 0;
}

int
hr_keys_take_environment(struct hr_keys *k, struct hr_err *err)
{
	char *value = getenv("SESSION_API_KEY");
	size_t len = value != NULL ? strlen(value) : 0;
	int r = 0;

	if (len > 0) {
		r = strchr(value, '\n') != NULL
			? hr_err_set(err, HR_E_INVAL, "SESSION_API_KEY must not have a line feed")
			: keys_take(k, value, len, err);
		k->from_environment = true;
	}
	/* /proc/PID/environ shows these bytes, and unsetenv() does not erase them */
	if (value != NULL)
		explicit_bzero(value, len);
	(void)unsetenv("SESSION_API_KEY"); /* fails only for an empty name */
	return r;
}

/* Refuses an empty file, which would disable authentication by accident. */
static int
keys_read(struct hr_keys *k, int fd, const char *name, struct hr_err *err)
{
	struct hr_keys fresh = {.count = 0};
	HR_FREE char *text = malloc(KEYS_MAX);
	ssize_t n = text != NULL ? hr_fd_read_full(fd, text, KEYS_MAX, err) : hr_err_nomem(err);
	int r = -1;

	if (n == KEYS_MAX)
		(void)hr_err_set(
		    err, HR_E_TOOLARGE, "%s: too large for a file of keys, one on each line", name);
	else if (n >= 0 && memchr(text, '\0', (size_t)n) != NULL)
		(void)hr_err_set(err, HR_E_INVAL, "%s: must not contain a NUL byte", name);
	else if (n >= 0)
		r = keys_take(&fresh, text, (size_t)n, err);
	if (text != NULL)
		explicit_bzero(text, KEYS_MAX);
	if (r == 0 && fresh.count == 0)
		r = hr_err_set(err, HR_E_INVAL, "%s: has no key; write one on each line", name);
	if (r == 0)
		keys_replace(k, &fresh);
	else
		hr_keys_done(&fresh);
	return r;
}

int
hr_keys_read_file(struct hr_keys *k, const char *path, struct hr_err *err)
{
	HR_CLOSE int fd = -1;

	if (k->from_environment)
		return 0;
	if (path[0] == '\0') {
		hr_keys_done(k);
		return 0;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return hr_err_sys(err, errno, "%s", path);
	return keys_read(k, fd, path, err);
}

void
hr_keys_tell(const struct hr_keys *k, size_t from, size_t room, struct hr_buf *ret)
{
	struct hr_keysum_head head = {.count = (uint32_t)k->count, .longest = k->longest};
	size_t i, n = (room - sizeof(head)) / HR_KEYSUM;

	memcpy(head.salt, k->salt, sizeof(head.salt));
	hr_buf_add(ret, (const char *)&head, sizeof(head));
	for (i = from; i < k->count && i - from < n; i++)
		hr_buf_add(ret, (const char *)k->v[i].sum, HR_KEYSUM);
}

/* ---- handing over ---- */

int
hr_keys_hand_over(const struct hr_keys *k, struct hr_err *err)
{
	struct hr_keysum_head head = {.count = (uint32_t)k->count, .longest = k->longest};
	int fd = memfd_create("handrail-sums", MFD_CLOEXEC);

	if (fd < 0)
		return hr_err_sys(err, errno, "memory file for the keys' sums");
	memcpy(head.salt, k->salt, sizeof(head.salt));
	if (hr_fd_write_full(fd, &head, sizeof(head), err) == 0 &&
	    hr_fd_write_full(fd, k->v, k->count * sizeof(*k->v), err) == 0)
		return fd;
	hr_fd_close(&fd);
	return -1;
}

int
hr_keys_inherit(struct hr_keys *k, int fd, struct hr_err *err)
{
	struct hr_keys fresh = {.count = 0};
	struct hr_keysum_head head;
	size_t size;

	/* the process that checked the upgrade has moved the shared offset */
	if (lseek(fd, 0, SEEK_SET) != 0 ||
	    hr_fd_read_full(fd, &head, sizeof(head), NULL) != (ssize_t)sizeof(head) ||
	    head.count == 0 || head.count > KEYS_MAX)
		return hr_err_set(err, HR_E_PROTO, "the keys were not handed over");
	size = head.count * sizeof(*fresh.v);
	fresh.v = malloc(size);
	if (fresh.v == NULL)
		return hr_err_nomem(err);
	if (hr_fd_read_full(fd, fresh.v, size, NULL) != (ssize_t)size) {
		free(fresh.v);
		return hr_err_set(err, HR_E_PROTO, "the keys were not handed over");
	}
	memcpy(fresh.salt, head.salt, sizeof(fresh.salt));
	fresh.count = head.count;
	fresh.longest = head.longest;
	keys_replace(k, &fresh);
	k->from_environment = true;
	return 0;
}

void
hr_keys_done(struct hr_keys *k)
{
	bool from_environment = k->from_environment;

	free(k->v);
	*k = (struct hr_keys){.from_environment = from_environment};
}
