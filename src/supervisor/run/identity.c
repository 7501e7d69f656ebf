/* Sets up users and the working directory. The original runs these steps through a shell; here
 * programs get their arguments directly, and the tree is walked without following links. */
#include "config.h"

#include "supervisor/run/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/plain.h"
#include "base/process/spawn.h"
#include "base/text/text.h"
#include "supervisor/run/newaccount.h"
#include "supervisor/settings/settings.h"

#define SUDO_LINE "%sudo ALL=(ALL) NOPASSWD:ALL\n"

bool
hr_identity_name_ok(const char *name)
{
	const char *p;

	if (name[0] == '\0' || name[0] == '-' || strlen(name) > 64)
		return false;
	for (p = name; *p != '\0'; p++) {
		if ((unsigned char)*p <= ' ' || *p == 0x7F || strchr(":/,\\'\"", *p) != NULL)
			return false;
	}
	return true;
}

/* Returns 1 with *ret_uid from the user database; 0 if there is no such user; -1 if it cannot be
 * read. */
static int
user_lookup(const char *name, uid_t *ret_uid, struct hr_err *err)
{
	struct passwd *pw;

	errno = 0;
	pw = getpwnam(name);
	if (pw != NULL) {
		*ret_uid = pw->pw_uid;
		return 1;
	}
	if (errno == 0 || errno == ENOENT || errno == ESRCH)
		return 0;
	return hr_err_sys(err, errno, "user %s", name);
}

/* Returns true if the text has that line, which ends in a line feed, as a whole line. */
static bool
has_line(const char *text, const char *line)
{
	const char *at = text;

	while ((at = strstr(at, line)) != NULL) {
		if (at == text || at[-1] == '\n')
			return true;
		at++;
	}
	return false;
}

/* Adds the line after a line feed: glued to an unfinished line it would make the file invalid. */
static int
append_sudoer(const char *etc, struct hr_err *err)
{
	const char *line = "\n" SUDO_LINE;
	HR_BUF(have, 1 << 20);
	HR_FREE char *path = hr_path_join(etc, "sudoers");
	struct hr_err cause = {0};
	int fd, ok = -1;

	if (path == NULL)
		return hr_err_nomem(err);
	if (hr_path_read(path, &have, &cause) == 0 && has_line(hr_buf_str(&have), SUDO_LINE)) {
		ok = 0; /* a restart must not add a second line */
	} else {
		if ((cause.code == HR_OK || cause.sys == ENOENT) &&
		    (have.len == 0 || have.p[have.len - 1] == '\n'))
			line = SUDO_LINE;
		fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0440);
		if (fd < 0)
			(void)hr_err_sys(&cause, errno, "%s", path);
		else
			ok = hr_fd_write_full(fd, line, strlen(line), &cause);
		hr_fd_close(&fd);
	}
	return ok == 0 ? 0 : hr_err_set(err, HR_E_SYS, "Failed to add sudoer: %s", cause.msg);
}

static int
create_user(const char *name, long long uid, const char *etc, struct hr_err *err)
{
	char home[80], number[24], said[160];
	const char *argv[] = {"useradd", "-rm", "-d", home, "-s", "/bin/bash", "-g", "root", "-G",
	    "sudo", "-u", number, name, NULL};
	struct hr_err cause = {0};
	int status;

	if (hr_newaccount_has_group(name) && getgrnam(name) == NULL) {
		argv[6] = "-U";
		argv[7] = "-l"; /* a file less to write */
	} else if (hr_newaccount_has_group(name)) {
		argv[7] = name;
	}
	if (append_sudoer(etc, err) < 0)
		return -1;
	status = hr_newaccount_add(etc, "/home", name, (uid_t)uid, &cause);
	if (status != 0)
		return status > 0 ? 0
				  : hr_err_set(err, HR_E_SYS,
					"Failed to create user `%s` with UID %lld. Output: [%s]",
					name, uid, cause.msg);
	(void)snprintf(home, sizeof(home), "/home/%s", name);
	(void)snprintf(number, sizeof(number), "%lld", uid);
	status = hr_spawn_wait(argv, said, sizeof(said), &cause);
	if (status == 0)
		return 0;
	return hr_err_set(err, HR_E_SYS, "Failed to create user `%s` with UID %lld. Output: [%s]",
	    name, uid, status < 0 ? cause.msg : said);
}

