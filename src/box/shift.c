/* Exchanges the root of a running box. A process may be killed at any instant: the box continues in
 * a root that has all its mounts. Therefore the box enters the new root twice, each time in one
 * step, pivot_root(): first with clones of its mounts, so that nothing is taken from the old root
 * before; then with the mounts themselves, since processes have directories and files there.
 * Whatever lies over the box's root is a leftover.
 *
 * The top and LAYER/files change their names first. So LAYER/files, if it is there, is a layer of
 * the box from then on, whichever root the box has. The root's source names its upper layer: that
 * shows which of both names is true. */
#include "config.h"

#include "box/shift.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/account.h"
#include "base/clean.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/plain.h"
#include "base/process/spawn.h"
#include "box/copy.h"
#include "box/mount.h"
#include "box/overlay.h"
#include "box/table.h"

/* <sys/mount.h> and <linux/mount.h> define the same names differently in glibc 2.36 */
int umount2(const char *target, int flags);
#define BOX_MNT_DETACH 2

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct shift {
	const struct box_shift *s;
	pid_t program; /* the parent of this process */
	bool plain;
	int storage, layer;           /* directories */
	int dir;                      /* the directory of the top */
	const char *top;              /* the name of the top there */
	int lower[BOX_BELOW_MAX + 2]; /* the layers of the new root, topmost first */
	size_t nlower;
	int table;     /* the box's list of mounts */
	int box, host; /* namespaces of mounts */
	struct box_table mounts;
	const struct box_table_mount *root; /* the one that the box's processes have */
	uint64_t upper, work; /* inodes of its directories; 0: it has no working directory */
	int old;              /* the old root */
};

static int
failed(const char *what, struct hr_err *err)
{
	return hr_err_sys(err, errno, "%s", what);
}

/* ---- the box's mounts ---- */

static int
enter(int namespace, struct hr_err *err)
{
	return setns(namespace, CLONE_NEWNS) == 0 ? 0 : failed("enter the mounts of the box", err);
}

/* Reads the list of mounts, and finds the root by its number. */
static int
read_mounts(struct shift *h, uint64_t id, struct hr_err *err)
{
	box_table_done(&h->mounts);
	if (box_table_read(&h->mounts, h->table, err) < 0)
		return -1;
	h->root = box_table_find(&h->mounts, id);
	return h->root != NULL ? 0
			       : hr_err_set(err, HR_E_RUNTIME, "the box has no mount of its root");
}

/* Opens the topmost mount at a place below the directory `at`. */
static int
open_place(int at, const char *place)
{
	return hr_plain_openat2(
	    at, place + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC, RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH);
}

