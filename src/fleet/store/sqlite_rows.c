/* hr_sqlite: implements the sandboxes. */
#include "config.h"

#include "fleet/store/sqlite_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* uses the numbers of enum hr_fleet_state */
#define HAS_SESSION "state < 5"
#define RESPITE_MS "30000"

_Static_assert(HR_FLEET_RESUMING == 4 && HR_FLEET_STOPPING == 5 && HR_FLEET_STOPPED == 6 &&
		   HR_FLEET_DIED == 7 && HR_FLEET_WARM == 9,
    "statements have these numbers");

#define COLUMNS                                                                                    \
	"id, key, session, state, reason, request, factor, at, server_key, session_key, vscode, "  \
	"app1, app2, created, active, resumed, shape, ends, life, end_pauses"
#define FROM "SELECT " COLUMNS " FROM sandboxes "

static struct hr_sqlite *
of(struct hr_store *base)
{
	return (struct hr_sqlite *)(void *)base;
}

struct found_row {
	struct hr_fleet_row row;
	bool nomem;
	hr_row_fn *fn;
	void *arg;
};

static void
read_row(void *arg, sqlite3_stmt *st)
{
	struct found_row *f = arg;
	struct hr_fleet_row *r = &f->row;
	const unsigned char *request = sqlite3_column_text(st, 5);

	hr_fleet_row_done(r);
	hr_sqlite_copy(r->id, sizeof(r->id), st, 0);
	r->key = sqlite3_column_int64(st, 1);
	hr_sqlite_copy(r->session, sizeof(r->session), st, 2);
	r->state = (enum hr_fleet_state)sqlite3_column_int(st, 3);
	hr_sqlite_copy(r->reason, sizeof(r->reason), st, 4);
	r->request = strdup(request != NULL ? (const char *)request : "{}");
	r->factor = sqlite3_column_int64(st, 6);
	hr_sqlite_copy(r->at, sizeof(r->at), st, 7);
	hr_sqlite_copy(r->server_key, sizeof(r->server_key), st, 8);
	hr_sqlite_copy(r->session_key, sizeof(r->session_key), st, 9);
	r->vscode_port = sqlite3_column_int(st, 10);
	r->app_ports[0] = sqlite3_column_int(st, 11);
	r->app_ports[1] = sqlite3_column_int(st, 12);
	r->created = sqlite3_column_int64(st, 13);
	r->active = sqlite3_column_int64(st, 14);
	r->resumed = sqlite3_column_int64(st, 15);
	hr_sqlite_copy(r->shape, sizeof(r->shape), st, 16);
	r->ends_ms = sqlite3_column_int64(st, 17);
	r->life_ms = sqlite3_column_int64(st, 18);
	r->end_pauses = sqlite3_column_int(st, 19) != 0;
	f->nomem |= r->request == NULL;
	if (f->fn != NULL && !f->nomem)
		f->fn(f->arg, r);
}

static int
one_row(struct found_row *f, int n, struct hr_fleet_row *ret, struct hr_err *err)
{
	if (n > 0 && !f->nomem) {
		*ret = f->row;
		return 1;
	}
	hr_fleet_row_done(&f->row);
	return f->nomem ? hr_err_nomem(err) : n;
}

int
hr_sqlite_find(struct hr_store *base, const char *id, struct hr_fleet_row *ret, struct hr_err *err)
{
	struct found_row f = {.fn = NULL};
	int n = hr_sqlite_rows(of(base), err, read_row, &f, FROM "WHERE id = ?", "s", id);

	return one_row(&f, n, ret, err);
}

int
hr_sqlite_find_session(struct hr_store *base, int64_t key, const char *session, bool last,
    struct hr_fleet_row *ret, struct hr_err *err)
{
	struct found_row f = {.fn = NULL};
	int n;

