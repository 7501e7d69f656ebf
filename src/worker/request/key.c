/* Builds keys. The first letter is the key's type, so a client cannot forge a key of another
 * type. */
#include "config.h"

#include "worker/request/key.h"

#include <inttypes.h>
#include <string.h>

#include "proto/python/repr.h"
#include "base/hash.h"

#define PLAIN_MAX 200

static void
put_digest(struct hr_buf *key, const char *p, size_t len)
{
	hr_buf_addf(key, "%zu.%016" PRIx64, len, hr_hash(HR_HASH, p, len));
}

static void
put_text(struct hr_buf *key, char kind, const char *text, const struct hr_buf *body)
{
	size_t len = strlen(text);

	hr_buf_addf(key, "%c:", kind);
	if (len <= PLAIN_MAX) {
		hr_buf_add(key, text, len);
	} else {
		hr_buf_adds(key, "digest:");
		put_digest(key, text, len);
	}
	/* one id of a proxy or a trace may cover several requests with different bodies */
	hr_buf_addc(key, ':');
	put_digest(key, hr_buf_str(body), body->len);
}

static void
put_value(struct hr_buf *key, struct json_object *v)
{
	HR_BUF(text, HR_JSON_BODY_MAX);

	hr_pyrepr(&text, v);
	if (text.fail != HR_OK)
		key->fail = text.fail;
	put_digest(key, hr_buf_str(&text), text.len);
}

bool
hr_key_is_named(const struct hr_request *r)
{
	return r->client_id[0] != '\0' || r->idempotency_key[0] != '\0';
}

void
hr_key_named(struct hr_buf *key, const struct hr_request *r, const struct hr_buf *what)
{
	if (r->client_id[0] != '\0')
		put_text(key, 'x', r->client_id, what);
	else if (r->idempotency_key[0] != '\0')
		put_text(key, 'i', r->idempotency_key, what);
}

void
hr_key_of_nginx(struct hr_buf *key, const struct hr_request *r)
{
	if (r->request_id[0] != '\0')
		hr_buf_addf(key, "%c:%.*s", HR_KEY_OF_NGINX, PLAIN_MAX, r->request_id);
}

void
hr_key_make(struct hr_buf *key, const struct hr_request *r, const struct hr_event *ev,
    const struct hr_buf *body)
{
	if (hr_key_is_named(r)) {
		hr_key_named(key, r, body);
	} else if (ev->id != NULL && ev->timestamp != NULL) {
		hr_buf_adds(key, "e:");
		put_value(key, ev->id);
		hr_buf_addc(key, ':');
		put_value(key, ev->timestamp);
		hr_buf_addc(key, ':');
		put_digest(key, hr_buf_str(body), body->len);
	} else {
		hr_key_of_nginx(key, r);
	}
}
