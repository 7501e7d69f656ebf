/* Examines the processes of a box by /proc. They are frozen, so that nothing changes meanwhile,
 * and hostile: whatever cannot be examined is a reason to leave the root as it is. One statx() per
 * descriptor finds its mount; DONT_SYNC, since a file system of the box may be frozen, too. */
#include "config.h"

#include "box/rest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clean.h"
#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/process/hierarchy.h"
#include "base/process/pid.h"
#include "base/text/text.h"
#include "box/table.h"

#define TABLE_MAX (64u << 20)
#define NAME 17            /* a process's name */
#define ONE_THREAD_LINKS 3 /* links of /proc/PID/task with one thread */
#define LINE_FIFO "line."  /* prefix of the name of the builtin's FIFO: see hook.h */
#define TERMINALS_FROM 136 /* device numbers of pseudo-terminals */
#define TERMINALS_TO 143
#define LOOK_FLAGS (AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC)

struct rest {
	pid_t first;
	struct statx root;
	char namespace[64];
	unsigned fs_major, fs_minor; /* the root's file system */
	struct hr_buf sockets;       /* inodes (uint64_t) of the sockets with a path on the root */
	char *why;
	size_t size;
};

/* Writes the reason. Returns 1, which ends the examination. */
static int __attribute__((format(printf, 3, 4)))
no(struct rest *r, pid_t pid, const char *form, ...)
{
	char name[NAME] = "";
	va_list ap;
	int n = 0;

	if (pid > 0) {
		hr_pid_read(pid, "comm", name, sizeof(name));
		name[strcspn(name, "\n")] = '\0';
		n = snprintf(r->why, r->size, "%s (process %ld) ", name, (long)pid);
	}
	va_start(ap, form);
	if (n >= 0 && (size_t)n < r->size)
		(void)vsnprintf(r->why + n, r->size - (size_t)n, form, ap);
	va_end(ap);
	hr_text_plain(r->why);
	return 1;
}

static int
unknown(struct rest *r, pid_t pid, const char *part)
{
	return no(r, pid, "has %s that cannot be examined: %s", part, strerror(errno));
}

/* ---- the box ---- */

/* Notes the file system of the root. A second mount of a part of it would stay writable when the
 * root has become a layer; one that covers the root is the leftover of a killed process, which
 * box_shift() removes. */
static int
examine_mounts(struct rest *r, struct hr_err *err)
{
	HR_CLEAN(box_table_done) struct box_table t = {.n = 0};
	const struct box_table_mount *root, *m;
	HR_CLOSE int fd = -1;
	size_t len;

	root = box_table_of(&t, r->first, &fd, err);
	if (root == NULL)
		return -1;
	if (root->id != r->root.stx_mnt_id ||
	    sscanf(root->device, "%u:%u", &r->fs_major, &r->fs_minor) != 2)
		return hr_err_set(err, HR_E_RUNTIME, "the box has an unknown root");
	len = strcmp(root->root, "/") == 0 ? 0 : strlen(root->root);
	for (m = t.v; m < t.v + t.n; m++)
		if (m != root && strcmp(m->place, "/") != 0 &&
		    strcmp(m->device, root->device) == 0 &&
		    strncmp(m->root, root->root, len) == 0 &&
		    (m->root[len] == '/' || m->root[len] == '\0'))
			return no(r, 0, "files of the root are also mounted at %.256s", m->place);
	return 0;
}

/* Returns true if the path of a socket may be on the root: directories of the box that are always
 * mounts of their own are known. */
static bool
is_on_root(const char *path)
{
	return *path != '\0' && *path != '@' &&
	       (hr_path_leads_out(path + (*path == '/')) ||
		   !(hr_path_is_within(path, "/run") || hr_path_is_within(path, "/dev")));
}

/* Notes the sockets of the box's network that have a path on the root. The host's network has
 * those of other processes, too. */
static int
note_sockets(struct rest *r)
{
	HR_BUF(text, TABLE_MAX);
	char path[64], *rest, *line;
	struct hr_err e = {0};
	uint64_t inode;
	int at;

	(void)snprintf(path, sizeof(path), "/proc/%ld/net/unix", (long)r->first);
	if (hr_path_read(path, &text, &e) < 0)
		return no(r, 0, "the sockets cannot be examined: %s", e.msg);
	(void)hr_buf_str(&text);
	for (rest = text.p; rest != NULL && (line = strsep(&rest, "\n")) != NULL;) {
		unsigned long long n = 0;

		at = 0;
		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %llu %n", &n, &at) != 1 || at == 0 ||
		    !is_on_root(line + at))
			continue;
		inode = n;
		hr_buf_add(&r->sockets, &inode, sizeof(inode));
	}
	return hr_buf_check(&r->sockets, &e) < 0
		   ? no(r, 0, "the sockets cannot be examined: %s", e.msg)
		   : 0;
}

