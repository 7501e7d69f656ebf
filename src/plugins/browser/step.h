/* br_step: performs one action, from its JSON to its observation. */
#ifndef HR_PLUGINS_BROWSER_STEP_H
#define HR_PLUGINS_BROWSER_STEP_H

#include <json-c/json_object.h>

#include "base/buf.h"
#include "plugins/browser/browser.h"

#define BR_STEP_MS 120000 /* ms until an action is answered in any case */

/* State that outlives Chromium and this process. */
struct br_desk {
	const char *dir;          /* the workspace */
	char *downloads;          /* directory for downloads in the workspace */
	const char *state_dir;    /* a private directory */
	struct json_object *seen; /* names of reported downloads, in order */
	struct json_object *tabs; /* URLs of the tabs after the last action */
	int64_t active;           /* index of the active tab */
	bool lost;                /* the browser with these tabs has ended */
	unsigned restored;        /* number of consecutive failed attempts to reopen the tabs */
};

int br_desk_open(struct br_desk *d, const char *dir, const char *state_dir, struct hr_err *err);
void br_desk_close(struct br_desk *d);
void br_desk_save(const struct br_desk *d);
/* Puts one unreported download into the workspace. Returns 0 with *ret as its path, owned by the
 * caller, or NULL if there is none; -1 on an error. */
int br_desk_download(struct br_desk *d, char **ret, struct hr_err *err);

/* A reply: JSON and the HTTP status. There is always a reply; an empty one means that memory was
 * short. */
struct br_reply {
	struct hr_buf body;
	int64_t status;
};

/* Performs an action of `type` "browse" or "browse_interactive"; `action` is JSON with its args. */
void br_step(struct browser *b, struct br_desk *d, const char *type, struct json_object *action,
    struct br_reply *ret);
/* Makes the reply for an action that has timed out. */
void br_step_late(const char *type, struct json_object *action, struct br_reply *ret);

#endif
