/* Sandboxes in the store. A row is one object, and is changed only in the version that was read. A
 * session's object says which row has it:
 *
 *   a row is written first, in STARTING; then its quotas are counted, in a list that was asked for
 *   after it was written, so that of two that would be one too many at least one sees the other;
 *   then the session's object is made to lead to it, which only one of several can do. What loses
 *   takes its row back. A process that dies between leaves a row to which no session leads: whoever
 *   would go on with it (claim) removes it.
 *
 * A warm one of the pool is taken in the place of the first step, and the row of a session's last
 * life if that died: its id leads to the files. */
#include "config.h"

#include "fleet/kubernetes/store_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <json-c/json_object.h>

#include "base/clock.h"
#include "base/random.h"
#include "host/client/rest.h"
#include "proto/json.h"

#define TAKE_OVER_MS                                                                               \
	5000     /* a process that shows no progress gives way, at what is done twice well */
#define TRIES 16 /* of changes that others were before */
#define RESERVE_TRIES 4
#define DATA_MAX (1u << 20)
#define ROWS "labelSelector=handrail%2Ffleet%3Drow"

/* ---- one row ---- */

/* As it is in the API server now: 1, 0, -1. */
static int
look(struct hr_kube_store *s, const char *id, struct hr_fleet_row *ret, struct hr_cached *known,
    struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	char name[HR_OBJECT_NAME];
	int r;

	hr_object_row_name(id, name);
	r = hr_kube_store_get(s, name, &o, err);
	if (r == 0)
		hr_cache_drop(s->cache, id);
	if (r == 1)
		r = hr_cache_put(s->cache, o, NULL, err) < 0
			? -1
			: hr_cache_find(s->cache, id, ret, known, err);
	return r;
}

static int
write_as(struct hr_kube_store *s, const struct hr_fleet_row *row, const char *owner,
    const char *version, struct hr_cached *known, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	char name[HR_OBJECT_NAME];
	HR_BUF(data, DATA_MAX);
	int r;

	hr_object_row_name(row->id, name);
	hr_object_row_data(&data, row);
	r = hr_buf_check(&data, err);
	if (r == 0)
		r = hr_kube_store_put(s, name, "row", owner, version, hr_buf_str(&data), &o, err);
	if (r == 1 && known != NULL)
		(void)snprintf(known->version, sizeof(known->version), "%s", hr_object_version(o));
	if (data.p != NULL)
		explicit_bzero(data.p, data.len);
	return r;
}

/* It is this process's from now on. */
static int
write_row(struct hr_kube_store *s, const struct hr_fleet_row *row, const char *version,
    struct hr_cached *known, struct hr_err *err)
{
	return write_as(s, row, s->me, version, known, err);
}

static int
delete_row(struct hr_kube_store *s, const char *id, const char *version, struct hr_err *err)
{
	char name[HR_OBJECT_NAME];
	int r;

	hr_object_row_name(id, name);
	r = hr_kube_store_delete(s, name, version, err);
	if (r == 0)
		hr_cache_drop(s->cache, id);
	return r;
}

static bool
is_id(const char *id)
{
	return strlen(id) == HR_FLEET_ID - 1 && strspn(id, "0123456789abcdef") == HR_FLEET_ID - 1;
}

int
hr_kube_store_known(
    struct hr_store *base, const char *id, struct hr_fleet_row *ret, struct hr_err *err)
{
	struct hr_cached known;
	int r = is_id(id) ? hr_cache_find(hr_kube_store_of(base)->cache, id, ret, &known, err) : 0;

	if (r == 1 && ret->active < known.used)
		ret->active = known.used;
	return r;
}

int
hr_kube_store_find(
    struct hr_store *base, const char *id, struct hr_fleet_row *ret, struct hr_err *err)
{
	struct hr_kube_store *s = hr_kube_store_of(base);
	int r;

	/* ids come from clients, and become names */
	if (!is_id(id))
		return 0;
	r = hr_cache_find(s->cache, id, ret, NULL, err);
	return r != 0 ? r : look(s, id, ret, NULL, err);
}

/* ---- sessions ---- */

