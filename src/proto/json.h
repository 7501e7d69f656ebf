/* hr_json: calls json-c's parser and writes JSON, as the only place. Reading follows Python's
 * json.loads(bytes), writing its json.dumps(ensure_ascii=False, allow_nan=False, separators=(",",
 * ":")) (doc/http.md, "JSON"). Strings inside are generalised UTF-8 (utf8.h). A JSON null is a NULL
 * json_object, as everywhere in json-c. */
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

/* Maximum of a JSON body, enforced by its reader: a tree takes many times its text. */
#define HR_JSON_BODY_MAX (64u << 20)

/* Decodes a whole body: byte order marks and UTF-16/32 as Python detects them, NaN and Infinity,
 * any integer, the last of equal keys at the place of the first. Returns 0 with *ret, which the
 * caller must json_object_put() (NULL for null), or -1 with the reason in *ret_error (may be
 * NULL). */
int hr_json_decode(
    const void *p, size_t len, struct json_object **ret, struct hr_json_error *ret_error);

/* Decodes another program's text as its clients in Python do: invalid UTF-8 becomes U+FFFD, so that
 * one bad byte does not make all of it unreadable. */
int hr_json_decode_foreign(
    const void *p, size_t len, struct json_object **ret, struct hr_json_error *ret_error);

/* Sets *err to a message that the caller ends as "... is not JSON", followed by the reason and its
 * place; nothing follows if `why` is empty, since the text is JSON, but not the expected one.
 * Returns -1. */
int hr_json_err(struct hr_err *err, enum hr_errc code, const struct hr_json_error *why,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Declares a value local to a block, put when the block is left; NULL at first. */
#define HR_PUT HR_CLEAN(hr_json_drop)
/* Puts a value and sets it to NULL. */
static inline void
hr_json_drop(struct json_object **io_v)
{
	json_object_put(*io_v);
	*io_v = NULL;
}

/* The Python type of a value. json-c's own types do not distinguish big integers from floats. */
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

/* Returns the digits of an integer that does not fit int64_t, borrowed; NULL for everything
 * else. */
const char *hr_json_big_int(struct json_object *v, bool *ret_negative, size_t *ret_len);

/* Returns the bytes of v, which must be a string. They may contain nulls and surrogates. */
const char *hr_json_str(struct json_object *v, size_t *ret_len);

/* Returns true if v is a string and equals this text. */
bool hr_json_str_is(struct json_object *v, const char *text);

/* Treatment of invalid UTF-8 and of surrogates in a string to be written. */
enum hr_json_bad { HR_JSON_REFUSE, HR_JSON_REPLACE };

/* Appends a JSON string with its quotes. HR_JSON_REPLACE puts U+FFFD and cannot fail;
 * HR_JSON_REFUSE returns -1 (a 500, as in the original). Check b for memory. */
int hr_json_put_str(struct hr_buf *b, const char *p, size_t len, enum hr_json_bad bad);
/* Appends the same without the quotes, for a string of several parts. */
int hr_json_put_text(struct hr_buf *b, const char *p, size_t len, enum hr_json_bad bad);

/* Appends "name":text, or null without a text, after a comma unless it is the object's first
 * member; U+FFFD replaces invalid UTF-8. name must need no escapes. */
void hr_json_put_member(struct hr_buf *b, const char *name, struct hr_span text);
void hr_json_put_named(struct hr_buf *b, const char *name, const char *text);
/* Appends a comma unless b is empty or ends with '[' or '{': it has no entry yet. */
void hr_json_put_comma(struct hr_buf *b);

/* Appends any value, without keys that begin with "_sa", as FastAPI's encoder does. Returns -1 for
 * a NaN, an infinity or a surrogate. */
int hr_json_put(struct hr_buf *b, struct json_object *v);

/* Returns the JSON of v, whose strings must be valid UTF-8, in at most `most` bytes; the caller
 * frees; NULL: no memory. */
char *hr_json_string(struct json_object *v, size_t most, struct hr_err *err);
/* Appends any value with all its keys, for interfaces without FastAPI. Never refuses: U+FFFD
 * replaces a surrogate, null a NaN or an infinity. Check b for memory. */
void hr_json_put_whole(struct hr_buf *b, struct json_object *v);

/* Appends Python's text of an integer; v must be HR_PY_INT. */
void hr_json_put_int(struct hr_buf *b, struct json_object *v);

/* Returns a key of json-c with its null characters restored (utf8.h): the key itself, or a copy in
 * tmp. */
const char *hr_json_key(const char *key, struct hr_buf *tmp, size_t *ret_len);

/* Returns a member of o, or NULL if o is not an object or lacks that name. The readers from here on
 * are for foreign JSON: they accept any value, also NULL, and treat one of another type as missing.
 * Results are borrowed. */
struct json_object *hr_json_at(struct json_object *o, const char *name);
/* Returns a member of that type, or NULL if there is none. */
struct json_object *hr_json_typed_at(struct json_object *o, const char *name, enum hr_py_type type);

/* Returns a string; NULL for another type, or if a null character would end it in C. */
const char *hr_json_text(struct json_object *v);
const char *hr_json_text_at(struct json_object *o, const char *name);
const char *hr_json_text_or(struct json_object *o, const char *name, const char *otherwise);
/* Returns true if any string or member name contains a null character. */
bool hr_json_has_null(struct json_object *v);
/* Returns a whole string, null characters included; otherwise "" or NULL. */
struct hr_span hr_json_span_or(struct json_object *o, const char *name, const char *otherwise);
/* Returns an integer, clamped to int64_t; 0: another type. */
int64_t hr_json_int(struct json_object *v);
int64_t hr_json_int_at(struct json_object *o, const char *name);
/* Returns a finite number; 0: another type. */
double hr_json_number_at(struct json_object *o, const char *name);
/* Returns true for JSON's true only, not for other values that Python or C takes for true. */
bool hr_json_true_at(struct json_object *o, const char *name);
/* Returns true for a list or an object that contains only strings. */
bool hr_json_all_strings(struct json_object *v);
/* Returns the length of a list; 0: another type. */
size_t hr_json_count(struct json_object *list);
/* Returns an entry of a list; NULL: none. */
struct json_object *hr_json_entry(struct json_object *list, size_t i);
/* Returns the first object of a list whose member `name` is `text`; NULL: none. */
struct json_object *hr_json_find(struct json_object *list, const char *name, const char *text);

/* Sets o[name] to v, taking ownership of v in any case. Returns -1 without memory, or if o or v is
 * NULL. */
int hr_json_set(struct json_object *o, const char *name, struct json_object *v, struct hr_err *err);
int hr_json_append(struct json_object *list, struct json_object *v, struct hr_err *err);

/* Returns an object of name and value pairs, taking ownership of the values; ends with NULL. A
 * value of HR_JSON_NONE omits its member. NULL: no memory, or a value was NULL. */
struct json_object *
hr_json_object(struct hr_err *err, const char *name, ...) __attribute__((sentinel));
#define HR_JSON_NONE ((struct json_object *)&hr_json_none)
extern const char hr_json_none;
/* Returns a new string; HR_JSON_NONE for NULL. */
struct json_object *hr_json_maybe(const char *text);
/* Returns an object of name and string pairs; a NULL string omits its member. */
struct json_object *
hr_json_texts(struct hr_err *err, const char *name, ...) __attribute__((sentinel));
/* Returns a list of strings; NULL: no memory. */
struct json_object *hr_json_list(struct hr_err *err, const char *const *texts);

#endif
