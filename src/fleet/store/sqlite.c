/* hr_sqlite: implements the file, its statements, and everything but the sandboxes. A statement is
 * prepared once per address of its text, a constant. A caller's data is never part of it. */
#include "config.h"

#include "fleet/store/sqlite_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text/text.h"

#define EVENTS_KEPT 20000

#define STORE_VERSION 4
#define TEXT(x) #x
#define NUMBER(x) TEXT(x)

/* the columns and indexes of version 4 */
#define ENDS "ends INTEGER NOT NULL DEFAULT 0"
#define LIFE "life INTEGER NOT NULL DEFAULT 0"
#define END_PAUSES "end_pauses INTEGER NOT NULL DEFAULT 0"
#define ENDING "CREATE INDEX ending ON sandboxes (ends) WHERE state = 1 AND ends > 0;"
#define LIVE "CREATE INDEX live ON sandboxes (created, id) WHERE " HOLDS_ROOM ";"

/* state: enum hr_fleet_state. Rows with a state below 5 have their session, except for the pool's,
 * which have neither key nor session and may be many. */
static const char schema[] =
    "CREATE TABLE keys (id INTEGER PRIMARY KEY, name TEXT NOT NULL, sum BLOB NOT NULL UNIQUE,"
    " scopes INTEGER NOT NULL, sandboxes INTEGER NOT NULL, factors INTEGER NOT NULL,"
    " expires INTEGER NOT NULL, revoked INTEGER NOT NULL DEFAULT 0, created INTEGER NOT NULL);"
    "CREATE TABLE sandboxes (id TEXT PRIMARY KEY, key INTEGER NOT NULL, session TEXT NOT NULL,"
    " state INTEGER NOT NULL, reason TEXT NOT NULL DEFAULT '', request TEXT NOT NULL,"
    " factor INTEGER NOT NULL, at TEXT NOT NULL DEFAULT '', server_key TEXT NOT NULL DEFAULT '',"
    " session_key TEXT NOT NULL, vscode INTEGER NOT NULL DEFAULT 0,"
    " app1 INTEGER NOT NULL DEFAULT 0, app2 INTEGER NOT NULL DEFAULT 0,"
    " created INTEGER NOT NULL, active INTEGER NOT NULL, resumed INTEGER NOT NULL DEFAULT 0,"
    " shape TEXT NOT NULL DEFAULT '', " ENDS ", " LIFE ", " END_PAUSES
    ") WITHOUT ROWID;" ENDING LIVE
    "CREATE UNIQUE INDEX one_life ON sandboxes (key, session) WHERE state < 5 AND key > 0;"
    "CREATE INDEX of_session ON sandboxes (key, session, created);"
    "CREATE INDEX idle ON sandboxes (state, active);"
    "CREATE INDEX of_key ON sandboxes (key, created, id);"
    "CREATE INDEX pool ON sandboxes (shape, created) WHERE state IN (8, 9);"
    "CREATE TABLE events (seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL,"
    " id TEXT NOT NULL, what TEXT NOT NULL, detail TEXT NOT NULL);"
    "CREATE INDEX of_sandbox ON events (id, seq);"
    "CREATE TABLE notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "PRAGMA user_version = " NUMBER(STORE_VERSION);

/* ---- statements ---- */

static int
failed(struct hr_sqlite *s, struct hr_err *err)
{
	int code = sqlite3_errcode(s->db);

	if (code == SQLITE_NOMEM)
		return hr_err_nomem(err);
	return hr_err_set(err, HR_E_SYS, "the fleet's store: %s", sqlite3_errmsg(s->db));
}

/* Resets the statement and binds its arguments: i an int64_t, s a string, b a SHA-256. */
static sqlite3_stmt *
prepare(struct hr_sqlite *s, struct hr_err *err, const char *sql, const char *types, va_list ap)
{
	struct hr_statement *p = s->statements;
	int i;
	sqlite3_stmt *st;
	int r = SQLITE_OK;

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
	for (i = 1; *types != '\0' && r == SQLITE_OK; i++, types++) {
		if (*types == 'i')
			r = sqlite3_bind_int64(st, i, va_arg(ap, int64_t));
		else if (*types == 's')
			r = sqlite3_bind_text(
			    st, i, va_arg(ap, const char *), -1, SQLITE_TRANSIENT);
		else
			r = sqlite3_bind_blob(
			    st, i, va_arg(ap, const void *), HR_FLEET_KEY_SUM, SQLITE_TRANSIENT);
	}
	if (r == SQLITE_OK)
		return st;
	(void)failed(s, err);
	return NULL;
}

