/* Manages the run directory. Invariant: every change of its content is made under its lock. */
#include "config.h"

#include "supervisor/run/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/way.h"
#include "base/process/handover.h"

/* maximum, since nginx gets EAGAIN at once if the backlog is full */
#define LISTEN_BACKLOG 4096
#define LOCK_TRIES 100
#define LOCK_WAIT_MS 10
#define FRESH "~" /* suffix of a socket until it replaces the old one */
#define LONGEST_SOCKET "/fcgi/control.sock" FRESH
#define SOCKET_MAX sizeof(((struct sockaddr_un *)0)->sun_path)

/* the conditions under which a part of an earlier server stays */
#define SESSION 1u /* a keeper or the edit history continues: clients see the same server */
/* the predecessor was killed: its effects stay, and its workers and shells may still run */
#define KILLED 2u
#define UPGRADED 4u /* the previous image's nginx and workers still respond */

static const struct part {
	const char *name;
	unsigned stays;
} parts[] = {
    {"fcgi", KILLED | UPGRADED},
    {"session.sock", SESSION | UPGRADED},
    {"session.sock" FRESH, 0},
    {"shell", SESSION | KILLED | UPGRADED},
    {"nginx", UPGRADED},
    {"www", UPGRADED},
    {"keeper", SESSION},
    {"plugin", 0}, /* remove_files() treats these */
    {"action", UPGRADED},
    {"undo", SESSION},
    {"journal", KILLED | UPGRADED},
    {"e2b.json", SESSION | KILLED | UPGRADED},
    {"viewer-url", UPGRADED},
    {"session", KILLED | UPGRADED},
    {"v1", KILLED | UPGRADED},
};

#define PARTS (sizeof(parts) / sizeof(parts[0]))

static char *
file_of(const struct hr_rundir *r, const char *fmt, va_list ap)
{
	HR_FREE char *name = NULL;

	if (vasprintf(&name, fmt, ap) < 0)
		return NULL;
	return hr_path_join(r->path, name);
}

char *
hr_rundir_file(const struct hr_rundir *r, const char *fmt, ...)
{
	va_list ap;
	char *path;

	va_start(ap, fmt);
	path = file_of(r, fmt, ap);
	va_end(ap);
	return path;
}

void
hr_rundir_remove(const struct hr_rundir *r, const char *fmt, ...)
{
	va_list ap;
	HR_FREE char *path = NULL;

	va_start(ap, fmt);
	path = file_of(r, fmt, ap);
	va_end(ap);
	if (path != NULL)
		(void)hr_path_remove(path, NULL);
}

static char *
port_directory(const char *base, long long port)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "handrail/%lld", port);
	return hr_path_join(base, name);
}

/* Chooses the path. *ret_fresh is set if it is a template for mkdtemp(), since only a place for
 * temporary files is available. */
static char *
choose_name(const struct hr_rundir_place *where, bool *ret_fresh, struct hr_err *err)
{
	const char *best[] = {where->runstatedir, "/run", ""},
		   *xdg[] = {where->xdg_runtime_dir, ""};
	const char *tmp[] = {where->tmpdir, "/tmp"}, *base;
	size_t longest = SOCKET_MAX - strlen(LONGEST_SOCKET) - sizeof("/handrail/12345");
	char *path;

	*ret_fresh = false;
	if (where->wanted[0] != '\0')
		return hr_path_absolute(where->wanted, err);
	base = where->privileged ? hr_way_base(best, 3, true, longest)
				 : hr_way_base(xdg, 2, false, longest);
	if (base[0] != '\0') {
		path = port_directory(base, where->port);
	} else if (where->before != NULL) {
		path = strdup(where->before);
	} else {
		base = hr_way_base(tmp, 2, where->privileged, longest);
		path = hr_path_join(base, "handrail-XXXXXX");
		*ret_fresh = true;
	}
	return path != NULL ? path : hr_err_null(err);
}

char *
hr_rundir_name(const struct hr_rundir_place *where, struct hr_err *err)
{
	bool fresh;
	char *path = choose_name(where, &fresh, err);

	if (path == NULL || !fresh)
		return path;
	free(path);
	(void)hr_err_set(err, HR_E_INVAL,
	    "--print-nginx needs --run-dir: without it each start creates another run directory");
	return NULL;
}

/* Refuses another user's directory, and one to which other users can write: they could replace the
 * sockets. */
