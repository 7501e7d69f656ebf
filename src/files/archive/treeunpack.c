/* Makes a tree from a stream. Invariants: the kernel resolves a name of the stream only below the
 * top and through no link; a file is new or whole, never half. */
#include "config.h"

#include "files/archive/tree.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "files/place/beneath.h"
#include "files/place/reach.h"
#include "files/place/spool.h"
#include "files/place/target.h"

#define BUFFER (256u << 10)
#define LATER_MAX (256u << 20)
#define REPORT_MAX (2u << 20)
#define LEAVES "the name leads out of the destination"

/* The attributes that a directory gets once its entries exist; its name follows. */
struct later {
	dev_t dev;
	ino_t ino;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	struct timespec mtime;
	size_t len; /* bytes of the name, with its NUL */
};

struct untree {
	const struct hr_tree_options *o;
	hr_tree_read_fn *fn;
	void *arg;
	char *buffer;
	struct archive *a;
	struct hr_tree_report *r;
	char *directory;     /* the directory that contains the top */
	const char *leaf;    /* name of the top in `directory` */
	int base, top;       /* O_PATH descriptors; top: -1 unless it is a directory */
	struct hr_buf later; /* each name followed by its struct later; read from the end */
	size_t nlater;
	uint64_t bytes, entries;
	bool whole; /* the sender's report has arrived */
};

/* Leaves out an entry. Never fails. */
static int
leave_out(struct untree *u, const char *name, const char *reason)
{
	name += strncmp(name, HR_TREE_TOP, strlen(HR_TREE_TOP)) == 0 ? strlen(HR_TREE_TOP) : 0;
	hr_tree_report_add(u->r, name + (*name == '/'), reason);
	return 0;
}

static int
damaged(struct untree *u, struct hr_err *err)
{
	const char *text = archive_error_string(u->a);

	return hr_err_set(
	    err, HR_E_PROTO, "the archive is damaged: %s", text != NULL ? text : "it is cut");
}

static int
too_large(struct untree *u, struct hr_err *err)
{
	if (u->o->entries > 0 && u->entries > u->o->entries)
		return hr_err_set(err, HR_E_TOOLARGE, "The archive holds more than %llu entries",
		    (unsigned long long)u->o->entries);
	return hr_err_set(err, HR_E_TOOLARGE, "The archive holds more than %llu bytes",
	    (unsigned long long)u->o->bytes);
}

/* ---- names ---- */

/* Cuts off trailing slashes. Returns false for any name that is not the top or below it. */
static bool
is_name(char *name)
{
	size_t len = strlen(name), n;
	unsigned depth = 0;

	while (len > 1 && name[len - 1] == '/')
		name[--len] = '\0';
	if (strncmp(name, HR_TREE_TOP, strlen(HR_TREE_TOP)) != 0 || len >= PATH_MAX)
		return false;
	name += strlen(HR_TREE_TOP);
	for (; *name == '/'; name += n) {
		name++;
		n = strcspn(name, "/");
		if (n == 0 || n > NAME_MAX || (n == 1 && name[0] == '.') ||
		    (n == 2 && memcmp(name, "..", 2) == 0) || ++depth > HR_TREE_DEPTH)
			return false;
	}
	return *name == '\0';
}

/* Returns a new descriptor (O_PATH) of the directory of an entry, and the entry's name in it; -1
 * with errno. */
static int
directory_of(struct untree *u, const char *name, const char **ret_leaf)
{
	const char *below = name + strlen(HR_TREE_TOP), *slash;
	HR_FREE char *way = NULL;

	if (*below == '\0') {
		*ret_leaf = u->leaf;
		return fcntl(u->base, F_DUPFD_CLOEXEC, 0);
	}
	if (u->top < 0) {
		errno = ENOTDIR;
		return -1;
	}
	below++;
	slash = strrchr(below, '/');
	*ret_leaf = slash != NULL ? slash + 1 : below;
	way = strndup(below, slash != NULL ? (size_t)(slash - below) : 0);
	return way != NULL ? hr_beneath_open(u->top, way, O_PATH | O_DIRECTORY, false) : -1;
}

