/* Computes digests with libmd, which is small: libcrypto takes longer to load than the rest of the
 * command. */
#include "config.h"

#include "image/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include <md5.h>
#include <sha2.h>

#include "base/fd.h"
#include "base/text/quote.h"

#define FILE_PIECE 65536

struct hr_digest {
	enum hr_digest_kind kind;
	union {
		MD5_CTX md5;
		SHA2_CTX sha2;
	} ctx;
};

struct hr_digest *
hr_digest_new(enum hr_digest_kind kind, struct hr_err *err)
{
	struct hr_digest *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return hr_err_null(err);
	d->kind = kind;
	if (kind == HR_DIGEST_MD5)
		MD5Init(&d->ctx.md5);
	else
		SHA256Init(&d->ctx.sha2);
	return d;
}

void
hr_digest_free(struct hr_digest *d)
{
	free(d);
}

void
hr_digest_add(struct hr_digest *d, const void *p, size_t len)
{
	if (d->kind == HR_DIGEST_MD5)
		MD5Update(&d->ctx.md5, p, len);
	else
		SHA256Update(&d->ctx.sha2, p, len);
}

static int
digest_add_fd(struct hr_digest *d, int fd, const char *path, struct hr_err *err)
{
	HR_FREE char *piece = malloc(FILE_PIECE);
	ssize_t n;

	if (piece == NULL)
		return hr_err_nomem(err);
	while ((n = hr_fd_read(fd, piece, FILE_PIECE)) > 0)
		hr_digest_add(d, piece, (size_t)n);
	if (n < 0)
		(void)hr_err_sys(err, errno, "read %s", path);
	return n < 0 ? -1 : 0;
}

int
hr_digest_add_file(struct hr_digest *d, int dirfd, const char *path, struct hr_err *err)
{
	HR_CLOSE int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return hr_err_sys(err, errno, "open %s", path);
	return digest_add_fd(d, fd, path, err);
}

void
hr_digest_hex(struct hr_digest *d, char ret[HR_DIGEST_HEX])
{
	unsigned char raw[SHA256_DIGEST_LENGTH];
	size_t len = d->kind == HR_DIGEST_MD5 ? MD5_DIGEST_LENGTH : SHA256_DIGEST_LENGTH;

	if (d->kind == HR_DIGEST_MD5)
		MD5Final(raw, &d->ctx.md5);
	else
		SHA256Final(raw, &d->ctx.sha2);
	hr_quote_hex(ret, raw, len);
}

int
hr_digest_of(enum hr_digest_kind kind, const void *p, size_t len, char ret[HR_DIGEST_HEX],
    struct hr_err *err)
{
	struct hr_digest *d = hr_digest_new(kind, err);

	if (d == NULL)
		return -1;
	hr_digest_add(d, p, len);
	hr_digest_hex(d, ret);
	hr_digest_free(d);
	return 0;
}