static int
check_directory(const struct hr_rundir *r, struct hr_err *err)
{
	struct stat st;

	if (lstat(r->path, &st) != 0)
		return hr_err_sys(err, errno, "%s", r->path);
	if (!S_ISDIR(st.st_mode))
		return hr_err_sys(err, ENOTDIR, "%s", r->path);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return hr_err_set(err, HR_E_INVAL,
		    "%s: belongs to user %ld; choose another one with --run-dir", r->path,
		    (long)st.st_uid);
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return hr_err_set(err, HR_E_INVAL,
		    "%s: others can write to it (mode %04o); chmod go-w", r->path,
		    (unsigned)(st.st_mode & 07777));
	return 0;
}

/* Reads "PID 1" if that process made the directory, "PID 0" if it found it. Returns false if there
 * was none. */
static bool
lock_read(int fd, long *ret_pid, bool *ret_made)
{
	char text[48], *at;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	*ret_pid = strtol(text, &at, 10);
	*ret_made = strtol(at, NULL, 10) == 1;
	return n > 0;
}

static int
lock_is_busy(const struct hr_rundir *r, int fd, struct hr_err *err)
{
	bool made;
	long pid;

	(void)lock_read(fd, &pid, &made);
	return hr_err_set(
	    err, HR_E_BUSY, "%s is in use by a running handraild (process %ld)", r->path, pid);
}

/* Waits for the lock: a child that a killed server was about to start holds a copy until its exec,
 * slightly longer than the server lived. */
static int
lock_wait(int fd)
{
	int tries = LOCK_TRIES, r;
	bool made;
	long pid;

	while ((r = flock(fd, LOCK_EX | LOCK_NB)) != 0 && tries-- > 0) {
		if (!lock_read(fd, &pid, &made) || pid <= 0 || kill((pid_t)pid, 0) == 0 ||
		    errno != ESRCH)
			break;
		(void)poll(NULL, 0, LOCK_WAIT_MS);
	}
	return r;
}

/* Takes the lock. An ending server removes the file while it holds the lock: if the locked file is
 * no longer in the directory, try again. */
static int
take_lock(struct hr_rundir *r, struct hr_err *err)
{
	struct hr_err cause = {0};
	struct stat mine, there;
	char text[48];
	HR_FREE char *path = hr_rundir_file(r, "lock");
	int fd = -1, n, ok = -1;
	long before;
	bool its;

	if (path == NULL)
		return hr_err_nomem(err);
	do {
		hr_fd_close(&fd);
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0) {
			(void)hr_err_sys(&cause, errno, "%s", path);
			goto out;
		}
		if (lock_wait(fd) != 0) {
			(void)lock_is_busy(r, fd, &cause);
			goto out;
		}
		if (fstat(fd, &mine) != 0) {
			(void)hr_err_sys(&cause, errno, "%s", path);
			goto out;
		}
	} while (stat(path, &there) != 0 || there.st_ino != mine.st_ino);
	r->inherited = lock_read(fd, &before, &its);
	r->made = r->made || (r->inherited && its);
	n = snprintf(text, sizeof(text), "%ld %d\n", (long)getpid(), r->made ? 1 : 0);
	if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0) {
		(void)hr_err_sys(&cause, errno, "%s", path);
		goto out;
	}
	if (hr_fd_write_full(fd, text, (size_t)n, &cause) < 0)
		goto out;
	r->lock = fd;
	fd = -1;
	ok = 0;
out:
	hr_fd_close(&fd);
	if (ok != 0 && err != NULL)
		*err = cause;
	return ok;
}

int
hr_rundir_open(struct hr_rundir *r, const struct hr_rundir_place *where, struct hr_err *err)
{
	unsigned made = 0;
	bool fresh;

	memset(r, 0, sizeof(*r));
	r->lock = -1;
	r->privileged = where->privileged;
	r->path = choose_name(where, &fresh, err);
	if (r->path == NULL)
		return -1;
	if (fresh && mkdtemp(r->path) == NULL) {
		(void)hr_err_sys(err, errno, "%s", r->path);
		goto fail;
	}
	r->made = fresh;
	if (strlen(r->path) + strlen(LONGEST_SOCKET) >= SOCKET_MAX) {
		(void)hr_err_set(err, HR_E_TOOLARGE,
		    "%s: too long for the sockets in it; choose a shorter one with --run-dir",
		    r->path);
		goto fail;
	}
	if (!r->made && hr_path_mkdirs_own(r->path, 0755, &made, err) < 0)
		goto fail;
	r->made = r->made || made > 0;
	if (check_directory(r, err) < 0 || take_lock(r, err) < 0)
		goto fail;
	return 0;
fail:
	if (r->made)
		(void)rmdir(r->path); /* fails unless the directory is empty */
	free(r->path);
	r->path = NULL;
	return -1;
}