	/* the live sandbox sorts before others of the same second */
	if (last)
		n = hr_sqlite_rows(of(base), err, read_row, &f,
		    FROM "WHERE key = ? AND session = ? ORDER BY " HAS_SESSION
			 " DESC, created DESC LIMIT 1",
		    "is", key, session);
	else
		n = hr_sqlite_rows(of(base), err, read_row, &f,
		    FROM "WHERE key = ? AND session = ? AND " HAS_SESSION, "is", key, session);
	return one_row(&f, n, ret, err);
}

int
hr_sqlite_each(
    struct hr_store *base, int64_t key, bool live, hr_row_fn *fn, void *arg, struct hr_err *err)
{
	struct found_row f = {.fn = fn, .arg = arg};
	int n = hr_sqlite_rows(of(base), err, read_row, &f,
	    FROM "WHERE (key = ?1 OR ?1 = 0) AND (?2 = 0 OR " HOLDS_ROOM ") ORDER BY created, id",
	    "ii", key, (int64_t)live);

	hr_fleet_row_done(&f.row);
	return f.nomem ? hr_err_nomem(err) : n < 0 ? -1 : 0;
}

#define OF_KEY FROM "WHERE key = ?"
#define OR_LIVE " AND (? = 0 OR " HOLDS_ROOM ")"
#define IN_ORDER " ORDER BY created, id LIMIT ?"
#define AFTER " AND (created, id) > (SELECT created, id FROM sandboxes WHERE id = ?)"
#define LIVE FROM "WHERE " HOLDS_ROOM

int
hr_sqlite_page(struct hr_store *base, int64_t key, bool live, const char *after, unsigned most,
    hr_row_fn *fn, void *arg, struct hr_err *err)
{
	struct found_row f = {.fn = fn, .arg = arg};
	int n;

	/* rows of one key are found by its index, and those of all keys by that of the live ones */
	hr_assert(key != 0 || live);
	if (key == 0 && *after == '\0')
		n = hr_sqlite_rows(of(base), err, read_row, &f, LIVE IN_ORDER, "i", (int64_t)most);
	else if (key == 0)
		n = hr_sqlite_rows(
		    of(base), err, read_row, &f, LIVE AFTER IN_ORDER, "si", after, (int64_t)most);
	else if (*after == '\0')
		n = hr_sqlite_rows(of(base), err, read_row, &f, OF_KEY OR_LIVE IN_ORDER, "iii", key,
		    (int64_t)live, (int64_t)most);
	else
		n = hr_sqlite_rows(of(base), err, read_row, &f, OF_KEY AFTER OR_LIVE IN_ORDER,
		    "isii", key, after, (int64_t)live, (int64_t)most);
	hr_fleet_row_done(&f.row);
	return f.nomem ? hr_err_nomem(err) : n < 0 ? -1 : 0;
}

/* ---- a new one ---- */

static void
two_numbers(void *arg, sqlite3_stmt *st)
{
	int64_t *n = arg;

	n[0] = sqlite3_column_int64(st, 0);
	n[1] = sqlite3_column_int64(st, 1);
}

/* Checks the limits with `more` sandboxes added. Returns 1, 0, or -1. With `more` 0 the sandbox is
 * counted already. */
static int
fits(struct hr_sqlite *s, int64_t key, const struct hr_fleet_limits *most, int64_t more,
    int64_t factor, struct hr_err *err)
{
	int64_t n[2] = {0, 0};

	if (hr_sqlite_rows(s, err, two_numbers, n,
		"SELECT count(*), total(factor) FROM sandboxes WHERE (key = ?1 OR ?1 = 0) "
		"AND " HOLDS_ROOM,
		"i", key) < 0)
		return -1;
	return (most->sandboxes == 0 || n[0] + more <= most->sandboxes) &&
	       (most->factors == 0 || n[1] + more * factor <= most->factors);
}

/* Finds a warm sandbox of the row's shape. Returns 1 with *ret set, 0, or -1. */
static int
find_warm(struct hr_sqlite *s, const struct hr_fleet_row *row, struct hr_fleet_row *ret,
    struct hr_err *err)
{
	struct found_row f = {.fn = NULL};
	int n;