/* *ret_id: the row that has it, or had it last. version: of its object; "": there is none. */
static int
session_of(struct hr_kube_store *s, int64_t key, const char *session, char ret_id[HR_FLEET_ID],
    char version[HR_OBJECT_VERSION], struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	HR_PUT struct json_object *data = NULL;
	char name[HR_OBJECT_NAME];
	int r;

	*ret_id = *version = '\0';
	hr_object_session_name(key, session, name);
	r = hr_kube_store_get(s, name, &o, err);
	if (r == 1) {
		data = hr_object_data(o);
		(void)snprintf(ret_id, HR_FLEET_ID, "%s", hr_json_text_or(data, "id", ""));
		(void)snprintf(version, HR_OBJECT_VERSION, "%s", hr_object_version(o));
	}
	return r;
}

/* 1 it leads there now, 0 somebody else was before, -1. */
static int
lead(struct hr_kube_store *s, const struct hr_fleet_row *row, const char *version,
    struct hr_err *err)
{
	char name[HR_OBJECT_NAME], data[80];

	hr_object_session_name(row->key, row->session, name);
	(void)snprintf(data, sizeof(data), "{\"id\":\"%s\"}", row->id);
	return hr_kube_store_put(
	    s, name, "session", s->me, *version != '\0' ? version : NULL, data, NULL, err);
}

/* Does its session lead to it? 1, 0, -1. */
static int
is_led_to(struct hr_kube_store *s, const struct hr_fleet_row *row, struct hr_err *err)
{
	char id[HR_FLEET_ID], version[HR_OBJECT_VERSION];

	if (session_of(s, row->key, row->session, id, version, err) < 0)
		return -1;
	return strcmp(id, row->id) == 0;
}

/* The row that has the session, or had it last: 1, 0, -1. An object that leads to a row of another
 * session was not written by us. */
static int
look_of(struct hr_kube_store *s, const char *id, int64_t key, const char *session,
    struct hr_fleet_row *ret, struct hr_cached *known, struct hr_err *err)
{
	int r = look(s, id, ret, known, err);

	if (r == 1 && (ret->key != key || strcmp(ret->session, session) != 0)) {
		hr_fleet_row_done(ret);
		r = 0;
	}
	return r;
}

int
hr_kube_store_find_session(struct hr_store *base, int64_t key, const char *session, bool last,
    struct hr_fleet_row *ret, struct hr_err *err)
{
	struct hr_kube_store *s = hr_kube_store_of(base);
	char id[HR_FLEET_ID], version[HR_OBJECT_VERSION];
	int r = session_of(s, key, session, id, version, err);

	if (r == 1)
		r = look_of(s, id, key, session, ret, NULL, err);
	if (r == 1 && !last && !hr_fleet_has_session(ret->state)) {
		hr_fleet_row_done(ret);
		r = 0;
	}
	return r;
}

/* ---- reserving ---- */

struct count {
	int64_t key;
	struct hr_fleet_limits of_key, of_all;
	struct hr_fleet_limits dead; /* of the key: they hold no room, but their files */
};

static int
on_counted(void *arg, struct json_object *o)
{
	HR_PUT struct json_object *data = hr_object_data(o);
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	struct count *n = arg;
	int r = hr_object_read_row(data, &row);

	if (r == 1 && row.state == HR_FLEET_DIED && row.key == n->key) {
		n->dead.sandboxes++;
		n->dead.factors += row.factor;
	}
	if (r == 1 && hr_fleet_holds_room(row.state)) {
		n->of_all.sandboxes++;
		n->of_all.factors += row.factor;
		if (row.key == n->key) {
			n->of_key.sandboxes++;
			n->of_key.factors += row.factor;
		}
	}
	return r < 0;
}

static bool
within(const struct hr_fleet_limits *n, const struct hr_fleet_limits *most)
{
	return (most->sandboxes == 0 || n->sandboxes <= most->sandboxes) &&
	       (most->factors == 0 || n->factors <= most->factors);
}

/* With the row among them. */
static enum hr_fleet_result
fits(struct hr_kube_store *s, const struct hr_fleet_row *row, const struct hr_fleet_limits *of_key,
    const struct hr_fleet_limits *of_all, struct hr_err *err)
{
	struct count n = {.key = row->key};
	struct hr_err why = {0};
	char path[256];

	if (of_key->sandboxes == 0 && of_key->factors == 0 && of_all->sandboxes == 0 &&
	    of_all->factors == 0)
		return HR_FLEET_OK;
	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/secrets", s->ns);
	if (hr_kube_store_away(s, &why) != 0 ||
	    hr_kube_store_heard(
		s, hr_kube_list(&s->kube, path, ROWS, on_counted, &n, NULL, 0, &why)) != 0) {
		(void)hr_kube_store_fail(&why, err);
		return HR_FLEET_BROKEN;
	}
	if (row->key > 0 && (!within(&n.of_key, of_key) || !within(&n.dead, of_key)))
		return HR_FLEET_QUOTA;
	return within(&n.of_all, of_all) ? HR_FLEET_OK : HR_FLEET_NO_ROOM;
}

