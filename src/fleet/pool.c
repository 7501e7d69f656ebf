/* Manages pools: sandboxes created in advance. A pool is filled one batch at a time, counted by the
 * store, so that it never exceeds its size; a failed create delays the next one, longer each time.
 * Sandboxes that fit no pool any more are stopped. */
#include "config.h"

#include "fleet/fleet_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/clock.h"
#include "base/log.h"
#include "fleet/request.h"
#include "proto/json.h"

/* maximum concurrent creates per pool: starts with a waiting client go first */
#define AT_ONCE 2
#define AGAIN_MOST_S 300
#define CROWDED_S 30
#define SIZE_MOST 1000
#define POOLS_MOST 100

static void
free_pools(struct hr_fleet_pool *p)
{
	struct hr_fleet_pool *next;

	for (; p != NULL; p = next) {
		next = p->next;
		free(p->request);
		free(p);
	}
}

/* ---- the pools' definitions ---- */

static int
read_pool(
    const struct hr_fleet *f, struct json_object *o, struct hr_fleet_pool *p, struct hr_err *err)
{
	struct json_object *request = hr_json_at(o, "request");
	const char *name = hr_json_text_or(o, "name", "");
	HR_BUF(b, 1u << 20);
	int r;

	p->size = hr_json_int_at(o, "size");
	p->factor = hr_fleet_request_factor(request);
	if (*name == '\0' || strlen(name) >= sizeof(p->name))
		return hr_err_set(err, HR_E_INVAL, "a pool has a name of up to 63 bytes");
	if (hr_json_type(hr_json_at(o, "size")) != HR_PY_INT || p->size < 0 || p->size > SIZE_MOST)
		return hr_err_set(
		    err, HR_E_INVAL, "pool %s: size is a number from 0 to %d", name, SIZE_MOST);
	if (hr_json_type(request) != HR_PY_DICT || p->factor < 1 ||
	    p->factor > HR_FLEET_FACTOR_MOST || hr_json_at(request, "environment") != NULL ||
	    hr_json_at(request, "session_id") != NULL)
		return hr_err_set(err, HR_E_INVAL,
		    "pool %s: request is an object like that of a start, without session_id and "
		    "environment",
		    name);
	(void)snprintf(p->name, sizeof(p->name), "%s", name);
	r = hr_fleet_request_shape(request, f->set.image, p->shape, err);
	if (r == 0 && (hr_json_put(&b, request) != 0 || hr_buf_check(&b, NULL) != 0))
		r = hr_err_set(err, HR_E_INVAL, "pool %s: its request is too long", name);
	if (r == 0 && (p->request = hr_buf_take(&b)) == NULL)
		r = hr_err_nomem(err);
	return r;
}

static bool
has_shape(const struct hr_fleet_pool *list, const char *shape)
{
	while (list != NULL && strcmp(list->shape, shape) != 0)
		list = list->next;
	return list != NULL;
}

static bool
has_name(const struct hr_fleet_pool *list, const char *name)
{
	while (list != NULL && strcmp(list->name, name) != 0)
		list = list->next;
	return list != NULL;
}

bool
hr_fleet_pool_wants(const struct hr_fleet *f, const char *shape)
{
	return has_shape(f->pools, shape);
}

static int
read_pools(const struct hr_fleet *f, struct json_object *list, struct hr_fleet_pool **ret,
    struct hr_err *err)
{
	struct hr_fleet_pool *all = NULL, *p;
	size_t i;

	if (hr_json_type(list) != HR_PY_LIST || hr_json_count(list) > POOLS_MOST)
		return hr_err_set(
		    err, HR_E_INVAL, "pools are a list of up to %d objects", POOLS_MOST);
	for (i = 0; i < hr_json_count(list); i++) {
		p = calloc(1, sizeof(*p));
		if (p == NULL)
			(void)hr_err_nomem(err);
		if (p == NULL || read_pool(f, hr_json_entry(list, i), p, err) != 0)
			goto fail;
		/* two pools of one shape would count each other's sandboxes */
		if (has_shape(all, p->shape) || has_name(all, p->name)) {
			(void)hr_err_set(err, HR_E_INVAL,
			    "pool %s: another pool has this name, or makes the same sandboxes",
			    p->name);
			goto fail;
		}
		p->next = all;
		all = p;
	}
	*ret = all;
	return 0;
fail:
	if (p != NULL)
		free(p->request);
	free(p);
	free_pools(all);
	return -1;
}