static int
move_to(int mount, int place)
{
	return (int)syscall(SYS_move_mount, mount, "", place, "",
	    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

/* Enters the new root, over which the old one lies. */
static int
pivot(int root)
{
	return fchdir(root) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 ? 0 : -1;
}

/* ---- leftovers ---- */

static int
set_read_only(const char *path)
{
	HR_CLOSE int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 ? box_mount_flags(fd, 0, MOUNT_ATTR_RDONLY) : -1;
}

/* Detaches what a killed process has left over the root of the box. */
static int
detach_leftovers(struct shift *h, int root, struct hr_err *err)
{
	struct statx st, wanted;
	int r = statx(root, "", AT_EMPTY_PATH, STATX_MNT_ID, &wanted);

	while (r == 0 && (r = enter(h->box, err)) == 0) {
		/* each time this leads to the topmost one */
		if (statx(AT_FDCWD, "/", 0, STATX_MNT_ID, &st) != 0 ||
		    st.stx_mnt_id == wanted.stx_mnt_id)
			break;
		/* the layer must not change any more */
		r = set_read_only("/");
		if (r == 0)
			r = umount2("/", BOX_MNT_DETACH);
	}
	if (r < 0)
		return failed("detach a former root", err);
	return read_mounts(h, wanted.stx_mnt_id, err) < 0 ? -1 : enter(h->host, err);
}

/* Finds which directory has the files of the box. Returns 1, 0 with the reason in `why`, or -1 with
 * *err. */
static int
find_upper(struct shift *h, int root, char *why, size_t size, struct hr_err *err)
{
	if (box_table_upper(h->root, root, &h->upper, &h->work, err) < 0) {
		(void)snprintf(why, size, "%s", err->msg);
		return 0;
	}
	return h->work != 0 || h->s->root == NULL
		   ? 1
		   : hr_err_set(err, HR_E_INVAL, "the box has no root directory of its own");
}

/* Removes the leftovers of a killed process. The caller has exchanged the names again if that was
 * killed before the box had its new root. */
static int
repair(struct shift *h, int root, struct hr_err *err)
{
	struct stat top;

	if (fstatat(h->dir, h->top, &top, AT_SYMLINK_NOFOLLOW) != 0)
		return failed("examine the top of the box", err);
	if (top.st_ino != h->upper)
		return hr_err_set(err, HR_E_INVAL,
		    "a layer has the files of the box: exchange it and %s first",
		    BOX_OVERLAY_TOP_OF(h->s->root));
	return box_table_over(&h->mounts, h->root) != NULL ? detach_leftovers(h, root, err) : 0;
}

/* ---- the new root ---- */

/* Returns the name of the working directory that the old root does not use. */
static const char *
choose_work(const struct shift *h)
{
	struct stat st;

	return fstatat(h->storage, "layers/" BOX_OVERLAY_ROOT "/work", &st, AT_SYMLINK_NOFOLLOW) ==
			   0 &&
		       st.st_ino == h->work
		   ? "work2"
		   : "work";
}

/* Makes the overlay of the new root, without a place. */
static int
new_root(const struct shift *h, struct hr_err *err)
{
	HR_CLEAN(box_overlay_done) struct box_overlay o = {-1, -1, -1};
	char source[BOX_TABLE_SOURCE];
	int fd;

	if (box_overlay_open_root(
		h->storage, h->s->root != NULL, h->lower[0], choose_work(h), &o, err) < 0)
		return -1;
	fd = box_overlay_name(&o, source) == 0
		 ? box_overlay_new(h->plain, h->lower, h->nlower, &o, source)
		 : -1;
	return fd >= 0 ? fd : failed("make an overlay of the layers", err);
}

/* The mounts that lie directly on the old root, by their places. */
struct moved {
	int v[BOX_TABLE_MAX];
	const char *place[BOX_TABLE_MAX];
	size_t n;
};

static void
moved_done(struct moved *m)
{
	while (m->n > 0)
		hr_fd_close(&m->v[--m->n]);
}

/* Puts a clone of a mount, and of those below it, into the new root. */
static int
put_clone(const struct shift *h, int root, const struct box_table_mount *m, struct moved *ret,
    struct hr_err *err)
{
	const struct box_table_mount *there;
	HR_CLOSE int mount = open_place(h->old, m->place);
	HR_CLOSE int place = mount < 0 ? -1 : open_place(root, m->place);
	HR_CLOSE int clone = place < 0 ? -1 : box_mount_copy(mount, "", AT_RECURSIVE);
	struct statx st;

	if (clone < 0 || statx(mount, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) != 0)
		return hr_err_sys(err, errno, "clone the mount at %s", m->place);
	there = box_table_find(&h->mounts, st.stx_mnt_id);
	/* a mount above its place has covered it */
	if (there == NULL || strcmp(there->place, m->place) != 0)
		return 0;
	if (move_to(clone, place) < 0)
		return hr_err_sys(err, errno, "put the mount at %s in place", m->place);
	ret->place[ret->n] = m->place;
	ret->v[ret->n++] = mount;
	mount = -1;
	return 0;
}

/* Opens the root that this process has in the namespace of the box. */
static int
open_old(struct shift *h, struct hr_err *err)
{
	struct statx st;

	h->old = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (h->old < 0 || statx(h->old, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) != 0)
		return failed("open the root of the box", err);
	return st.stx_mnt_id == h->root->id
		   ? 0
		   : hr_err_set(err, HR_E_RUNTIME, "another mount covers the root of the box");
}

/* Attaches the new root over the old one, with clones of its mounts. Nothing leads there yet.
 * *ret_again is a second mount of it, without a place. */
static int
attach(const struct shift *h, int root, int *ret_again, struct moved *ret, struct hr_err *err)
{
	const struct box_table_mount *m;

	/* kernels before 6.15 copy only what is attached */
	if (box_mount_move(root, "/") < 0 || (*ret_again = box_mount_copy(root, "", 0)) < 0)
		return failed("put the new root in place", err);
	for (m = h->mounts.v; m < h->mounts.v + h->mounts.n; m++)
		if (m->parent == h->root->id && put_clone(h, root, m, ret, err) < 0)
			return -1;
	return 0;
}

/* Detaches the new root, which the box has not entered, or not any more. */
static void
detach_new(int root)
{
	if (fchdir(root) == 0)
		(void)umount2(".", BOX_MNT_DETACH);
}

/* Lets the box enter the new root. A writer to the old one, which nobody must have, prevents that.
 * Returns 1; 0 with *err if the box has its old root; or -1 with *err if it cannot return to
 * that. */
static int
go_over(const struct shift *h, int root, struct hr_err *err)
{
	if (pivot(root) < 0)
		return (void)failed("change the root of the box", err), 0;
	if (box_mount_flags(h->old, 0, MOUNT_ATTR_RDONLY) == 0)
		return 1;
	(void)failed("make the former root read-only, on which a file is open", err);
	return pivot(h->old) < 0 ? -1 : 0;
}

/* Moves the mounts of the old root to `again`, a second mount of the new one, and lets the box
 * enter that. */
static int
move_all(int again, const struct moved *moved, struct hr_err *err)
{
	size_t i;

	if (box_mount_move(again, "/") < 0)
		return failed("put the new root in place again", err);
	for (i = 0; i < moved->n; i++) {
		HR_CLOSE int place = open_place(again, moved->place[i]);

		if (place < 0 || move_to(moved->v[i], place) < 0)
			return hr_err_sys(err, errno, "move the mount at %s", moved->place[i]);
	}
	return pivot(again) == 0 ? 0 : failed("change the root of the box again", err);
}

/* Gives the box its mounts instead of their clones, and detaches the former roots. A failure has an
 * effect only on processes in directories of those mounts; it is reported in `why`. */
static void
take_over(int root, int again, const struct moved *moved, char *why, size_t size)
{
	struct hr_err e = {0};
	int r = move_all(again, moved, &e), i;

	/* both others lie over the root that the box has now */
	if (fchdir(r == 0 ? again : root) != 0)
		r = failed("enter the root", &e);
	for (i = 0; i < 2; i++)
		if (umount2(".", BOX_MNT_DETACH) != 0 && r == 0)
			r = failed("detach a former root", &e);
	if (r < 0)
		(void)snprintf(why, size, "%s", e.msg);
}

/* Returns 1; 0 with the reason in `why` and the box in its old root; or -1 with *err and the box in
 * the new one, if a program can still write to the layer. */
static int
exchange_roots(struct shift *h, char *why, size_t size, struct hr_err *err)
{
	HR_CLEAN(moved_done) struct moved moved = {.n = 0};
	HR_CLOSE int root = new_root(h, err);
	HR_CLOSE int again = -1;
	int r = 0;

	if (root >= 0 && enter(h->box, err) == 0) {
		if (open_old(h, err) == 0 && attach(h, root, &again, &moved, err) == 0)
			r = go_over(h, root, err);
		if (r == 0)
			detach_new(root);
	}
	if (r == 0)
		(void)snprintf(why, size, "%s", err->msg);
	else
		take_over(root, again, &moved, why, size);
	return r;
}

/* ---- the layer ---- */

/* Makes an empty directory with the properties of the top, and exchanges both. Returns false with
 * the reason in *err; nothing has changed then. */
static bool
become_layer(struct shift *h, struct hr_err *err)
{
	HR_CLOSE int top = openat(h->dir, h->top, DIRECTORY);
	HR_CLOSE int files = -1;
	int r;

	if (top < 0 || mkdirat(h->layer, BOX_COPY_FILES, 0700) != 0) {
		(void)failed("make the directory of the layer", err);
		return false;
	}
	files = openat(h->layer, BOX_COPY_FILES, DIRECTORY);
	r = files >= 0 ? box_copy_properties(top, files, err) : failed(BOX_COPY_FILES, err);
	if (r == 0 && renameat2(h->dir, h->top, h->layer, BOX_COPY_FILES, RENAME_EXCHANGE) != 0)
		r = failed("exchange the top of the box with the layer", err);
	if (r < 0) {
		(void)unlinkat(h->layer, BOX_COPY_FILES, AT_REMOVEDIR);
		return false;
	}
	h->lower[0] = top;
	top = -1;
	return true;
}

/* Undoes that. Returns 0, or -1 with *err. */
static int
return_files(const struct shift *h, struct hr_err *err)
{
	return renameat2(h->dir, h->top, h->layer, BOX_COPY_FILES, RENAME_EXCHANGE) == 0 &&
		       unlinkat(h->layer, BOX_COPY_FILES, AT_REMOVEDIR) == 0
		   ? 0
		   : failed("give the files of the box back their name", err);
}

/* ---- the process ---- */

/* Opens the directories. The namespace of mounts must be the one where the overlay is made. */
static int
open_all(struct shift *h, const char *storage, struct hr_err *err)
{
	size_t i;

	h->storage = open(storage, DIRECTORY);
	if (h->storage < 0)
		return hr_err_sys(err, errno, "open the storage %s", storage);
	h->layer = open(h->s->layer, DIRECTORY);
	if (h->layer < 0)
		return hr_err_sys(err, errno, "open the layer %s", h->s->layer);
	h->dir = h->s->root == NULL ? dup(h->storage)
				    : openat(h->storage, "layers/" BOX_OVERLAY_ROOT, DIRECTORY);
	h->top = hr_path_leaf(BOX_OVERLAY_TOP_OF(h->s->root));
	if (h->dir < 0)
		return failed("open the directory of the top", err);
	for (i = 0; i < h->s->nbelow + (h->s->root != NULL); i++) {
		const char *path = i < h->s->nbelow ? h->s->below[i] : h->s->root;

		h->lower[i + 1] = box_mount_path(path, O_RDONLY | O_DIRECTORY);
		if (h->lower[i + 1] < 0)
			return hr_err_sys(err, errno, "open the layer %s", path);
	}
	h->nlower = i + 1;
	return 0;
}

static int
open_of(pid_t pid, const char *name, int flags, struct hr_err *err)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, name);
	fd = open(path, flags | O_CLOEXEC);
	return fd >= 0 ? fd : hr_err_sys(err, errno, "open %s", path);
}