/* ---- ownership ---- */

/* Returns true if files that root makes in this directory must belong to the shell's account: the
 * directory does, or everybody may write to it. */
static bool
is_shells(int dir)
{
	const struct hr_reach *rules = hr_reach_get_rules();
	struct stat st;

	return geteuid() == 0 && rules != NULL && rules->shell != 0 && fstat(dir, &st) == 0 &&
	       (st.st_uid == rules->shell || (st.st_mode & S_IWOTH) != 0);
}

/* Sets the owner of a new file. Returns 0, or -1 with errno. */
static int
set_owner(struct untree *u, int fd, int dir, struct archive_entry *e)
{
	struct stat st;

	if (u->o->owner)
		return fchown(fd, (uid_t)archive_entry_uid(e), (gid_t)archive_entry_gid(e));
	if (!is_shells(dir) || fstat(dir, &st) != 0)
		return 0;
	return fchown(fd, hr_reach_get_rules()->shell,
	    st.st_uid == hr_reach_get_rules()->shell ? st.st_gid : (gid_t)-1);
}

static void
times_of(struct archive_entry *e, struct timespec ret[2])
{
	ret[0] = (struct timespec){.tv_nsec = UTIME_NOW};
	ret[1] = (struct timespec){
	    .tv_sec = archive_entry_mtime(e), .tv_nsec = archive_entry_mtime_nsec(e)};
}

/* ---- files ---- */

/* Writes at the entry's offsets. Returns 0; 1 with the reason in *ret_sys; or -1 with *err set. */
static int
write_content(struct untree *u, int fd, int *ret_sys, struct hr_err *err)
{
	const void *p;
	size_t len;
	la_int64_t at;
	int r;

	*ret_sys = 0;
	while ((r = archive_read_data_block(u->a, &p, &len, &at)) == ARCHIVE_OK) {
		u->bytes += len;
		if (u->o->bytes > 0 && u->bytes > u->o->bytes)
			return too_large(u, err);
		if (*ret_sys == 0 && len > 0 && hr_fd_pwrite_sparse(fd, p, len, at) != 0)
			*ret_sys = errno;
	}
	return r != ARCHIVE_EOF ? damaged(u, err) : *ret_sys != 0;
}

/* Gives the new file its name, then the entry's attributes: hr_spool_put() has copied those of the
 * old file. */
static int
place_file(struct untree *u, struct hr_spool *s, struct archive_entry *e, int dir, const char *leaf)
{
	struct timespec times[2];
	struct stat st;

	if (fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) &&
	    unlinkat(dir, leaf, 0) != 0)
		return -1;
	if (hr_spool_put(s, dir, leaf, -1) != 0 || fstat(s->fd, &st) != 0)
		return -1;
	/* if hr_spool kept the old inode, the bytes are in it and its attributes stay */
	if (st.st_nlink == 0)
		return 0;
	if (u->o->owner &&
	    fchown(s->fd, (uid_t)archive_entry_uid(e), (gid_t)archive_entry_gid(e)) != 0)
		return -1;
	times_of(e, times);
	return fchmod(s->fd, archive_entry_perm(e) & 0777) == 0 ? futimens(s->fd, times) : -1;
}

static int
make_file_at(struct untree *u, struct archive_entry *e, const char *name, int dir, const char *leaf,
    bool there, struct hr_err *err)
{
	struct hr_spool s;
	int sys = 0, r;

	hr_spool_init(&s);
	if (hr_spool_open_at(&s, dir, 0600, there) != 0) {
		r = leave_out(u, name, strerror(errno));
		hr_spool_close(&s);
		return r;
	}
	r = write_content(u, s.fd, &sys, err);
	if (r == 0 &&
	    (ftruncate(s.fd, archive_entry_size(e)) != 0 || set_owner(u, s.fd, dir, e) != 0 ||
		place_file(u, &s, e, dir, leaf) != 0)) {
		sys = errno;
		r = 1;
	}
	hr_spool_close(&s);
	return r > 0 ? leave_out(u, name, strerror(sys)) : r;
}

