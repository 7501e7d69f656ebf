/* br_observation: the observation of an action in the browser, as JSON. Pure. */
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
	const struct hr_buf *png, *marked; /* NULL: null; empty: "" */
	const char *png_path;              /* NULL: none */
	bool error;
	struct json_object *open_urls; /* a list, or NULL: empty */
	int64_t active;
	bool whole_tree;        /* axtree_object and extra_element_properties are wanted */
	const struct br_ax *ax; /* NULL: there is none */
	const struct br_props *props;
	struct json_object *action;   /* echoed */
	bool no_action;               /* "" in its place */
	const struct hr_buf *why;     /* last_browser_action_error */
	const struct hr_buf *focused; /* NULL: null */
	const struct hr_buf *text;    /* browse: of the page */
	const struct hr_buf *no_tree; /* why there is no tree */
	const char *note;             /* for people, about the browser; "" */
};

void br_observation_put(struct hr_buf *ret, const struct br_observation *o);
/* The other kind that an action may be answered with. */
void br_download_put(struct hr_buf *ret, struct json_object *action, const char *path);

#endif
