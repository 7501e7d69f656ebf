/* Returns the last cells of the plugin jupyter (doc/live.md). */
#include "config.h"

#include <string.h>

#include <json-c/json.h>

#include "actions/plugin.h"
#include "base/fd.h"
#include "proto/json.h"
#include "worker/live.h"
#include "worker/worker.h"

#define PLUGIN "run_ipython" /* the plugin that takes this action type has the cells */
#define LIMIT_S 1

void
hr_handle_live_cells(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	const struct hr_action_env env = {.run_dir = w->run_dir, .channel = -1};
	HR_PUT struct json_object *request = json_object_new_object();
	struct hr_err err = {0};
	HR_CLOSE int fd = -1;

	(void)r;
	if (request == NULL) {
		hr_answer_generic(ret);
		return;
	}
	fd = hr_plugin_connect(w->run_dir, PLUGIN, strlen(PLUGIN), &err);
	if (fd < 0 && err.code == HR_E_NOTFOUND) {
		hr_answer_detail(ret, 404, "this sandbox has no plugin jupyter");
		return;
	}
	if (fd >= 0)
		hr_plugin_perform(&env, fd, "cells", request, LIMIT_S, ret);
	if (fd < 0 || ret->status != 200 || ret->note.plugin_failed)
		hr_answer_later(ret, "the plugin jupyter does not answer");
	ret->note = (struct hr_note){0}; /* the metrics do not count lists as uses */
}