struct warm {
	const char *shape;
	char id[HR_FLEET_ID];
};

static int
on_warm(void *arg, const struct hr_fleet_row *row)
{
	struct warm *w = arg;

	if (row->state != HR_FLEET_WARM || strcmp(row->shape, w->shape) != 0)
		return 0;
	memcpy(w->id, row->id, sizeof(w->id));
	return 1;
}

/* The next warm one of the row's shape becomes the row: 1 and what it was in *was; 0 there is none,
 * -1. */
static int
take_warm(struct hr_kube_store *s, struct hr_fleet_row *row, struct hr_fleet_row *was,
    struct hr_cached *known, struct hr_err *err)
{
	struct warm w = {.shape = row->shape};
	struct hr_fleet_row now;
	int r = 0;
	unsigned i;

	if (row->key == 0 || row->shape[0] == '\0')
		return 0;
	for (i = 0; r == 0 && i < TRIES; i++) {
		w.id[0] = '\0';
		if (hr_cache_each(s->cache, on_warm, &w, err) != 0)
			return -1;
		if (w.id[0] == '\0')
			return 0;
		r = hr_cache_find(s->cache, w.id, was, known, err);
		if (r != 1)
			continue;
		now = *row;
		memcpy(now.id, was->id, sizeof(now.id));
		hr_fleet_row_place(&now, was);
		r = write_row(s, &now, known->version, known, err);
		if (r == 1) {
			*row = now;
			break;
		}
		hr_fleet_row_done(was);
		/* somebody else took it: that is looked at before the next one */
		if (r == 0 && look(s, w.id, was, known, err) == 1)
			hr_fleet_row_done(was);
	}
	return r;
}

static void
take_back(struct hr_kube_store *s, const struct hr_fleet_row *row, const struct hr_fleet_row *was,
    const struct hr_cached *known)
{
	struct hr_err err = {0};

	/* it has another version if somebody works on it by now, whose it is then */
	if (was->request != NULL)
		(void)write_row(s, was, known->version, NULL, &err);
	else
		(void)delete_row(s, row->id, known->version, &err);
}

/* The state of one reserve(): the objects that it found, and the row that it wrote. */
struct place {
	struct hr_fleet_row was;         /* the row that was written over; request NULL: none */
	struct hr_cached known;          /* of the row that was written */
	char id[HR_FLEET_ID];            /* the sandbox that the session leads to; "": none */
	char version[HR_OBJECT_VERSION]; /* of the session's object */
};

/* Writes the row: over the session's own that died, whose files are kept by its id, over a warm
 * one, or anew. HR_FLEET_CONFLICT: the session has a sandbox, or another process was faster. */
static enum hr_fleet_result
occupy(struct hr_kube_store *s, struct hr_fleet_row *row, struct place *p, struct hr_err *err)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row before = {.request = NULL};
	char own[HR_FLEET_ID];
	int r = 0;

	if (row->key > 0)
		r = session_of(s, row->key, row->session, p->id, p->version, err);
	if (r == 1)
		r = look_of(s, p->id, row->key, row->session, &before, &p->known, err);
	if (r == 1 && hr_fleet_has_session(before.state))
		return HR_FLEET_CONFLICT;
	if (r == 1 && before.state == HR_FLEET_DIED) {
		memcpy(own, row->id, sizeof(own));
		memcpy(row->id, before.id, sizeof(row->id));
		r = write_row(s, row, p->known.version, &p->known, err);
		if (r != 1) {
			memcpy(row->id, own, sizeof(own));
			return r == 0 ? HR_FLEET_CONFLICT : HR_FLEET_BROKEN;
		}
		p->was = before;
		before = (struct hr_fleet_row){.request = NULL};
		return HR_FLEET_OK;
	}
	if (r >= 0)
		r = take_warm(s, row, &p->was, &p->known, err);
	if (r == 0)
		r = write_row(s, row, NULL, &p->known, err);
	return r == 1 ? HR_FLEET_OK : HR_FLEET_BROKEN;
}

/* Forgets an earlier life of the session. One that is still being stopped goes when it is (move).
 */
