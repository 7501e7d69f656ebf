/* hr_secret: keeps values that the broker of a box's network puts into requests, and that no box
 * sees. Each is a file of mode 0600 in STATE_DIR/secrets. A file of $CREDENTIALS_DIRECTORY
 * (systemd.exec(5)) counts where the store has none of that name. */
#ifndef HR_HOST_RECORDS_SECRET_H
#define HR_HOST_RECORDS_SECRET_H

#include <stddef.h>

#include "base/buf.h"
#include "base/strv.h"

#define HR_SECRET_MIN 8 /* bytes: a shorter value would be found in unrelated texts */
#define HR_SECRET_MAX (64u << 10)

/* Refuses a name that is not 1 to 64 letters, digits, '-' and '_'. */
int hr_secret_name(const char *name, struct hr_err *err);
/* Stores a value without control characters, as UTF-8. No error of these functions has a
 * value. state_dir may be the pool's; NULL: only credentials count. env is the caller's
 * environment. */
int hr_secret_set(
    const char *state_dir, const char *name, const char *value, size_t len, struct hr_err *err);
/* Appends the value. Fails with HR_E_NOTFOUND and the command that sets it if there is none. */
int hr_secret_get(const char *state_dir, const char *const *env, const char *name,
    struct hr_buf *ret, struct hr_err *err);
int hr_secret_remove(const char *state_dir, const char *name, struct hr_err *err);
/* Appends the sorted names of both sources. */
int hr_secret_list(
    const char *state_dir, const char *const *env, struct hr_strv *ret, struct hr_err *err);

#endif
