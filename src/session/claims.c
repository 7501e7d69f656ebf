/* Checks a report's claims. Any process in the shell can write a report with the shell's own nonce:
 * it may describe the shell, but the keeper does and reports nothing for it that the shell's
 * account could not do or see itself. */
#include "config.h"

#include "session/keeper_int.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process/pid.h"
#include "base/plain.h"
#include "session/python.h"

static const char deleted[] = " (deleted)";

/* ---- the account ---- */

/* Reads the four numbers of a process: real, effective, saved, file system. */
static bool
uids_of(pid_t pid, uid_t ret[4])
{
	char text[4096];
	const char *at;

	hr_pid_read(pid, "status", text, sizeof(text));
	at = strstr(text, "\nUid:");
	return at != NULL &&
	       sscanf(at, "\nUid: %u %u %u %u", &ret[0], &ret[1], &ret[2], &ret[3]) == 4;
}

/* Returns the user id, nearly always that of the shell's own account, which needs no proof. */
static uid_t
uid_of(const struct hr_keeper *k, const struct hr_report *r)
{
	uid_t uids[4];

	if (r->euid == k->user.uid || !uids_of(r->pid, uids))
		return k->user.uid;
	return uids[1];
}

const char *
claims_name(struct hr_keeper *k, const struct hr_report *r)
{
	uid_t uid = uid_of(k, r);
	const struct passwd *pw;

	if (k->known_name == NULL || k->known_uid != uid) {
		pw = getpwuid(uid);
		free(k->known_name);
		/* bash's \u prints the same */
		k->known_name = strdup(pw != NULL ? pw->pw_name : "I have no name!");
		k->known_uid = uid;
	}
	return k->known_name != NULL ? k->known_name : "";
}

/* ---- the directory ---- */

/* Returns true if pwd is the same directory under another name, through a symbolic link. */
static bool
same_directory(const struct hr_keeper *k, const char *pwd, pid_t pid)
{
	struct hr_account_own own;
	struct stat x, y;
	char name[64];
	bool same;

	(void)snprintf(name, sizeof(name), "/proc/%d/cwd", (int)pid);
	if (hr_account_enter(&k->account, &own) < 0)
		return false;
	same = stat(pwd, &x) == 0 && stat(name, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
	hr_account_leave(&own);
	return same;
}

/* Returns $PWD if it still names the shell's directory, else the path that the kernel reports. */
const char *
claims_directory(const struct hr_keeper *k, const struct hr_report *r, char *link, size_t cap)
{
	ssize_t n = hr_pid_link(link, cap, "/proc/%d/cwd", (int)r->pid), cut;

	if (n <= 0)
		return r->pwd;
	/* Both are nearly always equal; they differ if pwd contains a symbolic link. */
	if (r->pwd[0] == '/' && (strcmp(r->pwd, link) == 0 || same_directory(k, r->pwd, r->pid)))
		return r->pwd;
	cut = n - (ssize_t)strlen(deleted);
	if (cut <= 0 || strcmp(link + cut, deleted) != 0)
		return link;
	/* A removed directory keeps the name by which the shell knows it. */
	link[cut] = '\0';
	return r->pwd[0] == '/' ? r->pwd : link;
}

/* Returns true if the account could `cd dir`. A removed directory is accepted, too. */
static bool
may_enter(const struct hr_keeper *k, const char *dir)
{
	struct hr_account_own own;
	bool may;
	int fd;

	if (hr_account_enter(&k->account, &own) < 0)
		return false;
	fd = hr_plain_open(AT_FDCWD, dir, O_PATH);
	may = fd >= 0 ? hr_fd_may_run(fd) : errno == ENOENT;
	hr_fd_close(&fd);
	hr_account_leave(&own);
	return may;
}

/* Returns true if the process exists, has no borrowed rights, and sees the same files as the
 * keeper. */
static bool
is_there(pid_t pid, const char *dir)
{
	char theirs[64], ours[64], link[8192];
	uid_t u[4];

	return hr_pid_link(link, sizeof(link), "/proc/%d/cwd", (int)pid) > 0 &&
	       strcmp(link, dir) == 0 &&
	       hr_pid_link(theirs, sizeof(theirs), "/proc/%d/ns/mnt", (int)pid) > 0 &&
	       hr_pid_link(ours, sizeof(ours), "/proc/%d/ns/mnt", (int)getpid()) > 0 &&
	       strcmp(theirs, ours) == 0 && uids_of(pid, u) && u[0] == u[1] && u[1] == u[2] &&
	       u[2] == u[3];
}

const char *
claims_place(struct hr_keeper *k)
{
	const char *dir = hr_core_working_dir(k->core);

	if (!k->place_looked) {
		k->place_good = geteuid() != 0 || k->user.uid == 0 || may_enter(k, dir) ||
				is_there(k->said_pid, dir);
		k->place_looked = true;
	}
	return k->place_good ? dir : k->dir;
}

/* ---- the Python interpreter ---- */

const char *
claims_python(struct hr_keeper *k, const struct hr_report *r, const char *cwd)
{
	struct hr_account_own own;

	hr_buf_reset(&k->py_path);
	if (hr_account_enter(&k->account, &own) == 0) {
		hr_python_find(r->path, cwd, k->user.home, &k->py_path);
		hr_account_leave(&own);
	}
	return hr_buf_str(&k->py_path);
}
