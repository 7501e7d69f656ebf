/* Looks at the processes of a box by /proc: all that descend from its first one. */
#include "config.h"

#include "host/box/look.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/process/hierarchy.h"
#include "base/process/pid.h"
#include "base/span.h"
#include "base/text/text.h"

#define MOUNTS_MAX (4u << 20)
#define NAME_MAX_BYTES 16 /* maximum length of a process's name, with its NUL */
#define NAMES_MAX 32
#define SHELL_KEEPER "handrail-sessio" /* the kernel keeps 15 bytes of a name */

struct process {
	pid_t pid, parent;
	bool inside;
};

struct processes {
	struct process *v;
	size_t n, room;
};

static void
processes_done(struct processes *p)
{
	free(p->v);
}

static int
by_pid(const void *a, const void *b)
{
	const pid_t x = ((const struct process *)a)->pid, y = ((const struct process *)b)->pid;

	return x < y ? -1 : x > y;
}

static struct process *
find(const struct processes *p, pid_t pid)
{
	const struct process key = {.pid = pid};

	return p->n > 0 ? bsearch(&key, p->v, p->n, sizeof(key), by_pid) : NULL;
}

static int
add(struct processes *p, pid_t pid)
{
	char text[HR_PID_STAT];
	struct process *more;

	if (p->n == p->room) {
		more = reallocarray(p->v, p->room * 2 + 256, sizeof(*more));
		if (more == NULL)
			return -1;
		p->v = more;
		p->room = p->room * 2 + 256;
	}
	p->v[p->n++] = (struct process){
	    .pid = pid, .parent = (pid_t)hr_pid_field(hr_pid_stat(pid, text), HR_PID_PARENT)};
	return 0;
}

static int
add_inside(pid_t pid, void *arg)
{
	struct processes *p = arg;

	if (add(p, pid) < 0)
		return -1;
	p->v[p->n - 1].inside = true;
	return 0;
}

/* Lists the processes of the box's control group, if it has one: a machine has many more. Returns
 * false if they are not known. */
static bool
list_group(const struct hr_box *b, struct processes *ret)
{
	const char *group = hr_box_freezer(b);

	return group != NULL && hr_hierarchy_each(group, add_inside, ret, NULL) == 0 && ret->n > 0;
}

/* Lists processes, and marks those of the box. */
static int
list(const struct hr_box *b, struct processes *ret, struct hr_err *err)
{
	HR_CLOSEDIR DIR *d = NULL;
	bool more = true;
	pid_t pid;
	size_t i;

	if (list_group(b, ret))
		return 0;
	ret->n = 0;
	d = opendir("/proc");
	while ((pid = hr_pid_next(d)) > 0)
		if (add(ret, pid) < 0)
			return hr_err_nomem(err);
	if (ret->n > 0)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_pid);
	while (more) {
		more = false;
		for (i = 0; i < ret->n; i++) {
			const struct process *up = find(ret, ret->v[i].parent);

			if (ret->v[i].inside ||
			    (ret->v[i].pid != b->pid && (up == NULL || !up->inside)))
				continue;
			ret->v[i].inside = more = true;
		}
	}
	return 0;
}

static void
name_of(pid_t pid, char ret[NAME_MAX_BYTES + 1])
{
	hr_pid_read(pid, "comm", ret, NAME_MAX_BYTES + 1);
	ret[strcspn(ret, "\n")] = '\0';
	hr_text_plain(ret);
}

/* Returns true for the server's processes, and for a shell without a command. */
static bool
is_servers(const struct process *p, const char *name)
{
	char parent[NAME_MAX_BYTES + 1];

	if (strncmp(name, "handrail", 8) == 0 || strcmp(name, "nginx") == 0)
		return true;
	name_of(p->parent, parent);
	return strcmp(parent, SHELL_KEEPER) == 0;
}

static void
add_names(const struct processes *all, struct hr_strv *ret)
{
	char name[NAME_MAX_BYTES + 1];
	size_t i;

	for (i = 0; i < all->n && ret->n < NAMES_MAX; i++) {
		if (!all->v[i].inside)
			continue;
		name_of(all->v[i].pid, name);
		if (name[0] != '\0' && !is_servers(&all->v[i], name) &&
		    !hr_is_one_of(name, hr_strv_list(ret)))
			hr_strv_add(ret, name);
	}
}

/* ---- open files ---- */

/* Returns true if the line of /proc/PID/mountinfo is a mount of the box's own files: an overlay, or
 * a part of its storage; sets *ret_id to its number. */
static bool
is_own(const char *line, const char *storage, int *ret_id)
{
	char root[PATH_MAX], type[32];
	const char *after = strstr(line, " - ");

	return after != NULL && sscanf(line, "%d %*d %*s %4095s", ret_id, root) == 2 &&
	       sscanf(after, " - %31s", type) == 1 &&
	       (strcmp(type, "overlay") == 0 || strstr(root, storage) != NULL);
}