static int
make_part(const struct hr_rundir *r, const char *name, mode_t mode, struct hr_err *err)
{
	HR_FREE char *path = hr_rundir_file(r, "%s", name);
	int ok = -1;

	if (path == NULL)
		return hr_err_nomem(err);
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		(void)hr_err_sys(err, errno, "%s", path);
	else if (r->privileged && lchown(path, 0, 0) != 0)
		(void)hr_err_sys(err, errno, "%s: owner", path);
	else if (chmod(path, mode) != 0)
		(void)hr_err_sys(err, errno, "%s: mode", path);
	else
		ok = 0;
	return ok;
}

/* Removes a part's files. The plugins' directories stay, because a plugin continues with the state
 * of its killed predecessor. Sockets stay until they are replaced. */
static int
remove_files(const char *path, struct hr_err *err)
{
	HR_CLOSEDIR DIR *d = opendir(path);
	struct dirent *e;
	struct stat st;
	int ok = 0;

	if (d == NULL)
		return errno == ENOENT ? 0 : hr_err_sys(err, errno, "%s", path);
	while ((e = readdir(d)) != NULL) {
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    (S_ISDIR(st.st_mode) || S_ISSOCK(st.st_mode)))
			continue;
		if (unlinkat(dirfd(d), e->d_name, 0) != 0 && errno != ENOENT)
			ok = hr_err_sys(err, errno, "%s/%s", path, e->d_name);
	}
	return ok;
}

/* Removes leftovers; `stays` is a set of SESSION, KILLED, UPGRADED. */
static int
remove_parts(const struct hr_rundir *r, unsigned stays, struct hr_err *err)
{
	size_t i;
	int ok = 0;

	for (i = 0; i < PARTS; i++) {
		HR_FREE char *path = NULL;

		/* left over if a writer was killed */
		hr_rundir_remove(r, "%s" HR_PATH_UNFINISHED, parts[i].name);
		if ((parts[i].stays & stays) != 0)
			continue;
		path = hr_rundir_file(r, "%s", parts[i].name);
		if (path == NULL)
			return hr_err_nomem(err);
		if (strcmp(parts[i].name, "plugin") == 0 && (stays & (KILLED | UPGRADED)) != 0)
			ok |= remove_files(path, err);
		else if (hr_path_remove(path, err) < 0)
			ok = -1;
	}
	return ok;
}

int
hr_rundir_check(
    const struct hr_rundir *r, uid_t uid, const char *name, const char *role, struct hr_err *err)
{
	struct hr_account account;
	char dir[PATH_MAX];

	if (!r->privileged || uid == 0)
		return 0;
	hr_account_find(&account, uid);
	if (!hr_way_barred(r->path, &account, dir))
		return 0;
	return hr_err_set(err, HR_E_INVAL,
	    "%s: the account %s of %s cannot enter this directory, which leads to the run "
	    "directory %s; choose another one with --run-dir, or let the account pass: chmod o+x",
	    dir, name, role, r->path);
}

static int
make_parts(const struct hr_rundir *r, struct hr_err *err)
{
	static const char *const names[] = {"fcgi", "nginx", "www", "plugin", "action", "shell"};
	mode_t pass = r->privileged ? 0711 : 0700;
	size_t i;

	if (chmod(r->path, pass) != 0)
		return hr_err_sys(err, errno, "%s: mode", r->path);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (make_part(r, names[i], pass, err) < 0)
			return -1;
	}
	return make_part(r, "session", 0700, err);
}

int
hr_rundir_prepare(struct hr_rundir *r, uid_t nginx_uid, bool keep_session, struct hr_err *err)
{
	unsigned stays = (keep_session ? SESSION : 0) | (r->inherited ? KILLED : 0);

	if (r->handed != NULL && r->handed->n > 0)
		stays |= UPGRADED;
	r->nginx_uid = nginx_uid;
	return remove_parts(r, stays, err) == 0 ? make_parts(r, err) : -1;
}

int
hr_rundir_restore(struct hr_rundir *r, struct hr_err *err)
{
	struct stat mine, there;
	HR_FREE char *path = hr_rundir_file(r, "lock");
	int old = r->lock;

	if (path == NULL)
		return hr_err_nomem(err);
	if (hr_path_mkdirs(r->path, 0755, NULL, err) < 0 || check_directory(r, err) < 0)
		return -1;
	if (fstat(old, &mine) != 0)
		return hr_err_sys(err, errno, "%s", path);
	if (lstat(path, &there) != 0 || there.st_ino != mine.st_ino) {
		if (take_lock(r, err) < 0)
			return -1;
		hr_fd_close(&old);
	}
	return make_parts(r, err);
}

int
hr_rundir_shell(const struct hr_rundir *r, const char *path, struct hr_err *err)
{
	return make_part(r, path, r->privileged ? 0711 : 0700, err);
}

