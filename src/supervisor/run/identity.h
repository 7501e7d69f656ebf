/* hr_identity: the user of the shell and the working directory, as section "user and directory" of
 * handraild(8) says; and nginx's account. All of it happens once, before anything is started. */
#ifndef HR_SUPERVISOR_RUN_IDENTITY_H
#define HR_SUPERVISOR_RUN_IDENTITY_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct hr_settings;

struct hr_identity {
	/* what the contract calls the user id: of the existing user, else the one asked for. It
	 * decides whether the shell is sent to the working directory at start */
	uid_t user_id;
	/* who the shell really runs as */
	bool shell_changes; /* it becomes shell_user; otherwise it stays who we are */
	char *shell_user;   /* name, "" if the process's own user has none */
	uid_t shell_uid;
	/* nginx's workers; only meaningful when we are root */
	char *nginx_user, *nginx_group;
	uid_t nginx_uid;
	gid_t nginx_gid;
};

/* Makes user and directory if they are missing. env_user is $USER or NULL; etc is "/etc" but in
 * tests. Blocks: programs are run and a whole tree may be walked; `stopped` (may be NULL) is asked
 * now and then whether to give up (HR_E_GONE). What is only a warning in the contract is logged. */
int hr_identity_prepare(struct hr_identity *id, const struct hr_settings *c, const char *env_user,
    const char *etc, bool (*stopped)(void), struct hr_err *err);
/* Only nginx's account: `wanted`, or the first that exists of www-data, nginx, nobody. Not root:
 * nothing is set. */
int hr_identity_nginx(struct hr_identity *id, const char *wanted, struct hr_err *err);
void hr_identity_done(struct hr_identity *id);

/* A name that may be handed to useradd and su: not empty, no option, no blank, no ':' or '/'. */
bool hr_identity_name_ok(const char *name);

/* mkdir -p, chown -R, chmod g+rw of the working directory; group is a name or a number. Failures
 * are logged, not returned, but for being stopped. */
int hr_identity_work_dir(const char *dir, const char *user, const char *group,
    bool (*stopped)(void), struct hr_err *err);

#endif