static void
forget_earlier(struct hr_kube_store *s, const struct hr_fleet_row *row, const char *id)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row before = {.request = NULL};
	struct hr_cached known = {.version = ""};

	if (*id != '\0' && strcmp(id, row->id) != 0 &&
	    look_of(s, id, row->key, row->session, &before, &known, NULL) == 1 &&
	    !hr_fleet_holds_room(before.state))
		(void)delete_row(s, id, known.version, NULL);
}

static enum hr_fleet_result
reserve(struct hr_kube_store *s, struct hr_fleet_row *row, const struct hr_fleet_limits *of_key,
    const struct hr_fleet_limits *of_all, struct place *p, struct hr_err *err)
{
	enum hr_fleet_result result;
	char own[HR_FLEET_ID];
	int r;

	memcpy(own, row->id, sizeof(own));
	result = occupy(s, row, p, err);
	if (result != HR_FLEET_OK)
		return result;
	result = fits(s, row, of_key, of_all, err);
	if (result == HR_FLEET_OK && row->key > 0) {
		r = lead(s, row, p->version, err);
		/* whoever looked before, and takes it for one to which no session leads, misses its
		 * version */
		if (r == 1)
			r = write_row(s, row, p->known.version, &p->known, err);
		result = r == 1 ? HR_FLEET_OK : r == 0 ? HR_FLEET_CONFLICT : HR_FLEET_BROKEN;
	}
	if (result == HR_FLEET_OK) {
		forget_earlier(s, row, p->id);
	} else if (result != HR_FLEET_BROKEN) {
		/* after BROKEN no answer says whether the session leads there: claim() will see */
		take_back(s, row, &p->was, &p->known);
		memcpy(row->id, own, sizeof(own));
		row->at[0] = row->server_key[0] = '\0';
	}
	return result;
}

enum hr_fleet_result
hr_kube_store_reserve(struct hr_store *base, struct hr_fleet_row *row,
    const struct hr_fleet_limits *of_key, const struct hr_fleet_limits *of_all, struct hr_err *err)
{
	struct hr_kube_store *s = hr_kube_store_of(base);
	enum hr_fleet_result r = HR_FLEET_BROKEN;
	unsigned char wait = 0;
	struct place p;
	int i;

	/* the server in it has this key, whoever makes it */
	if (row->server_key[0] == '\0' && hr_random_hex(row->server_key, 32, err) < 0)
		return HR_FLEET_BROKEN;
	for (i = 0; i < RESERVE_TRIES; i++) {
		p = (struct place){.id = ""};
		r = reserve(s, row, of_key, of_all, &p, err);
		hr_fleet_row_done(&p.was);
		if (r != HR_FLEET_QUOTA && r != HR_FLEET_NO_ROOM)
			break;
		/* two for the last place see each other, and both step back: not for ever */
		if (hr_random(&wait, 1, err) < 0)
			return HR_FLEET_BROKEN;
		if (row->server_key[0] == '\0' && hr_random_hex(row->server_key, 32, err) < 0)
			return HR_FLEET_BROKEN;
		if (i < RESERVE_TRIES - 1)
			(void)hr_rest_wait(-1, wait / 4);
	}
	if (r == HR_FLEET_OK)
		(void)hr_kube_store_event(
		    base, row->id, hr_fleet_state_name(row->state), row->session, NULL);
	return r;
}

/* ---- changes ---- */

/* Reads, has fn change it, writes, until nobody was between. fn: 1 write it, 0 leave it, as it is:
 * then *ret_done is false. owner: whose it is from then on; NULL: whose it was. */
typedef int change_fn(void *arg, struct hr_fleet_row *now);

static int
change(struct hr_kube_store *s, const char *id, const char *owner, change_fn *fn, void *arg,
    bool *ret_done, struct hr_err *err)
{
	struct hr_fleet_row now = {.request = NULL};
	struct hr_cached known;
	bool fresh = false;
	int r = 0, found;
	int i;

	*ret_done = false;
	for (i = 0; r == 0 && i < TRIES; i++) {
		found = fresh ? 0 : hr_cache_find(s->cache, id, &now, &known, err);
		if (found == 0) {
			fresh = true;
			found = look(s, id, &now, &known, err);
		}
		if (found <= 0)
			return found;
		if (fn(arg, &now) == 1) {
			r = write_as(s, &now, owner, known.version, NULL, err);
			*ret_done = r == 1;
		} else if (fresh) {
			r = 1;
		}
		fresh = true;
		hr_fleet_row_done(&now);
	}
	if (r == 0)
		return hr_err_set(err, HR_E_BUSY,
		    "the fleet's store: sandbox %s is changed by others all the time", id);
	return r < 0 ? -1 : 0;
}