struct owner {
	uid_t uid;
	gid_t gid;
	bool (*stopped)(void);
	unsigned failed;
	int sys;
};

static int
own_one(int dirfd, const char *name, const struct stat *st, void *arg)
{
	struct owner *o = arg;

	if ((st->st_uid != o->uid || st->st_gid != o->gid) &&
	    fchownat(dirfd, name, o->uid, o->gid, AT_SYMLINK_NOFOLLOW) != 0 && o->failed++ == 0)
		o->sys = errno;
	return o->stopped != NULL && o->stopped() ? -1 : 0;
}

static int
group_lookup(const char *group, gid_t *ret)
{
	struct group *gr;
	long long n;

	if (hr_text_python_int(group, &n) == 0 && n >= 0 && n < UINT32_MAX) {
		*ret = (gid_t)n;
		return 0;
	}
	gr = getgrnam(group);
	if (gr == NULL)
		return -1;
	*ret = gr->gr_gid;
	return 0;
}

/* Leaves the tree alone if `keep`, the directory's status, has that owner. */
static int
own_tree(const char *dir, const char *user, const char *group, const struct stat *keep,
    bool (*stopped)(void), struct hr_err *err)
{
	struct owner o = {.stopped = stopped};
	struct hr_err cause = {0};
	unsigned skipped = 0;

	if (user_lookup(user, &o.uid, &cause) != 1 || group_lookup(group, &o.gid) != 0) {
		hr_log(HR_LOG_WARNING, "%s keeps its owner: no user \"%s\" or no group \"%s\"", dir,
		    user, group);
		return 0;
	}
	if (keep != NULL && keep->st_uid == o.uid && keep->st_gid == o.gid)
		return 0;
	if (hr_path_walk(dir, own_one, &o, &skipped) != 0)
		return hr_err_set(err, HR_E_GONE, "stopped while the owner of %s was set", dir);
	if (o.failed > 0 || skipped > 0)
		hr_log(HR_LOG_WARNING,
		    "%s: %u files keep their owner (%s), %u directories were not entered", dir,
		    o.failed, o.failed > 0 ? strerror(o.sys) : "-", skipped);
	return 0;
}

int
hr_identity_work_dir(const char *dir, const char *user, const char *group, bool keep,
    bool (*stopped)(void), struct hr_err *err)
{
	struct hr_err cause = {0};
	struct stat st;
	mode_t old = umask(002);
	HR_CLOSE int fd = -1;
	int made = hr_path_mkdirs_own(dir, 0777, NULL, &cause);

	(void)umask(old);
	if (made < 0) {
		hr_log(HR_LOG_WARNING, "working directory: %s", cause.msg);
		return 0;
	}
	/* once the user owns the directory, that user could replace it by a link */
	fd = hr_plain_walk_as(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, geteuid());
	keep = keep && fd >= 0 && fstat(fd, &st) == 0;
	if (own_tree(dir, user, group, keep ? &st : NULL, stopped, err) < 0)
		return -1;
	if (fd < 0 || fstat(fd, &st) != 0 ||
	    fchmod(fd, (st.st_mode & 07777) | S_IRGRP | S_IWGRP) != 0)
		hr_log(HR_LOG_WARNING, "cannot change the mode of the working directory %s: %s",
		    dir, strerror(errno));
	return 0;
}

/* Gives the group to the account, and to this process if the account is root's, since root's shells
 * do not change their account. */
