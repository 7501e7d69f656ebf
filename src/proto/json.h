/* hr_json: the only place that calls json-c's parser and that writes JSON.
 *
 * Reading follows Python's json.loads(bytes), writing its json.dumps(ensure_ascii=False,
 * allow_nan=False, separators=(",", ":")) (doc/http.md, "JSON"). Strings inside are generalised
 * UTF-8 (utf8.h). A JSON null is a NULL json_object, as everywhere in json-c. */
#ifndef HR_PROTO_JSON_H
#define HR_PROTO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "proto/jsonscan.h"

/* No JSON body is longer (the reader of a body sees to it): a tree takes many times its text. */
#define HR_JSON_BODY_MAX (64u << 20)

/* A whole body: byte order marks and UTF-16/32 as Python detects them, NaN and Infinity, any
 * integer, the last of equal keys at the place of the first. 0: *ret is the caller's
 * (json_object_put it; NULL for null); -1: *ret_error (may be NULL) says why. */
int hr_json_decode(
    const void *p, size_t len, struct json_object **ret, struct hr_json_error *ret_error);

/* The same of another program's text, decoded as its clients in Python do: what is not UTF-8
 * becomes U+FFFD, so that one byte of it does not take the rest along. */
int hr_json_decode_foreign(
    const void *p, size_t len, struct json_object **ret, struct hr_json_error *ret_error);

/* A value of a block's own, put where the block is left; NULL at the beginning. */
#define HR_PUT HR_CLEAN(hr_json_clean)
static inline void
hr_json_clean(struct json_object **v)
{
	json_object_put(*v);
}

/* What a value is in Python. json-c's own types do not tell big integers from floats. */
enum hr_py_type {
	HR_PY_NONE,
	HR_PY_BOOL,
	HR_PY_INT,
	HR_PY_FLOAT,
	HR_PY_STR,
	HR_PY_LIST,
	HR_PY_DICT,
};
enum hr_py_type hr_json_type(struct json_object *v);

/* The digits of an integer that does not fit int64_t, borrowed; NULL for everything else. */
const char *hr_json_big_int(struct json_object *v, bool *ret_negative, size_t *ret_len);

/* A string's bytes; v must be one. May hold nulls and surrogates. */
const char *hr_json_str(struct json_object *v, size_t *ret_len);

/* Does v equal this text? false for other types. */
bool hr_json_str_is(struct json_object *v, const char *text);

/* What to do with bytes that are not valid UTF-8, and with surrogates, in a string to be written.
 */
enum hr_json_bad { HR_JSON_REFUSE, HR_JSON_REPLACE };

/* A JSON string with its quotes. HR_JSON_REPLACE puts U+FFFD and cannot fail; HR_JSON_REFUSE: -1
 * (a 500, as in the original). Check b for memory. */
int hr_json_put_str(struct hr_buf *b, const char *p, size_t len, enum hr_json_bad bad);
/* The same without the quotes, for a string of several parts. */
int hr_json_put_text(struct hr_buf *b, const char *p, size_t len, enum hr_json_bad bad);

/* "name":text, or null without a text, behind a comma unless it is the object's first; U+FFFD for
 * what is no UTF-8. name needs no escapes. */
void hr_json_put_member(struct hr_buf *b, const char *name, struct hr_span text);
void hr_json_put_named(struct hr_buf *b, const char *name, const char *text);

/* Any value. -1: a NaN, an infinity or a surrogate in it. Keys that begin with "_sa" are left out,
 * as FastAPI's encoder does. */
int hr_json_put(struct hr_buf *b, struct json_object *v);

/* v, whose texts are known to be UTF-8, in at most so many bytes; the caller frees; NULL: no
 * memory. */
char *hr_json_string(struct json_object *v, size_t most, struct hr_err *err);
/* Any value with all its keys, for those who know nothing of FastAPI. It has always a text: U+FFFD
 * stands for a surrogate, null for a NaN or an infinity. Check b for memory. */
void hr_json_put_whole(struct hr_buf *b, struct json_object *v);

/* Python's text of an integer; v must be HR_PY_INT. */
void hr_json_put_int(struct hr_buf *b, struct json_object *v);

/* A key as json-c holds it, with its null characters back (utf8.h): the key itself, or in tmp. */
const char *hr_json_key(const char *key, struct hr_buf *tmp, size_t *ret_len);

/* What somebody else said, by the types that it ought to have: all of these take anything, NULL as
 * well, and say no more than that it is not there where it is of another type. Results are
 * borrowed.
 *
 * A member of o. NULL: o is no object, or has none of that name. */
struct json_object *hr_json_at(struct json_object *o, const char *name);
/* The same, of that type. */
struct json_object *hr_json_typed_at(struct json_object *o, const char *name, enum hr_py_type type);

/* A string; NULL: it is none, or has a null character, at which C would end it. */
const char *hr_json_text(struct json_object *v);
const char *hr_json_text_at(struct json_object *o, const char *name);
const char *hr_json_text_or(struct json_object *o, const char *name, const char *otherwise);
/* Whether there is a null character in any string or name of a member. */
bool hr_json_has_null(struct json_object *v);
/* All of a string, null characters as well. otherwise: "" or NULL, where it is none. */
struct hr_span hr_json_span_or(struct json_object *o, const char *name, const char *otherwise);
/* An integer; 0: it is none. One that does not fit is the nearest that does. */
int64_t hr_json_int(struct json_object *v);
int64_t hr_json_int_at(struct json_object *o, const char *name);
/* A number, always finite; 0: it is none. */
double hr_json_number_at(struct json_object *o, const char *name);
/* true, and not what Python or C would take for it. */
bool hr_json_true_at(struct json_object *o, const char *name);
/* Is it a list or an object that holds nothing but strings? */
bool hr_json_all_strings(struct json_object *v);
/* The length of a list; 0: it is none. */
size_t hr_json_count(struct json_object *list);
/* An entry of a list; NULL: there is none. */
struct json_object *hr_json_entry(struct json_object *list, size_t i);

/* o[name] becomes v, which is taken in any case. -1: no memory, as where o or v is NULL. */
int hr_json_set(struct json_object *o, const char *name, struct json_object *v, struct hr_err *err);
int hr_json_append(struct json_object *list, struct json_object *v, struct hr_err *err);

/* An object of these members, by turns a name and a value, which is taken; NULL at the end. A value
 * of HR_JSON_NONE leaves its member out. NULL: no memory, as where a value is NULL. */
struct json_object *
hr_json_object(struct hr_err *err, const char *name, ...) __attribute__((sentinel));
#define HR_JSON_NONE ((struct json_object *)&hr_json_none)
extern const char hr_json_none;
/* A string; HR_JSON_NONE where there is no text. */
struct json_object *hr_json_maybe(const char *text);
/* The same of texts; one of NULL leaves its member out. */
struct json_object *
hr_json_texts(struct hr_err *err, const char *name, ...) __attribute__((sentinel));
/* A list of texts; NULL: no memory. */
struct json_object *hr_json_list(struct hr_err *err, const char *const *texts);

#endif