int
hr_sqlite_run(struct hr_sqlite *s, struct hr_err *err, const char *sql, const char *types, ...)
{
	sqlite3_stmt *st;
	va_list ap;
	int r = -1;

	va_start(ap, types);
	st = prepare(s, err, sql, types, ap);
	va_end(ap);
	if (st != NULL)
		r = sqlite3_step(st) == SQLITE_DONE ? 0 : failed(s, err);
	if (st != NULL)
		(void)sqlite3_reset(st);
	return r;
}

int
hr_sqlite_rows(struct hr_sqlite *s, struct hr_err *err, void (*fn)(void *arg, sqlite3_stmt *st),
    void *arg, const char *sql, const char *types, ...)
{
	sqlite3_stmt *st;
	va_list ap;
	int r, n = 0;

	va_start(ap, types);
	st = prepare(s, err, sql, types, ap);
	va_end(ap);
	if (st == NULL)
		return -1;
	for (; (r = sqlite3_step(st)) == SQLITE_ROW; n++)
		fn(arg, st);
	if (r != SQLITE_DONE)
		n = failed(s, err);
	(void)sqlite3_reset(st);
	return n;
}

void
hr_sqlite_copy(char *to, size_t cap, sqlite3_stmt *st, int column)
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

static const char from_3[] =
    "ALTER TABLE sandboxes ADD COLUMN " ENDS ";ALTER TABLE sandboxes ADD COLUMN " LIFE
    ";ALTER TABLE sandboxes ADD COLUMN " END_PAUSES ";" ENDING LIVE
    "PRAGMA user_version = " NUMBER(STORE_VERSION);

/* Creates all tables, or changes those of an earlier version, in one transaction. */
static int
make_tables(struct hr_sqlite *s, const char *sql, struct hr_err *err)
{
	if (sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		return failed(s, err);
	if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK &&
	    sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK)
		return 0;
	(void)failed(s, err);
	(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	return -1;
}

/* Returns 1 for a store of this version, 2 for one of version 3, 0 for an empty one. */
static int
read_version(struct hr_sqlite *s, const char *dir, bool make, struct hr_err *err)
{
	int64_t version = 0, tables = 0;

	if (hr_sqlite_rows(s, err, first_number, &version, "PRAGMA user_version", "") < 0 ||
	    hr_sqlite_rows(
		s, err, first_number, &tables, "SELECT count(*) FROM sqlite_master", "") < 0)
		return -1;
	/* a process killed before its first transaction leaves an empty file */
	if (version == 0 && tables == 0)
		return make ? 0
			    : hr_err_set(err, HR_E_NOTFOUND,
				  "there is no fleet in %s; \"handrail fleet init %s\" makes one",
				  dir, dir);
	if (version == 3)
		return 2;
	if (version != STORE_VERSION)
		return hr_err_set(err, HR_E_UNSUPPORTED,
		    "the fleet's store has version %lld, and this program knows version %d; "
		    "use the program that wrote it",
		    (long long)version, STORE_VERSION);
	return 1;
}

static int
check_version(struct hr_sqlite *s, const char *dir, bool make, struct hr_err *err)
{
	int r = read_version(s, dir, make, err);

	if (r == 0 || r == 2)
		return make_tables(s, r == 0 ? schema : from_3, err);
	return r > 0 ? 0 : -1;
}

static void
sqlite_close(struct hr_store *base)
{
	HR_FREE struct hr_sqlite *s = (struct hr_sqlite *)(void *)base;
	size_t i;

	for (i = 0; i < s->n; i++)
		(void)sqlite3_finalize(s->statements[i].st);
	(void)sqlite3_close(s->db);
	hr_fd_close(&s->lock);
}

static int
open_db(struct hr_sqlite *s, const char *path, int flags, struct hr_err *err)
{
	return sqlite3_open_v2(path, &s->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
		   NULL) == SQLITE_OK
		   ? 0
		   : failed(s, err);
}

/* Makes the store's files private. The file holds the keys of all sandboxes, and SQLite would
 * create it by the umask; its log and its index inherit its mode. Modes left by an earlier start
 * are repaired. */
static int
make_private(const char *path, bool make, struct hr_err *err)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	size_t i;

	for (i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		HR_FREE char *name = NULL;
		HR_CLOSE int fd = -1;

		if (hr_text_setf(&name, err, "%s%s", path, suffixes[i]) != 0)
			return -1;
		fd = open(name,
		    O_RDWR | (make && i == 0 ? O_CREAT : 0) | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		    0600);
		if (fd < 0 ? errno != ENOENT || i == 0 : fchmod(fd, 0600) != 0)
			return hr_err_sys(err, errno, "%s", name);
	}
	return 0;
}

