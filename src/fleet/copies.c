/* Forks sandboxes and keeps their snapshots. No copy is made under the fleet's lock: the sandbox's
 * turn keeps a stop or a pause waiting meanwhile. */
#include "config.h"

#include "fleet/copies.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/log.h"
#include "base/random.h"
#include "base/text/text.h"
#include "fleet/fleet_int.h"
#include "fleet/request.h"
#include "proto/json.h"

#define REQUEST_MAX (2u << 20)

/* members of a branch's request: the id of its fork's first branch; in that one's: true when all
 * branches exist */
#define FIRST "fork_first"
#define FORKED "forked"

/* ---- the turn of a sandbox ---- */

struct entered {
	struct hr_fleet_place place;
	struct hr_fleet_job *turn;
	bool placed;
};

/* Waits until no other request works on the key's sandbox `id`, which must run (`paused`: or be
 * paused), and fills *row. The caller holds the lock, and calls leave() in any case. */
static enum hr_fleet_result
enter(struct hr_fleet *f, int64_t key, const char *id, bool paused, struct hr_fleet_row *row,
    struct entered *e, struct hr_err *err)
{
	enum hr_fleet_result r = hr_fleet_find(f, key, id, row, err);
	int found;

	if (r != HR_FLEET_OK)
		return r;
	e->placed = hr_fleet_place_take(f, &e->place, key);
	if (!e->placed)
		return HR_FLEET_LATE;
	r = hr_fleet_job_enter(f, row->id, &e->turn, err);
	if (r != HR_FLEET_OK)
		return r;
	found = hr_fleet_look_again(f, row, err);
	if (found <= 0)
		return found < 0 ? HR_FLEET_BROKEN : HR_FLEET_NOT_FOUND;
	return row->state == HR_FLEET_RUNNING || (paused && row->state == HR_FLEET_PAUSED)
		   ? HR_FLEET_OK
		   : HR_FLEET_CONFLICT;
}

static void
leave(struct hr_fleet *f, struct entered *e)
{
	if (e->turn != NULL)
		hr_fleet_job_leave(f, e->turn);
	if (e->placed)
		hr_fleet_place_give(f, &e->place);
}

/* Lets the engine work without the lock. Returns HR_FLEET_OK, or HR_FLEET_DECLINED with the
 * engine's reason. */
static enum hr_fleet_result
call(struct hr_fleet *f, const char *what, const char *id, struct json_object *args,
    char **ret_json, struct hr_err *err)
{
	HR_FREE char *text = hr_json_string(args, REQUEST_MAX, err);
	int r = -1;

	if (text == NULL)
		return HR_FLEET_BROKEN;
	(void)pthread_mutex_unlock(&f->lock);
	r = f->engine->copies(f->engine_self, what, id, text, ret_json, err);
	(void)pthread_mutex_lock(&f->lock);
	return r == 0 ? HR_FLEET_OK : HR_FLEET_DECLINED;
}

/* ---- forks ---- */

struct forking {
	struct hr_fleet *f;
	const struct hr_fleet_key *k;
	const struct hr_fleet_fork *how;
	struct hr_fleet_row *rows;
	struct hr_fleet_job **turns;
	size_t n; /* rows in the store */
};

/* Makes the request of a branch. The caller frees *ret. */
static int
request_of(const struct forking *g, const struct hr_fleet_row *parent, const char *session,
    char shape[HR_FLEET_SHAPE], char **ret, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;

	if (hr_fleet_request_of(parent, &o, err) != 0)
		return -1;
	json_object_object_del(o, FIRST);
	json_object_object_del(o, FORKED);
	if (hr_json_set(o, "session_id", json_object_new_string(session), err) != 0 ||
	    hr_json_set(o, "fork", json_object_new_string(parent->id), err) != 0 ||
	    (g->n > 0 && hr_json_set(o, FIRST, json_object_new_string(g->rows[0].id), err) != 0) ||
	    hr_fleet_request_shape(o, g->f->set.image, shape, err) != 0)
		return -1;
	*ret = hr_json_string(o, REQUEST_MAX, err);
	return *ret != NULL ? 0 : -1;
}