/* Sets `path` to the socket's name, and *ret to its temporary one. */
static int
socket_name(const struct hr_rundir *r, const char *name, struct sockaddr_un *ret,
    char path[sizeof(ret->sun_path)], struct hr_err *err)
{
	const char *dir = name[0] == '/' ? "" : r->path, *slash = name[0] == '/' ? "" : "/";
	int n;

	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	n = snprintf(ret->sun_path, sizeof(ret->sun_path), "%s%s%s" FRESH, dir, slash, name);
	if (n < 0 || (size_t)n >= sizeof(ret->sun_path))
		return hr_err_set(
		    err, HR_E_TOOLARGE, "%s%s%s: too long for a socket", dir, slash, name);
	(void)snprintf(path, sizeof(ret->sun_path), "%.*s", n - (int)strlen(FRESH), ret->sun_path);
	return 0;
}

/* Returns true for a listening socket that is bound to the right name and still reachable. */
static bool
is_ours(int fd, const struct sockaddr_un *fresh, const char *path)
{
	struct sockaddr_un is = {.sun_family = AF_UNIX};
	socklen_t len = sizeof(is), size = sizeof(int);
	int listening = 0;
	struct stat st;

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 &&
	       listening != 0 && getsockname(fd, (struct sockaddr *)&is, &len) == 0 &&
	       is.sun_family == AF_UNIX &&
	       (strncmp(is.sun_path, path, sizeof(is.sun_path)) == 0 ||
		   strncmp(is.sun_path, fresh->sun_path, sizeof(is.sun_path)) == 0) &&
	       lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

int
hr_rundir_inherit(const struct hr_rundir *r, const char *name)
{
	int fd = r->handed != NULL ? hr_handover_take(r->handed, name) : -1;
	struct sockaddr_un fresh;
	char path[sizeof(fresh.sun_path)];

	if (fd >= 0 &&
	    (socket_name(r, name, &fresh, path, NULL) != 0 || !is_ours(fd, &fresh, path)))
		hr_fd_close(&fd);
	return fd;
}

static bool
set_owner(const struct hr_rundir *r, const char *path, uid_t uid)
{
	return !r->privileged || chown(path, uid, 0) == 0;
}

static int
replace_socket(const struct hr_rundir *r, struct sockaddr_un *addr, const char *path, uid_t uid,
    struct hr_err *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;
	mode_t old;
	bool ok;

	if (fd < 0)
		return hr_err_sys(err, errno, "socket");
	/* the lock is held, so the old socket's owner is dead, but clients may look for the
	 * socket */
	if (lstat(path, &st) != 0)
		(void)snprintf(addr->sun_path, sizeof(addr->sun_path), "%s", path);
	else
		(void)unlink(addr->sun_path);
	old = umask(0177);
	ok = bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0;
	(void)umask(old);
	/* accepts no connection before owner and mode are right, and refuses none later */
	ok = ok && set_owner(r, addr->sun_path, uid) && listen(fd, LISTEN_BACKLOG) == 0 &&
	     (strcmp(addr->sun_path, path) == 0 || rename(addr->sun_path, path) == 0);
	if (!ok) {
		(void)hr_err_sys(err, errno, "%s", path);
		hr_fd_close(&fd);
	}
	return fd;
}

int
hr_rundir_listen(const struct hr_rundir *r, const char *name, uid_t uid, struct hr_err *err)
{
	int fd = hr_rundir_inherit(r, name);
	struct sockaddr_un addr;
	char path[sizeof(addr.sun_path)];

	if (socket_name(r, name, &addr, path, err) < 0)
		return -1; /* no socket was handed over */
	if (fd < 0)
		return replace_socket(r, &addr, path, uid, err);
	if (!set_owner(r, path, uid)) {
		(void)hr_err_sys(err, errno, "%s: owner", path);
		hr_fd_close(&fd);
	}
	return fd;
}

void
hr_rundir_close(struct hr_rundir *r)
{
	struct hr_err err = {0};
	char *slash;

	if (r->path == NULL)
		return;
	if (r->lock >= 0) {
		if (remove_parts(r, 0, &err) != 0)
			hr_log(HR_LOG_WARNING, "%s", err.msg);
		hr_rundir_remove(r, "lock");
		if (r->made && rmdir(r->path) != 0)
			hr_log(HR_LOG_WARNING, "%s: %s", r->path, strerror(errno));
		/* removes the parent ".../handrail" of ".../handrail/PORT", if it is empty */
		slash = strrchr(r->path, '/');
		if (r->made && slash != NULL && slash != r->path) {
			*slash = '\0';
			slash = strrchr(r->path, '/');
			if (slash != NULL && strcmp(slash, "/handrail") == 0)
				(void)rmdir(r->path);
		}
		hr_fd_close(&r->lock);
	}
	free(r->path);
	r->path = NULL;
}
