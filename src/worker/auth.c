/* Session keys. The comparison is ours rather than CRYPTO_memcmp, which would bring all of
 * libcrypto into every worker for one loop. */
#include "config.h"

#include "worker/auth.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
hr_auth_set(struct hr_auth *a, const char *keys, size_t len, struct hr_err *err)
{
	size_t i;
	char *copy;

	a->keys = NULL;
	a->len = 0;
	if (len > HR_AUTH_BYTES_MAX)
		return hr_err_set(
		    err, HR_E_TOOLARGE, "more than %u bytes of keys", HR_AUTH_BYTES_MAX);
	for (i = 0; i < len && keys[i] == '\n'; i++)
		;
	if (i == len)
		return 0;
	copy = malloc(len);
	if (copy == NULL)
		return hr_err_nomem(err);
	memcpy(copy, keys, len);
	a->keys = copy;
	a->len = len;
	return 0;
}

int
hr_auth_read(struct hr_auth *a, int fd, struct hr_err *err)
{
	char *buf = malloc(HR_AUTH_BYTES_MAX + 1);
	size_t len = 0;
	ssize_t n = 1;
	int r;

	if (buf == NULL)
		return hr_err_nomem(err);
	/* pread: the other workers share the descriptor's offset */
	while (n > 0 && len <= HR_AUTH_BYTES_MAX) {
		n = pread(fd, buf + len, HR_AUTH_BYTES_MAX + 1 - len, (off_t)len);
		if (n > 0)
			len += (size_t)n;
		else if (n < 0 && errno == EINTR)
			n = 1;
	}
	r = n < 0 ? hr_err_sys(err, errno, "keys") : hr_auth_set(a, buf, len, err);
	explicit_bzero(buf, len); /* the rest was never touched, and takes no memory */
	free(buf);
	return r;
}

void
hr_auth_done(struct hr_auth *a)
{
	if (a->keys != NULL)
		explicit_bzero(a->keys, a->len);
	free(a->keys);
	a->keys = NULL;
	a->len = 0;
}

/* Looks at every byte of the value whatever the key; the key's length is no secret. The volatile
 * keeps the compiler from leaving early. */
static bool
key_equals(const char *key, size_t key_len, const char *value, size_t len)
{
	volatile unsigned char diff = key_len != len;
	size_t i;

	for (i = 0; i < len; i++)
		diff |= (unsigned char)(value[i] ^ key[i % key_len]);
	return diff == 0;
}

bool
hr_auth_passes(const struct hr_auth *a, const char *value)
{
	const char *key = a->keys, *end, *next;
	size_t len = strlen(value);
	bool found = false;

	if (key == NULL)
		return true;
	end = key + a->len;
	while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
		len--;
	for (; len > 0 && (*value == ' ' || *value == '\t'); len--)
		value++;
	for (; key < end; key = next + 1) {
		next = memchr(key, '\n', (size_t)(end - key));
		if (next == NULL)
			next = end;
		if (next > key)
			found |= key_equals(key, (size_t)(next - key), value, len);
	}
	return found;
}