/* Records in one step that all branches exist. */
static enum hr_fleet_result
decide(struct forking *g, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	HR_FREE char *request = NULL;
	bool found = false;

	if (hr_fleet_request_of(&g->rows[0], &o, err) != 0 ||
	    hr_json_set(o, FORKED, json_object_new_boolean(true), err) != 0 ||
	    (request = hr_json_string(o, REQUEST_MAX, err)) == NULL ||
	    g->f->store->ops->set_request(g->f->store, &g->rows[0], request, &found, err) != 0)
		return HR_FLEET_BROKEN;
	if (found)
		return HR_FLEET_OK;
	(void)hr_err_set(err, HR_E_GONE, "the record of the first branch was removed meanwhile");
	return HR_FLEET_BROKEN;
}

int
hr_fleet_is_whole(struct hr_fleet *f, const struct hr_fleet_row *row, struct hr_err *err)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row other = {.request = NULL};
	HR_PUT struct json_object *o = NULL;
	HR_PUT struct json_object *first = NULL;
	const char *id;

	if (hr_fleet_request_of(row, &o, NULL) != 0 || hr_json_at(o, "fork") == NULL)
		return 1;
	id = hr_json_text_at(o, FIRST);
	if (id == NULL)
		return hr_json_true_at(o, FORKED);
	if (f->store->ops->find(f->store, id, &other, err) < 0)
		return -1;
	return other.request != NULL && hr_fleet_request_of(&other, &first, NULL) == 0 &&
	       hr_json_true_at(first, FORKED);
}

static enum hr_fleet_result
has_session(const char *session, struct hr_err *err)
{
	(void)hr_err_set(err, HR_E_INVAL,
	    "the session \"%.200s\" has a sandbox already: stop it, or choose another session_id",
	    session);
	return HR_FLEET_DECLINED;
}

/* Adds the row of a branch. Its start waits for the turn, which this process has. */
static enum hr_fleet_result
add(struct forking *g, const struct hr_fleet_row *parent, struct hr_err *err)
{
	const char *session = g->how->sessions[g->n];
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row other = {.request = NULL};
	struct hr_fleet_row *row = &g->rows[g->n];
	char shape[HR_FLEET_SHAPE];
	HR_FREE char *request = NULL;
	enum hr_fleet_result r;
	int found;

	found = g->f->store->ops->find_session(g->f->store, g->k->id, session, false, &other, err);
	if (found != 0)
		return found < 0 ? HR_FLEET_BROKEN : has_session(session, err);
	if (request_of(g, parent, session, shape, &request, err) != 0 ||
	    hr_fleet_compose(g->k->id, session, request, parent->factor, shape, row, err) != 0)
		return HR_FLEET_BROKEN;
	if (g->how->term != NULL) {
		row->life_ms = g->how->term->ms;
		row->end_pauses = g->how->term->pauses;
	}
	r = hr_fleet_job_enter(g->f, row->id, &g->turns[g->n], err);
	if (r != HR_FLEET_OK)
		return r;
	r = hr_fleet_reserve(g->f, g->k, row, err);
	if (r == HR_FLEET_OK) {
		g->n++;
		return r;
	}
	hr_fleet_job_leave(g->f, g->turns[g->n]);
	return r == HR_FLEET_CONFLICT ? has_session(session, err) : r;
}

static enum hr_fleet_result
copy(struct forking *g, const struct hr_fleet_row *parent, char **ret_json, struct hr_err *err)
{
	HR_PUT struct json_object *request = NULL;
	struct json_object *ids = json_object_new_array();
	HR_PUT struct json_object *args = NULL;
	const char *user;
	size_t i;

	for (i = 0; i < g->n; i++)
		if (hr_json_append(ids, json_object_new_string(g->rows[i].id), err) != 0) {
			json_object_put(ids);
			return HR_FLEET_BROKEN;
		}
	if (hr_fleet_request_of(parent, &request, NULL) != 0)
		request = NULL;
	user = hr_json_text_at(hr_json_at(request, "e2b"), "user");
	args = hr_json_object(err, "ids", ids, "freeze", json_object_new_boolean(g->how->freeze),
	    "user", hr_json_maybe(user), NULL);
	return args != NULL ? call(g->f, HR_COPIES_FORK, parent->id, args, ret_json, err)
			    : HR_FLEET_BROKEN;
}

