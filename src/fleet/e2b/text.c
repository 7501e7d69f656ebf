/* Implements the parts of hr_e2b that need no fleet: texts of queries, paths, keys and signatures.
 */
#include "config.h"

#include "fleet/e2b/e2b.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "base/text/percent.h"
#include "base/text/quote.h"

#define KEY_PREFIX "e2b_"
#define FLEET_PREFIX "hrk_"

/* Appends the decoded text of a part. Returns false for a null character, or without memory. */
static bool
decode(struct hr_buf *b, const char *p, size_t len)
{
	hr_buf_reset(b);
	hr_percent_decode(b, p, len, true);
	return hr_buf_check(b, NULL) == 0 && (b->len == 0 || memchr(b->p, '\0', b->len) == NULL);
}

bool
hr_e2b_metadata(const char *query_value, size_t len,
    bool (*fn)(void *arg, const char *key, const char *value), void *arg)
{
	HR_BUF(form, HR_E2B_QUERY_MAX);
	HR_BUF(key, HR_E2B_QUERY_MAX);
	HR_BUF(value, HR_E2B_QUERY_MAX);
	HR_BUF(once, HR_E2B_QUERY_MAX);
	const char *p, *eq;
	size_t n;

	if (!decode(&form, query_value, len))
		return false;
	for (p = hr_buf_str(&form); *p != '\0'; p += n + (p[n] != '\0')) {
		n = strcspn(p, "&");
		eq = memchr(p, '=', n);
		if (n == 0)
			continue;
		/* the form's encoding, and below it that of each key and value */
		if (!decode(&once, p, eq != NULL ? (size_t)(eq - p) : n) ||
		    !decode(&key, hr_buf_str(&once), once.len) ||
		    !decode(&once, eq != NULL ? eq + 1 : "",
			eq != NULL ? n - (size_t)(eq + 1 - p) : 0) ||
		    !decode(&value, hr_buf_str(&once), once.len) ||
		    !fn(arg, hr_buf_str(&key), hr_buf_str(&value)))
			return false;
	}
	return true;
}

/* Reads "Z", "+HH:MM" or "-HHMM". Returns the seconds east of UTC, or INT32_MIN. */
static int32_t
zone(const char *p)
{
	int h, m, n = 0;
	char sign = *p;

	if ((sign == 'Z' || sign == 'z') && p[1] == '\0')
		return 0;
	/* a '+' that was not encoded in a query is a blank */
	if ((sign != '+' && sign != '-' && sign != ' ') ||
	    (sscanf(p + 1, "%2d:%2d%n", &h, &m, &n) != 2 &&
		sscanf(p + 1, "%2d%2d%n", &h, &m, &n) != 2) ||
	    p[1 + n] != '\0' || h < 0 || h > 23 || m < 0 || m > 59)
		return INT32_MIN;
	return (sign == '-' ? -1 : 1) * (h * 3600 + m * 60);
}

int64_t
hr_e2b_time(const char *text)
{
	struct tm t = {0};
	const char *p = strptime(text, "%Y-%m-%dT%H:%M:%S", &t);
	int32_t east;
	int64_t at;

	if (p == NULL)
		return -1;
	if (*p == '.')
		p += 1 + strspn(p + 1, "0123456789");
	east = zone(p);
	at = (int64_t)timegm(&t);
	return east == INT32_MIN || at < east ? -1 : at - east;
}

void
hr_e2b_sign(const char *path, const char *operation, const char *user, const char *token,
    const char *expiry, char ret[HR_E2B_SIGNATURE])
{
	unsigned char sum[SHA256_DIGEST_LENGTH], text[HR_E2B_SIGNATURE];
	HR_BUF(b, 4 * HR_E2B_QUERY_MAX);

	hr_buf_addf(&b, "%s:%s:%s:%s", path, operation, user, token);
	if (*expiry != '\0')
		hr_buf_addf(&b, ":%s", expiry);
	ret[0] = '\0';
	if (hr_buf_check(&b, NULL) != 0)
		return;
	(void)SHA256((const unsigned char *)b.p, b.len, sum);
	(void)EVP_EncodeBlock(text, sum, sizeof(sum));
	(void)snprintf(ret, HR_E2B_SIGNATURE, "v1_%.*s", (int)strcspn((char *)text, "="), text);
	explicit_bzero(b.p, b.len);
}

void
hr_e2b_traffic_token(const char *session_key, char ret[HR_E2B_TRAFFIC_TOKEN])
{
	unsigned char sum[SHA256_DIGEST_LENGTH];
	char text[100];

	(void)snprintf(text, sizeof(text), "traffic:%s", session_key);
	(void)SHA256((const unsigned char *)text, strlen(text), sum);
	(void)snprintf(ret, HR_E2B_TRAFFIC_TOKEN, "tat_");
	hr_quote_hex(ret + 4, sum, 20);
}

const char *
hr_e2b_key(const char *api_key, char ret[64])
{
	if (strncmp(api_key, KEY_PREFIX, strlen(KEY_PREFIX)) != 0)
		return api_key;
	(void)snprintf(ret, 64, FLEET_PREFIX "%s", api_key + strlen(KEY_PREFIX));
	return ret;
}

/* Decodes the path without its query. Returns false for a null character, or without memory. */
static bool
path_of(struct hr_buf *b, const char *path)
{
	hr_percent_decode(b, path, strcspn(path, "?"), false);
	return hr_buf_check(b, NULL) == 0 && b->len > 0 && memchr(b->p, '\0', b->len) == NULL;
}

bool
hr_e2b_leads_out(const char *path)
{
	HR_BUF(b, 1u << 16);

	return !path_of(&b, path) || *b.p != '/' || strstr(b.p, "/..") != NULL;
}

bool
hr_e2b_is_closed(const char *path)
{
	static const char *const closed[] = {
	    "init", "freeze", "unfreeze", "collapse", "fsfreeze", "fsthaw", "upgrade"};
	HR_BUF(b, 1u << 16);
	const char *p;
	size_t i, n;

	if (!path_of(&b, path))
		return true;
	for (p = b.p; *p == '/' || (*p == '.' && (p[1] == '/' || p[1] == '\0'));)
		p++;
	n = strcspn(p, "/;");
	for (i = 0; i < sizeof(closed) / sizeof(*closed); i++)
		if (n == strlen(closed[i]) && strncasecmp(p, closed[i], n) == 0)
			return true;
	return false;
}
