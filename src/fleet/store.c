/* The store on SQLite. Statements are prepared once, by the address of their text, which is a
 * constant. Nothing of a caller's is ever part of a statement's text. */
#include "config.h"

#include "fleet/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sqlite3.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/random.h"

#define STORE_VERSION 1
#define STATEMENTS_MAX 48
#define KEY_DIGITS 48
#define KEY_PREFIX "hrk_"
#define EVENTS_KEPT 20000

struct statement {
	const char *sql;
	sqlite3_stmt *st;
};

struct hr_store {
	sqlite3 *db;
	int lock;
	struct statement statements[STATEMENTS_MAX];
	size_t n;
};

/* state is one of enum hr_fleet_state by its name; live ones are named in the index. */
static const char schema[] =
    "CREATE TABLE keys (id INTEGER PRIMARY KEY, name TEXT NOT NULL, sum BLOB NOT NULL UNIQUE,"
    " scopes INTEGER NOT NULL, sandboxes INTEGER NOT NULL, factors INTEGER NOT NULL,"
    " expires INTEGER NOT NULL, revoked INTEGER NOT NULL DEFAULT 0, created INTEGER NOT NULL);"
    "CREATE TABLE sandboxes (id TEXT PRIMARY KEY, key INTEGER NOT NULL, session TEXT NOT NULL,"
    " state INTEGER NOT NULL, reason TEXT NOT NULL DEFAULT '', request TEXT NOT NULL,"
    " factor INTEGER NOT NULL, at TEXT NOT NULL DEFAULT '', server_key TEXT NOT NULL DEFAULT '',"
    " session_key TEXT NOT NULL, vscode INTEGER NOT NULL DEFAULT 0,"
    " app1 INTEGER NOT NULL DEFAULT 0, app2 INTEGER NOT NULL DEFAULT 0,"
    " created INTEGER NOT NULL, active INTEGER NOT NULL, resumed INTEGER NOT NULL DEFAULT 0)"
    " WITHOUT ROWID;"
    "CREATE UNIQUE INDEX one_life ON sandboxes (key, session) WHERE state < 5;"
    "CREATE INDEX of_session ON sandboxes (key, session, created);"
    "CREATE INDEX idle ON sandboxes (state, active);"
    "CREATE TABLE events (seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL,"
    " id TEXT NOT NULL, what TEXT NOT NULL, detail TEXT NOT NULL);"
    "CREATE INDEX of_sandbox ON events (id, seq);"
    "PRAGMA user_version = 1;";
#define LIVE "state < 5"       /* HR_FLEET_STOPPING and later have no session any more */
#define HOLDS_ROOM "state < 6" /* what is being stopped is there until it is not */

const char *
hr_fleet_state_name(enum hr_fleet_state s)
{
	static const char *const names[HR_FLEET_STATES] = {
	    "starting", "running", "pausing", "paused", "resuming", "stopping", "stopped", "died"};

	return names[s];
}

static int
failed(struct hr_store *s, struct hr_err *err)
{
	int code = sqlite3_errcode(s->db);

	if (code == SQLITE_NOMEM)
		return hr_err_nomem(err);
	return hr_err_set(err, HR_E_SYS, "the fleet's store: %s", sqlite3_errmsg(s->db));
}

/* Reset, and with the values for its places: i an int64_t, s a text, b a SHA-256. */
static sqlite3_stmt *
prepare(struct hr_store *s, struct hr_err *err, const char *sql, const char *types, va_list ap)
{
	struct statement *p = s->statements;
	sqlite3_stmt *st;
	int rc = SQLITE_OK;

	while (p < s->statements + s->n && p->sql != sql)
		p++;
	if (p == s->statements + s->n) {
		hr_assert(s->n < STATEMENTS_MAX);
		if (sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &p->st, NULL) !=
		    SQLITE_OK) {
			(void)failed(s, err);
			return NULL;
		}
		p->sql = sql;
		s->n++;
	}
	st = p->st;
	(void)sqlite3_reset(st);
	for (int i = 1; *types != '\0' && rc == SQLITE_OK; i++, types++) {
		if (*types == 'i')
			rc = sqlite3_bind_int64(st, i, va_arg(ap, int64_t));
		else if (*types == 's')
			rc = sqlite3_bind_text(
			    st, i, va_arg(ap, const char *), -1, SQLITE_TRANSIENT);
		else
			rc = sqlite3_bind_blob(st, i, va_arg(ap, const void *),
			    SHA256_DIGEST_LENGTH, SQLITE_TRANSIENT);
	}
	if (rc == SQLITE_OK)
		return st;
	(void)failed(s, err);
	return NULL;
}