/* Ends the turns of the branches. The rows of a fork that failed go: their starts find nothing. */
static void
settle(struct forking *g, enum hr_fleet_result r, const struct hr_err *why)
{
	struct hr_err err = {0};
	bool moved;
	size_t i;

	for (i = 0; i < g->n; i++) {
		if (r != HR_FLEET_OK &&
		    hr_fleet_begin(g->f, &g->rows[i], HR_FLEET_STOPPING, HR_JOB_STOP,
			why->msg[0] != '\0' ? why->msg : "not all branches had room", 0, &moved,
			&err) != 0)
			hr_log(HR_LOG_ERROR, "sandbox %s: %s", g->rows[i].id, err.msg);
		hr_fleet_job_leave(g->f, g->turns[i]);
	}
}

/* Waits until the branches run. If this process leaves, the next one continues their starts. */
static void
wait_for_all(struct forking *g)
{
	enum hr_fleet_result r = HR_FLEET_OK;
	struct hr_err err = {0};
	size_t i;

	for (i = 0; i < g->n && r != HR_FLEET_BROKEN; i++) {
		struct hr_fleet_row now;

		r = hr_fleet_wait(g->f, g->rows[i].id, &now, &err);
		if (r == HR_FLEET_NOT_FOUND)
			g->rows[i].state = HR_FLEET_STOPPED;
		if (now.request == NULL)
			continue;
		hr_fleet_row_done(&g->rows[i]);
		g->rows[i] = now;
	}
}

enum hr_fleet_result
hr_fleet_fork(struct hr_fleet *f, const struct hr_fleet_key *k, const struct hr_fleet_fork *how,
    struct hr_fleet_row *rows, char **ret_json, struct hr_err *err)
{
	struct hr_fleet_job *turns[HR_FLEET_FORK_MAX] = {NULL};
	struct forking g = {.f = f, .k = k, .how = how, .rows = rows, .turns = turns};
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row parent = {.request = NULL};
	struct entered e = {.turn = NULL};
	enum hr_fleet_result r;

	*ret_json = NULL;
	memset(rows, 0, how->n * sizeof(*rows));
	(void)pthread_mutex_lock(&f->lock);
	r = enter(f, k->id, how->id, false, &parent, &e, err);
	while (r == HR_FLEET_OK && g.n < how->n)
		r = add(&g, &parent, err);
	if (r == HR_FLEET_OK)
		r = copy(&g, &parent, ret_json, err);
	if (r == HR_FLEET_OK)
		r = decide(&g, err);
	settle(&g, r, err);
	leave(f, &e);
	(void)pthread_mutex_unlock(&f->lock);
	if (r == HR_FLEET_CONFLICT) {
		rows[0] = parent;
		parent.request = NULL;
	}
	if (r == HR_FLEET_OK)
		wait_for_all(&g);
	return r;
}

/* ---- snapshots ---- */

int
hr_fleet_tag(int64_t key, const char *name, char ret[HR_FLEET_TAG], struct hr_err *err)
{
	size_t n = strlen(name), i;
	bool good = n > 0 && n < HR_FLEET_SNAPSHOT_NAME && isalnum((unsigned char)*name);

	for (i = 0; good && i < n; i++)
		good = isalnum((unsigned char)name[i]) || strchr("_.-", name[i]) != NULL;
	if (!good)
		return hr_err_set(err, HR_E_INVAL,
		    "the name of a snapshot has up to %d letters, digits, '_', '.' and '-', and "
		    "begins with a letter or a digit",
		    HR_FLEET_SNAPSHOT_NAME - 1);
	(void)snprintf(ret, HR_FLEET_TAG, "%" PRId64 ".%s", key, name);
	return 0;
}

/* Returns the entry of a record for the clients of its key, or NULL: the record is another one's,
 * or no service's, or there is no memory. `key` 0: of any key, which the entry names. */
static struct json_object *
entry_of(struct json_object *record, int64_t key)
{
	static const char *const members[] = {"created", "files", "bytes", "still"};
	const char *tag = hr_json_text_or(record, "tag", "");
	HR_PUT struct json_object *o = NULL;
	struct json_object *done;
	char *name;
	int64_t owner = isdigit((unsigned char)*tag) ? strtoll(tag, &name, 10) : 0;
	size_t i;

	if (owner == 0 || *name != '.' || (key != 0 && owner != key))
		return NULL;
	o = hr_json_texts(
	    NULL, "name", name + 1, "runtime_id", hr_json_text_or(record, "sandbox", ""), NULL);
	if (key == 0 && hr_json_set(o, "key", json_object_new_int64(owner), NULL) != 0)
		return NULL;
	for (i = 0; i < sizeof(members) / sizeof(*members); i++)
		if (hr_json_set(
			o, members[i], json_object_get(hr_json_at(record, members[i])), NULL) != 0)
			return NULL;
	done = o;
	o = NULL;
	return done;
}