int
hr_fleet_set_pools(struct hr_fleet *f, struct json_object *pools, struct hr_err *err)
{
	struct hr_fleet_pool *new = NULL, *old;
	HR_BUF(b, 4u << 20);
	int r;

	if (read_pools(f, pools, &new, err) != 0)
		return -1;
	r = hr_json_put(&b, pools) != 0
		? hr_err_set(err, HR_E_INVAL, "the pools cannot be written as JSON")
		: hr_buf_check(&b, err);
	if (r == 0)
		r = f->store->ops->note_set(f->store, "pools", hr_buf_str(&b), err);
	if (r != 0) {
		free_pools(new);
		return -1;
	}
	hr_fleet_history_keep(f);
	for (old = f->pools; old != NULL; old = old->next) {
		hr_fleet_alert(f, HR_ALERT_POOL_EMPTY, old->name, NULL);
		hr_fleet_alert(f, HR_ALERT_POOL_FAILING, old->name, NULL);
	}
	/* sandboxes that only old pools had are stopped: their size is 0 */
	while ((old = f->pools) != NULL) {
		f->pools = old->next;
		old->next = NULL;
		old->size = 0;
		if (has_shape(new, old->shape)) {
			free_pools(old);
		} else {
			old->next = new;
			new = old;
		}
	}
	f->pools = new;
	f->pools_changed++;
	(void)pthread_cond_signal(&f->clock);
	return 0;
}

int
hr_fleet_drain(struct hr_fleet *f, bool on, struct hr_err *err)
{
	if (f->store->ops->note_set(f->store, "drained", on ? "true" : "false", err) != 0)
		return -1;
	f->drained = on;
	(void)pthread_cond_signal(&f->clock);
	return 0;
}

int
hr_fleet_load(struct hr_fleet *f, struct hr_err *err)
{
	HR_FREE char *drained = NULL;
	HR_FREE char *pools = NULL;
	HR_PUT struct json_object *list = NULL;
	int r = f->store->ops->note_get(f->store, "drained", &drained, err);

	if (r == 0)
		r = f->store->ops->note_get(f->store, "pools", &pools, err);
	f->drained = r == 0 && drained != NULL && strcmp(drained, "true") == 0;
	/* an unreadable pool must not keep the service from starting */
	if (r == 0 && pools != NULL &&
	    (hr_json_decode(pools, strlen(pools), &list, NULL) != 0 ||
		read_pools(f, list, &f->pools, err) != 0))
		hr_log(HR_LOG_ERROR, "cannot read the pools in the store, so no pool is filled");
	return r;
}

/* ---- creation and removal ---- */

static int
add_one(struct hr_fleet *f, const struct hr_fleet_pool *p, struct hr_err *err)
{
	static const struct hr_fleet_limits none;
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	struct hr_fleet_starter s = {f, 0};
	enum hr_fleet_result r = HR_FLEET_BROKEN;

	hr_fleet_history_keep(f);
	if (hr_fleet_compose(0, "", p->request, p->factor, p->shape, &row, err) == 0)
		r = f->store->ops->reserve(
		    f->store, &row, &none, &f->set.limits, hr_fleet_may_start, &s, err);
	/* the write may have succeeded despite the error: the job finds out */
	if ((r == HR_FLEET_OK || (r == HR_FLEET_BROKEN && f->store->ops->claim != NULL)) &&
	    hr_fleet_add_job(f, HR_JOB_WARM, row.id, err) != 0)
		r = HR_FLEET_BROKEN;
	(void)pthread_cond_broadcast(&f->changed);
	return r == HR_FLEET_OK ? 1 : r == HR_FLEET_BROKEN ? -1 : 0;
}

static int
end_one(struct hr_fleet *f, const char *id, const char *why, struct hr_err *err)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	bool moved = false;
	int r = f->store->ops->find(f->store, id, &row, err);

	if (r == 1 && row.state == HR_FLEET_WARM)
		r = hr_fleet_begin(f, &row, HR_FLEET_STOPPING, HR_JOB_STOP, why, 0, &moved, err);
	return r < 0 ? -1 : 0;
}

