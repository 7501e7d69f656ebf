/* Session ids of the command line (doc/host.md, "Session ids"): opaque, and the same for the same
 * name. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "host/common/error.h"
#include "host/sandbox.h"
#include "image/digest.h"

#define ID_LEN 32
#define NAME_LEN 16 /* what is left of a longer name */
#define TEXT_MAX 65536

/* A random UUID of version 4. */
static int
random_name(char name[37], struct hr_error *err)
{
	unsigned char r[16];
	size_t at = 0;

	if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return hr_error_sys(err, errno, "getrandom");
	r[6] = (unsigned char)((r[6] & 0x0F) | 0x40);
	r[8] = (unsigned char)((r[8] & 0x3F) | 0x80);
	for (size_t i = 0; i < sizeof(r); i++)
		at += (size_t)snprintf(name + at, 37 - at, "%s%02x",
		    i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", r[i]);
	return 0;
}

char *
hr_session_id(const struct hr_config *c, const char *name, struct hr_error *err)
{
	const char *secret = hr_config_text(c, "core.jwt_secret");
	char random[37], hex[HR_DIGEST_HEX], id[ID_LEN + 1];
	struct hr_err e = {0};
	struct hr_buf b;
	size_t n;
	char *copy;
	int rc;

	if (name == NULL && random_name(random, err) != 0)
		return NULL;
	name = name != NULL ? name : random;
	if (!hr_sid_valid(name)) {
		(void)hr_error_set(err, HR_ERROR_VALUE,
		    "\"%.200s\" is no name for a sandbox: letters, digits, '_', '.', '-'", name);
		return NULL;
	}
	hr_buf_init(&b, TEXT_MAX);
	hr_buf_addf(&b, "%s%s", name, secret != NULL ? secret : "None");
	rc = hr_buf_check(&b, &e);
	if (rc == 0)
		rc = hr_digest_of(HR_DIGEST_SHA256, b.p, b.len, hex, &e);
	hr_buf_done(&b);
	if (rc != 0) {
		(void)hr_error_from(err, HR_ERROR_RUNTIME, &e);
		return NULL;
	}
	n = strlen(name);
	n = n > NAME_LEN ? NAME_LEN : n;
	(void)snprintf(id, sizeof(id), "%.*s-%.*s", (int)n, name, (int)(ID_LEN - 1 - n), hex);
	copy = strdup(id);
	if (copy == NULL)
		(void)hr_error_nomem(err);
	return copy;
}
