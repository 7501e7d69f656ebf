/* Reports parameters that do not fit, in the words of FastAPI and pydantic 2: one 422 lists all. */
#include "config.h"

#include <string.h>

#include "base/text/percent.h"
#include "base/text/utf8.h"
#include "worker/v1/v1.h"

#define SIMPLE_LEN 32
#define DASHED_LEN 36

/* Adds an error. Returns false. */
static bool
add(struct hr_rex_call *c, const struct hr_v1_input *in, const char *type, struct hr_span msg,
    const char *ctx)
{
	struct hr_buf *b = &c->ret->body;

	if (c->ret->status == 422) {
		b->len -= 2; /* the end of the list */
		hr_buf_addc(b, ',');
	} else {
		hr_answer_reset(c->ret);
		c->ret->status = 422;
		hr_buf_adds(b, "{\"detail\":[");
	}
	hr_buf_addf(b, "{\"type\":\"%s\",\"loc\":[\"%s\"", type, in->where);
	if (in->name != NULL)
		hr_buf_addf(b, ",\"%s\"", in->name);
	hr_buf_adds(b, "],\"msg\":");
	/* HR_JSON_REPLACE cannot fail */
	(void)hr_json_put_str(b, msg.p, msg.len, HR_JSON_REPLACE);
	hr_buf_adds(b, ",\"input\":");
	if (in->text.p != NULL)
		(void)hr_json_put_str(b, in->text.p, in->text.len, HR_JSON_REPLACE);
	else
		hr_buf_adds(b, "null");
	if (ctx != NULL)
		hr_buf_addf(b, ",\"ctx\":{%s}", ctx);
	hr_buf_adds(b, "}]}");
	return false;
}

bool
hr_v1_invalid(struct hr_rex_call *c, const struct hr_v1_input *in, const char *type,
    const char *msg, const char *ctx)
{
	return add(c, in, type, hr_span_of(msg), ctx);
}

bool
hr_v1_invalid_as(struct hr_rex_call *c, const struct hr_v1_input *in, const char *type,
    const char *what, const struct hr_buf *error)
{
	HR_BUF(msg, HR_V1_TEXT_MAX);
	HR_BUF(ctx, HR_V1_TEXT_MAX);

	hr_buf_addf(&msg, "Input should be a valid %s, ", what);
	hr_buf_add(&msg, error->p, error->len);
	hr_buf_adds(&ctx, "\"error\":");
	(void)hr_json_put_str(&ctx, hr_buf_str(error), error->len, HR_JSON_REPLACE);
	return add(c, in, type, hr_span_of_buf(&msg), hr_buf_str(&ctx));
}

bool
hr_v1_missing(struct hr_rex_call *c, const char *where, const char *name)
{
	const struct hr_v1_input in = {where, name, {NULL, 0}};

	return hr_v1_invalid(c, &in, "missing", "Field required", NULL);
}

bool
hr_v1_required(struct hr_rex_call *c, const char *name)
{
	HR_BUF(text, HR_V1_TEXT_MAX);

	return hr_request_query(c->r, name, &text) || hr_v1_missing(c, "query", name);
}

bool
hr_v1_one_of(struct hr_rex_call *c, const char *name, const char *type, const char *const *values,
    size_t *io)
{
	HR_BUF(text, HR_V1_TEXT_MAX);
	HR_BUF(msg, 512);
	HR_BUF(ctx, 512);
	struct hr_v1_input in = {"query", name, {NULL, 0}};
	size_t i;

	if (!hr_request_query(c->r, name, &text))
		return true;
	for (i = 0; values[i] != NULL; i++) {
		if (hr_span_equal(hr_span_of_buf(&text), hr_span_of(values[i]))) {
			*io = i;
			return true;
		}
	}
	hr_rex_put_choices(&msg, &ctx, values);
	in.text = (struct hr_span){hr_buf_str(&text), text.len};
	return hr_v1_invalid(c, &in, type, hr_buf_str(&msg), hr_buf_str(&ctx));
}