/* Ends this process with the program, which may have ended already: then the caller has let the box
 * continue. */
static int
end_with(pid_t program, struct hr_err *err)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
		return failed("end with the program", err);
	if (getppid() != program)
		_exit(1);
	return 0;
}

/* Enters the user namespace of the box, and copies the mounts of this one: only its own mounts let
 * root of a user namespace make others. */
static int
become_root(const struct shift *h, struct hr_err *err)
{
	HR_CLOSE int user = h->plain ? open_of(h->s->pid, "ns/user", O_RDONLY, err) : -1;

	if (!h->plain)
		return 0;
	if (user < 0)
		return -1;
	if (setns(user, CLONE_NEWUSER) != 0 || setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0 ||
	    unshare(CLONE_NEWNS) != 0)
		return failed("become root of the box", err);
	return end_with(h->program, err); /* the change of the account has cancelled it */
}

/* Implements box_shift() in a process of its own. */
static int
shift(struct shift *h, const char *storage, char *why, size_t size, struct hr_err *err)
{
	HR_CLOSE int root = -1;
	struct statx st;
	int r;

	(void)umask(0);
	if (become_root(h, err) < 0 ||
	    (h->table = open_of(h->s->pid, "mountinfo", O_RDONLY, err)) < 0 ||
	    (h->box = open_of(h->s->pid, "ns/mnt", O_RDONLY, err)) < 0 ||
	    (h->host = open_of(getpid(), "ns/mnt", O_RDONLY, err)) < 0 ||
	    (root = open_of(h->s->pid, "root", O_PATH | O_DIRECTORY, err)) < 0)
		return -1;
	if (open_all(h, storage, err) < 0)
		return -1;
	if (statx(root, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) != 0)
		return failed("examine the root of the box", err);
	if (read_mounts(h, st.stx_mnt_id, err) < 0)
		return -1;
	r = find_upper(h, root, why, size, err);
	if (r <= 0)
		return r;
	if (repair(h, root, err) < 0)
		return -1;
	hr_fd_close(&root);
	if (h->s->nbelow == BOX_BELOW_MAX) {
		(void)snprintf(why, size, "the box has %d layers already", BOX_BELOW_MAX);
		return 0;
	}
	if (!become_layer(h, err)) {
		(void)snprintf(why, size, "%s", err->msg);
		return 0;
	}
	r = exchange_roots(h, why, size, err);
	return r != 0 ? r : return_files(h, err);
}

