/* br_step: one action from its JSON to its observation. */
#ifndef HR_PLUGINS_BROWSER_STEP_H
#define HR_PLUGINS_BROWSER_STEP_H

#include <json-c/json_object.h>

#include "base/buf.h"
#include "plugins/browser/browser.h"

#define BR_STEP_MS 120000 /* until an action is answered, whatever it does */

/* What outlives a Chromium, and this process. */
struct br_desk {
	const char *dir;          /* the workspace */
	char *downloads;          /* in it */
	const char *state_dir;    /* ours alone */
	struct json_object *seen; /* names of downloads that were told of, in their order */
	struct json_object *tabs; /* URLs of the tabs as they were after the last action */
	int64_t active;           /* which of them was active */
	bool lost;                /* there was a browser, and these tabs in it */
	unsigned restored;        /* times in a row that they were opened again in vain */
};

int br_desk_open(struct br_desk *d, const char *dir, const char *state_dir, struct hr_err *err);
void br_desk_close(struct br_desk *d);

/* An answer: JSON, and the status of HTTP. Whatever happens, there is one; an empty one: no memory.
 */
struct br_reply {
	struct hr_buf body;
	int64_t status;
};

/* type: "browse" or "browse_interactive"; action: with its args. */
void br_step(struct browser *b, struct br_desk *d, const char *type, struct json_object *action,
    struct br_reply *ret);
/* The answer to one that does not end in its time. */
void br_step_late(const char *type, struct json_object *action, struct br_reply *ret);

#endif
