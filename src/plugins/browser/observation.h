/* br_observation: formats the observation of a browser action as JSON. Pure. */
#ifndef HR_PLUGINS_BROWSER_OBSERVATION_H
#define HR_PLUGINS_BROWSER_OBSERVATION_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "plugins/browser/page/axtree.h"
#include "plugins/browser/page/props.h"

struct br_observation {
	bool interactive;
	const char *url;
	const struct hr_buf *png, *marked; /* NULL: null; an empty buffer: "" */
	const char *png_path;              /* NULL: none */
	bool error;
	struct json_object *open_urls; /* a list; NULL: an empty one */
	int64_t active;
	bool whole_tree;        /* include axtree_object and extra_element_properties */
	const struct br_ax *ax; /* the accessibility tree; NULL: none */
	const struct br_props *props;
	struct json_object *action;   /* echoed in the result */
	bool no_action;               /* echo "" instead of the action */
	const struct hr_buf *why;     /* text of last_browser_action_error */
	const struct hr_buf *focused; /* NULL: null */
	const struct hr_buf *text;    /* text of the page, only for browse */
	const struct hr_buf *no_tree; /* reason why there is no tree */
	const char *note;             /* note for people about the browser; "": none */
};

void br_observation_put(struct hr_buf *ret, const struct br_observation *o);
/* Appends the other type of observation, which a download has. */
void br_download_put(struct hr_buf *ret, struct json_object *action, const char *path);

#endif
