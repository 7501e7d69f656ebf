/* Writes tar archives, with their digests. */
#include "config.h"

#include "box/oci/oci.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/text/quote.h"

bool
oci_name_fits(const char *name)
{
	const char *at = name;
	unsigned depth = 1;

	while ((at = strchr(at, '/')) != NULL) {
		at++;
		depth++;
	}
	return depth <= OCI_DEPTH_MAX && strlen(name) <= OCI_NAME_MAX;
}

void
oci_hex(SHA2_CTX *sum, char ret[OCI_HEX])
{
	uint8_t raw[SHA256_DIGEST_LENGTH];

	SHA256Final(raw, sum);
	hr_quote_hex(ret, raw, sizeof(raw));
}

static la_ssize_t
on_block(struct archive *a, void *arg, const void *p, size_t len)
{
	struct oci_out *o = arg;
	struct hr_err e = {0};

	(void)a;
	/* libarchive 3.6 loses its buffer if the callback fails */
	if (o->sys == 0 && hr_fd_write_full(o->fd, p, len, &e) < 0)
		o->sys = e.sys != 0 ? e.sys : EIO;
	SHA256Update(&o->sum, p, len);
	o->size += len;
	return (la_ssize_t)len;
}

int
oci_out_fail(const struct oci_out *o, struct hr_err *err)
{
	return o->sys != 0 ? hr_err_sys(err, o->sys, "write the file")
			   : hr_err_set(err, HR_E_RUNTIME, "write the file: %s",
				 archive_error_string(o->a));
}

int
oci_out_open(struct oci_out *o, int fd, struct hr_err *err)
{
	*o = (struct oci_out){.fd = fd, .a = archive_write_new()};
	SHA256Init(&o->sum);
	if (o->a == NULL)
		return hr_err_nomem(err);
	return archive_write_set_format_pax_restricted(o->a) == ARCHIVE_OK &&
		       archive_write_set_options(o->a, "hdrcharset=BINARY,xattrheader=SCHILY") ==
			   ARCHIVE_OK &&
		       archive_write_set_bytes_per_block(o->a, OCI_PIECE) == ARCHIVE_OK &&
		       archive_write_set_bytes_in_last_block(o->a, 1) == ARCHIVE_OK &&
		       archive_write_open(o->a, o, NULL, on_block, NULL) == ARCHIVE_OK
		   ? 0
		   : oci_out_fail(o, err);
}

int
oci_out_close(struct oci_out *o, struct oci_blob *ret, struct hr_err *err)
{
	if (archive_write_close(o->a) != ARCHIVE_OK || o->sys != 0)
		return oci_out_fail(o, err);
	if (ret != NULL) {
		oci_hex(&o->sum, ret->hex);
		ret->size = o->size;
	}
	return 0;
}

void
oci_out_done(struct oci_out *o)
{
	/* an unfinished archive must not be written any further */
	if (o->sys == 0)
		o->sys = ECANCELED;
	if (o->a != NULL)
		(void)archive_write_free(o->a);
	o->a = NULL;
}
