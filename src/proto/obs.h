/* hr_obs: observations as the server writes them (doc/actions.md, "Observations"): message,
 * observation, content, extras, and success for types that have it, in this order. */
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
	HR_OBS_JSON,   /* any value of the request, written back */
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

#define HR_OBS_SPAN(s) ((struct hr_span){(s), sizeof(s) - 1}) /* The span of a string literal. */

struct hr_obs {
	const char *type;
	struct hr_span message[3]; /* parts, concatenated */
	struct hr_span content;
	const struct hr_obs_extra *extras;
	size_t extras_n;
	bool has_success, success;
	enum hr_json_bad bad; /* treatment of invalid UTF-8 */
};

/* Appends the JSON text. Returns -1 if a value has no JSON form (a 500, as in the original); check
 * b for memory. */
int hr_obs_put(struct hr_buf *b, const struct hr_obs *o);

/* Appends an error observation; it fails only without memory. */
void hr_obs_put_error(struct hr_buf *b, const char *text, size_t len);

/* Appends the observation of a read (below: of a write, of an edit), for a server and the back-end
 * "cli". Returns -1 as above. */
int hr_obs_put_read(struct hr_buf *b, struct hr_span path, const char *impl, struct hr_span content,
    enum hr_json_bad bad);
int hr_obs_put_write(struct hr_buf *b, struct hr_span path, enum hr_json_bad bad);
/* The arguments of an edit, as given, and its result. */
struct hr_obs_edit {
	struct hr_span path;
	struct json_object *old_str, *new_str;
	struct hr_span content, diff;
};
int hr_obs_put_edit(struct hr_buf *b, const struct hr_obs_edit *e, enum hr_json_bad bad);

/* Appends the observation of a `run`. `hidden` is the action's own argument, echoed. Invalid UTF-8
 * from the shell becomes U+FFFD. Returns -1 only for `hidden`. */
int hr_obs_put_run(struct hr_buf *b, const struct hr_run_result *r, const struct hr_arg *hidden);

#endif
