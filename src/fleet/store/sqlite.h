/* hr_sqlite: keeps the store in one SQLite file, "fleet.db" in a directory. A lock file beside it
 * admits one process. */
#ifndef HR_FLEET_STORE_SQLITE_H
#define HR_FLEET_STORE_SQLITE_H

#include "fleet/store/store.h"

/* Opens the store; `make` creates it if missing. Returns NULL with *err set; HR_E_BUSY: another
 * process has it open; HR_E_UNSUPPORTED: another version wrote it. */
struct hr_store *hr_sqlite_open(const char *dir, bool make, struct hr_err *err);

/* Checks whether the store would open, apart from its lock. Changes nothing. */
int hr_sqlite_check(const char *dir, struct hr_err *err);

#endif
