/* Declares the statements of hr_sqlite, for its files. */
#ifndef HR_FLEET_STORE_SQLITE_INT_H
#define HR_FLEET_STORE_SQLITE_INT_H

#include <sqlite3.h>

#include "fleet/store/sqlite.h"

#define STATEMENTS_MAX 48
#define HOLDS_ROOM "state NOT IN (6, 7)"

struct hr_sqlite {
	struct hr_store base; /* this must be the first member */
	sqlite3 *db;
	int lock;
	struct hr_statement {
		const char *sql;
		sqlite3_stmt *st;
	} statements[STATEMENTS_MAX];
	size_t n;
};

/* Returns a prepared, bound statement: sql is a constant, and is prepared once per address. types
 * describes the arguments: i an int64_t, s a string, b a SHA-256. A caller's data is never part of
 * a statement's text. */

/* Runs a statement that returns no rows. */
int hr_sqlite_run(struct hr_sqlite *s, struct hr_err *err, const char *sql, const char *types, ...);
/* Passes each row to fn. Returns the number of rows, or -1. */
int hr_sqlite_rows(struct hr_sqlite *s, struct hr_err *err, void (*fn)(void *arg, sqlite3_stmt *st),
    void *arg, const char *sql, const char *types, ...);
void hr_sqlite_copy(char *to, size_t cap, sqlite3_stmt *st, int column);

/* Begins a transaction. hr_sqlite_end() commits it if ok; otherwise, or if that fails, it rolls
 * back. */
int hr_sqlite_begin(struct hr_sqlite *s, struct hr_err *err);
int hr_sqlite_end(struct hr_sqlite *s, bool ok, struct hr_err *err);

/* ---- sandboxes (sqlite_rows.c), events (sqlite.c) ---- */

enum hr_fleet_result hr_sqlite_reserve(struct hr_store *base, struct hr_fleet_row *row,
    const struct hr_fleet_limits *of_key, const struct hr_fleet_limits *of_all, hr_may_fn *may,
    void *arg, struct hr_err *err);
int
hr_sqlite_find(struct hr_store *base, const char *id, struct hr_fleet_row *ret, struct hr_err *err);
int hr_sqlite_find_session(struct hr_store *base, int64_t key, const char *session, bool last,
    struct hr_fleet_row *ret, struct hr_err *err);
int hr_sqlite_each(
    struct hr_store *base, int64_t key, bool live, hr_row_fn *fn, void *arg, struct hr_err *err);
int hr_sqlite_page(struct hr_store *base, int64_t key, bool live, const char *after, unsigned most,
    hr_row_fn *fn, void *arg, struct hr_err *err);
int hr_sqlite_move(struct hr_store *base, const struct hr_fleet_row *row, enum hr_fleet_state from,
    enum hr_fleet_state to, const char *reason, unsigned how, bool *ret_moved, struct hr_err *err);
int hr_sqlite_set_request(struct hr_store *base, const struct hr_fleet_row *row,
    const char *request, bool *ret_found, struct hr_err *err);
int hr_sqlite_active(struct hr_store *base, const char *id, int64_t when, struct hr_err *err);
int hr_sqlite_least_active(struct hr_store *base, enum hr_fleet_state state,
    char ret_id[HR_FLEET_ID], int64_t *ret_active, struct hr_err *err);
int hr_sqlite_lease(
    struct hr_store *base, const struct hr_fleet_row *row, bool *ret_set, struct hr_err *err);
int hr_sqlite_first_end(
    struct hr_store *base, char ret_id[HR_FLEET_ID], int64_t *ret_ends_ms, struct hr_err *err);
int hr_sqlite_forget(struct hr_store *base, int64_t before, struct hr_err *err);
int hr_sqlite_pooled(struct hr_store *base, const char *shape, int64_t ret[2],
    char ret_warm[HR_FLEET_ID], struct hr_err *err);
int hr_sqlite_event(struct hr_store *base, const char *id, const char *what, const char *detail,
    struct hr_err *err);

#endif
