/* Converts rows and keys to JSON and back. */
#include "config.h"

#include "fleet/kubernetes/objects.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/text/quote.h"
#include "host/kubernetes/kube.h"
#include "proto/json.h"

#define DATA_MAX (4u << 20)

void
hr_object_row_name(const char *id, char name[HR_OBJECT_NAME])
{
	(void)snprintf(name, HR_OBJECT_NAME, "handrail-row-%.32s", id);
}

void
hr_object_session_name(int64_t key, const char *session, char name[HR_OBJECT_NAME])
{
	unsigned char sum[HR_FLEET_KEY_SUM];
	char text[HR_FLEET_SESSION + 32], digits[2 * 20 + 1];

	(void)snprintf(text, sizeof(text), "%" PRId64 "/%s", key, session);
	hr_fleet_key_sum(text, sum);
	hr_quote_hex(digits, sum, 20);
	(void)snprintf(name, HR_OBJECT_NAME, "handrail-session-%s", digits);
}

void
hr_object_key_name(int64_t id, char name[HR_OBJECT_NAME])
{
	(void)snprintf(name, HR_OBJECT_NAME, "handrail-key-%" PRId64, id);
}

/* ---- reading ---- */

const char *
hr_object_kind(struct json_object *o)
{
	return hr_kube_label(o, HR_OBJECT_LABEL, "");
}

const char *
hr_object_version(struct json_object *o)
{
	return hr_json_text_or(hr_json_at(o, "metadata"), "resourceVersion", "");
}

const char *
hr_object_owner(struct json_object *o)
{
	return hr_kube_note(o, HR_OBJECT_OWNER, "");
}

struct json_object *
hr_object_data(struct json_object *o)
{
	const char *text = hr_json_text_or(hr_json_at(o, "data"), "data", "");
	struct json_object *data = NULL;
	HR_BUF(b, DATA_MAX);

	if (!hr_quote_unbase64(&b, text, strlen(text)) || hr_buf_check(&b, NULL) != 0 ||
	    hr_json_decode(hr_buf_str(&b), b.len, &data, NULL) != 0)
		data = NULL;
	if (b.p != NULL)
		explicit_bzero(b.p, b.len);
	return data;
}

static void
copy(char *to, size_t cap, struct json_object *o, const char *name)
{
	(void)snprintf(to, cap, "%s", hr_json_text_or(o, name, ""));
}

int
hr_object_read_row(struct json_object *o, struct hr_fleet_row *r)
{
	int64_t state = hr_json_int_at(o, "state");
	const char *request = hr_json_text_at(o, "request");

	memset(r, 0, sizeof(*r));
	if (request == NULL || state < 0 || state >= HR_FLEET_STATES ||
	    strlen(hr_json_text_or(o, "id", "")) != HR_FLEET_ID - 1)
		return 0;
	copy(r->id, sizeof(r->id), o, "id");
	copy(r->session, sizeof(r->session), o, "session");
	copy(r->reason, sizeof(r->reason), o, "reason");
	copy(r->shape, sizeof(r->shape), o, "shape");
	copy(r->at, sizeof(r->at), o, "at");
	copy(r->server_key, sizeof(r->server_key), o, "server_key");
	copy(r->session_key, sizeof(r->session_key), o, "session_key");
	r->state = (enum hr_fleet_state)state;
	r->key = hr_json_int_at(o, "key");
	r->factor = hr_json_int_at(o, "factor");
	r->vscode_port = (int)hr_json_int_at(o, "vscode");
	r->app_ports[0] = (int)hr_json_int_at(o, "app1");
	r->app_ports[1] = (int)hr_json_int_at(o, "app2");
	r->created = hr_json_int_at(o, "created");
	r->active = hr_json_int_at(o, "active");
	r->resumed = hr_json_int_at(o, "resumed");
	r->request = strdup(request);
	return r->request != NULL ? 1 : -1;
}

int
hr_object_read_key(
    struct json_object *o, struct hr_fleet_key *k, unsigned char sum[HR_FLEET_KEY_SUM])
{
	const char *text = hr_json_text_or(o, "sum", "");
	int i;