	if (row->state == HR_FLEET_WARMING || row->shape[0] == '\0')
		return 0;
	n = hr_sqlite_rows(s, err, read_row, &f,
	    FROM "WHERE shape = ? AND state = 9 AND state IN (8, 9) ORDER BY created LIMIT 1", "s",
	    row->shape);
	return one_row(&f, n, ret, err);
}

/* Turns the warm sandbox into the row, and restarts its idle time in the same transaction. */
static int
take_warm(struct hr_sqlite *s, struct hr_fleet_row *row, const struct hr_fleet_row *warm,
    struct hr_err *err)
{
	memcpy(row->id, warm->id, sizeof(row->id));
	hr_fleet_row_place(row, warm);
	return hr_sqlite_run(s, err,
	    "UPDATE sandboxes SET key = ?2, session = ?3, state = ?4, request = ?5,"
	    " session_key = ?6, created = ?7, active = ?8, life = ?9, end_pauses = ?10"
	    " WHERE id = ?1 AND state = 9",
	    "sisissiiii", row->id, row->key, row->session, (int64_t)row->state, row->request,
	    row->session_key, row->created, row->active, row->life_ms, (int64_t)row->end_pauses);
}

static int
add_new(struct hr_sqlite *s, const struct hr_fleet_row *row, struct hr_err *err)
{
	return hr_sqlite_run(s, err,
	    "INSERT INTO sandboxes (id, key, session, state, request, factor, session_key,"
	    " created, active, shape, life, end_pauses)"
	    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	    "sisisisiisii", row->id, row->key, row->session, (int64_t)row->state, row->request,
	    row->factor, row->session_key, row->created, row->active, row->shape, row->life_ms,
	    (int64_t)row->end_pauses);
}

/* Reserves a row. Runs in the transaction. */
static enum hr_fleet_result
reserve(struct hr_sqlite *s, struct hr_fleet_row *row, const struct hr_fleet_limits *of_key,
    const struct hr_fleet_limits *of_all, struct hr_err *err)
{
	struct hr_fleet_row other = {.request = NULL};
	bool pool = row->state == HR_FLEET_WARMING;
	int r, warm;

	if (!pool) {
		r = hr_sqlite_find_session(&s->base, row->key, row->session, false, &other, err);
		hr_fleet_row_done(&other);
		if (r != 0)
			return r > 0 ? HR_FLEET_CONFLICT : HR_FLEET_BROKEN;
		if ((r = fits(s, row->key, of_key, 1, row->factor, err)) <= 0)
			return r == 0 ? HR_FLEET_QUOTA : HR_FLEET_BROKEN;
	}
	warm = find_warm(s, row, &other, err);
	r = warm < 0 ? -1 : fits(s, 0, of_all, warm == 0, row->factor, err);
	if (r > 0 && warm > 0)
		r = take_warm(s, row, &other, err) == 0 ? 1 : -1;
	else if (r > 0)
		r = add_new(s, row, err) == 0 ? 1 : -1;
	hr_fleet_row_done(&other);
	if (r > 0 && hr_sqlite_event(&s->base, row->id, hr_fleet_state_name(row->state),
			 row->session, err) != 0)
		r = -1;
	return r > 0 ? HR_FLEET_OK : r == 0 ? HR_FLEET_NO_ROOM : HR_FLEET_BROKEN;
}

enum hr_fleet_result
hr_sqlite_reserve(struct hr_store *base, struct hr_fleet_row *row,
    const struct hr_fleet_limits *of_key, const struct hr_fleet_limits *of_all, hr_may_fn *may,
    void *arg, struct hr_err *err)
{
	enum hr_fleet_result r = may(arg, err);

	if (r != HR_FLEET_OK)
		return r;
	if (hr_sqlite_begin(of(base), err) != 0)
		return HR_FLEET_BROKEN;
	r = reserve(of(base), row, of_key, of_all, err);
	return hr_sqlite_end(of(base), r == HR_FLEET_OK, err) == 0 ? r : HR_FLEET_BROKEN;
}