static int
open_file(struct hr_sqlite *s, const char *dir, const char *path, const char *lock, bool make,
    struct hr_err *err)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	s->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock < 0)
		return hr_err_sys(err, errno, "%s", lock);
	/* a POSIX lock belongs to the process: a child between fork and exec does not keep it after
	 * our end */
	if (fcntl(s->lock, F_SETLK, &whole) != 0)
		return hr_err_set(err, HR_E_BUSY,
		    "another process serves the fleet of %s; one store has one service", dir);
	if (!make && access(path, F_OK) != 0)
		return hr_err_set(err, HR_E_NOTFOUND,
		    "there is no fleet in %s; \"handrail fleet init %s\" makes one", dir, dir);
	if (make_private(path, make, err) != 0 || open_db(s, path, SQLITE_OPEN_READWRITE, err) != 0)
		return -1;
	if (sqlite3_exec(s->db,
		"PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
		"PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = ON;",
		NULL, NULL, NULL) != SQLITE_OK)
		return failed(s, err);
	return check_version(s, dir, make, err);
}

int
hr_sqlite_begin(struct hr_sqlite *s, struct hr_err *err)
{
	return hr_sqlite_run(s, err, "BEGIN IMMEDIATE", "");
}

int
hr_sqlite_end(struct hr_sqlite *s, bool ok, struct hr_err *err)
{
	if (ok && hr_sqlite_run(s, err, "COMMIT", "") == 0)
		return 0;
	/* fails if the transaction was rolled back already */
	(void)hr_sqlite_run(s, NULL, "ROLLBACK", "");
	return ok ? -1 : 0;
}

/* ---- keys ---- */

static int
sqlite_key_make(struct hr_store *base, struct hr_fleet_key *k, char text[64], struct hr_err *err)
{
	struct hr_sqlite *s = (struct hr_sqlite *)(void *)base;
	unsigned char sum[HR_FLEET_KEY_SUM];

	if (hr_fleet_key_text(text, err) != 0)
		return -1;
	hr_fleet_key_sum(text, sum);
	if (hr_sqlite_run(s, err,
		"INSERT INTO keys (name, sum, scopes, sandboxes, factors, expires, created)"
		" VALUES (?, ?, ?, ?, ?, ?, ?)",
		"sbiiiii", k->name, sum, (int64_t)k->scopes, k->limits.sandboxes, k->limits.factors,
		k->expires, (int64_t)time(NULL)) != 0)
		return -1;
	k->id = sqlite3_last_insert_rowid(s->db);
	return 0;
}

struct found_key {
	struct hr_fleet_key key;
	unsigned char sum[HR_FLEET_KEY_SUM];
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
	hr_sqlite_copy(f->key.name, sizeof(f->key.name), st, 1);
	f->key.scopes = sqlite3_column_int(st, 2);
	f->key.limits.sandboxes = sqlite3_column_int64(st, 3);
	f->key.limits.factors = sqlite3_column_int64(st, 4);
	f->key.expires = sqlite3_column_int64(st, 5);
	f->key.revoked = sqlite3_column_int(st, 6) != 0;
	memset(f->sum, 0, sizeof(f->sum));
	if (sum != NULL && sqlite3_column_bytes(st, 7) == (int)sizeof(f->sum))
		memcpy(f->sum, sum, sizeof(f->sum));
	if (f->fn != NULL)
		f->fn(f->arg, &f->key);
}