struct moving {
	const struct hr_fleet_row *row;
	enum hr_fleet_state from, to;
	const char *reason;
	bool placed;
};

static int
move_it(void *arg, struct hr_fleet_row *now)
{
	const struct moving *m = arg;

	if (now->state != m->from)
		return 0;
	now->state = m->to;
	now->active = (int64_t)time(NULL);
	now->resumed += m->to == HR_FLEET_RESUMING;
	(void)snprintf(now->reason, sizeof(now->reason), "%s", m->reason);
	if (m->placed)
		hr_fleet_row_place(now, m->row);
	return 1;
}

static bool
is_worked_on(enum hr_fleet_state s)
{
	return s == HR_FLEET_STARTING || s == HR_FLEET_WARMING || s == HR_FLEET_PAUSING ||
	       s == HR_FLEET_RESUMING;
}

int
hr_kube_store_move(struct hr_store *base, const struct hr_fleet_row *row, enum hr_fleet_state from,
    enum hr_fleet_state to, const char *reason, bool placed, bool *ret_moved, struct hr_err *err)
{
	struct hr_kube_store *s = hr_kube_store_of(base);
	struct moving m = {row, from, to, reason != NULL ? reason : "", placed};
	/* whoever is at work on it does what follows when that is done */
	const char *owner = is_worked_on(from) ? NULL : s->me;

	if (change(s, row->id, owner, move_it, &m, ret_moved, err) != 0)
		return -1;
	if (!*ret_moved)
		return 0;
	hr_fleet_log_move(row->id, to, m.reason);
	(void)hr_kube_store_event(base, row->id, hr_fleet_state_name(to), m.reason, NULL);
	/* nobody will ask for one that never had a session, or whose session has a new one */
	if (to == HR_FLEET_STOPPED && (row->key == 0 || is_led_to(s, row, NULL) == 0))
		return delete_row(s, row->id, NULL, err);
	return 0;
}

static int
use_it(void *arg, struct hr_fleet_row *now)
{
	const int64_t *when = arg;

	if (now->active >= *when)
		return 0;
	now->active = *when;
	return 1;
}

int
hr_kube_store_write_use(struct hr_kube_store *s, const char *id, int64_t when, struct hr_err *err)
{
	bool done;

	return change(s, id, NULL, use_it, &when, &done, err);
}

/* ---- who does it ---- */

/* One of the pool that was taken for a session, and no more than that. */
static int
give_back(struct hr_kube_store *s, struct hr_fleet_row *row, const struct hr_cached *known,
    struct hr_err *err)
{
	row->state = HR_FLEET_WARM;
	row->key = 0;
	row->session[0] = row->session_key[0] = '\0';
	return write_row(s, row, known->version, NULL, err);
}

int
hr_kube_store_claim(
    struct hr_store *base, const struct hr_fleet_row *row, bool *ret_mine, struct hr_err *err)
{
	struct hr_kube_store *s = hr_kube_store_of(base);
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row now = {.request = NULL};
	struct hr_cached known;
	/* not what a watch said, which may be of a moment ago: it may have been taken back */
	int r = look(s, row->id, &now, &known, err), led = 1;
	int64_t silent_ms, late_ms;
	bool ours, late, reserved;

	*ret_mine = false;
	if (r == 1 && now.state == row->state) {
		ours = strcmp(known.owner, s->me) == 0;
		silent_ms = hr_now_ms() - known.since_ms;
		/* a start says nothing until it is done: two of them would destroy each other's */
		late_ms = now.state == HR_FLEET_STOPPING || now.state == HR_FLEET_PAUSING
			      ? TAKE_OVER_MS
			      : s->making_ms;
		late = !ours && silent_ms >= late_ms;
		reserved = ours || silent_ms >= TAKE_OVER_MS;
		if (reserved && now.state == HR_FLEET_STARTING && now.key > 0)
			led = is_led_to(s, &now, err);
		if (led < 0)
			r = -1;
		else if (led == 0)
			r = now.at[0] == '\0' ? delete_row(s, now.id, known.version, err)
					      : give_back(s, &now, &known, err);
		else if (led == 1 && late)
			*ret_mine = (r = write_row(s, &now, known.version, NULL, err)) == 1;
		else
			*ret_mine = ours && led == 1;
	}
	return r < 0 ? -1 : 0;
}
