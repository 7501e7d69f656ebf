/* Writes JSON with one escaper and one serialiser. The escaper is the hottest loop of a worker
 * (every byte of every observation): plain text is copied eight bytes at a time. */
#include "config.h"

#include "proto/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <json-c/json.h>

#include "base/text/floatrepr.h"
#include "base/text/swar.h"
#include "base/text/utf8.h"

#define CHUNK 4096 /* input bytes per reservation */
#define WORST 6    /* maximum output bytes for one input byte: \u00XX */
#define REPLACEMENT "\xEF\xBF\xBD"

static size_t
escape_byte(char *out, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	static const char letters[0x20] = {
	    ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};

	out[0] = '\\';
	if (c >= 0x20) {
		out[1] = (char)c; /* the character is '"' or '\\' */
		return 2;
	}
	if (letters[c] != 0) {
		out[1] = letters[c];
		return 2;
	}
	memcpy(out + 1, "u00", 3);
	out[4] = hex[c >> 4];
	out[5] = hex[c & 15];
	return 6;
}

/* Copies the non-ASCII character at *p and moves *p past it. Returns the bytes written; 0:
 * refused. */
static size_t
put_wide(char *out, const char **p, const char *end, enum hr_json_bad bad)
{
	size_t n;
	int32_t cp = hr_utf8_next(*p, end, &n);

	if (cp < 0 || hr_utf8_is_surrogate(cp)) {
		if (bad == HR_JSON_REFUSE)
			return 0;
		memcpy(out, REPLACEMENT, 3);
		*p += n;
		return 3;
	}
	memcpy(out, *p, n);
	*p += n;
	return n;
}

/* Copies up to seven bytes that need no escape, and moves *p and *o past them; returns true if a
 * whole word was not clean. There must be room to write eight bytes. */
static bool
copy_word(char **o, const char **p)
{
	uint64_t w, mask;
	unsigned n = 8;

	memcpy(&w, *p, sizeof(w));
	memcpy(*o, *p, sizeof(w));
	mask = hr_swar_special(w) | (w & HR_SWAR_HIGH);
	if (mask != 0)
		n = hr_swar_before(mask);
	*o += n;
	*p += n;
	return mask == 0;
}

/* Escapes from p to `stop`, or a little beyond (a character that starts before it). */
static const char *
escape_chunk(char **out, const char *p, const char *stop, const char *end, enum hr_json_bad bad)
{
	char *o = *out;
	size_t n;

	while (p < stop) {
		if (stop - p >= 8 && copy_word(&o, &p))
			continue;
		if ((unsigned char)*p >= 0x80) {
			do {
				n = put_wide(o, &p, end, bad);
				if (n == 0)
					return NULL;
				o += n;
			} while (p < stop && (unsigned char)*p >= 0x80);
		} else if (hr_swar_byte_special((unsigned char)*p)) {
			o += escape_byte(o, (unsigned char)*p++);
		} else {
			*o++ = *p++;
		}
	}
	*out = o;
	return p;
}

int
hr_json_put_text(struct hr_buf *b, const char *p, size_t len, enum hr_json_bad bad)
{
	const char *end, *stop;
	char *out, *o;

	if (len == 0)
		return 0; /* `p` may be NULL then */
	end = p + len;
	while (p < end) {
		stop = (size_t)(end - p) > CHUNK ? p + CHUNK : end;
		out = hr_buf_reserve(b, (size_t)(stop - p) * WORST + 8);
		if (out == NULL)
			return 0; /* the error is sticky in b */
		o = out;
		p = escape_chunk(&o, p, stop, end, bad);
		if (p == NULL)
			return -1;
		hr_buf_grew(b, (size_t)(o - out));
	}
	return 0;
}

int
hr_json_put_str(struct hr_buf *b, const char *p, size_t len, enum hr_json_bad bad)
{
	hr_buf_addc(b, '"');
	if (hr_json_put_text(b, p, len, bad) < 0)
		return -1;
	hr_buf_addc(b, '"');
	return 0;
}

void
hr_json_put_int(struct hr_buf *b, struct json_object *v)
{
	bool negative;
	size_t len;
	const char *digits = hr_json_big_int(v, &negative, &len);

	if (digits == NULL) {
		hr_buf_addf(b, "%" PRId64, json_object_get_int64(v));
		return;
	}
	if (negative)
		hr_buf_addc(b, '-');
	hr_buf_add(b, digits, len);
}