/* One that gives no rows. */
static int
run(struct hr_store *s, struct hr_err *err, const char *sql, const char *types, ...)
{
	sqlite3_stmt *st;
	va_list ap;
	int rc = -1;

	va_start(ap, types);
	st = prepare(s, err, sql, types, ap);
	va_end(ap);
	if (st != NULL)
		rc = sqlite3_step(st) == SQLITE_DONE ? 0 : failed(s, err);
	if (st != NULL)
		(void)sqlite3_reset(st);
	return rc;
}

/* fn gets each row. The number of rows, or -1. */
static int
rows(struct hr_store *s, struct hr_err *err, void (*fn)(void *arg, sqlite3_stmt *st), void *arg,
    const char *sql, const char *types, ...)
{
	sqlite3_stmt *st;
	va_list ap;
	int rc, n = 0;

	va_start(ap, types);
	st = prepare(s, err, sql, types, ap);
	va_end(ap);
	if (st == NULL)
		return -1;
	for (; (rc = sqlite3_step(st)) == SQLITE_ROW; n++)
		fn(arg, st);
	if (rc != SQLITE_DONE)
		n = failed(s, err);
	(void)sqlite3_reset(st);
	return n;
}

static void
copy(char *to, size_t cap, sqlite3_stmt *st, int column)
{
	const unsigned char *text = sqlite3_column_text(st, column);

	(void)snprintf(to, cap, "%s", text != NULL ? (const char *)text : "");
}

/* ---- the file ---- */

static void
first_number(void *arg, sqlite3_stmt *st)
{
	*(int64_t *)arg = sqlite3_column_int64(st, 0);
}

static int
check_version(struct hr_store *s, bool fresh, struct hr_err *err)
{
	int64_t version = 0;

	if (fresh && sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK) {
		if (sqlite3_exec(s->db, schema, NULL, NULL, NULL) != SQLITE_OK ||
		    sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) {
			(void)failed(s, err);
			(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
			return -1;
		}
	}
	if (rows(s, err, first_number, &version, "PRAGMA user_version", "") < 0)
		return -1;
	if (version == STORE_VERSION)
		return 0;
	return hr_err_set(err, HR_E_UNSUPPORTED,
	    "the fleet's store has version %lld, and this program knows version %d; use the "
	    "program that wrote it",
	    (long long)version, STORE_VERSION);
}

struct hr_store *
hr_store_open(const char *dir, bool make, struct hr_err *err)
{
	struct hr_store *s = calloc(1, sizeof(*s));
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char *path = NULL, *lock = NULL;
	struct stat st;
	bool fresh;

	if (s == NULL || asprintf(&path, "%s/fleet.db", dir) < 0 ||
	    asprintf(&lock, "%s/fleet.lock", dir) < 0) {
		(void)hr_err_nomem(err);
		goto fail;
	}
	s->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock < 0) {
		(void)hr_err_sys(err, errno, "%s", lock);
		goto fail;
	}
	/* the process's own: a child between fork and exec does not hold it beyond our end */
	if (fcntl(s->lock, F_SETLK, &whole) != 0) {
		(void)hr_err_set(err, HR_E_BUSY,
		    "another process serves the fleet of %s; one store has one service", dir);
		goto fail;
	}
	fresh = stat(path, &st) != 0 || st.st_size == 0;
	if (fresh && !make) {
		(void)hr_err_set(err, HR_E_NOTFOUND,
		    "there is no fleet in %s; \"handrail fleet init\" makes one", dir);
		goto fail;
	}
	if (sqlite3_open_v2(path, &s->db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
		    SQLITE_OPEN_NOFOLLOW,
		NULL) != SQLITE_OK ||
	    sqlite3_exec(s->db,
		"PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
		"PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = ON;",
		NULL, NULL, NULL) != SQLITE_OK) {
		(void)failed(s, err);
		goto fail;
	}
	if (check_version(s, fresh, err) != 0)
		goto fail;
	free(path);
	free(lock);
	return s;
fail:
	free(path);
	free(lock);
	hr_store_close(s);
	return NULL;
}