/* Takes one step towards the pool's size. Returns 1 if more is to do, 0, or -1. */
static int
turn(struct hr_fleet *f, const struct hr_fleet_pool *p, int64_t now, int64_t *due,
    struct hr_err *err)
{
	int64_t n[2], wait_until = p->not_before_s;
	char warm[HR_FLEET_ID];

	if (f->store->ops->pooled(f->store, p->shape, n, warm, err) != 0)
		return -1;
	if (n[0] + n[1] > p->size && n[1] > 0)
		return end_one(f, warm, "the pool is smaller now", err) == 0 ? 1 : -1;
	if (n[0] + n[1] >= p->size || n[0] >= AT_ONCE || f->drained)
		return 0;
	wait_until = f->crowded_s > wait_until ? f->crowded_s : wait_until;
	if (wait_until > now) {
		*due = *due == 0 || wait_until < *due ? wait_until : *due;
		return 0;
	}
	return add_one(f, p, err);
}

void
hr_fleet_pool_turn(struct hr_fleet *f, int64_t *ret_due_s)
{
	int64_t now = hr_now_ms() / 1000;
	unsigned changed = f->pools_changed;
	struct hr_err err = {0};
	int r = 0;
	struct hr_fleet_pool *p;

	*ret_due_s = 0;
	for (p = f->pools; p != NULL && r >= 0; p = r == 0 ? p->next : p) {
		r = turn(f, p, now, ret_due_s, &err);
		if (f->pools_changed != changed) {
			/* p was freed */
			*ret_due_s = now;
			return;
		}
	}
	if (r < 0) {
		hr_log(HR_LOG_ERROR, "cannot fill the pools: %s", err.msg);
		*ret_due_s = now + CROWDED_S;
	}
}

void
hr_fleet_pool_made(struct hr_fleet *f, const char *shape, const char *why)
{
	int64_t wait_s;
	struct hr_fleet_pool *p;
	char detail[300];

	for (p = f->pools; p != NULL; p = p->next) {
		if (strcmp(p->shape, shape) != 0)
			continue;
		wait_s = p->failed < 8 ? (int64_t)1 << p->failed : AGAIN_MOST_S;
		p->failed = why == NULL ? 0 : p->failed + 1;
		p->not_before_s = why == NULL ? 0 : hr_now_ms() / 1000 + wait_s;
		if (why == NULL) {
			hr_fleet_alert(f, HR_ALERT_POOL_EMPTY, p->name, NULL);
			hr_fleet_alert(f, HR_ALERT_POOL_FAILING, p->name, NULL);
		} else {
			(void)snprintf(detail, sizeof(detail), "pool %s: %.200s", p->name, why);
			hr_fleet_alert(f, HR_ALERT_POOL_FAILING, p->name, detail);
		}
	}
}

void
hr_fleet_pool_missed(struct hr_fleet *f, const char *shape)
{
	const struct hr_fleet_pool *p;
	char detail[200];

	for (p = f->pools; p != NULL; p = p->next) {
		if (p->size == 0 || strcmp(p->shape, shape) != 0)
			continue;
		(void)snprintf(detail, sizeof(detail),
		    "pool %s: no sandbox was left in it, so a start takes longer", p->name);
		hr_fleet_alert(f, HR_ALERT_POOL_EMPTY, p->name, detail);
	}
}

void
hr_fleet_pool_yield(struct hr_fleet *f)
{
	struct hr_err err = {0};
	char id[HR_FLEET_ID] = "";
	int64_t active;
	int r = f->store->ops->least_active(f->store, HR_FLEET_WARM, id, &active, &err);

	if (r == 1)
		r = end_one(f, id, "removed to make room for another sandbox", &err);
	if (r < 0)
		hr_log(HR_LOG_ERROR, "cannot fill the pools: %s", err.msg);
	f->counts.evicted += r == 0 && id[0] != '\0';
	f->crowded_s = hr_now_ms() / 1000 + CROWDED_S;
}