	memset(k, 0, sizeof(*k));
	if (strlen(text) != (size_t)2 * HR_FLEET_KEY_SUM ||
	    strspn(text, "0123456789abcdef") != (size_t)2 * HR_FLEET_KEY_SUM)
		return 0;
	for (i = 0; i < HR_FLEET_KEY_SUM; i++) {
		char two[3] = {text[2 * i], text[2 * i + 1], '\0'};

		sum[i] = (unsigned char)strtoul(two, NULL, 16);
	}
	copy(k->name, sizeof(k->name), o, "name");
	k->id = hr_json_int_at(o, "id");
	k->scopes = (int)hr_json_int_at(o, "scopes");
	k->limits.sandboxes = hr_json_int_at(o, "sandboxes");
	k->limits.factors = hr_json_int_at(o, "factors");
	k->expires = hr_json_int_at(o, "expires");
	k->revoked = hr_json_true_at(o, "revoked");
	return k->id > 0;
}

/* ---- writing ---- */

void
hr_object_write(struct hr_buf *b, const char *ns, const char *name, const char *kind,
    const char *owner, const char *version, const char *data)
{
	hr_buf_addf(b,
	    "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"%s\","
	    "\"namespace\":\"%s\",\"labels\":{\"" HR_OBJECT_LABEL "\":\"%s\"}",
	    name, ns, kind);
	if (owner != NULL)
		hr_buf_addf(b, ",\"annotations\":{\"" HR_OBJECT_OWNER "\":\"%s\"}", owner);
	if (version != NULL)
		hr_json_put_named(b, "resourceVersion", version);
	hr_buf_addf(b, "}%s", version == NULL ? ",\"type\":\"Opaque\"" : "");
	if (data != NULL) {
		hr_buf_adds(b, ",\"stringData\":{");
		hr_json_put_named(b, "data", data);
		hr_buf_addc(b, '}');
	}
	hr_buf_addc(b, '}');
}

void
hr_object_row_data(struct hr_buf *b, const struct hr_fleet_row *r)
{
	hr_buf_addf(b, "{\"key\":%" PRId64 ",\"state\":%d,\"factor\":%" PRId64, r->key,
	    (int)r->state, r->factor);
	hr_buf_addf(b,
	    ",\"created\":%" PRId64 ",\"active\":%" PRId64 ",\"resumed\":%" PRId64
	    ",\"vscode\":%d,\"app1\":%d,\"app2\":%d",
	    r->created, r->active, r->resumed, r->vscode_port, r->app_ports[0], r->app_ports[1]);
	hr_json_put_named(b, "id", r->id);
	hr_json_put_named(b, "session", r->session);
	hr_json_put_named(b, "reason", r->reason);
	hr_json_put_named(b, "shape", r->shape);
	hr_json_put_named(b, "at", r->at);
	hr_json_put_named(b, "server_key", r->server_key);
	hr_json_put_named(b, "session_key", r->session_key);
	hr_json_put_named(b, "request", r->request != NULL ? r->request : "{}");
	hr_buf_addc(b, '}');
}

void
hr_object_key_data(
    struct hr_buf *b, const struct hr_fleet_key *k, const unsigned char sum[HR_FLEET_KEY_SUM])
{
	char digits[2 * HR_FLEET_KEY_SUM + 1];

	hr_quote_hex(digits, sum, HR_FLEET_KEY_SUM);
	hr_buf_addf(b,
	    "{\"id\":%" PRId64 ",\"scopes\":%d,\"sandboxes\":%" PRId64 ",\"factors\":%" PRId64
	    ",\"expires\":%" PRId64 ",\"revoked\":%s,\"sum\":\"%s\"",
	    k->id, k->scopes, k->limits.sandboxes, k->limits.factors, k->expires,
	    k->revoked ? "true" : "false", digits);
	hr_json_put_named(b, "name", k->name);
	hr_buf_addc(b, '}');
}
