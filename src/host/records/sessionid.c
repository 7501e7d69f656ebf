/* Makes session ids for the command line (doc/host.md, "Session ids"): opaque, and equal for equal
 * names. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/err.h"
#include "host/records/record.h"
#include "image/digest.h"

#define ID_LEN 32
#define NAME_LEN 16 /* characters kept of a longer name */
#define TEXT_MAX 65536

char *
hr_session_id(const struct hr_config *c, const char *name, struct hr_err *err)
{
	const char *secret = hr_config_text(c, "core.jwt_secret");
	char random[HR_UUID_TEXT], hex[HR_DIGEST_HEX], id[ID_LEN + 1];
	struct hr_err e = {0};
	HR_BUF(b, TEXT_MAX);
	size_t n;
	char *copy;
	int r;

	if (name == NULL && hr_random_uuid(random, err) < 0)
		return NULL;
	name = name != NULL ? name : random;
	if (!hr_sid_valid(name)) {
		(void)hr_err_set(
		    err, HR_E_INVAL, "invalid sandbox name \"%.200s\": " HR_SID_RULE, name);
		return NULL;
	}
	hr_buf_addf(&b, "%s%s", name, secret != NULL ? secret : "None");
	r = hr_buf_check(&b, &e);
	if (r == 0)
		r = hr_digest_of(HR_DIGEST_SHA256, b.p, b.len, hex, &e);
	if (r != 0) {
		(void)hr_err_from(err, HR_E_RUNTIME, &e);
		return NULL;
	}
	n = strlen(name);
	n = n > NAME_LEN ? NAME_LEN : n;
	(void)snprintf(id, sizeof(id), "%.*s-%.*s", (int)n, name, (int)(ID_LEN - 1 - n), hex);
	copy = strdup(id);
	return copy != NULL ? copy : hr_err_null(err);
}