static struct json_object *
parsed(const char *text)
{
	struct json_object *o = NULL;

	return text != NULL && hr_json_decode(text, strlen(text), &o, NULL) == 0 ? o : NULL;
}

int
hr_fleet_snapshots(struct hr_fleet *f, int64_t key, const char *prefix, struct json_object **ret,
    struct hr_err *err)
{
	HR_PUT struct json_object *args = NULL;
	HR_FREE char *begins = NULL;
	HR_FREE char *json = NULL;
	HR_FREE char *text = NULL;
	HR_PUT struct json_object *all = NULL;
	struct json_object *list, *o;
	size_t i;

	*ret = NULL;
	if (key != 0 && hr_text_setf(&begins, err, "%" PRId64 ".%s", key, prefix) != 0)
		return -1;
	args = hr_json_texts(err, "prefix", begins != NULL ? begins : "", NULL);
	json = args != NULL ? hr_json_string(args, REQUEST_MAX, err) : NULL;
	if (json == NULL ||
	    f->engine->copies(f->engine_self, HR_COPIES_LIST, "", json, &text, err) != 0)
		return -1;
	all = parsed(text);
	if (all == NULL)
		return hr_err_set(err, HR_E_INVAL, "the engine's list of snapshots is damaged");
	list = json_object_new_array();
	for (i = 0; i < hr_json_count(all); i++) {
		o = entry_of(hr_json_entry(all, i), key);
		if (o != NULL && hr_json_append(list, o, err) != 0) {
			json_object_put(list);
			return -1;
		}
	}
	*ret = list;
	return list != NULL ? 0 : hr_err_nomem(err);
}

int
hr_fleet_has_snapshot(struct hr_fleet *f, int64_t key, const char *name, struct hr_err *err)
{
	HR_PUT struct json_object *list = NULL;

	return hr_fleet_snapshots(f, key, name, &list, err) == 0
		   ? hr_json_find(list, "name", name) != NULL
		   : -1;
}

/* Makes the arguments of a call for a snapshot. `name` NULL: a new one. */
static enum hr_fleet_result
arguments(int64_t key, const char *name, struct json_object **ret, struct hr_err *err)
{
	char tag[HR_FLEET_TAG], digits[13];

	if (name == NULL && hr_random_hex(digits, sizeof(digits) - 1, err) != 0)
		return HR_FLEET_BROKEN;
	if (hr_fleet_tag(key, name != NULL ? name : digits, tag, err) != 0)
		return HR_FLEET_INVALID;
	*ret = hr_json_texts(err, "tag", tag, NULL);
	return *ret != NULL ? HR_FLEET_OK : HR_FLEET_BROKEN;
}

/* Checks what the key has before a new snapshot. *ret_bytes is the size of those that stay. */
static enum hr_fleet_result
check_others(struct hr_fleet *f, int64_t key, const struct hr_fleet_copy *how, int64_t *ret_bytes,
    struct hr_err *err)
{
	HR_PUT struct json_object *list = NULL;
	struct json_object *same;
	size_t i;

	if (hr_fleet_snapshots(f, key, "", &list, err) != 0)
		return HR_FLEET_BROKEN;
	for (*ret_bytes = i = 0; i < hr_json_count(list); i++)
		*ret_bytes += hr_json_int_at(hr_json_entry(list, i), "bytes");
	same = how->name != NULL ? hr_json_find(list, "name", how->name) : NULL;
	if (same != NULL && how->replaces) {
		*ret_bytes -= hr_json_int_at(same, "bytes");
		return HR_FLEET_OK;
	}
	if (same != NULL) {
		(void)hr_err_set(err, HR_E_INVAL,
		    "there is a snapshot \"%s\" already: remove it, or choose another name",
		    how->name);
		return HR_FLEET_DECLINED;
	}
	if (hr_json_count(list) < HR_FLEET_SNAPSHOTS_MAX)
		return HR_FLEET_OK;
	(void)hr_err_set(err, HR_E_TOOLARGE, "this key has %d snapshots, the most: remove some",
	    HR_FLEET_SNAPSHOTS_MAX);
	return HR_FLEET_DECLINED;
}