/* Searches by the sum: timing reveals only sums, from which no key can be computed. */
static int
sqlite_key_find(
    struct hr_store *base, const char *text, struct hr_fleet_key *ret, struct hr_err *err)
{
	unsigned char sum[HR_FLEET_KEY_SUM];
	struct found_key f = {.fn = NULL};
	int n;

	hr_fleet_key_sum(text, sum);
	n = hr_sqlite_rows((struct hr_sqlite *)(void *)base, err, read_key, &f,
	    "SELECT " KEY_COLUMNS " FROM keys WHERE sum = ?", "b", sum);
	if (n <= 0)
		return n;
	if (!hr_fleet_key_good(&f.key, f.sum, sum))
		return 0;
	*ret = f.key;
	return 1;
}

static int
sqlite_key_revoke(struct hr_store *base, int64_t id, bool *ret_found, struct hr_err *err)
{
	struct hr_sqlite *s = (struct hr_sqlite *)(void *)base;

	if (hr_sqlite_run(s, err, "UPDATE keys SET revoked = 1 WHERE id = ?", "i", id) != 0)
		return -1;
	*ret_found = sqlite3_changes(s->db) > 0;
	return 0;
}

static int
sqlite_keys(struct hr_store *base, hr_key_fn *fn, void *arg, struct hr_err *err)
{
	struct found_key f = {.fn = fn, .arg = arg};

	return hr_sqlite_rows((struct hr_sqlite *)(void *)base, err, read_key, &f,
		   "SELECT " KEY_COLUMNS " FROM keys ORDER BY id", "") < 0
		   ? -1
		   : 0;
}

/* ---- events ---- */

int
hr_sqlite_event(
    struct hr_store *base, const char *id, const char *what, const char *detail, struct hr_err *err)
{
	struct hr_sqlite *s = (struct hr_sqlite *)(void *)base;

	if (hr_sqlite_run(s, err, "INSERT INTO events (at, id, what, detail) VALUES (?, ?, ?, ?)",
		"isss", (int64_t)time(NULL), id, what, detail) != 0)
		return -1;
	/* each new event drops an old one */
	return hr_sqlite_run(s, err, "DELETE FROM events WHERE seq <= ?", "i",
	    (int64_t)sqlite3_last_insert_rowid(s->db) - EVENTS_KEPT);
}

