/* Implements the wire format: routing frames, "<IDS|MSG>", signature, header, parent header,
 * metadata, content, and buffers, which are not used here. */
#include "config.h"

#include "plugins/jupyter/wire.h"

#include <string.h>
#include <time.h>

#include <json-c/json.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <zmq.h>

#include "base/buf.h"
#include "base/text/quote.h"
#include "base/random.h"
#include "proto/json.h"

#define DELIMITER "<IDS|MSG>"
#define PARTS 4 /* number of signed parts */
#define FRAMES_MAX 32
#define HEADER_MAX 1024

int
hr_wire_init(struct hr_wire *w, struct hr_err *err)
{
	if (hr_random_hex(w->key, HR_WIRE_ID - 1, err) < 0)
		return -1;
	return hr_random_hex(w->session, HR_WIRE_ID - 1, err);
}

int
hr_wire_sign(const char *key, const struct hr_wire_part *parts, size_t n, char ret[HR_WIRE_MAC],
    struct hr_err *err)
{
	char digest[] = "SHA256";
	const OSSL_PARAM params[] = {
	    OSSL_PARAM_construct_utf8_string("digest", digest, 0), OSSL_PARAM_construct_end()};
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *ctx = mac != NULL ? EVP_MAC_CTX_new(mac) : NULL;
	unsigned char bytes[32];
	size_t i, len = 0;
	int ok;

	ok = ctx != NULL && EVP_MAC_init(ctx, (const unsigned char *)key, strlen(key), params) == 1;
	for (i = 0; ok && i < n; i++)
		ok = EVP_MAC_update(ctx, parts[i].p, parts[i].len) == 1;
	ok = ok && EVP_MAC_final(ctx, bytes, &len, sizeof(bytes)) == 1 && len == sizeof(bytes);
	EVP_MAC_CTX_free(ctx);
	EVP_MAC_free(mac);
	if (!ok)
		return hr_err_set(err, HR_E_NOMEM, "a message cannot be signed");
	hr_quote_hex(ret, bytes, sizeof(bytes));
	return 0;
}

static void
put_header(struct hr_buf *b, const struct hr_wire *w, const char *type, const char *id)
{
	struct timespec now;
	struct tm tm;
	char date[40];

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &tm);
	(void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	hr_buf_addf(b,
	    "{\"msg_id\":\"%s\",\"session\":\"%s\",\"username\":\"\",\"date\":\"%s.%06ldZ\","
	    "\"msg_type\":\"%s\",\"version\":\"5.3\"}",
	    id, w->session, date, now.tv_nsec / 1000, type);
}

