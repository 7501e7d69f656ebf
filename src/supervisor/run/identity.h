/* hr_identity: sets up the shell's user and the working directory, as in handraild(8), section
 * "user and directory", and nginx's account. Everything happens once, before anything is
 * started. */
#ifndef HR_SUPERVISOR_RUN_IDENTITY_H
#define HR_SUPERVISOR_RUN_IDENTITY_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct hr_settings;

struct hr_identity {
	/* user id of the contract: that of the existing user, or else the requested one. It decides
	 * whether the shell changes to the working directory at start */
	uid_t user_id;
	/* ---- the actual user of the shell ---- */
	/* the shell becomes shell_user; otherwise it stays this process's user */
	bool shell_changes;
	char *shell_user; /* name, "" if the process's user has none */
	uid_t shell_uid;
	/* account of nginx's workers; only used if this process is root */
	char *nginx_user, *nginx_group;
	uid_t nginx_uid;
	gid_t nginx_gid;
};

/* Makes the user and the directory if they are missing. env_user is $USER or NULL; etc is "/etc"
 * except in tests. Blocks: runs programs and may walk a whole tree; polls `stopped` (may be NULL)
 * to give up (HR_E_GONE). Failures that are warnings in the contract are logged. */
int hr_identity_prepare(struct hr_identity *id, const struct hr_settings *c, const char *env_user,
    const char *etc, bool (*stopped)(void), struct hr_err *err);
/* Sets only nginx's account: `wanted`, or the first that exists of www-data, nginx, nobody; root
 * where the user namespace has none of these. Does nothing if this process is not root. */
int hr_identity_nginx(struct hr_identity *id, const char *wanted, struct hr_err *err);
void hr_identity_done(struct hr_identity *id);

/* Returns true for a name safe for useradd and su: it is not empty, is no option, and has no blank,
 * ':' or '/'. */
bool hr_identity_name_ok(const char *name);

/* Performs mkdir -p, chown -R, chmod g+rw on the working directory; group is a name or a number.
 * `keep`: no chown where the directory itself has that owner and group. Failures are logged, not
 * returned, except being stopped. */
int hr_identity_work_dir(const char *dir, const char *user, const char *group, bool keep,
    bool (*stopped)(void), struct hr_err *err);

#endif