/* Appends the numbers of such mounts in the namespace of a process, unless `seen` has it. A process
 * that ends, or must not be examined, has none. */
static void
add_mounts(pid_t pid, const char *storage, struct hr_strv *seen, struct hr_buf *ids)
{
	char path[64], name[64], *rest, *line;
	HR_BUF(text, MOUNTS_MAX);
	int id;

	if (hr_pid_link(name, sizeof(name), "/proc/%d/ns/mnt", (int)pid) < 0 ||
	    hr_is_one_of(name, hr_strv_list(seen)))
		return;
	hr_strv_add(seen, name);
	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	if (hr_path_read(path, &text, NULL) < 0)
		return;
	(void)hr_buf_str(&text);
	for (rest = text.p; rest != NULL && (line = strsep(&rest, "\n")) != NULL;)
		if (is_own(line, storage, &id))
			hr_buf_addf(ids, " %d ", id);
}

/* Lists the numbers of such mounts in all namespaces of the box, whose processes can make more.
 * Fails if none is found. */
static int
own_mounts(
    const struct hr_box *b, const struct processes *all, struct hr_buf *ids, struct hr_err *err)
{
	HR_FREE char *storage = NULL;
	HR_CLEAN(hr_strv_done) struct hr_strv seen = {0};
	size_t i;

	/* a mount of the storage has this text in its root */
	if (hr_text_setf(&storage, err, "/%s/storage/", hr_path_leaf(b->side.dir)) < 0)
		return -1;
	for (i = 0; i < all->n; i++)
		if (all->v[i].inside)
			add_mounts(all->v[i].pid, storage, &seen, ids);
	if (seen.failed)
		return hr_err_nomem(err);
	return ids->len > 0 ? hr_buf_check(ids, err)
			    : hr_err_set(err, HR_E_RUNTIME,
				  "no mount of the box can be seen: its processes may have ended");
}

/* Returns true if descriptor `name` of the process is such a file; writes its path. */
static bool
is_written(pid_t pid, int dir, const char *name, const char *ids, char path[PATH_MAX])
{
	static const char journal[] = HR_BOX_STATE_DIR "/";
	char entry[64], text[512], id[32];
	const char *flags, *mount;
	struct stat st;
	ssize_t n;

	if (fstatat(dir, name, &st, 0) != 0 || !S_ISREG(st.st_mode) || st.st_nlink == 0)
		return false;
	(void)snprintf(entry, sizeof(entry), "fdinfo/%.20s", name);
	hr_pid_read(pid, entry, text, sizeof(text));
	flags = strstr(text, "flags:");
	mount = strstr(text, "mnt_id:");
	if (flags == NULL || mount == NULL || (strtoul(flags + 6, NULL, 8) & O_ACCMODE) == O_RDONLY)
		return false;
	(void)snprintf(id, sizeof(id), " %ld ", strtol(mount + 7, NULL, 10));
	n = readlinkat(dir, name, path, PATH_MAX - 1);
	if (n < 0 || strstr(ids, id) == NULL)
		return false;
	path[n] = '\0';
	return strncmp(path, journal, sizeof(journal) - 1) != 0;
}

static int
look_at(pid_t pid, const char *ids, char **ret_text, struct hr_err *err)
{
	char at[32], path[PATH_MAX], name[NAME_MAX_BYTES + 1];
	HR_CLOSEDIR DIR *d = NULL;
	const struct dirent *e;

	(void)snprintf(at, sizeof(at), "/proc/%d/fd", (int)pid);
	d = opendir(at);
	while (d != NULL && (e = hr_dir_next(d)) != NULL) {
		if (!is_written(pid, dirfd(d), e->d_name, ids, path))
			continue;
		name_of(pid, name);
		hr_text_plain(path);
		return hr_text_setf(
		    ret_text, err, "%s (process %d) has %s open for writing", name, (int)pid, path);
	}
	return 0;
}

int
hr_look(const struct hr_box *b, struct hr_strv *ret, char **ret_written, struct hr_err *err)
{
	HR_CLEAN(processes_done) struct processes all = {0};
	HR_BUF(ids, MOUNTS_MAX);
	size_t i;

	if (list(b, &all, err) < 0)
		return -1;
	add_names(&all, ret);
	if (ret->failed)
		return hr_err_nomem(err);
	if (ret_written == NULL)
		return 0;
	*ret_written = NULL;
	if (own_mounts(b, &all, &ids, err) < 0)
		return -1;
	for (i = 0; i < all.n && *ret_written == NULL; i++)
		if (all.v[i].inside &&
		    look_at(all.v[i].pid, hr_buf_str(&ids), ret_written, err) < 0)
			return -1;
	return 0;
}