/* ---- an existing row ---- */

static int
place(struct hr_sqlite *s, const struct hr_fleet_row *r, struct hr_err *err)
{
	return hr_sqlite_run(s, err,
	    "UPDATE sandboxes SET at = ?2, server_key = ?3, vscode = ?4, app1 = ?5, app2 = ?6"
	    " WHERE id = ?1",
	    "sssiii", r->id, r->at, r->server_key, (int64_t)r->vscode_port,
	    (int64_t)r->app_ports[0], (int64_t)r->app_ports[1]);
}

/* Moves a row. Runs in the transaction. */
static int
move(struct hr_sqlite *s, const struct hr_fleet_row *row, enum hr_fleet_state from,
    enum hr_fleet_state to, const char *reason, unsigned how, bool *ret_moved, struct hr_err *err)
{
	char key[HR_FLEET_SESSION_KEY] = "";

	if ((how & HR_MOVE_NEW_KEY) != 0 && hr_fleet_session_key(key, err) < 0)
		return -1;
	/* idle time restarts after a pause, and a sandbox's life when it runs; one whose pause has
	 * failed gets a respite */
	if (hr_sqlite_run(s, err,
		"UPDATE sandboxes SET state = ?2, reason = ?3, active = ?5, resumed = resumed + "
		"(?2 = 4), ends = CASE WHEN life = 0 THEN 0 WHEN ?2 = 3 THEN min(ends, ?11)"
		" WHEN ?2 <> 1 THEN ends WHEN ?4 = 2 THEN max(ends, ?11 + " RESPITE_MS
		") ELSE ?11 + life END,"
		" session_key = CASE ?12 WHEN '' THEN session_key ELSE ?12 END"
		" WHERE id = ?1 AND state = ?4 AND key = ?6 AND session_key = ?7"
		" AND resumed = ?10"
		" AND (?8 = 0 OR active <= ?9)",
		"sisiiisiiiis", row->id, (int64_t)to, reason, (int64_t)from, hr_wall_ms() / 1000,
		row->key, row->session_key, (int64_t)(how & HR_MOVE_UNUSED), row->active,
		row->resumed, hr_wall_ms(), key) != 0)
		return -1;
	*ret_moved = sqlite3_changes(s->db) > 0;
	if (!*ret_moved)
		return 0;
	if ((how & HR_MOVE_PLACED) != 0 && place(s, row, err) != 0)
		return -1;
	return hr_sqlite_event(&s->base, row->id, hr_fleet_state_name(to), reason, err);
}

int
hr_sqlite_move(struct hr_store *base, const struct hr_fleet_row *row, enum hr_fleet_state from,
    enum hr_fleet_state to, const char *reason, unsigned how, bool *ret_moved, struct hr_err *err)
{
	int r;

	*ret_moved = false;
	reason = reason != NULL ? reason : "";
	if (hr_sqlite_begin(of(base), err) != 0)
		return -1;
	r = move(of(base), row, from, to, reason, how, ret_moved, err);
	if (hr_sqlite_end(of(base), r == 0, err) != 0 || r != 0) {
		*ret_moved = false;
		return -1;
	}
	if (*ret_moved)
		hr_fleet_log_move(row->id, to, reason);
	return 0;
}

int
hr_sqlite_set_request(struct hr_store *base, const struct hr_fleet_row *row, const char *request,
    bool *ret_found, struct hr_err *err)
{
	int r = hr_sqlite_run(of(base), err,
	    "UPDATE sandboxes SET request = ?2 WHERE id = ?1 AND key = ?3", "ssi", row->id, request,
	    row->key);

	*ret_found = r == 0 && sqlite3_changes(of(base)->db) > 0;
	return r;
}