static int
take_group(const char *name, gid_t gid, const char *etc, struct hr_err *err)
{
	if (hr_newaccount_set_group(etc, name, gid, err) < 0)
		return -1;
	return strcmp(name, "root") != 0 || setgid(gid) == 0
		   ? 0
		   : hr_err_sys(err, errno, "take the group %lu", (unsigned long)gid);
}

static int
user_and_directory(struct hr_identity *id, const struct hr_settings *c, const char *env_user,
    const char *etc, bool (*stopped)(void), struct hr_err *err)
{
	const char *name = c->username;
	bool root = strcmp(name, "root") == 0;
	const char *group = c->sandbox_group;
	struct passwd *same;
	char number[24];
	int known;

	id->user_id = (uid_t)c->user_id;
	if (env_user != NULL && strcmp(name, env_user) == 0 && !root &&
	    strcmp(name, "openhands") != 0)
		return 0; /* leaves an account on a person's own machine alone */
	if (!root) {
		if (!hr_identity_name_ok(name))
			return hr_err_set(
			    err, HR_E_INVAL, "\"%.64s\" cannot be the name of a user", name);
		known = user_lookup(name, &id->user_id, err);
		if (known < 0)
			return -1;
		/* clients of E2B know this account by its name; an image may use the number */
		while (known == 0 && hr_newaccount_has_group(name) && geteuid() == 0 &&
		       (id->user_id < 1000 || getpwuid(id->user_id) != NULL ||
			   getgrgid(id->user_id) != NULL))
			id->user_id++;
		if (known == 0 && (same = getpwuid(id->user_id)) != NULL) {
			/* useradd refuses a second account with the same user ID */
			hr_log(HR_LOG_NOTICE,
			    "the account %s has user ID %lld: the shell uses it in place of %s",
			    same->pw_name, (long long)id->user_id, name);
			id->shell_user = strdup(same->pw_name);
			if (id->shell_user == NULL)
				return hr_err_nomem(err);
			name = id->shell_user;
		} else if (known == 0 && create_user(name, id->user_id, etc, err) < 0) {
			/* a container with an arbitrary user ID runs without an account */
			if (geteuid() == 0 || getpwuid(geteuid()) != NULL)
				return -1;
			hr_log(HR_LOG_NOTICE, "cannot create an account: %s", err->msg);
			*err = (struct hr_err){0};
		}
	}
	if (c->group_id >= 0 && geteuid() == 0) {
		if (take_group(name, (gid_t)c->group_id, etc, err) < 0)
			return -1;
		(void)snprintf(number, sizeof(number), "%lld", c->group_id);
		group = number;
	}
	return hr_identity_work_dir(c->working_dir, name, group, c->keep_owners, stopped, err);
}

/* Chooses the shell's user: another one only where the contract requires it. */
static int
shell_user(struct hr_identity *id, const struct hr_settings *c, struct hr_err *err)
{
	bool su = c->su_to_user && c->username[0] != '\0' &&
		  (strcmp(c->username, "root") == 0 || strcmp(c->username, "openhands") == 0 ||
		      strcmp(c->username, c->runtime_username) == 0);
	struct passwd *own = getpwuid(geteuid());
	const char *name = su ? c->username : own != NULL ? own->pw_name : "";
	int known;

	id->shell_changes = su;
	id->shell_uid = geteuid();
	if (!su || id->shell_user == NULL) { /* keep an account that stands for c->username */
		free(id->shell_user);
		id->shell_user = strdup(name);
	}
	if (id->shell_user == NULL)
		return hr_err_nomem(err);
	if (!su)
		return 0;
	known = user_lookup(id->shell_user, &id->shell_uid, err);
	if (known >= 0 && geteuid() != 0) {
		/* su would ask for a password, even for this account */
		if (known == 0 || id->shell_uid != geteuid())
			hr_log(HR_LOG_NOTICE,
			    "the shell runs as user ID %ld: only root can start it as %s",
			    (long)geteuid(), id->shell_user);
		id->shell_changes = false;
		id->shell_uid = geteuid();
		return 0;
	}
	if (known == 0)
		return hr_err_set(err, HR_E_NOTFOUND, "there is no user \"%s\"", id->shell_user);
	return known < 0 ? -1 : 0;
}

