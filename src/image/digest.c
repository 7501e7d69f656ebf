/* Digests over libcrypto, which libcurl has loaded already. */
#include "config.h"

#include "image/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/fd.h"
#include "base/quote.h"

#define FILE_PIECE 65536

struct hr_digest {
	EVP_MD_CTX *ctx;
	bool failed;
};

struct hr_digest *
hr_digest_new(enum hr_digest_kind kind, struct hr_err *err)
{
	struct hr_digest *d = calloc(1, sizeof(*d));

	if (d == NULL || (d->ctx = EVP_MD_CTX_new()) == NULL) {
		free(d);
		(void)hr_err_nomem(err);
		return NULL;
	}
	if (EVP_DigestInit_ex(d->ctx, kind == HR_DIGEST_MD5 ? EVP_md5() : EVP_sha256(), NULL) !=
	    1) {
		hr_digest_free(d);
		(void)hr_err_set(err, HR_E_UNSUPPORTED, "libcrypto has no %s here",
		    kind == HR_DIGEST_MD5 ? "MD5" : "SHA-256");
		return NULL;
	}
	return d;
}

void
hr_digest_free(struct hr_digest *d)
{
	if (d == NULL)
		return;
	EVP_MD_CTX_free(d->ctx);
	free(d);
}

void
hr_digest_add(struct hr_digest *d, const void *p, size_t len)
{
	if (EVP_DigestUpdate(d->ctx, p, len) != 1)
		d->failed = true;
}

static int
digest_add_fd(struct hr_digest *d, int fd, const char *path, struct hr_err *err)
{
	char *piece = malloc(FILE_PIECE);
	ssize_t n;

	if (piece == NULL)
		return hr_err_nomem(err);
	while ((n = hr_fd_read(fd, piece, FILE_PIECE)) > 0)
		hr_digest_add(d, piece, (size_t)n);
	if (n < 0)
		(void)hr_err_sys(err, errno, "read %s", path);
	free(piece);
	return n < 0 ? -1 : 0;
}

int
hr_digest_add_file(struct hr_digest *d, int dirfd, const char *path, struct hr_err *err)
{
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY), rc;

	if (fd < 0)
		return hr_err_sys(err, errno, "open %s", path);
	rc = digest_add_fd(d, fd, path, err);
	hr_fd_close(&fd);
	return rc;
}

int
hr_digest_hex(struct hr_digest *d, char ret[HR_DIGEST_HEX], struct hr_err *err)
{
	unsigned char raw[EVP_MAX_MD_SIZE];
	unsigned len = 0;

	if (d->failed || EVP_DigestFinal_ex(d->ctx, raw, &len) != 1)
		return hr_err_set(err, HR_E_NOMEM, "libcrypto failed to compute a digest");
	hr_assert(len * 2 < HR_DIGEST_HEX);
	hr_quote_hex(ret, raw, len);
	return 0;
}

int
hr_digest_of(enum hr_digest_kind kind, const void *p, size_t len, char ret[HR_DIGEST_HEX],
    struct hr_err *err)
{
	struct hr_digest *d = hr_digest_new(kind, err);
	int rc;

	if (d == NULL)
		return -1;
	hr_digest_add(d, p, len);
	rc = hr_digest_hex(d, ret, err);
	hr_digest_free(d);
	return rc;
}
