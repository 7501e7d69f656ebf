/* Calls a provider's API over hr_rest. A request that may have been executed is repeated only if
 * the provider's own client repeats it. */
#include "config.h"

#include "host/cloud/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/err.h"
#include "base/text/text.h"
#include "proto/json.h"

#define HEADERS_MAX 16
#define ANSWER_MAX (256u << 20)
#define FORM_MAX (257u << 20)
#define PATH_MAX_LEN 65536
#define PATIENCE_MS 3600000 /* milliseconds; the rule's attempts run out first */

int
hr_api_url(const char *who, const char *base, struct hr_err *err)
{
	if (strncmp(base, "https://", 8) != 0 && strncmp(base, "http://", 7) != 0)
		return hr_err_set(err, HR_E_INVAL,
		    "%s: its address must begin with https:// or http://, not: %.200s", who, base);
	if (strncmp(base, "http://", 7) == 0 && !hr_text_is_here(base + 7))
		return hr_err_set(err, HR_E_INVAL,
		    "%s: http:// is for this machine only; a key needs https", who);
	/* the part before an @ is not the host */
	if (strchr(base, '@') != NULL)
		return hr_err_set(err, HR_E_INVAL,
		    "%s: its address must have no user or password: remove all before the \"@\"",
		    who);
	return 0;
}

int
hr_api_init(struct hr_api *api, const char *who, const struct hr_api_rule *rule, const char *base,
    struct hr_err *err)
{
	const struct hr_rest_options o = {.url = base,
	    .rules = rule->again,
	    .should = rule->should,
	    .patience_ms = PATIENCE_MS,
	    .answer_max = ANSWER_MAX,
	    .watch_fd = -1};

	*api = (struct hr_api){.who = who, .rule = rule};
	if (hr_api_url(who, base, err) != 0)
		return -1;
	api->rest = hr_rest_new(&o, err);
	return api->rest != NULL ? 0 : -1;
}

void
hr_api_done(struct hr_api *api)
{
	hr_rest_free(api->rest);
	api->rest = NULL;
}

int
hr_api_header(
    struct hr_api *api, const char *name, const char *value, bool secret, struct hr_err *err)
{
	return hr_rest_header(api->rest, name, value, secret, err);
}

void
hr_api_answer_done(struct hr_api_answer *a)
{
	hr_buf_done(&a->body);
	json_object_put(a->json);
	memset(a, 0, sizeof(*a));
}

/* ---- fields ---- */

static const char *
type_word(struct json_object *v)
{
	switch (json_object_get_type(v)) {
	case json_type_null: return "null";
	case json_type_boolean: return "a truth value";
	case json_type_double:
	case json_type_int: return "a number";
	case json_type_object: return "an object";
	case json_type_array: return "a list";
	default: return "a text";
	}
}

static const char *
wanted(enum json_type type)
{
	switch (type) {
	case json_type_string: return "a text";
	case json_type_boolean: return "a truth value";
	case json_type_double: return "a number";
	case json_type_int: return "a whole number";
	case json_type_object: return "an object";
	default: return "a list";
	}
}

int
hr_field_of(const char *who, const char *subject, struct json_object *o, const char *name,
    enum json_type type, struct json_object **ret, struct hr_err *err)
{
	struct json_object *v = NULL;

	if (!json_object_is_type(o, json_type_object))
		return hr_err_set(err, HR_E_PROTO,
		    "%s: %s is not a JSON object, so \"%s\" is missing", who, subject, name);
	if (!json_object_object_get_ex(o, name, &v))
		return hr_err_set(err, HR_E_PROTO, "%s: %s has no \"%s\"", who, subject, name);
	if (!json_object_is_type(v, type))
		return hr_err_set(err, HR_E_PROTO, "%s: \"%s\" of %s is %s, not %s", who, name,
		    subject, type_word(v), wanted(type));
	*ret = v;
	return 0;
}

int
hr_field_text(const char *who, const char *subject, struct json_object *o, const char *name,
    const char **ret, struct hr_err *err)
{
	struct json_object *v;
	size_t len, i;

	if (hr_field_of(who, subject, o, name, json_type_string, &v, err) < 0)
		return -1;
	*ret = hr_json_str(v, &len);
	/* the string becomes part of a URL or a header, which a control character would end */
	for (i = 0; i < len; i++)
		if ((unsigned char)(*ret)[i] < ' ' || (*ret)[i] == 0x7f)
			return hr_err_set(err, HR_E_PROTO,
			    "%s: \"%s\" of %s has a control character", who, name, subject);
	return 0;
}

int
hr_field_maybe(const char *who, const char *subject, struct json_object *o, const char *name,
    const char **ret, struct hr_err *err)
{
	*ret = NULL;
	if (json_object_is_type(o, json_type_object) && hr_json_at(o, name) == NULL)
		return 0;
	return hr_field_text(who, subject, o, name, ret, err);
}