/* Makes the top, which alone may be written to through a link: the client chose that place. */
static int
make_top_file(struct untree *u, struct archive_entry *e, struct hr_err *err)
{
	HR_CLEAN(hr_target_close) struct hr_target t = {.dir = -1};
	HR_BUF(why, HR_TARGET_TEXT_MAX);

	if (hr_target_open(&t, u->directory, u->leaf, u->directory, &why) != 0)
		return leave_out(u, HR_TREE_TOP, hr_buf_str(&why));
	return make_file_at(u, e, HR_TREE_TOP, t.dir, t.leaf, t.exists, err);
}

static int
make_file(struct untree *u, struct archive_entry *e, const char *name, struct hr_err *err)
{
	const char *leaf;
	HR_CLOSE int dir = -1;
	struct stat st;
	bool there;

	if (u->o->follow && strcmp(name, HR_TREE_TOP) == 0)
		return make_top_file(u, e, err);
	dir = directory_of(u, name, &leaf);
	if (dir < 0)
		return leave_out(u, name, strerror(errno));
	there = fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (there && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return leave_out(u, name,
		    S_ISDIR(st.st_mode) ? "a directory is in its place"
					: "no file is in its place");
	return make_file_at(u, e, name, dir, leaf, there && S_ISREG(st.st_mode), err);
}

/* ---- links and directories ---- */

/* Opens (O_PATH) the link that was just made, and checks it: the shell may have put something else
 * in its place. Returns -1 with errno. */
static int
open_link(int dir, const char *leaf, const char *target)
{
	char found[PATH_MAX];
	int fd = openat(dir, leaf, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = readlinkat(fd, "", found, sizeof(found));
	if (n >= 0 && (size_t)n == strlen(target) && memcmp(found, target, (size_t)n) == 0)
		return fd;
	hr_fd_close(&fd);
	errno = ESTALE;
	return -1;
}

/* Sets owner and times by the link's descriptor, never by its name. Returns 0, or -1 with errno. */
static int
settle_link(struct untree *u, struct archive_entry *e, int fd)
{
	struct timespec times[2];
	char proc[64];

	times_of(e, times);
	if (u->o->owner && fchownat(fd, "", (uid_t)archive_entry_uid(e),
			       (gid_t)archive_entry_gid(e), AT_EMPTY_PATH) != 0)
		return -1;
	/* utimensat() knows AT_EMPTY_PATH only since Linux 5.8 */
	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return utimensat(AT_FDCWD, proc, times, 0);
}

static int
make_link(struct untree *u, struct archive_entry *e, const char *name)
{
	const char *leaf, *target = archive_entry_symlink(e);
	HR_CLOSE int dir = directory_of(u, name, &leaf);
	HR_CLOSE int fd = -1;
	struct stat st;
	bool there;

	if (dir < 0)
		return leave_out(u, name, strerror(errno));
	there = fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (there && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return leave_out(u, name, "no file or link is in its place");
	if (target == NULL || (there && unlinkat(dir, leaf, 0) != 0) ||
	    hr_reach_symlink(target, dir, leaf, is_shells(dir)) != 0)
		return leave_out(u, name, target == NULL ? LEAVES : strerror(errno));
	fd = open_link(dir, leaf, target);
	return fd < 0 || settle_link(u, e, fd) != 0 ? leave_out(u, name, strerror(errno)) : 0;
}

static int
note_later(struct untree *u, struct archive_entry *e, const char *name, int fd, struct hr_err *err)
{
	struct later l = {.mode = archive_entry_perm(e) & 01777,
	    .uid = (uid_t)archive_entry_uid(e),
	    .gid = (gid_t)archive_entry_gid(e),
	    .mtime = {archive_entry_mtime(e), archive_entry_mtime_nsec(e)},
	    .len = strlen(name) + 1};
	struct stat st;

	if (fstat(fd, &st) != 0)
		return leave_out(u, name, strerror(errno));
	l.dev = st.st_dev;
	l.ino = st.st_ino;
	/* the length comes last, because the list is read from its end */
	hr_buf_add(&u->later, name, l.len);
	hr_buf_add(&u->later, &l, sizeof(l));
	u->nlater++;
	return hr_buf_check(&u->later, err);
}

/* Returns true if fd is the directory just made, not one that another process put in its place. */
static bool
is_fresh(int fd, uid_t maker)
{
	HR_CLOSEDIR DIR *d = hr_dir_take(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct stat st;

	return d != NULL && fstat(dirfd(d), &st) == 0 && st.st_uid == maker &&
	       hr_dir_next(d) == NULL && errno == 0;
}

/* Makes a directory that never has a wider mode than its entry says. */
static int
make_directory(struct untree *u, struct archive_entry *e, const char *name, struct hr_err *err)
{
	const char *leaf;
	HR_CLOSE int dir = directory_of(u, name, &leaf);
	HR_CLOSE int fd = -1;
	bool made, shells;
	int r = 0;

	if (dir < 0)
		return leave_out(u, name, strerror(errno));
	shells = is_shells(dir);
	made = hr_reach_mkdir(dir, leaf, (archive_entry_perm(e) & 0777) | 0700, shells) == 0;
	if (!made && errno != EEXIST)
		return leave_out(u, name, strerror(errno));
	fd = openat(dir, leaf, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return leave_out(u, name, "a file that is not a directory has that name");
	if (made && is_fresh(fd, shells ? hr_reach_get_rules()->shell : geteuid()))
		r = note_later(u, e, name, fd, err);
	if (strcmp(name, HR_TREE_TOP) == 0 && u->top < 0) {
		u->top = fd;
		fd = -1;
	}
	return r;
}

/* Sets the attributes of a directory. Returns 0, or -1 with errno. */
static int
set_attributes(struct untree *u, const struct later *l, const char *name)
{
	const char *below = name + strlen(HR_TREE_TOP);
	HR_CLOSE int fd =
	    hr_beneath_open(u->top, below + (*below == '/'), O_RDONLY | O_DIRECTORY, false);
	const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, l->mtime};
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return -1;
	if (st.st_dev != l->dev || st.st_ino != l->ino)
		return 0; /* another process has replaced the directory meanwhile */
	if (u->o->owner && fchown(fd, l->uid, l->gid) != 0)
		return -1;
	return fchmod(fd, l->mode) == 0 ? futimens(fd, times) : -1;
}

/* Sets attributes from the innermost directory outwards: writing into a directory changes its time,
 * and its mode may forbid that. */
static void
settle_all(struct untree *u)
{
	size_t at = u->later.len;
	struct later l;

	for (; u->nlater > 0 && u->later.fail == HR_OK; u->nlater--) {
		at -= sizeof(l);
		memcpy(&l, u->later.p + at, sizeof(l));
		at -= l.len;
		if (set_attributes(u, &l, u->later.p + at) != 0)
			(void)leave_out(u, u->later.p + at, strerror(errno));
	}
}

/* ---- the stream ---- */

static int
take_report(struct untree *u, struct hr_err *err)
{
	HR_BUF(list, REPORT_MAX);
	const void *p;
	size_t len;
	la_int64_t at;
	int r;

	while ((r = archive_read_data_block(u->a, &p, &len, &at)) == ARCHIVE_OK)
		hr_buf_add(&list, p, len);
	if (r != ARCHIVE_EOF || hr_buf_check(&list, NULL) != 0)
		return damaged(u, err);
	u->whole = true;
	if (list.len == 0 || u->o->own)
		return 0;
	u->r->failed++;
	hr_buf_adds(&u->r->list, u->r->list.len > 0 ? "," : "");
	hr_buf_add(&u->r->list, list.p, list.len);
	return 0;
}

static int
take_entry(struct untree *u, struct archive_entry *e, struct hr_err *err)
{
	const char *given = archive_entry_pathname(e);
	HR_FREE char *name = given != NULL ? strdup(given) : NULL;

	u->entries++;
	if (u->o->entries > 0 && u->entries > u->o->entries)
		return too_large(u, err);
	if (given != NULL && name == NULL)
		return hr_err_nomem(err);
	if (name != NULL && strcmp(name, HR_TREE_REPORT) == 0)
		return take_report(u, err);
	if (name == NULL || !is_name(name))
		return leave_out(u, name != NULL ? name : "", LEAVES);
	if (archive_entry_hardlink(e) != NULL)
		return leave_out(u, name, "a hard link is not copied");
	switch (archive_entry_filetype(e)) {
	case AE_IFREG: return make_file(u, e, name, err);
	case AE_IFDIR: return make_directory(u, e, name, err);
	case AE_IFLNK: return make_link(u, e, name);
	default: return leave_out(u, name, "neither a file nor a directory nor a link");
	}
}

static la_ssize_t
on_read(struct archive *a, void *arg, const void **ret)
{
	struct untree *u = arg;
	ssize_t n = u->fn(u->arg, u->buffer, BUFFER);

	if (n < 0)
		archive_set_error(a, errno, "it cannot be read");
	*ret = u->buffer;
	return n;
}

static int
take_all(struct untree *u, struct hr_err *err)
{
	struct archive_entry *e;
	int r;

	u->a = archive_read_new();
	if (u->a == NULL)
		return hr_err_nomem(err);
	if (archive_read_support_format_tar(u->a) != ARCHIVE_OK ||
	    archive_read_open(u->a, u, NULL, on_read, NULL) != ARCHIVE_OK)
		return damaged(u, err);
	while ((r = archive_read_next_header(u->a, &e)) == ARCHIVE_OK || r == ARCHIVE_WARN)
		if (take_entry(u, e, err) < 0)
			return -1;
	if (r != ARCHIVE_EOF)
		return damaged(u, err);
	return u->whole ? 0 : hr_err_set(err, HR_E_PROTO, "the archive is cut");
}

/* Finds the directory and the name of the top. */
static int
open_base(struct untree *u, const char *path, struct hr_err *err)
{
	const char *slash = strrchr(path, '/');

	u->directory =
	    slash == NULL ? strdup(".") : strndup(path, slash > path ? (size_t)(slash - path) : 1);
	u->leaf = slash != NULL ? slash + 1 : path;
	u->buffer = malloc(BUFFER);
	if (u->directory == NULL || u->buffer == NULL)
		return hr_err_nomem(err);
	if (*u->leaf == '\0' || strcmp(u->leaf, ".") == 0 || strcmp(u->leaf, "..") == 0)
		return hr_err_set(err, HR_E_INVAL, "%s: it needs a name", path);
	u->base = hr_reach_open_as(AT_FDCWD, u->directory, O_PATH | O_DIRECTORY, true);
	if (u->base < 0)
		return hr_err_set(err,
		    errno == ENOENT || errno == ENOTDIR ? HR_E_NOTFOUND
		    : errno == EACCES || errno == EPERM ? HR_E_PERMISSION
							: HR_E_SYS,
		    "create %s: %s", path, strerror(errno));
	return 0;
}

int
hr_tree_unpack(const char *path, const struct hr_tree_options *o, hr_tree_read_fn *fn, void *arg,
    struct hr_tree_report *r, struct hr_err *err)
{
	struct untree u = {.o = o, .fn = fn, .arg = arg, .r = r, .base = -1, .top = -1};
	struct hr_tree_locale l = hr_tree_locale();
	int done;

	hr_buf_init(&u.later, LATER_MAX);
	done = open_base(&u, path, err);
	if (done == 0)
		done = take_all(&u, err);
	settle_all(&u);
	if (u.a != NULL)
		(void)archive_read_free(u.a);
	hr_fd_close(&u.base);
	hr_fd_close(&u.top);
	hr_buf_done(&u.later);
	free(u.buffer);
	free(u.directory);
	hr_tree_locale_end(&l);
	return done;
}

/* ---- names ---- */

struct hr_tree_locale
hr_tree_locale(void)
{
	struct hr_tree_locale l = {newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0), (locale_t)0};

	if (l.utf8 != (locale_t)0)
		l.before = uselocale(l.utf8);
	return l;
}

void
hr_tree_locale_end(struct hr_tree_locale *l)
{
	if (l->utf8 == (locale_t)0)
		return;
	(void)uselocale(l->before);
	freelocale(l->utf8);
}