int
hr_sqlite_active(struct hr_store *base, const char *id, int64_t when, struct hr_err *err)
{
	return hr_sqlite_run(of(base), err,
	    "UPDATE sandboxes SET active = ?2 WHERE id = ?1 AND active < ?2", "si", id, when);
}

int
hr_sqlite_lease(
    struct hr_store *base, const struct hr_fleet_row *row, bool *ret_set, struct hr_err *err)
{
	if (hr_sqlite_run(of(base), err,
		"UPDATE sandboxes SET ends = ?3, life = ?4, end_pauses = ?5"
		" WHERE id = ?1 AND state = ?2",
		"siiii", row->id, (int64_t)row->state, row->ends_ms, row->life_ms,
		(int64_t)row->end_pauses) != 0)
		return -1;
	*ret_set = sqlite3_changes(of(base)->db) > 0;
	return 0;
}

int
hr_sqlite_forget(struct hr_store *base, int64_t before, struct hr_err *err)
{
	return hr_sqlite_run(of(base), err,
	    "DELETE FROM sandboxes WHERE id IN (SELECT id FROM sandboxes WHERE state IN (6, 7)"
	    " AND active < ? ORDER BY active LIMIT 100)",
	    "i", before);
}

struct least {
	char id[HR_FLEET_ID];
	int64_t active;
};

static void
read_least(void *arg, sqlite3_stmt *st)
{
	struct least *l = arg;

	hr_sqlite_copy(l->id, sizeof(l->id), st, 0);
	l->active = sqlite3_column_int64(st, 1);
}

int
hr_sqlite_least_active(struct hr_store *base, enum hr_fleet_state state, char ret_id[HR_FLEET_ID],
    int64_t *ret_active, struct hr_err *err)
{
	struct least l = {.active = 0};
	int n = hr_sqlite_rows(of(base), err, read_least, &l,
	    "SELECT id, active FROM sandboxes WHERE state = ?1 AND (?1 <> 1 OR ends = 0)"
	    " ORDER BY active LIMIT 1",
	    "i", (int64_t)state);

	if (n > 0) {
		(void)snprintf(ret_id, HR_FLEET_ID, "%s", l.id);
		*ret_active = l.active;
	}
	return n;
}

int
hr_sqlite_first_end(
    struct hr_store *base, char ret_id[HR_FLEET_ID], int64_t *ret_ends_ms, struct hr_err *err)
{
	struct least l = {.active = 0};
	int n = hr_sqlite_rows(of(base), err, read_least, &l,
	    "SELECT id, ends FROM sandboxes WHERE state = 1 AND ends > 0 ORDER BY ends LIMIT 1",
	    "");

	if (n > 0) {
		(void)snprintf(ret_id, HR_FLEET_ID, "%s", l.id);
		*ret_ends_ms = l.active;
	}
	return n;
}

struct pooled {
	int64_t n[2];
	char warm[HR_FLEET_ID];
};

static void
read_pooled(void *arg, sqlite3_stmt *st)
{
	struct pooled *p = arg;
	bool warm = sqlite3_column_int(st, 1) == HR_FLEET_WARM;

	if (warm && p->n[1] == 0)
		hr_sqlite_copy(p->warm, sizeof(p->warm), st, 0);
	p->n[warm]++;
}

int
hr_sqlite_pooled(struct hr_store *base, const char *shape, int64_t ret[2],
    char ret_warm[HR_FLEET_ID], struct hr_err *err)
{
	struct pooled p = {.warm = ""};

	if (hr_sqlite_rows(of(base), err, read_pooled, &p,
		"SELECT id, state FROM sandboxes WHERE shape = ? AND state IN (8, 9) ORDER BY "
		"created",
		"s", shape) < 0)
		return -1;
	memcpy(ret, p.n, sizeof(p.n));
	memcpy(ret_warm, p.warm, sizeof(p.warm));
	return 0;
}