/* Runs the child. The former root is written to the disk when the last one who has it leaves it:
 * nobody waits for that. */
static void __attribute__((noreturn))
run(const struct box_shift *s, const char *storage, pid_t program, int sync)
{
	struct shift h = {.s = s, .program = program, .plain = !hr_account_is_root(), .old = -1};
	struct hr_err e = {0};
	char said[1 + BOX_SHIFT_WHY] = "";
	int r = end_with(program, &e);

	if (r == 0)
		r = shift(&h, storage, said + 1, sizeof(said) - 1, &e);
	said[0] = r < 0 ? 'e' : r == 0 ? 'n' : 's';
	if (r < 0)
		(void)snprintf(said + 1, sizeof(said) - 1, "%s", e.msg);
	if (r > 0) {
		/* keep nothing of the caller's */
		(void)prctl(PR_SET_PDEATHSIG, 0);
		(void)setsid();
		(void)dup2(h.old, STDIN_FILENO);
		sync = dup2(sync, STDOUT_FILENO);
		hr_fd_close_from(STDERR_FILENO);
	}
	(void)hr_fd_write_full(sync, said, strlen(said), NULL);
	hr_fd_close(&sync);
	_exit(0);
}

int
box_shift(
    const char *storage, const struct box_shift *s, char *why, size_t size, struct hr_err *err)
{
	char said[1 + BOX_SHIFT_WHY];
	int sync[2];
	ssize_t n = -1;
	pid_t pid, own = getpid();

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sync) < 0)
		return hr_err_sys(err, errno, "a socket pair");
	pid = fork();
	if (pid == 0) {
		hr_fd_close(&sync[0]);
		run(s, storage, own, sync[1]);
	}
	hr_fd_close(&sync[1]);
	if (pid > 0)
		n = hr_fd_read_full(sync[0], said, sizeof(said) - 1, err);
	else
		(void)failed("start a process", err);
	hr_fd_close(&sync[0]);
	if (pid < 0)
		return -1;
	if (n < 1 || said[0] != 's')
		(void)hr_spawn_end(pid, NULL);
	if (n < 1)
		return hr_err_set(
		    err, HR_E_GONE, "the process that exchanges the root of the box was killed");
	said[n] = '\0';
	if (said[0] == 'e')
		return hr_err_set(err, HR_E_RUNTIME, "%s", said + 1);
	(void)snprintf(why, size, "%s", said + 1);
	return said[0] == 's';
}