/* Returns 1 if the field has that type, or 0 if it is missing or null. */
static int
field_or_none(const char *who, const char *subject, struct json_object *o, const char *name,
    enum json_type type, struct json_object **ret, struct hr_err *err)
{
	*ret = NULL;
	if (json_object_is_type(o, json_type_object) && hr_json_at(o, name) == NULL)
		return 0;
	return hr_field_of(who, subject, o, name, type, ret, err) == 0 ? 1 : -1;
}

int
hr_field_prose(const char *who, const char *subject, struct json_object *o, const char *name,
    const char **ret, struct hr_err *err)
{
	struct json_object *v;
	int r = field_or_none(who, subject, o, name, json_type_string, &v, err);

	*ret = r > 0 ? json_object_get_string(v) : NULL;
	return r < 0 ? -1 : 0;
}

int
hr_field_flag(const char *who, const char *subject, struct json_object *o, const char *name,
    bool *ret, struct hr_err *err)
{
	struct json_object *v;
	int r = field_or_none(who, subject, o, name, json_type_boolean, &v, err);

	*ret = r > 0 && json_object_get_boolean(v);
	return r < 0 ? -1 : 0;
}

int
hr_field_number(const char *who, const char *subject, struct json_object *o, const char *name,
    double *ret, struct hr_err *err)
{
	enum json_type type = json_object_is_type(hr_json_at(o, name), json_type_int)
				  ? json_type_int
				  : json_type_double;
	struct json_object *v;
	int r = field_or_none(who, subject, o, name, type, &v, err);

	*ret = r > 0 ? json_object_get_double(v) : 0;
	return r < 0 ? -1 : 0;
}

int
hr_field_int(const char *who, const char *subject, struct json_object *o, const char *name,
    int64_t *ret, struct hr_err *err)
{
	struct json_object *v;

	if (hr_field_of(who, subject, o, name, json_type_int, &v, err) < 0)
		return -1;
	*ret = json_object_get_int64(v);
	return 0;
}

int
hr_field_code(const char *who, const char *subject, struct json_object *o, const char *name,
    int *ret, struct hr_err *err)
{
	int64_t code;

	if (hr_field_int(who, subject, o, name, &code, err) != 0)
		return -1;
	/* truncation would make another status, such as 0 */
	if (code < -255 || code > 255)
		return hr_err_set(err, HR_E_PROTO, "%s: \"%s\" of %s is %lld, no exit status", who,
		    name, subject, (long long)code);
	*ret = (int)code;
	return 0;
}

/* ---- requests ---- */

struct turn {
	const struct hr_api_call *c;
	bool gave_up;
};

static int
on_sink(void *arg, const char *p, size_t len)
{
	struct turn *t = arg;

	t->gave_up = t->c->sink(t->c->sink_arg, p, len) < 0;
	return t->gave_up ? 1 : 0;
}

/* Maps the status to an error. */
static int
explain(const struct hr_api *api, struct hr_api_answer *a, struct hr_err *err)
{
	const int status = err->status;
	char text[sizeof(err->msg)];

	if (err->code != HR_E_HTTP_STATUS)
		return -1;
	(void)snprintf(a->code, sizeof(a->code), "%s", hr_json_text_or(a->json, "code", ""));
	(void)snprintf(text, sizeof(text), "%s", err->msg);
	(void)hr_err_set(err,
	    status == 404                    ? HR_E_NO_SANDBOX
	    : status == 401 || status == 403 ? HR_E_PERMISSION
	    : status == 408 || status == 504 ? HR_E_TIMEOUT
	    : status == 429 || status == 503 ? HR_E_UNAVAILABLE
					     : HR_E_HTTP_STATUS,
	    "%s: %s%s", api->who, text, status == 401 ? "; check that its API key is valid" : "");
	err->status = status;
	return -1;
}

static int
put_form(struct hr_buf *b, const struct hr_api_call *c, const char *boundary, struct hr_err *err)
{
	const struct hr_api_part *part;
	const char *p;

	for (part = c->parts; part < c->parts + c->parts_n; part++) {
		hr_buf_addf(
		    b, "--%s\r\nContent-Disposition: form-data; name=\"%s\"", boundary, part->name);
		if (part->filename != NULL) {
			hr_buf_adds(b, "; filename=\"");
			for (p = part->filename; *p != '\0'; p++)
				if (*p == '"' || *p == '\r' || *p == '\n')
					hr_buf_addf(b, "%%%02X", (unsigned char)*p);
				else
					hr_buf_addc(b, *p);
			hr_buf_addc(b, '"');
		}
		if (part->type != NULL)
			hr_buf_addf(b, "\r\nContent-Type: %s", part->type);
		hr_buf_adds(b, "\r\n\r\n");
		hr_buf_add(b, part->p, part->len);
		hr_buf_adds(b, "\r\n");
	}
	hr_buf_addf(b, "--%s--\r\n", boundary);
	return hr_buf_check(b, NULL) == 0
		   ? 0
		   : hr_err_set(err, HR_E_INVAL, "the files are too long to be sent");
}