/* Returns true if the number is in a map of this process's user namespace, whose lines are "FIRST
 * OUTSIDE COUNT". A kernel without user namespaces has no map, and every number. */
static bool
is_mapped(const char *map, unsigned long number)
{
	unsigned long first, count;
	HR_BUF(text, 1 << 16);
	const char *at;

	if (hr_path_read(map, &text, NULL) < 0)
		return true;
	for (at = hr_buf_str(&text); sscanf(at, "%lu %*u %lu", &first, &count) == 2; at++) {
		if (number >= first && number - first < count)
			return true;
		at = strchrnul(at, '\n');
		if (*at == '\0')
			break;
	}
	return false;
}

/* Returns the first of the usual accounts. Where the user namespace has none of them, as where root
 * is its only account, it returns root's; NULL if there is no such account. */
static struct passwd *
usual_nginx(void)
{
	static const char *const names[] = {"www-data", "nginx", "nobody"};
	bool missing = false;
	struct passwd *pw;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		pw = getpwnam(names[i]);
		if (pw != NULL && is_mapped("/proc/self/uid_map", pw->pw_uid) &&
		    is_mapped("/proc/self/gid_map", pw->pw_gid))
			return pw;
		missing |= pw != NULL;
	}
	return missing ? getpwuid(geteuid()) : NULL;
}

int
hr_identity_nginx(struct hr_identity *id, const char *wanted, struct hr_err *err)
{
	struct passwd *pw = NULL;
	struct group *gr;

	if (geteuid() != 0)
		return 0;
	if (wanted[0] != '\0') {
		pw = getpwnam(wanted);
		if (pw == NULL)
			return hr_err_set(
			    err, HR_E_NOTFOUND, "nginx_user: there is no user \"%.64s\"", wanted);
	}
	if (pw == NULL)
		pw = usual_nginx();
	if (pw == NULL)
		return hr_err_set(err, HR_E_NOTFOUND,
		    "no account for nginx's workers: set nginx_user (tried www-data, nginx, "
		    "nobody)");
	id->nginx_uid = pw->pw_uid;
	id->nginx_gid = pw->pw_gid;
	id->nginx_user = strdup(pw->pw_name);
	gr = getgrgid(pw->pw_gid);
	id->nginx_group = gr != NULL ? strdup(gr->gr_name) : NULL;
	if (id->nginx_user == NULL || (gr != NULL && id->nginx_group == NULL))
		return hr_err_nomem(err);
	if (gr == NULL)
		return hr_err_set(err, HR_E_NOTFOUND, "user %s has no group", id->nginx_user);
	return 0;
}

int
hr_identity_prepare(struct hr_identity *id, const struct hr_settings *c, const char *env_user,
    const char *etc, bool (*stopped)(void), struct hr_err *err)
{
	memset(id, 0, sizeof(*id));
	if (user_and_directory(id, c, env_user, etc, stopped, err) < 0 ||
	    shell_user(id, c, err) < 0 || hr_identity_nginx(id, c->nginx_user, err) < 0) {
		hr_identity_done(id);
		return -1;
	}
	if (id->nginx_user != NULL && id->nginx_uid == id->shell_uid && id->shell_uid != 0)
		hr_log(HR_LOG_WARNING,
		    "nginx and the shell are both user %s, so commands can reach the workers' "
		    "sockets: set nginx_user to another account",
		    id->nginx_user);
	return 0;
}

void
hr_identity_done(struct hr_identity *id)
{
	free(id->shell_user);
	free(id->nginx_user);
	free(id->nginx_group);
	memset(id, 0, sizeof(*id));
}
