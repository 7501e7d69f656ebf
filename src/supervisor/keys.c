/* Session keys. Invariant: after each call no copy of a key is left in this process's memory. */
#include "config.h"

#include "supervisor/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/fd.h"

#define KEYS_MAX 65536 /* bytes of a key file */

static int
keys_seal(int fd, struct hr_err *err)
{
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return hr_err_sys(err, errno, "memory file for the keys: seal");
	if (lseek(fd, 0, SEEK_SET) != 0)
		return hr_err_sys(err, errno, "memory file for the keys");
	return 0;
}

static int
keys_memory(struct hr_err *err)
{
	int fd = memfd_create("handrail-keys", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd >= 0 ? fd : hr_err_sys(err, errno, "memory file for the keys");
}

static int
keys_store(struct hr_keys *k, const char *text, size_t len, size_t count, struct hr_err *err)
{
	int fd = keys_memory(err);

	if (fd < 0)
		return -1;
	if (hr_fd_write_full(fd, text, len, err) != 0 || keys_seal(fd, err) != 0) {
		hr_fd_close(&fd);
		return -1;
	}
	hr_fd_close(&k->fd);
	k->fd = fd;
	k->count = count;
	return 0;
}

int
hr_keys_copy(const struct hr_keys *k, struct hr_err *err)
{
	int fd = keys_memory(err);
	off_t at = 0;
	ssize_t n;

	if (fd < 0)
		return -1;
	do {
		n = sendfile(fd, k->fd, &at, KEYS_MAX);
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (n < 0)
		(void)hr_err_sys(err, errno, "memory file for the keys: copy");
	else if (keys_seal(fd, err) == 0)
		return fd;
	hr_fd_close(&fd);
	return -1;
}

int
hr_keys_take_environment(struct hr_keys *k, struct hr_err *err)
{
	char *value = getenv("SESSION_API_KEY");
	size_t len = value != NULL ? strlen(value) : 0;
	char *line;
	int r = 0;

	if (len > 0 && strchr(value, '\n') != NULL)
		r = hr_err_set(err, HR_E_INVAL, "SESSION_API_KEY holds a line feed");
	if (len > 0 && r == 0) {
		line = malloc(len + 1);
		if (line == NULL) {
			r = hr_err_nomem(err);
		} else {
			memcpy(line, value, len);
			line[len] = '\n';
			r = keys_store(k, line, len + 1, 1, err);
			explicit_bzero(line, len);
			free(line);
		}
		k->from_environment = true;
	}
	/* /proc/PID/environ shows these very bytes; unsetenv alone leaves them */
	if (value != NULL)
		explicit_bzero(value, len);
	(void)unsetenv("SESSION_API_KEY"); /* fails only for an empty name */
	return r;
}

/* Drops empty lines and carriage returns in place; the new length. */
static size_t
tidy_lines(char *text, size_t len, size_t *ret_count)
{
	size_t in = 0, out = 0;

	*ret_count = 0;
	while (in < len) {
		char *nl = memchr(text + in, '\n', len - in);
		size_t end = nl != NULL ? (size_t)(nl - text) : len, n = end - in;

		if (n > 0 && text[end - 1] == '\r')
			n--;
		if (n > 0) {
			memmove(text + out, text + in, n);
			out += n;
			text[out++] = '\n'; /* fits: the buffer has one byte more than the file */
			++*ret_count;
		}
		in = end + 1;
	}
	return out;
}

int
hr_keys_read_file(struct hr_keys *k, const char *path, struct hr_err *err)
{
	char *text;
	size_t count;
	ssize_t n;
	int fd, r = -1;

	if (k->from_environment)
		return 0;
	if (path[0] == '\0')
		return keys_store(k, "", 0, 0, err);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return hr_err_sys(err, errno, "%s", path);
	text = malloc(KEYS_MAX + 1);
	n = text != NULL ? hr_fd_read_full(fd, text, KEYS_MAX, err) : hr_err_nomem(err);
	if (n == KEYS_MAX)
		(void)hr_err_set(err, HR_E_TOOLARGE, "%s: not a file of keys", path);
	else if (n >= 0 && memchr(text, '\0', (size_t)n) != NULL)
		(void)hr_err_set(err, HR_E_INVAL, "%s: holds a NUL", path);
	else if (n >= 0) {
		size_t len = tidy_lines(text, (size_t)n, &count);

		/* an empty file must not switch authentication off by accident */
		r = count > 0 ? keys_store(k, text, len, count, err)
			      : hr_err_set(err, HR_E_INVAL, "%s: holds no key", path);
	}
	if (text != NULL)
		explicit_bzero(text, KEYS_MAX + 1);
	free(text);
	hr_fd_close(&fd);
	return r;
}

void
hr_keys_done(struct hr_keys *k)
{
	hr_fd_close(&k->fd);
	k->count = 0;
}
