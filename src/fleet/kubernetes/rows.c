/* Stores sandboxes. A row is one object, and a change names the version that was read. reserve.c
 * adds rows, and explains the session's object. */
#include "config.h"

#include "fleet/kubernetes/store_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <json-c/json_object.h>

#include "base/clock.h"
#include "proto/json.h"

/* ms after which a process without progress is replaced, where repeating its work is harmless */
#define TAKE_OVER_MS 5000
#define TRIES 16 /* number of attempts when other changes come first */
#define DATA_MAX (1u << 20)

/* ---- one row ---- */

int
hr_kube_row_look(struct hr_kube_store *s, const char *id, struct hr_fleet_row *ret,
    struct hr_cached *known, struct hr_err *err)
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

int
hr_kube_row_write(struct hr_kube_store *s, const struct hr_fleet_row *row, const char *version,
    struct hr_cached *known, struct hr_err *err)
{
	return write_as(s, row, s->me, version, known, err);
}

int
hr_kube_row_delete(struct hr_kube_store *s, const char *id, const char *version, struct hr_err *err)
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

static int64_t
later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Finds a row in memory. A held row is not known: the caller must wait for the change under way. */
int
hr_kube_store_known(
    struct hr_store *base, const char *id, struct hr_fleet_row *ret, struct hr_err *err)
{
	struct hr_cached known;
	int r = is_id(id) ? hr_cache_find(hr_kube_store_of(base)->cache, id, ret, &known, err) : 0;

	if (r == 1 && known.held) {
		hr_fleet_row_done(ret);
		r = 0;
	}
	if (r == 1)
		ret->active = later(ret->active, known.used);
	return r;
}

int
hr_kube_store_find(
    struct hr_store *base, const char *id, struct hr_fleet_row *ret, struct hr_err *err)
{
	HR_CLEAN(hr_kube_far_end) struct hr_kube_store *s = NULL;
	struct hr_cached known;
	int r = hr_kube_store_known(base, id, ret, err);

	/* ids come from clients, and become names of objects */
	if (r != 0 || !is_id(id))
		return r;
	s = hr_kube_far_begin(base);
	r = hr_cache_find(s->cache, id, ret, &known, err);
	if (r == 0)
		r = hr_kube_row_look(s, id, ret, &known, err);
	if (r == 1)
		ret->active = later(ret->active, known.used);
	return r;
}

/* ---- sessions ---- */

int
hr_kube_session_of(struct hr_kube_store *s, int64_t key, const char *session,
    char ret_id[HR_FLEET_ID], char version[HR_OBJECT_VERSION], struct hr_err *err)
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

/* Returns 1 if the session names the row, 0 if not, or -1. */
static int
is_led_to(struct hr_kube_store *s, const struct hr_fleet_row *row, struct hr_err *err)
{
	char id[HR_FLEET_ID], version[HR_OBJECT_VERSION];

	if (hr_kube_session_of(s, row->key, row->session, id, version, err) < 0)
		return -1;
	return strcmp(id, row->id) == 0;
}

/* Reads the row that a session's object names; handrail never wrote such an object that names
 * another session's row. */
int
hr_kube_session_row(struct hr_kube_store *s, const char *id, int64_t key, const char *session,
    struct hr_fleet_row *ret, struct hr_cached *known, struct hr_err *err)
{
	int r = hr_kube_row_look(s, id, ret, known, err);

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
	HR_CLEAN(hr_kube_far_end) struct hr_kube_store *s = hr_kube_far_begin(base);
	char id[HR_FLEET_ID], version[HR_OBJECT_VERSION];
	int r = hr_kube_session_of(s, key, session, id, version, err);

	if (r == 1)
		r = hr_kube_session_row(s, id, key, session, ret, NULL, err);
	if (r == 1 && !last && !hr_fleet_has_session(ret->state)) {
		hr_fleet_row_done(ret);
		r = 0;
	}
	return r;
}

/* ---- changes ---- */

/* Reads the row, lets fn change it, and writes it, until no other change came between. fn returns 1
 * to write, 0 to leave it unchanged: then *ret_done is false. `used` is a use that may not be
 * stored yet. `owner` is the new owner; NULL: unchanged. */
typedef int change_fn(void *arg, struct hr_fleet_row *now, int64_t used);

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
			found = hr_kube_row_look(s, id, &now, &known, err);
		}
		if (found <= 0)
			return found;
		if (fn(arg, &now, known.used) == 1) {
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
		    "the fleet's store: other writers kept changing sandbox %s: try again", id);
	return r < 0 ? -1 : 0;
}

