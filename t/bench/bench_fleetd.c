/* bench_fleetd: handrail-fleetd as it is, but for its engine, which is made up: it makes nothing,
 * and says of each sandbox that it runs, at the address that its request names in place of an
 * image. So a table may have as many as the store can keep. */
#include "config.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/trust.h"
#include "fleet/engine.h"
#include "fleet/store/sqlite.h"
#include "proto/json.h"

static struct hr_store *store;

static int
fake_start(void *self, struct hr_fleet_row *row, struct hr_err *err)
{
	HR_PUT struct json_object *q = NULL;
	struct hr_json_error why;

	(void)self;
	if (hr_json_decode(row->request, strlen(row->request), &q, &why) != 0)
		return hr_err_set(err, HR_E_INVAL, "the request is damaged");
	(void)snprintf(row->at, sizeof(row->at), "%s", hr_json_text_or(q, "image", ""));
	return 0;
}

static int
fake_end(void *self, const char *id, struct hr_err *err)
{
	(void)self;
	(void)id;
	(void)err;
	return 0;
}

static int
fake_pause(void *self, const char *id, enum hr_fleet_pause how, struct hr_err *err)
{
	(void)how;
	return fake_end(self, id, err);
}

static int
fake_state(void *self, const char *id, char ret[32], struct hr_err *err)
{
	(void)self;
	(void)id;
	(void)err;
	(void)snprintf(ret, 32, "running");
	return 0;
}

struct list {
	hr_fleet_id_fn *fn;
	void *arg;
};

static void
tell(void *arg, const struct hr_fleet_row *row)
{
	const struct list *l = arg;

	l->fn(l->arg, row->id);
}

static int
fake_list(void *self, hr_fleet_id_fn *fn, void *arg, struct hr_err *err)
{
	struct list l = {fn, arg};

	(void)self;
	return store->ops->each(store, 0, true, tell, &l, err);
}

static struct hr_store *
open_store(const struct hr_fleet_options *o, bool make, struct hr_err *err)
{
	store = hr_sqlite_open(o->dir, make, err);
	return store;
}

static int
open_engine(const struct hr_fleet_options *o, const struct hr_fleet_engine **ret, void **ret_self,
    struct hr_err *err)
{
	static const struct hr_fleet_engine engine = {.start = fake_start,
	    .pause = fake_pause,
	    .resume = fake_start,
	    .stop = fake_end,
	    .state = fake_state,
	    .list = fake_list};

	(void)o;
	(void)err;
	*ret = &engine;
	*ret_self = NULL;
	return 0;
}

/* ---- in place of src/fleet/backing.c ---- */

int
hr_fleet_directory(const char *dir, struct hr_err *err)
{
	return hr_path_mkdirs(dir, 0700, NULL, err) != 0 ? -1 : hr_trust_directory(dir, err);
}

const struct hr_fleet_backing *
hr_fleet_backing(const char *name)
{
	static const struct hr_fleet_backing made_up = {
	    .name = "made up", .open_store = open_store, .open_engine = open_engine};

	(void)name;
	return &made_up;
}
