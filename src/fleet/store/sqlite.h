/* hr_sqlite: the store in one file of SQLite, "fleet.db" of a directory. One process has it open,
 * by a lock beside it. */
#ifndef HR_FLEET_STORE_SQLITE_H
#define HR_FLEET_STORE_SQLITE_H

#include "fleet/store/store.h"

/* make: a new one where there is none. HR_E_BUSY: another process has it open. HR_E_UNSUPPORTED: it
 * was written by another version. */
struct hr_store *hr_sqlite_open(const char *dir, bool make, struct hr_err *err);

/* Would it open, but for who has it? Changes nothing. */
int hr_sqlite_check(const char *dir, struct hr_err *err);

#endif