int
hr_wire_send(const struct hr_wire *w, void *sock, const char *type, const char *content, size_t len,
    char ret_id[HR_WIRE_ID], struct hr_err *err)
{
	struct hr_wire_part parts[PARTS] = {{NULL, 0}, {"{}", 2}, {"{}", 2}, {content, len}};
	char id[HR_WIRE_ID], mac[HR_WIRE_MAC];
	HR_BUF(header, HEADER_MAX);
	size_t i;
	int ok;

	if (hr_random_hex(id, HR_WIRE_ID - 1, err) < 0)
		return -1;
	put_header(&header, w, type, id);
	parts[0] = (struct hr_wire_part){header.p, header.len};
	ok = hr_buf_check(&header, err) == 0 && hr_wire_sign(w->key, parts, PARTS, mac, err) == 0;
	if (!ok)
		return -1;
	/* the sockets are never full: only one request is in flight */
	ok = zmq_send(sock, DELIMITER, strlen(DELIMITER), ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0 &&
	     zmq_send(sock, mac, strlen(mac), ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0;
	for (i = 0; ok && i < PARTS; i++)
		ok = zmq_send(sock, parts[i].p, parts[i].len,
			 ZMQ_DONTWAIT | (i + 1 < PARTS ? ZMQ_SNDMORE : 0)) >= 0;
	if (!ok)
		return hr_err_set(
		    err, HR_E_SYS, "a message cannot be sent: %s", zmq_strerror(zmq_errno()));
	memcpy(ret_id, id, sizeof(id));
	return 0;
}

/* ---- receiving ---- */

struct frames {
	zmq_msg_t v[FRAMES_MAX];
	size_t n;
};

/* Receives all frames of one message. Returns 1; 0 if there is none; -1 if there are too many
 * frames. */
static int
frames_receive(struct frames *f, void *sock)
{
	zmq_msg_t m;
	int more = 1, r = 1;

	f->n = 0;
	while (more) {
		(void)zmq_msg_init(&m);
		/* the frames of a message arrive together: only the first may be missing */
		if (zmq_msg_recv(&m, sock, ZMQ_DONTWAIT) < 0) {
			(void)zmq_msg_close(&m);
			return f->n == 0 && r > 0 ? 0 : -1;
		}
		more = zmq_msg_more(&m);
		if (f->n < FRAMES_MAX) {
			(void)zmq_msg_init(&f->v[f->n]);
			(void)zmq_msg_move(&f->v[f->n++], &m);
		} else {
			r = -1;
		}
		(void)zmq_msg_close(&m);
	}
	return r;
}

static void
frames_free(struct frames *f)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		(void)zmq_msg_close(&f->v[i]);
	f->n = 0;
}

/* Returns the start of the four parts; 0 if they are missing, or their signature is wrong. */
static size_t
check(const struct hr_wire *w, const struct hr_wire_part *frames, size_t n)
{
	size_t at, len = strlen(DELIMITER);
	char mac[HR_WIRE_MAC];

	for (at = 0; at < n && (frames[at].len != len || memcmp(frames[at].p, DELIMITER, len) != 0);
	     at++)
		;
	if (at + 2 + PARTS > n || hr_wire_sign(w->key, frames + at + 2, PARTS, mac, NULL) != 0 ||
	    frames[at + 1].len != HR_WIRE_MAC - 1 ||
	    CRYPTO_memcmp(mac, frames[at + 1].p, HR_WIRE_MAC - 1) != 0)
		return 0;
	return at + 2;
}

static struct json_object *
object_of(const struct hr_wire_part *part)
{
	struct json_object *v = NULL;

	if (hr_json_decode_foreign(part->p, part->len, &v, NULL) < 0)
		return NULL;
	if (hr_json_type(v) == HR_PY_DICT)
		return v;
	json_object_put(v);
	return NULL;
}

int
hr_wire_take(const struct hr_wire *w, const struct hr_wire_part *frames, size_t n,
    struct hr_wire_message *ret, struct hr_err *err)
{
	struct hr_wire_message m = {NULL, NULL, NULL, "", ""};
	size_t at = check(w, frames, n);

	if (at > 0) {
		m.header = object_of(&frames[at]);
		m.parent = object_of(&frames[at + 1]);
		m.content = object_of(&frames[at + 3]);
	}
	if (m.header == NULL || m.parent == NULL || m.content == NULL) {
		hr_wire_message_done(&m);
		return hr_err_set(err, HR_E_PROTO, "a message that the kernel did not send");
	}
	m.type = hr_json_text_or(m.header, "msg_type", "");
	m.parent_id = hr_json_text_or(m.parent, "msg_id", "");
	*ret = m;
	return 0;
}

int
hr_wire_receive(
    const struct hr_wire *w, void *sock, struct hr_wire_message *ret, struct hr_err *err)
{
	struct hr_wire_part parts[FRAMES_MAX];
	HR_CLEAN(frames_free) struct frames f = {.n = 0};
	size_t i;
	int r = frames_receive(&f, sock);

	for (i = 0; i < f.n; i++)
		parts[i] = (struct hr_wire_part){zmq_msg_data(&f.v[i]), zmq_msg_size(&f.v[i])};
	if (r != 0)
		r = hr_wire_take(w, parts, r > 0 ? f.n : 0, ret, err) < 0 ? -1 : 1;
	return r;
}

void
hr_wire_message_done(struct hr_wire_message *m)
{
	json_object_put(m->header);
	json_object_put(m->parent);
	json_object_put(m->content);
	memset(m, 0, sizeof(*m));
}