static bool
is_noted(const struct rest *r, uint64_t inode)
{
	size_t i;
	uint64_t one;

	for (i = 0; i < r->sockets.len; i += sizeof(one)) {
		memcpy(&one, r->sockets.p + i, sizeof(one));
		if (one == inode)
			return true;
	}
	return false;
}

/* ---- a process ---- */

static bool
is_on(const struct rest *r, const struct statx *st)
{
	return st->stx_mnt_id == r->root.stx_mnt_id;
}

static bool
is_top(const struct statx *st)
{
	return (st->stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

/* Returns true if a line of fdinfo is a watch of the root's file system. */
static bool
is_watch(const struct rest *r, const char *line)
{
	const unsigned device =
	    r->fs_major << 20 | r->fs_minor; /* the form that the kernel prints */
	const char *at = strstr(line, " sdev:");

	if (strncmp(line, "fanotify ino:", 13) != 0 && strncmp(line, "fanotify sdev:", 14) != 0 &&
	    strncmp(line, "fanotify mnt_id:", 16) != 0 && strncmp(line, "inotify wd:", 11) != 0)
		return false;
	return at == NULL || strtoul(at + 6, NULL, 16) == device;
}

static int
examine_watches(struct rest *r, pid_t pid, const char *fd)
{
	HR_BUF(text, TABLE_MAX);
	char path[96], *rest, *line;

	(void)snprintf(path, sizeof(path), "/proc/%ld/fdinfo/%.20s", (long)pid, fd);
	if (hr_path_read(path, &text, NULL) < 0)
		return unknown(r, pid, "watches");
	(void)hr_buf_str(&text);
	for (rest = text.p; rest != NULL && (line = strsep(&rest, "\n")) != NULL;)
		if (is_watch(r, line))
			return no(r, pid, "watches files of the root");
	return 0;
}

static int
examine_fd(struct rest *r, pid_t pid, int dir, const char *name)
{
	struct statx st;
	char path[256];
	ssize_t n;

	if (statx(dir, name, LOOK_FLAGS, STATX_TYPE | STATX_INO | STATX_MNT_ID, &st) != 0)
		return unknown(r, pid, "a descriptor");
	if (!is_on(r, &st) && !S_ISSOCK(st.stx_mode) && (st.stx_mode & S_IFMT) != 0)
		return 0;
	if (S_ISSOCK(st.stx_mode) && !is_on(r, &st))
		return is_noted(r, st.stx_ino)
			   ? no(r, pid, "has a socket whose path may be on the root")
			   : 0;
	n = readlinkat(dir, name, path, sizeof(path) - 1);
	if (n < 0)
		return unknown(r, pid, "a descriptor");
	path[n] = '\0';
	if (is_on(r, &st))
		return no(r, pid, "has %s open", path);
	/* no type: an object of the kernel */
	/* handraild watches only mounts of their own, /run and the journal (guard.h) */
	return pid != r->first && strstr(path, "notify") != NULL ? examine_watches(r, pid, name)
								 : 0;
}

static int
examine_fds(struct rest *r, pid_t pid)
{
	HR_CLOSEDIR DIR *d = NULL;
	const struct dirent *e;
	char path[64];
	int result = 0;

	(void)snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
	d = opendir(path);
	if (d == NULL)
		return unknown(r, pid, "descriptors");
	while (result == 0 && (e = hr_dir_next(d)) != NULL)
		result = examine_fd(r, pid, dirfd(d), e->d_name);
	return result == 0 && errno != 0 ? unknown(r, pid, "descriptors") : result;
}

/* Returns true if readline waits for a line, from the FIFO of the builtin (line_module.c), which is
 * open only then, or from the terminal, which is not canonical then. */
static bool
reads_line(pid_t pid)
{
	HR_CLOSEDIR DIR *d = NULL;
	HR_CLOSE int fd = -1;
	const struct dirent *e;
	struct termios modes;
	struct stat st;
	char path[32], link[PATH_MAX];

	(void)snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
	d = opendir(path);
	while (d != NULL && (e = hr_dir_next(d)) != NULL)
		if (hr_pid_link(link, sizeof(link), "%s/%.20s", path, e->d_name) > 0 &&
		    strncmp(hr_path_leaf(link), LINE_FIFO, strlen(LINE_FIFO)) == 0 &&
		    fstatat(dirfd(d), e->d_name, &st, 0) == 0 && S_ISFIFO(st.st_mode))
			return true;
	/* no other device is opened */
	if (d == NULL || fstatat(dirfd(d), "0", &st, 0) != 0 || !S_ISCHR(st.st_mode) ||
	    major(st.st_rdev) < TERMINALS_FROM || major(st.st_rdev) > TERMINALS_TO)
		return false;
	fd = openat(dirfd(d), "0", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && tcgetattr(fd, &modes) == 0 && (modes.c_lflag & ICANON) == 0;
}

/* Returns true for the shell of a session at its prompt. Its parent is a keeper, or handraild after
 * the death of a keeper. */
static bool
is_shell(pid_t pid)
{
	char text[HR_PID_STAT], name[NAME];
	const char *stat;
	pid_t parent;

	hr_pid_read(pid, "comm", name, sizeof(name));
	if (strcmp(name, "bash\n") != 0)
		return false;
	stat = hr_pid_stat(pid, text);
	parent = (pid_t)hr_pid_field(stat, HR_PID_PARENT);
	if (hr_pid_field(stat, HR_PID_FOREGROUND) != (unsigned long long)pid)
		return false;
	hr_pid_read(parent, "comm", name, sizeof(name));
	return (strcmp(name, "handrail-sessio\n") == 0 || strcmp(name, "handraild\n") == 0) &&
	       reads_line(pid);
}

static int
examine_place(struct rest *r, pid_t pid)
{
	struct statx st;
	char path[64], link[256];

	(void)snprintf(path, sizeof(path), "/proc/%ld/root", (long)pid);
	if (statx(AT_FDCWD, path, LOOK_FLAGS, STATX_MNT_ID, &st) != 0)
		return unknown(r, pid, "a root");
	if (!is_on(r, &st) || !is_top(&st))
		return no(r, pid, "has a root of its own");
	(void)snprintf(path, sizeof(path), "/proc/%ld/cwd", (long)pid);
	if (statx(AT_FDCWD, path, LOOK_FLAGS, STATX_MNT_ID, &st) != 0)
		return unknown(r, pid, "a directory");
	/* other mounts move to the new root with the processes in them */
	if (!is_on(r, &st) || is_top(&st) || is_shell(pid))
		return 0;
	(void)hr_pid_link(link, sizeof(link), "%s", path);
	return no(r, pid, "is in %s", link);
}

/* Examines a process, or a thread with a directory or descriptors of its own. */
static int
examine_task(struct rest *r, pid_t pid)
{
	char namespace[64], text[HR_PID_STAT];
	const char *stat;
	int result;

	if (hr_pid_link(namespace, sizeof(namespace), "/proc/%ld/ns/mnt", (long)pid) <= 0) {
		const int why = errno;

		/* a process that has ended has nothing any more */
		stat = hr_pid_stat(pid, text);
		errno = why;
		return *stat == '\0' || *stat == 'Z' || *stat == 'X' ? 0
								     : unknown(r, pid, "mounts");
	}
	if (strcmp(namespace, r->namespace) != 0)
		return no(r, pid, "is in a mount namespace of its own");
	result = examine_place(r, pid);
	return result == 0 ? examine_fds(r, pid) : result;
}

static bool
is_shared(pid_t a, pid_t b, int what)
{
	return syscall(SYS_kcmp, a, b, what, 0ul, 0ul) == 0;
}

static int
examine(pid_t pid, void *arg)
{
	HR_CLOSEDIR DIR *d = NULL;
	struct rest *r = arg;
	char path[64];
	struct stat st;
	pid_t thread;
	int result = examine_task(r, pid);

	(void)snprintf(path, sizeof(path), "/proc/%ld/task", (long)pid);
	if (result != 0 || (stat(path, &st) == 0 && st.st_nlink <= ONE_THREAD_LINKS))
		return result;
	d = opendir(path);
	if (d == NULL && errno != ENOENT)
		return unknown(r, pid, "threads");
	while (result == 0 && (thread = hr_pid_next(d)) > 0)
		if (thread != pid &&
		    (!is_shared(pid, thread, KCMP_FS) || !is_shared(pid, thread, KCMP_FILES)))
			result = examine_task(r, thread);
	return result;
}

int
box_rest(const char *group, pid_t first, char *why, size_t size, struct hr_err *err)
{
	struct rest r = {.first = first, .sockets = {.cap = TABLE_MAX}, .why = why, .size = size};
	char path[64];
	int result;

	(void)snprintf(path, sizeof(path), "/proc/%ld/root", (long)first);
	if (statx(AT_FDCWD, path, LOOK_FLAGS, STATX_MNT_ID, &r.root) != 0 ||
	    hr_pid_link(r.namespace, sizeof(r.namespace), "/proc/%ld/ns/mnt", (long)first) <= 0)
		return hr_err_sys(err, errno, "examine process %ld", (long)first);
	result = examine_mounts(&r, err);
	if (result == 0)
		result = note_sockets(&r);
	if (result == 0)
		result = hr_hierarchy_each(group, examine, &r, err);
	hr_buf_done(&r.sockets);
	return result < 0 ? -1 : result == 0;
}
