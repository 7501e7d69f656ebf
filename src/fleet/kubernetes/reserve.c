/* Adds a sandbox to the store. A session's object says which row has it. First the row is written,
 * in STARTING; then its quotas are counted in a list requested after that, so that of two rows that
 * exceed a quota together at least one counts both; then the session's object is made to name the
 * row, which only one of several processes can do. The losers remove their rows. A process that
 * dies in between leaves a row that no session names: claim() removes it. Instead of the first
 * step, a warm sandbox of the pool is taken, or the row of the session's last sandbox if that died:
 * its id leads to the files. */
#include "config.h"

#include "fleet/kubernetes/store_int.h"

#include <stdio.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/random.h"
#include "host/client/rest.h"
#include "proto/json.h"

#define TRIES 16 /* number of attempts when other changes come first */
#define RESERVE_TRIES 4
#define ROWS "labelSelector=handrail%2Ffleet%3Drow"

/* Returns 1 if the session names the row now, 0 if another process was faster, or -1. */
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

struct count {
	int64_t key;
	struct hr_fleet_limits of_key, of_all;
	struct hr_fleet_limits
	    dead; /* dead sandboxes of the key: they hold no room, but their files */
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
	return r < 0 ? -1 : 0;
}

static bool
within(const struct hr_fleet_limits *n, const struct hr_fleet_limits *most)
{
	return (most->sandboxes == 0 || n->sandboxes <= most->sandboxes) &&
	       (most->factors == 0 || n->factors <= most->factors);
}

/* Checks the quotas, with the row included in the counts. */
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

/* Takes the next warm sandbox of the row's shape. Returns 1 with its previous state in *was, 0 if
 * there is none, or -1. */
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
		r = hr_kube_row_write(s, &now, known->version, known, err);
		if (r == 1) {
			*row = now;
			break;
		}
		hr_fleet_row_done(was);
		/* another process took the sandbox: read it before trying the next one */
		if (r == 0 && hr_kube_row_look(s, w.id, was, known, err) == 1)
			hr_fleet_row_done(was);
	}
	return r;
}

static void
take_back(struct hr_kube_store *s, const struct hr_fleet_row *row, const struct hr_fleet_row *was,
    const struct hr_cached *known)
{
	struct hr_err err = {0};

	/* the version has changed if another process works on the row, which then owns it */
	if (was->request != NULL)
		(void)hr_kube_row_write(s, was, known->version, NULL, &err);
	else
		(void)hr_kube_row_delete(s, row->id, known->version, &err);
}

/* The state of one reserve(): the objects it found, and the row it wrote. */
struct place {
	struct hr_fleet_row was; /* the row that was overwritten; request NULL: there is none */
	struct hr_cached known;  /* version of the row that was written */
	char id[HR_FLEET_ID];    /* id of the sandbox that the session names; "": none */
	char version[HR_OBJECT_VERSION]; /* version of the session's object */
};

/* Writes the row: over the session's dead row, whose id keeps the files, over a warm one, or as a
 * new one. Returns HR_FLEET_CONFLICT if the session has a sandbox, or another process was
 * faster. */
static enum hr_fleet_result
occupy(struct hr_kube_store *s, struct hr_fleet_row *row, struct place *p, struct hr_err *err)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row before = {.request = NULL};
	char own[HR_FLEET_ID];
	int r = 0;

	if (row->key > 0)
		r = hr_kube_session_of(s, row->key, row->session, p->id, p->version, err);
	if (r == 1)
		r = hr_kube_session_row(s, p->id, row->key, row->session, &before, &p->known, err);
	if (r == 1 && hr_fleet_has_session(before.state))
		return HR_FLEET_CONFLICT;
	if (r == 1 && before.state == HR_FLEET_DIED) {
		memcpy(own, row->id, sizeof(own));
		memcpy(row->id, before.id, sizeof(row->id));
		r = hr_kube_row_write(s, row, p->known.version, &p->known, err);
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
		r = hr_kube_row_write(s, row, NULL, &p->known, err);
	return r == 1 ? HR_FLEET_OK : HR_FLEET_BROKEN;
}

/* Deletes the row of the session's earlier sandbox; a stopping one is deleted by move(). */
static void
forget_earlier(struct hr_kube_store *s, const struct hr_fleet_row *row, const char *id)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row before = {.request = NULL};
	struct hr_cached known = {.version = ""};

	if (*id != '\0' && strcmp(id, row->id) != 0 &&
	    hr_kube_session_row(s, id, row->key, row->session, &before, &known, NULL) == 1 &&
	    !hr_fleet_holds_room(before.state))
		(void)hr_kube_row_delete(s, id, known.version, NULL);
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
		/* a process that takes the row for abandoned must find another version */
		if (r == 1)
			r = hr_kube_row_write(s, row, p->known.version, &p->known, err);
		result = r == 1 ? HR_FLEET_OK : r == 0 ? HR_FLEET_CONFLICT : HR_FLEET_BROKEN;
	}
	if (result == HR_FLEET_OK) {
		forget_earlier(s, row, p->id);
	} else if (result != HR_FLEET_BROKEN) {
		/* after BROKEN, the session perhaps names the row: claim() finds out */
		take_back(s, row, &p->was, &p->known);
		memcpy(row->id, own, sizeof(own));
		row->at[0] = row->server_key[0] = '\0';
	}
	return result;
}

enum hr_fleet_result
hr_kube_store_reserve(struct hr_store *base, struct hr_fleet_row *row,
    const struct hr_fleet_limits *of_key, const struct hr_fleet_limits *of_all, hr_may_fn *may,
    void *arg, struct hr_err *err)
{
	HR_CLEAN(hr_kube_far_end) struct hr_kube_store *s = hr_kube_far_begin(base);
	enum hr_fleet_result r;
	unsigned char wait = 0;
	struct place p;
	int i;

	if (s->shared != NULL)
		(void)pthread_mutex_lock(s->shared);
	r = may(arg, err);
	if (s->shared != NULL)
		(void)pthread_mutex_unlock(s->shared);
	if (r != HR_FLEET_OK)
		return r;
	/* the sandbox's server has this key, whichever process creates it */
	if (row->server_key[0] == '\0' && hr_random_hex(row->server_key, 32, err) < 0)
		return HR_FLEET_BROKEN;
	for (i = 0; i < RESERVE_TRIES; i++) {
		p = (struct place){.id = ""};
		r = reserve(s, row, of_key, of_all, &p, err);
		hr_fleet_row_done(&p.was);
		if (r != HR_FLEET_QUOTA && r != HR_FLEET_NO_ROOM)
			break;
		/* rows that compete for the last place both step back: random waits resolve that */
		if (hr_random(&wait, 1, err) < 0)
			return HR_FLEET_BROKEN;
		if (row->server_key[0] == '\0' && hr_random_hex(row->server_key, 32, err) < 0)
			return HR_FLEET_BROKEN;
		if (i < RESERVE_TRIES - 1)
			(void)hr_rest_wait(-1, wait / 4);
	}
	if (r == HR_FLEET_OK)
		(void)hr_kube_event_write(
		    s, row->id, hr_fleet_state_name(row->state), row->session, NULL);
	return r;
}