/* Fills in the request with its path and form, which the caller frees. */
static int
compose(const struct hr_api_call *c, struct hr_rest_call *q, struct hr_buf *path,
    struct hr_buf *form, char type[200], struct hr_err *err)
{
	char boundary[37];

	hr_buf_adds(path, c->path);
	if (c->id != NULL)
		hr_http_escape(path, c->id);
	hr_buf_adds(path, c->rest != NULL ? c->rest : "");
	if (hr_buf_check(path, NULL) != 0)
		return hr_err_set(err, HR_E_INVAL, "the path of the request is too long");
	q->path = hr_buf_str(path);
	if (c->type != NULL)
		(void)snprintf(type, 200, "Content-Type: %s", c->type);
	if (c->parts == NULL)
		return 0;
	if (hr_random_uuid(boundary, err) < 0)
		return -1;
	(void)snprintf(type, 200, "Content-Type: multipart/form-data; boundary=%s", boundary);
	if (put_form(form, c, boundary, err) < 0)
		return -1;
	q->body = hr_buf_str(form);
	q->body_len = form->len;
	return 0;
}

int
hr_api_do(
    struct hr_api *api, const struct hr_api_call *c, struct hr_api_answer *ret, struct hr_err *err)
{
	struct turn t = {.c = c};
	struct hr_rest_answer a = {0};
	struct hr_err mine = {0};
	const char *headers[HEADERS_MAX + 4];
	struct hr_rest_call q = {.method = c->method,
	    .headers = headers,
	    .json = c->body,
	    .body = c->bytes,
	    .body_len = c->bytes_len,
	    .raw = true,
	    .timeout_s = c->timeout_s,
	    .sink = c->sink != NULL ? on_sink : NULL,
	    .arg = &t,
	    .idempotent = !c->once,
	    .header = c->header};
	char key[200], type[200] = "", uuid[37];
	HR_BUF(path, PATH_MAX_LEN);
	HR_BUF(form, FORM_MAX);
	size_t n = 0;
	int r;

	memset(ret, 0, sizeof(*ret));
	for (; c->headers != NULL && c->headers[n] != NULL && n < HEADERS_MAX; n++)
		headers[n] = c->headers[n];
	r = compose(c, &q, &path, &form, type, &mine);
	if (*type != '\0')
		headers[n++] = type;
	if (r == 0 && api->rule->key != NULL && strcmp(c->method, "POST") == 0) {
		r = hr_random_uuid(uuid, &mine);
		(void)snprintf(key, sizeof(key), "%s%s", api->rule->key, uuid);
		headers[n++] = key;
	}
	headers[n] = NULL;
	hr_rest_watch(api->rest, c->watch_fd > 0 ? c->watch_fd : -1);
	if (r == 0)
		r = hr_rest_call(api->rest, &q, &a, &mine);
	ret->status = a.status;
	ret->unsure = (a.failure & HR_REST_UNSURE) != 0;
	memcpy(ret->header, a.header, sizeof(a.header));
	ret->body = a.body;
	ret->json = a.json;
	if ((!c->raw || r != 0) && ret->json == NULL && ret->body.len > 0 &&
	    hr_json_decode_foreign(ret->body.p, ret->body.len, &ret->json, NULL) < 0)
		hr_json_drop(&ret->json);
	if (r != 0 && c->plain && mine.code == HR_E_HTTP_STATUS)
		r = 0;
	if (r == 0 && t.gave_up)
		return hr_err_set(
		    err, HR_E_PROTO, "%s: reading stopped before the end of the answer", api->who);
	if (r != 0)
		(void)explain(api, ret, &mine);
	return r != 0 ? hr_err_pass(err, &mine) : 0;
}

int
hr_api_json(
    struct hr_api *api, const struct hr_api_call *c, struct json_object **ret, struct hr_err *err)
{
	HR_CLEAN(hr_api_answer_done) struct hr_api_answer a = {0};
	int r = hr_api_do(api, c, &a, err);

	if (ret != NULL)
		*ret = r == 0 ? json_object_get(a.json) : NULL;
	return r;
}

int
hr_api_or_gone(int r, const struct hr_err *mine, struct hr_err *err)
{
	return r == 0 || mine->code == HR_E_NO_SANDBOX ? 0 : hr_err_pass(err, mine);
}

int
hr_api_file(struct hr_api *api, const struct hr_api_call *c, const char *path, struct hr_buf *b,
    struct hr_api_answer *ret, struct hr_err *err)
{
	struct hr_err mine = {0};
	int r = hr_api_do(api, c, ret, &mine);

	if (r == 0) {
		hr_buf_add(b, hr_buf_str(&ret->body), ret->body.len);
		r = hr_buf_check(b, NULL) == 0 ? 0 : hr_err_nomem(&mine);
	} else if (mine.code == HR_E_NO_SANDBOX ||
		   (mine.status == 400 && strstr(mine.msg, "not found") != NULL)) {
		(void)hr_err_set(&mine, HR_E_NOTFOUND, "path '%s' does not exist", path);
	}
	return r != 0 ? hr_err_pass(err, &mine) : 0;
}