struct moving {
	const struct hr_fleet_row *row;
	enum hr_fleet_state from, to;
	const char *reason;
	unsigned how;
	char key[HR_FLEET_SESSION_KEY]; /* the new session key; "": it stays the same */
};

/* Compares two rows of one id. A dead sandbox that is started again keeps its id, as a warm one
 * does that is given to a key; one that was paused and resumed is in its state again. */
static bool
is_same(const struct hr_fleet_row *a, const struct hr_fleet_row *b)
{
	return a->key == b->key && a->resumed == b->resumed &&
	       strcmp(a->session_key, b->session_key) == 0;
}

static int
move_it(void *arg, struct hr_fleet_row *now, int64_t used)
{
	const struct moving *m = arg;

	if (now->state != m->from || !is_same(now, m->row))
		return 0;
	if ((m->how & HR_MOVE_UNUSED) != 0 && later(now->active, used) > m->row->active)
		return 0;
	now->state = m->to;
	now->active = (int64_t)time(NULL);
	now->resumed += m->to == HR_FLEET_RESUMING;
	if (m->key[0] != '\0')
		memcpy(now->session_key, m->key, sizeof(now->session_key));
	(void)snprintf(now->reason, sizeof(now->reason), "%s", m->reason);
	if ((m->how & HR_MOVE_PLACED) != 0)
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
    enum hr_fleet_state to, const char *reason, unsigned how, bool *ret_moved, struct hr_err *err)
{
	HR_CLEAN(hr_kube_far_end) struct hr_kube_store *s = hr_kube_far_begin(base);
	struct moving m = {row, from, to, reason != NULL ? reason : "", how, ""};
	/* the process that works on it does the follow-up afterwards */
	const char *owner = is_worked_on(from) ? NULL : s->me;
	int r;

	if ((how & HR_MOVE_NEW_KEY) != 0 && hr_fleet_session_key(m.key, err) < 0)
		return -1;
	hr_cache_hold(s->cache, row->id, (how & HR_MOVE_UNUSED) != 0);
	r = change(s, row->id, owner, move_it, &m, ret_moved, err);
	hr_cache_hold(s->cache, row->id, false);
	if (r != 0)
		return -1;
	if (!*ret_moved)
		return 0;
	hr_fleet_log_move(row->id, to, m.reason);
	(void)hr_kube_event_write(s, row->id, hr_fleet_state_name(to), m.reason, NULL);
	/* no client will ask for a row that never had a session, or whose session has a new one */
	if (to == HR_FLEET_STOPPED && (row->key == 0 || is_led_to(s, row, NULL) == 0))
		return hr_kube_row_delete(s, row->id, NULL, err);
	return 0;
}

static int
use_it(void *arg, struct hr_fleet_row *now, int64_t used)
{
	const int64_t *when = arg;

	(void)used;
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

/* ---- claims ---- */

/* Undoes the take-over of a warm sandbox that got no further than that. */
static int
give_back(struct hr_kube_store *s, struct hr_fleet_row *row, const struct hr_cached *known,
    struct hr_err *err)
{
	row->state = HR_FLEET_WARM;
	row->key = 0;
	row->session[0] = row->session_key[0] = '\0';
	return hr_kube_row_write(s, row, known->version, NULL, err);
}

int
hr_kube_store_claim(
    struct hr_store *base, const struct hr_fleet_row *row, bool *ret_mine, struct hr_err *err)
{
	HR_CLEAN(hr_kube_far_end) struct hr_kube_store *s = hr_kube_far_begin(base);
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row now = {.request = NULL};
	struct hr_cached known;
	/* reads the row from the server: a watch may lag behind a withdrawal */
	int r = hr_kube_row_look(s, row->id, &now, &known, err), led = 1;
	int64_t silent_ms, late_ms;
	bool ours, late, reserved;

	*ret_mine = false;
	if (r == 1 && now.state == row->state && is_same(&now, row)) {
		ours = strcmp(known.owner, s->me) == 0;
		silent_ms = hr_now_ms() - known.since_ms;
		/* a start shows no progress, and two would destroy each other's objects */
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
			r = now.at[0] == '\0' ? hr_kube_row_delete(s, now.id, known.version, err)
					      : give_back(s, &now, &known, err);
		else if (led == 1 && late)
			*ret_mine = (r = hr_kube_row_write(s, &now, known.version, NULL, err)) == 1;
		else
			*ret_mine = ours && led == 1;
	}
	return r < 0 ? -1 : 0;
}