/* Makes the snapshot, unless it and the key's others, which have `bytes`, would take more than they
 * may. */
static enum hr_fleet_result
make(struct hr_fleet *f, const char *id, struct json_object *args, int64_t bytes, char **ret_json,
    struct hr_err *err)
{
	const int64_t most = f->set.snapshots_mb * (1 << 20);
	enum hr_fleet_result r = HR_FLEET_DECLINED;

	if (most > 0 && hr_json_set(args, "most", json_object_new_int64(most - bytes), err) != 0)
		return HR_FLEET_BROKEN;
	if (most > 0 && bytes >= most)
		(void)hr_err_set(err, HR_E_TOOLARGE, "nothing is left");
	else
		r = call(f, HR_COPIES_MAKE, id, args, ret_json, err);
	if (r == HR_FLEET_DECLINED && err->code == HR_E_TOOLARGE)
		(void)hr_err_set(err, HR_E_TOOLARGE,
		    "the snapshots of this key have %" PRId64
		    " MB, and with this one more than the %" PRId64
		    " MB that they may have: remove some",
		    bytes >> 20, f->set.snapshots_mb);
	return r;
}

/* Makes the snapshot in the turn of the key. */
static enum hr_fleet_result
snapshot(struct hr_fleet *f, int64_t key, const struct hr_fleet_copy *how, struct hr_fleet_row *row,
    struct json_object **ret, struct hr_err *err)
{
	HR_PUT struct json_object *args = NULL;
	HR_PUT struct json_object *record = NULL;
	HR_FREE char *text = NULL;
	struct entered e = {.turn = NULL};
	int64_t bytes = 0;
	enum hr_fleet_result r = arguments(key, how->name, &args, err);

	if (r == HR_FLEET_OK)
		r = check_others(f, key, how, &bytes, err);
	if (r == HR_FLEET_OK && how->replaces &&
	    hr_json_set(args, "replaces", json_object_new_boolean(true), err) != 0)
		r = HR_FLEET_BROKEN;
	if (r != HR_FLEET_OK)
		return r;
	(void)pthread_mutex_lock(&f->lock);
	r = enter(f, key, how->id, true, row, &e, err);
	if (r == HR_FLEET_OK)
		r = make(f, row->id, args, bytes, &text, err);
	leave(f, &e);
	(void)pthread_mutex_unlock(&f->lock);
	if (r != HR_FLEET_OK)
		return r;
	record = parsed(text);
	*ret = entry_of(record, key);
	if (*ret == NULL)
		(void)hr_err_set(err, HR_E_INVAL, "the engine's record of a snapshot is damaged");
	return *ret != NULL ? HR_FLEET_OK : HR_FLEET_BROKEN;
}

enum hr_fleet_result
hr_fleet_snapshot(struct hr_fleet *f, const struct hr_fleet_key *k, const struct hr_fleet_copy *how,
    struct hr_fleet_row *row, struct json_object **ret, struct hr_err *err)
{
	struct hr_fleet_place turn;
	enum hr_fleet_result r;

	*ret = NULL;
	memset(row, 0, sizeof(*row));
	/* the key's long answers have turns of their own */
	if (!hr_fleet_turn_take(f, &turn, -k->id))
		return HR_FLEET_LATE;
	r = snapshot(f, k->id, how, row, ret, err);
	hr_fleet_turn_give(f, &turn);
	return r;
}

enum hr_fleet_result
hr_fleet_unsnapshot(struct hr_fleet *f, int64_t key, const char *name, struct hr_err *err)
{
	HR_PUT struct json_object *args = NULL;
	HR_FREE char *text = NULL;
	struct hr_fleet_place place;
	enum hr_fleet_result r = arguments(key, name, &args, err);

	if (r != HR_FLEET_OK)
		return r;
	(void)pthread_mutex_lock(&f->lock);
	if (hr_fleet_place_take(f, &place, key)) {
		r = call(f, HR_COPIES_REMOVE, "", args, &text, err);
		hr_fleet_place_give(f, &place);
	} else {
		r = HR_FLEET_LATE;
	}
	(void)pthread_mutex_unlock(&f->lock);
	return r == HR_FLEET_DECLINED && err->code == HR_E_NOTFOUND ? HR_FLEET_NOT_FOUND : r;
}