void
hr_store_close(struct hr_store *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->n; i++)
		(void)sqlite3_finalize(s->statements[i].st);
	(void)sqlite3_close(s->db);
	hr_fd_close(&s->lock);
	free(s);
}

int
hr_store_begin(struct hr_store *s, struct hr_err *err)
{
	return run(s, err, "BEGIN IMMEDIATE", "");
}

int
hr_store_end(struct hr_store *s, bool ok, struct hr_err *err)
{
	if (ok && run(s, err, "COMMIT", "") == 0)
		return 0;
	(void)run(s, NULL, "ROLLBACK", ""); /* fails where it was taken back already */
	return ok ? -1 : 0;
}

/* ---- keys ---- */

static void
sum_of(const char *text, unsigned char sum[SHA256_DIGEST_LENGTH])
{
	(void)SHA256((const unsigned char *)text, strlen(text), sum);
}

int
hr_store_key_make(struct hr_store *s, struct hr_fleet_key *k, char text[64], struct hr_err *err)
{
	unsigned char sum[SHA256_DIGEST_LENGTH];

	memcpy(text, KEY_PREFIX, sizeof(KEY_PREFIX));
	if (hr_random_hex(text + strlen(KEY_PREFIX), KEY_DIGITS, err) < 0)
		return -1;
	sum_of(text, sum);
	if (run(s, err,
		"INSERT INTO keys (name, sum, scopes, sandboxes, factors, expires, created)"
		" VALUES (?, ?, ?, ?, ?, ?, ?)",
		"sbiiiii", k->name, sum, (int64_t)k->scopes, k->sandboxes, k->factors, k->expires,
		(int64_t)time(NULL)) != 0)
		return -1;
	k->id = sqlite3_last_insert_rowid(s->db);
	return 0;
}

struct found_key {
	struct hr_fleet_key key;
	unsigned char sum[SHA256_DIGEST_LENGTH];
	hr_key_fn *fn;
	void *arg;
};

#define KEY_COLUMNS "id, name, scopes, sandboxes, factors, expires, revoked, sum"

static void
read_key(void *arg, sqlite3_stmt *st)
{
	struct found_key *f = arg;
	const void *sum = sqlite3_column_blob(st, 7);

	f->key.id = sqlite3_column_int64(st, 0);
	copy(f->key.name, sizeof(f->key.name), st, 1);
	f->key.scopes = sqlite3_column_int(st, 2);
	f->key.sandboxes = sqlite3_column_int64(st, 3);
	f->key.factors = sqlite3_column_int64(st, 4);
	f->key.expires = sqlite3_column_int64(st, 5);
	f->key.revoked = sqlite3_column_int(st, 6) != 0;
	memset(f->sum, 0, sizeof(f->sum));
	if (sum != NULL && sqlite3_column_bytes(st, 7) == (int)sizeof(f->sum))
		memcpy(f->sum, sum, sizeof(f->sum));
	if (f->fn != NULL)
		f->fn(f->arg, &f->key);
}

/* By the sum: how long the look-up takes tells of sums alone, from which no key follows. */
int
hr_store_key_find(
    struct hr_store *s, const char *text, struct hr_fleet_key *ret, struct hr_err *err)
{
	unsigned char sum[SHA256_DIGEST_LENGTH];
	struct found_key f = {.fn = NULL};
	int n;

	sum_of(text, sum);
	n = rows(s, err, read_key, &f, "SELECT " KEY_COLUMNS " FROM keys WHERE sum = ?", "b", sum);
	if (n <= 0)
		return n;
	if (CRYPTO_memcmp(sum, f.sum, sizeof(sum)) != 0 || f.key.revoked ||
	    (f.key.expires > 0 && f.key.expires <= (int64_t)time(NULL)))
		return 0;
	*ret = f.key;
	return 1;
}

int
hr_store_key_revoke(struct hr_store *s, int64_t id, bool *ret_found, struct hr_err *err)
{
	if (run(s, err, "UPDATE keys SET revoked = 1 WHERE id = ?", "i", id) != 0)
		return -1;
	*ret_found = sqlite3_changes(s->db) > 0;
	return 0;
}

int
hr_store_keys(struct hr_store *s, hr_key_fn *fn, void *arg, struct hr_err *err)
{
	struct found_key f = {.fn = fn, .arg = arg};

	return rows(s, err, read_key, &f, "SELECT " KEY_COLUMNS " FROM keys ORDER BY id", "") < 0
		   ? -1
		   : 0;
}

/* ---- sandboxes ---- */