struct found_event {
	hr_fleet_event_fn *fn;
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

#define EVENT_COLUMNS "seq, at, id, what, detail"
/* conditions for one sandbox, which has an index, or for all */
#define OF_ONE "id = ?1"
#define OF_ALL "?1 = ''"
#define EVENTS_OF(which)                                                                           \
	"SELECT " EVENT_COLUMNS " FROM events WHERE " which " AND (?2 = 0 OR "                     \
	"?2 = (SELECT key FROM sandboxes AS s WHERE s.id = events.id)) "
#define THOSE_BEHIND(which) EVENTS_OF(which) "AND seq > ?3 ORDER BY seq LIMIT ?4"
#define LAST_ONES(which)                                                                           \
	"SELECT * FROM (" EVENTS_OF(which) "ORDER BY seq DESC LIMIT ?3) ORDER BY seq"

static int
sqlite_events(struct hr_store *base, int64_t key, const char *id, int64_t after, unsigned most,
    hr_fleet_event_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_sqlite *s = (struct hr_sqlite *)(void *)base;
	struct found_event f = {fn, arg};
	int n;

	if (after >= 0)
		n = hr_sqlite_rows(s, err, read_event, &f,
		    id != NULL ? THOSE_BEHIND(OF_ONE) : THOSE_BEHIND(OF_ALL), "siii",
		    id != NULL ? id : "", key, after, (int64_t)most);
	else
		n = hr_sqlite_rows(s, err, read_event, &f,
		    id != NULL ? LAST_ONES(OF_ONE) : LAST_ONES(OF_ALL), "sii", id != NULL ? id : "",
		    key, (int64_t)most);
	return n < 0 ? -1 : 0;
}

struct ends {
	int64_t first, last;
};

static void
read_ends(void *arg, sqlite3_stmt *st)
{
	struct ends *e = arg;

	e->first = sqlite3_column_int64(st, 0); /* 0: there are no events */
	e->last = sqlite3_column_int64(st, 1);
}

static int
sqlite_event_ends(struct hr_store *base, int64_t *ret_lost, int64_t *ret_last, struct hr_err *err)
{
	struct ends e = {0, 0};

	/* two queries, each answered by an index, since max and min in one would scan the table */
	if (hr_sqlite_rows((struct hr_sqlite *)(void *)base, err, read_ends, &e,
		"SELECT (SELECT min(seq) FROM events), (SELECT max(seq) FROM events)", "") < 0)
		return -1;
	*ret_lost = e.first > 0 ? e.first - 1 : 0;
	*ret_last = e.last;
	return 0;
}

/* ---- notes ---- */

static void
read_note(void *arg, sqlite3_stmt *st)
{
	const unsigned char *text = sqlite3_column_text(st, 0);

	*(char **)arg = text != NULL ? strdup((const char *)text) : NULL;
}

static int
sqlite_note_get(struct hr_store *base, const char *name, char **ret_value, struct hr_err *err)
{
	int n;

	*ret_value = NULL;
	n = hr_sqlite_rows((struct hr_sqlite *)(void *)base, err, read_note, ret_value,
	    "SELECT value FROM notes WHERE name = ?", "s", name);
	if (n > 0 && *ret_value == NULL)
		return hr_err_nomem(err);
	return n < 0 ? -1 : 0;
}

static int
sqlite_note_set(struct hr_store *base, const char *name, const char *value, struct hr_err *err)
{
	return hr_sqlite_run((struct hr_sqlite *)(void *)base, err,
	    "INSERT OR REPLACE INTO notes (name, value) VALUES (?, ?)", "ss", name, value);
}

static const struct hr_store_ops ops = {
    .close = sqlite_close,
    .key_make = sqlite_key_make,
    .key_find = sqlite_key_find,
    .key_revoke = sqlite_key_revoke,
    .keys = sqlite_keys,
    .reserve = hr_sqlite_reserve,
    .find = hr_sqlite_find,
    .find_session = hr_sqlite_find_session,
    .each = hr_sqlite_each,
    .page = hr_sqlite_page,
    .move = hr_sqlite_move,
    .set_request = hr_sqlite_set_request,
    .active = hr_sqlite_active,
    .least_active = hr_sqlite_least_active,
    .forget = hr_sqlite_forget,
    .lease = hr_sqlite_lease,
    .first_end = hr_sqlite_first_end,
    .pooled = hr_sqlite_pooled,
    .event = hr_sqlite_event,
    .events = sqlite_events,
    .event_ends = sqlite_event_ends,
    .note_get = sqlite_note_get,
    .note_set = sqlite_note_set,
};

struct hr_store *
hr_sqlite_open(const char *dir, bool make, struct hr_err *err)
{
	struct hr_sqlite *s = calloc(1, sizeof(*s));
	HR_FREE char *path = NULL;
	HR_FREE char *lock = NULL;
	int r = -1;

	if (s != NULL) {
		s->base.ops = &ops;
		s->lock = -1;
	}
	if (s == NULL || asprintf(&path, "%s/fleet.db", dir) < 0 ||
	    asprintf(&lock, "%s/fleet.lock", dir) < 0)
		(void)hr_err_nomem(err);
	else
		r = open_file(s, dir, path, lock, make, err);
	if (r == 0)
		return &s->base;
	if (s != NULL)
		sqlite_close(&s->base);
	return NULL;
}

int
hr_sqlite_check(const char *dir, struct hr_err *err)
{
	struct hr_sqlite *s = calloc(1, sizeof(*s));
	HR_FREE char *path = NULL;
	int r = -1;

	if (s != NULL)
		s->lock = -1;
	if (s == NULL || asprintf(&path, "%s/fleet.db", dir) < 0)
		(void)hr_err_nomem(err);
	else if (open_db(s, path, SQLITE_OPEN_READONLY, err) == 0)
		r = read_version(s, dir, false, err) > 0 ? 0 : -1;
	if (s != NULL)
		sqlite_close(&s->base);
	return r;
}
