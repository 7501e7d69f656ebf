/* hr_obs: observations as the server writes them (doc/actions.md, "Observations"): message,
 * observation, content, extras, and success where the type has it, in this order. */
#ifndef HR_PROTO_OBS_H
#define HR_PROTO_OBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "proto/event.h"
#include "proto/frame.h"
#include "proto/json.h"

enum hr_obs_kind {
	HR_OBS_NULL,
	HR_OBS_STR,
	HR_OBS_BOOL,
	HR_OBS_INT,
	HR_OBS_JSON,   /* any value of a request, written back */
	HR_OBS_EXTRAS, /* an object of further fields */
};

struct hr_obs_extra {
	const char *name;
	enum hr_obs_kind kind;
	struct hr_span str;
	int64_t number; /* HR_OBS_INT; HR_OBS_BOOL: 0 or 1 */
	struct json_object *json;
	const struct hr_obs_extra *extras;
	size_t extras_n;
};

#define HR_OBS_SPAN(s) ((struct hr_span){(s), sizeof(s) - 1}) /* of a string literal */

struct hr_obs {
	const char *type;
	struct hr_span message[3]; /* written one after the other */
	struct hr_span content;
	const struct hr_obs_extra *extras;
	size_t extras_n;
	bool has_success, success;
	enum hr_json_bad bad; /* what happens to bytes that are not text */
};

/* Appends the JSON text. -1: something in it has no JSON form (a 500, as in the original); check b
 * for memory. */
int hr_obs_put(struct hr_buf *b, const struct hr_obs *o);

/* An error observation; never fails but for memory. */
void hr_obs_put_error(struct hr_buf *b, const char *text, size_t len);

/* What read, write and edit are answered, of a server and of the kind "cli". -1 as above. */
int hr_obs_put_read(struct hr_buf *b, struct hr_span path, const char *impl, struct hr_span content,
    enum hr_json_bad bad);
int hr_obs_put_write(struct hr_buf *b, struct hr_span path, enum hr_json_bad bad);
/* What an edit was asked, as it was given, and what came of it. */
struct hr_obs_edit {
	struct hr_span path;
	struct json_object *old_str, *new_str;
	struct hr_span content, diff;
};
int hr_obs_put_edit(struct hr_buf *b, const struct hr_obs_edit *e, enum hr_json_bad bad);

/* What a `run` action is answered. `hidden` is the action's own argument, echoed. Bytes that are
 * not UTF-8 become U+FFFD: they come from the shell. -1 only for `hidden`. */
int hr_obs_put_run(struct hr_buf *b, const struct hr_run_result *r, const struct hr_arg *hidden);

#endif