#define COLUMNS                                                                                    \
	"id, key, session, state, reason, request, factor, at, server_key, session_key, vscode, "  \
	"app1, app2, created, active, resumed"
#define FROM "SELECT " COLUMNS " FROM sandboxes "

void
hr_fleet_row_done(struct hr_fleet_row *r)
{
	free(r->request);
	memset(r, 0, sizeof(*r));
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
	copy(r->id, sizeof(r->id), st, 0);
	r->key = sqlite3_column_int64(st, 1);
	copy(r->session, sizeof(r->session), st, 2);
	r->state = (enum hr_fleet_state)sqlite3_column_int(st, 3);
	copy(r->reason, sizeof(r->reason), st, 4);
	r->request = strdup(request != NULL ? (const char *)request : "{}");
	r->factor = sqlite3_column_int64(st, 6);
	copy(r->at, sizeof(r->at), st, 7);
	copy(r->server_key, sizeof(r->server_key), st, 8);
	copy(r->session_key, sizeof(r->session_key), st, 9);
	r->vscode_port = sqlite3_column_int(st, 10);
	r->app_ports[0] = sqlite3_column_int(st, 11);
	r->app_ports[1] = sqlite3_column_int(st, 12);
	r->created = sqlite3_column_int64(st, 13);
	r->active = sqlite3_column_int64(st, 14);
	r->resumed = sqlite3_column_int64(st, 15);
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
hr_store_find(struct hr_store *s, const char *id, struct hr_fleet_row *ret, struct hr_err *err)
{
	struct found_row f = {.fn = NULL};
	int n = rows(s, err, read_row, &f, FROM "WHERE id = ?", "s", id);

	return one_row(&f, n, ret, err);
}

int
hr_store_find_session(struct hr_store *s, int64_t key, const char *session,
    struct hr_fleet_row *ret, struct hr_err *err)
{
	struct found_row f = {.fn = NULL};
	int n = rows(s, err, read_row, &f, FROM "WHERE key = ? AND session = ? AND " LIVE, "is",
	    key, session);

	return one_row(&f, n, ret, err);
}

int
hr_store_find_last(struct hr_store *s, int64_t key, const char *session, struct hr_fleet_row *ret,
    struct hr_err *err)
{
	struct found_row f = {.fn = NULL};
	/* the one that lives before those of the same second */
	int n = rows(s, err, read_row, &f,
	    FROM "WHERE key = ? AND session = ? ORDER BY " LIVE " DESC, created DESC LIMIT 1", "is",
	    key, session);

	return one_row(&f, n, ret, err);
}

int
hr_store_each(
    struct hr_store *s, int64_t key, bool live, hr_row_fn *fn, void *arg, struct hr_err *err)
{
	struct found_row f = {.fn = fn, .arg = arg};
	int n = rows(s, err, read_row, &f,
	    FROM "WHERE (key = ?1 OR ?1 = 0) AND (?2 = 0 OR " HOLDS_ROOM ") ORDER BY created, id",
	    "ii", key, (int64_t)live);

	hr_fleet_row_done(&f.row);
	return f.nomem ? hr_err_nomem(err) : n < 0 ? -1 : 0;
}

static void
two_numbers(void *arg, sqlite3_stmt *st)
{
	int64_t *n = arg;

	n[0] = sqlite3_column_int64(st, 0);
	n[1] = sqlite3_column_int64(st, 1);
}

int
hr_store_count(
    struct hr_store *s, int64_t key, int64_t *ret_n, int64_t *ret_factors, struct hr_err *err)
{
	int64_t n[2] = {0, 0};

	if (rows(s, err, two_numbers, n,
		"SELECT count(*), total(factor) FROM sandboxes WHERE (key = ?1 OR ?1 = 0) "
		"AND " HOLDS_ROOM,
		"i", key) < 0)
		return -1;
	*ret_n = n[0];
	*ret_factors = n[1];
	return 0;
}

int
hr_store_add(struct hr_store *s, const struct hr_fleet_row *r, struct hr_err *err)
{
	if (run(s, err,
		"INSERT INTO sandboxes (id, key, session, state, request, factor, session_key,"
		" created, active) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		"sisisisii", r->id, r->key, r->session, (int64_t)r->state, r->request, r->factor,
		r->session_key, r->created, r->active) != 0)
		return -1;
	return hr_store_event(s, r->id, hr_fleet_state_name(r->state), r->session, err);
}

int
hr_store_move(struct hr_store *s, const char *id, enum hr_fleet_state from, enum hr_fleet_state to,
    const char *reason, bool *ret_moved, struct hr_err *err)
{
	/* a clock that stood still for a pause begins anew */
	if (run(s, err,
		"UPDATE sandboxes SET state = ?2, reason = ?3, active = ?5, resumed = resumed + "
		"(?2 = 4) WHERE id = ?1 AND state = ?4",
		"sisii", id, (int64_t)to, reason != NULL ? reason : "", (int64_t)from,
		(int64_t)time(NULL)) != 0)
		return -1;
	*ret_moved = sqlite3_changes(s->db) > 0;
	if (!*ret_moved)
		return 0;
	hr_log(HR_LOG_NOTICE, "sandbox %s: %s%s%s", id, hr_fleet_state_name(to),
	    reason != NULL ? ": " : "", reason != NULL ? reason : "");
	return hr_store_event(s, id, hr_fleet_state_name(to), reason != NULL ? reason : "", err);
}

int
hr_store_placed(struct hr_store *s, const struct hr_fleet_row *r, struct hr_err *err)
{
	return run(s, err,
	    "UPDATE sandboxes SET at = ?2, server_key = ?3, vscode = ?4, app1 = ?5, app2 = ?6"
	    " WHERE id = ?1",
	    "sssiii", r->id, r->at, r->server_key, (int64_t)r->vscode_port,
	    (int64_t)r->app_ports[0], (int64_t)r->app_ports[1]);
}

int
hr_store_active(struct hr_store *s, const char *id, int64_t when, struct hr_err *err)
{
	return run(s, err, "UPDATE sandboxes SET active = ?2 WHERE id = ?1 AND active < ?2", "si",
	    id, when);
}

struct least {
	char id[HR_FLEET_ID];
	int64_t active;
};

static void
read_least(void *arg, sqlite3_stmt *st)
{
	struct least *l = arg;

	copy(l->id, sizeof(l->id), st, 0);
	l->active = sqlite3_column_int64(st, 1);
}

int
hr_store_least_active(struct hr_store *s, enum hr_fleet_state state, char ret_id[HR_FLEET_ID],
    int64_t *ret_active, struct hr_err *err)
{
	struct least l = {.active = 0};
	int n = rows(s, err, read_least, &l,
	    "SELECT id, active FROM sandboxes WHERE state = ? ORDER BY active LIMIT 1", "i",
	    (int64_t)state);

	if (n > 0) {
		(void)snprintf(ret_id, HR_FLEET_ID, "%s", l.id);
		*ret_active = l.active;
	}
	return n;
}

/* ---- events ---- */

int
hr_store_event(
    struct hr_store *s, const char *id, const char *what, const char *detail, struct hr_err *err)
{
	if (run(s, err, "INSERT INTO events (at, id, what, detail) VALUES (?, ?, ?, ?)", "isss",
		(int64_t)time(NULL), id, what, detail) != 0)
		return -1;
	/* old ones go as new ones come */
	return run(s, err, "DELETE FROM events WHERE seq <= ?", "i",
	    (int64_t)sqlite3_last_insert_rowid(s->db) - EVENTS_KEPT);
}

struct found_event {
	hr_event_row_fn *fn;
	void *arg;
};

static void
read_event(void *arg, sqlite3_stmt *st)
{
	struct found_event *f = arg;

	f->fn(f->arg, sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
	    (const char *)sqlite3_column_text(st, 2), (const char *)sqlite3_column_text(st, 3),
	    (const char *)sqlite3_column_text(st, 4));
}

int
hr_store_events(struct hr_store *s, const char *id, unsigned most, hr_event_row_fn *fn, void *arg,
    struct hr_err *err)
{
	struct found_event f = {fn, arg};
	int n;

	if (id != NULL)
		n = rows(s, err, read_event, &f,
		    "SELECT * FROM (SELECT seq, at, id, what, detail FROM events WHERE id = ?"
		    " ORDER BY seq DESC LIMIT ?) ORDER BY seq",
		    "si", id, (int64_t)most);
	else
		n = rows(s, err, read_event, &f,
		    "SELECT * FROM (SELECT seq, at, id, what, detail FROM events"
		    " ORDER BY seq DESC LIMIT ?) ORDER BY seq",
		    "i", (int64_t)most);
	return n < 0 ? -1 : 0;
}
