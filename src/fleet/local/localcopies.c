/* Forks boxes and keeps their snapshots. */
#include "config.h"

#include "fleet/local/local_int.h"

#include <string.h>

#include <json-c/json_object.h>

#include "base/strv.h"
#include "host/box/fork.h"
#include "host/box/snapshot.h"
#include "host/handle.h"
#include "proto/json.h"

static int
fork_it(struct hr_sandbox *s, struct json_object *args, char **ret_json, struct hr_err *err)
{
	struct json_object *list = hr_json_at(args, "ids");
	HR_CLEAN(hr_strv_done) struct hr_strv ids = {0};
	struct hr_box_fork how = {.freeze = hr_json_true_at(args, "freeze")};
	size_t i;

	for (i = 0; i < hr_json_count(list); i++)
		hr_strv_add(&ids, json_object_get_string(hr_json_entry(list, i)));
	if (ids.failed)
		return hr_err_nomem(err);
	how.names = hr_strv_list(&ids);
	return hr_box_fork(s, &how, ret_json, err);
}

/* Opens the sandbox. `user` is the account that its server has made; NULL: none. */
static struct hr_sandbox *
open_one(const struct hr_local_copies *l, const char *id, const char *user, struct hr_err *err)
{
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	struct hr_sandbox_options o = {
	    .sid = id, .attach = true, .headless = true, .state_dir = l->dir};
	struct hr_sandbox *s;

	hr_strv_add_all(&env, l->environ);
	if (user != NULL)
		hr_strv_set_envf(&env, "RUNTIME_USERNAME=%s", user);
	if (env.failed)
		return hr_err_null(err);
	o.environ = hr_strv_list(&env);
	s = hr_sandbox_open(l->o->config, &o, err);
	if (s != NULL && hr_sandbox_connect(s, err) == 0)
		return s;
	hr_sandbox_free(s);
	return NULL;
}

int
hr_local_copies(const struct hr_local_copies *l, const char *what, const char *id, const char *args,
    char **ret_json, struct hr_err *err)
{
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	HR_PUT struct json_object *o = NULL;

	if (hr_json_decode(args, strlen(args), &o, NULL) != 0)
		return hr_err_set(err, HR_E_INVAL, "the arguments are damaged");
	if (strcmp(what, HR_COPIES_LIST) == 0)
		return hr_box_snapshots(
		    l->dir, hr_json_text_or(o, "prefix", ""), true, ret_json, err);
	if (strcmp(what, HR_COPIES_REMOVE) == 0)
		return hr_box_snapshot_remove(&(struct hr_backend_host){.state_dir = l->dir},
		    hr_json_text_or(o, "tag", ""), err);
	s = open_one(l, id, hr_json_text_at(o, "user"), err);
	if (s == NULL)
		return -1;
	if (strcmp(what, HR_COPIES_FORK) == 0)
		return fork_it(s, o, ret_json, err);
	if (strcmp(what, HR_COPIES_MAKE) == 0)
		return hr_box_snapshot_within(s, hr_json_text_at(o, "tag"),
		    &(struct hr_box_bounds){.counted = true,
			.most = hr_json_int_at(o, "most"),
			.replaces = hr_json_true_at(o, "replaces")},
		    ret_json, err);
	return hr_err_set(err, HR_E_INVAL, "an engine does not do \"%.40s\"", what);
}