const char *
hr_json_key(const char *key, struct hr_buf *tmp, size_t *ret_len)
{
	const char *nul = strstr(key, "\xC0\x80");

	if (nul == NULL) {
		*ret_len = strlen(key);
		return key;
	}
	hr_buf_reset(tmp);
	for (; nul != NULL; nul = strstr(key, "\xC0\x80")) {
		hr_buf_add(tmp, key, (size_t)(nul - key));
		hr_buf_addc(tmp, '\0');
		key = nul + 2;
	}
	hr_buf_adds(tmp, key);
	*ret_len = tmp->len;
	return hr_buf_str(tmp);
}

/* Options for writing a value. */
struct form {
	enum hr_json_bad bad;
	bool whole; /* include keys that begin with "_sa" */
};

static int put_value(struct hr_buf *b, struct json_object *v, struct form form);

static int
put_key(struct hr_buf *b, const char *key, enum hr_json_bad bad)
{
	HR_BUF(tmp, strlen(key));
	const char *s;
	size_t len;
	int r;

	s = hr_json_key(key, &tmp, &len);
	r = hr_json_put_str(b, s, len, bad);
	if (tmp.fail != HR_OK)
		b->fail = tmp.fail;
	return r;
}

static int
put_dict(struct hr_buf *b, struct json_object *v, struct form form)
{
	bool first = true;

	hr_buf_addc(b, '{');
	json_object_object_foreach(v, key, value)
	{
		if (!form.whole && strncmp(key, "_sa", 3) == 0)
			continue;
		if (!first)
			hr_buf_addc(b, ',');
		first = false;
		if (put_key(b, key, form.bad) < 0)
			return -1;
		hr_buf_addc(b, ':');
		if (put_value(b, value, form) < 0)
			return -1;
	}
	hr_buf_addc(b, '}');
	return 0;
}

static int
put_list(struct hr_buf *b, struct json_object *v, struct form form)
{
	size_t i, n = json_object_array_length(v);

	hr_buf_addc(b, '[');
	for (i = 0; i < n; i++) {
		if (i > 0)
			hr_buf_addc(b, ',');
		if (put_value(b, json_object_array_get_idx(v, i), form) < 0)
			return -1;
	}
	hr_buf_addc(b, ']');
	return 0;
}

static int
put_float(struct hr_buf *b, double v, enum hr_json_bad bad)
{
	if (isfinite(v))
		hr_float_repr(b, v);
	else if (bad == HR_JSON_REPLACE)
		hr_buf_adds(b, "null");
	else
		return -1;
	return 0;
}

static int
put_value(struct hr_buf *b, struct json_object *v, struct form form)
{
	const char *s;
	size_t len;

	switch (hr_json_type(v)) {
	case HR_PY_NONE: hr_buf_adds(b, "null"); return 0;
	case HR_PY_BOOL: hr_buf_adds(b, json_object_get_boolean(v) ? "true" : "false"); return 0;
	case HR_PY_INT: hr_json_put_int(b, v); return 0;
	case HR_PY_FLOAT: return put_float(b, json_object_get_double(v), form.bad);
	case HR_PY_STR: s = hr_json_str(v, &len); return hr_json_put_str(b, s, len, form.bad);
	case HR_PY_LIST: return put_list(b, v, form);
	case HR_PY_DICT: return put_dict(b, v, form);
	}
	return 0;
}

int
hr_json_put(struct hr_buf *b, struct json_object *v)
{
	return put_value(b, v, (struct form){.bad = HR_JSON_REFUSE});
}

void
hr_json_put_member(struct hr_buf *b, const char *name, struct hr_span text)
{
	hr_json_put_comma(b);
	hr_buf_addf(b, "\"%s\":", name);
	if (text.p != NULL)
		(void)hr_json_put_str(b, text.p, text.len, HR_JSON_REPLACE);
	else
		hr_buf_adds(b, "null");
}

void
hr_json_put_named(struct hr_buf *b, const char *name, const char *text)
{
	hr_json_put_member(b, name, text != NULL ? hr_span_of(text) : (struct hr_span){.p = NULL});
}

char *
hr_json_string(struct json_object *v, size_t most, struct hr_err *err)
{
	HR_BUF(b, most);

	if (hr_json_put(&b, v) != 0)
		b.fail = HR_E_NOMEM;
	return hr_buf_end(&b, err);
}

void
hr_json_put_whole(struct hr_buf *b, struct json_object *v)
{
	(void)put_value(b, v, (struct form){.bad = HR_JSON_REPLACE, .whole = true});
}

void
hr_json_put_comma(struct hr_buf *b)
{
	if (b->len > 0 && strchr("[{", b->p[b->len - 1]) == NULL)
		hr_buf_addc(b, ',');
}