bool
hr_v1_sha(struct hr_rex_call *c, const struct hr_v1_input *in)
{
	static const char pattern[] = "^[0-9a-fA-F]{4,64}$";
	HR_BUF(msg, 128);
	HR_BUF(ctx, 128);

	if (in->text.len >= 4 && in->text.len <= 64 &&
	    strspn(in->text.p, "0123456789abcdefABCDEF") >= in->text.len)
		return true;
	hr_buf_addf(&msg, "String should match pattern '%s'", pattern);
	hr_buf_addf(&ctx, "\"pattern\":\"%s\"", pattern);
	return hr_v1_invalid(c, in, "string_pattern_mismatch", hr_buf_str(&msg), hr_buf_str(&ctx));
}

/* ---- UUIDs ---- */

/* Puts the error of Rust's parser: `s` follows the first `offset` bytes of the whole input. */
static void
put_error(struct hr_buf *error, struct hr_span s, size_t offset, size_t whole, bool plain)
{
	static const size_t starts[] = {0, 9, 14, 19, 24}, lens[] = {8, 4, 4, 4, 12};
	size_t bounds[4] = {0}, dashes = 0, i, n;

	for (i = 0; i < s.len; i++) {
		if (s.p[i] == '-') {
			if (dashes < 4)
				bounds[dashes] = i;
			dashes++;
		} else if (hr_hex_value(s.p[i]) < 0) {
			(void)hr_utf8_next(s.p + i, s.p + s.len, &n);
			hr_buf_adds(error, "invalid character: found `");
			hr_buf_add(error, s.p + i, n);
			hr_buf_addf(error, "` at %zu", i + offset);
			return;
		}
	}
	if (dashes == 0 && plain) {
		hr_buf_addf(error, "invalid length: found %zu", whole);
	} else if (dashes != 4) {
		hr_buf_addf(error, "invalid group count: expected 5, found %zu", dashes + 1);
	} else {
		for (i = 0; i < 4 && bounds[i] == starts[i + 1] - 1;)
			i++;
		hr_buf_addf(error, "invalid group length in group %zu: expected %zu, found %zu", i,
		    lens[i], (i < 4 ? bounds[i] : whole) - starts[i]);
	}
}

/* Returns true for hexadecimal digits alone, if `simple`, or in their five groups. */
static bool
is_uuid(struct hr_span s, bool simple)
{
	size_t i;
	bool dash;

	if (simple ? s.len != SIMPLE_LEN : s.len != DASHED_LEN)
		return false;
	for (i = 0; i < s.len; i++) {
		dash = !simple && (i == 8 || i == 13 || i == 18 || i == 23);
		if (dash ? s.p[i] != '-' : hr_hex_value(s.p[i]) < 0)
			return false;
	}
	return true;
}

bool
hr_v1_uuid(struct hr_rex_call *c, const struct hr_v1_input *in, struct hr_span *ret)
{
	static const char urn[] = "urn:uuid:";
	const size_t n = sizeof(urn) - 1;
	struct hr_span s = in->text;
	HR_BUF(error, HR_V1_TEXT_MAX);
	size_t offset = 0;

	if (s.len >= 2 && s.p[0] == '{' && s.p[s.len - 1] == '}') {
		offset = 1;
		s = (struct hr_span){s.p + 1, s.len - 2};
	} else if (s.len >= n && memcmp(s.p, urn, n) == 0) {
		offset = n;
		s = (struct hr_span){s.p + n, s.len - n};
	}
	if (is_uuid(s, false) || (offset == 0 && is_uuid(s, true))) {
		*ret = s;
		return true;
	}
	put_error(&error, s, offset, in->text.len, offset == 0);
	return hr_v1_invalid_as(c, in, "uuid_parsing", "UUID", &error);
}
