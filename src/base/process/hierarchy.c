/* Control groups. Their mounts are found from the kernel's files: mountinfo has the root of each
 * mount, /proc/self/cgroup the place below it. */
#include "config.h"

#include "base/process/hierarchy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clean.h"
#include "base/fd.h"
#include "base/path.h"

#define PROC_MAX (4u << 20)
#define PIDS_MAX (64u << 20)
#define SERVER "handrail-server" /* the subgroup of processes that moved out of the way */
#define SHARE_TRIES 4            /* a process may fork while it is moved */

/* Returns true if a comma-separated list contains a word. */
static bool
list_has(const char *list, const char *word)
{
	size_t n = strlen(word), len;

	for (;; list += len + 1) {
		len = strcspn(list, ",");
		if (len == n && memcmp(list, word, n) == 0)
			return true;
		if (list[len] == '\0')
			return false;
	}
}

/* Returns this process's path in a controller's hierarchy ("": version 2), or NULL. Cuts text
 * up. */
static const char *
own_path(char *text, const char *controller)
{
	char *save = NULL, *line, *first, *second;

	for (line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		first = strchr(line, ':');
		second = first != NULL ? strchr(first + 1, ':') : NULL;
		if (second == NULL)
			continue;
		*second = '\0';
		if (controller[0] == '\0' ? first[1] == '\0' : list_has(first + 1, controller))
			return second + 1;
	}
	return NULL;
}

/* Parses a line of mountinfo: root and mount point are fields 4 and 5; type, source and options
 * follow " - ". */
static bool
mount_fits(char *line, const char *controller, const char **ret_root, const char **ret_at)
{
	char *tail = strstr(line, " - "), *save = NULL, *type, *options;
	size_t i;

	if (tail == NULL)
		return false;
	*tail = '\0';
	(void)strtok_r(line, " ", &save);
	for (i = 0; i < 2; i++)
		(void)strtok_r(NULL, " ", &save);
	*ret_root = strtok_r(NULL, " ", &save);
	*ret_at = strtok_r(NULL, " ", &save);
	type = strtok_r(tail + 3, " ", &save);
	(void)strtok_r(NULL, " ", &save);
	options = strtok_r(NULL, " ", &save);
	if (*ret_root == NULL || *ret_at == NULL || type == NULL || options == NULL)
		return false;
	if (controller[0] == '\0')
		return strcmp(type, "cgroup2") == 0;
	return strcmp(type, "cgroup") == 0 && list_has(options, controller);
}

/* Returns true if one of the lines is a mount on top of the mount `id` at the same place. */
static bool
is_covered(const char *lines, const char *id, const char *at)
{
	size_t id_len = strlen(id), at_len = strlen(at);
	const char *line, *p;

	for (line = lines; *line != '\0'; line += *line == '\n') {
		p = line + strcspn(line, " \n");
		p += *p == ' ';
		if (strncmp(p, id, id_len) == 0 && p[id_len] == ' ') {
			p += id_len + 1;
			p += strcspn(p, " \n"); /* the device */
			p += *p == ' ';
			p += strcspn(p, " \n"); /* the root */
			p += *p == ' ';
			if (strncmp(p, at, at_len) == 0 && p[at_len] == ' ')
				return true;
		}
		line += strcspn(line, "\n");
	}
	return false;
}

/* Returns the length of a group's path without SERVER at its end. */
static size_t
group_length(const char *path)
{
	size_t n = strlen(path), server = strlen("/" SERVER);

	return n >= server && strcmp(path + n - server, "/" SERVER) == 0 ? n - server : n;
}

/* Returns the part of `path` below a mount's root; NULL: the mount does not show it. */
static const char *
below(const char *path, const char *root)
{
	size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(path, root, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return NULL;
	path += n;
	/* a path outside the namespace of control groups is shown with ".." */
	return strstr(path, "/..") == NULL ? path + strspn(path, "/") : NULL;
}

char *
hr_hierarchy_parse(char *mountinfo, char *own, const char *controller, struct hr_err *err)
{
	const char *path = own != NULL ? own_path(own, controller) : "", *rest, *root, *at;
	char *found = NULL, *save = NULL, *line;
	HR_FREE char *group = path != NULL ? strndup(path, group_length(path)) : NULL;

	if (path != NULL && group == NULL) {
		(void)hr_err_nomem(err);
		return NULL;
	}
	line = path != NULL ? strtok_r(mountinfo, "\n", &save) : NULL;
	for (; line != NULL; line = strtok_r(NULL, "\n", &save)) {
		if (!mount_fits(line, controller, &root, &at) || strchr(at, '\\') != NULL ||
		    is_covered(save, line, at))
			continue;
		rest = own != NULL ? below(group, root) : "";
		if (rest == NULL)
			continue;
		found = *rest != '\0' ? hr_path_join(at, rest) : strdup(at);
		if (found == NULL)
			(void)hr_err_nomem(err);
		return found;
	}
	(void)hr_err_set(err, HR_E_NOTFOUND, "no control group for %s is mounted",
	    controller[0] != '\0' ? controller : "version 2");
	return NULL;
}

char *
hr_hierarchy_find(const char *proc, const char *controller, bool top, struct hr_err *err)
{
	HR_FREE char *cgroup = hr_path_join(proc, "self/cgroup");
	HR_FREE char *info = hr_path_join(proc, "self/mountinfo");
	HR_BUF(own, PROC_MAX);
	HR_BUF(mounts, PROC_MAX);
	char none[] = "";

	if (cgroup == NULL || info == NULL)
		(void)hr_err_nomem(err);
	else if ((top || hr_path_read(cgroup, &own, err) == 0) &&
		 hr_path_read(info, &mounts, err) == 0)
		return hr_hierarchy_parse(mounts.len > 0 ? mounts.p : none,
		    top           ? NULL
		    : own.len > 0 ? own.p
				  : none,
		    controller, err);
	return NULL;
}

bool
hr_hierarchy_has(const char *dir, const char *controller)
{
	HR_FREE char *file = hr_path_join(dir, "cgroup.controllers");
	HR_BUF(text, PROC_MAX);
	char *save = NULL, *word = NULL;

	if (file != NULL && hr_path_read(file, &text, NULL) == 0 && text.len > 0)
		word = strtok_r(text.p, " \n", &save);
	while (word != NULL && strcmp(word, controller) != 0)
		word = strtok_r(NULL, " \n", &save);
	return word != NULL;
}

int
hr_hierarchy_put(const char *group, const char *file, const char *text, struct hr_err *err)
{
	HR_FREE char *path = hr_path_join(group, file);
	size_t len = strlen(text);
	HR_CLOSE int fd = -1;

	if (path == NULL)
		return hr_err_nomem(err);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	/* these files require a single write */
	return fd >= 0 && write(fd, text, len) == (ssize_t)len ? 0
							       : hr_err_sys(err, errno, "%s", path);
}

int
hr_hierarchy_put_number(const char *group, const char *file, uint64_t n, struct hr_err *err)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, n);
	return hr_hierarchy_put(group, file, text, err);
}

char *
hr_hierarchy_make(const char *parent, const char *name, struct hr_err *err)
{
	char *dir = hr_path_join(parent, name);

	if (dir == NULL) {
		(void)hr_err_nomem(err);
	} else if (mkdir(dir, 0755) != 0 && errno != EEXIST) {
		(void)hr_err_sys(err, errno, "%s", dir);
		free(dir);
		dir = NULL;
	}
	return dir;
}

struct each {
	hr_hierarchy_fn *fn;
	void *arg;
	struct hr_err *err;
	int r;
};

static int
visit(int dirfd, const char *name, const struct stat *st, void *arg)
{
	struct each *e = arg;
	HR_CLOSE int fd = -1;
	HR_BUF(text, PIDS_MAX);
	const char *at;
	char *end;
	long pid;

	(void)st;
	if (strcmp(name, "cgroup.procs") != 0)
		return 0;
	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return e->r = hr_err_sys(e->err, errno, "open cgroup.procs");
	if (hr_path_read_fd(fd, name, &text, e->err) < 0)
		return e->r = -1;
	for (at = hr_buf_str(&text); *at != '\0' && e->r == 0; at = end + 1) {
		pid = strtol(at, &end, 10);
		/* 0 stands for a process that this one cannot see */
		if (pid <= 1 || *end != '\n')
			return e->r = hr_err_set(e->err, HR_E_RUNTIME,
				   "a process of the control group cannot be seen here");
		e->r = e->fn((pid_t)pid, e->arg);
	}
	return e->r != 0 ? -1 : 0;
}

int
hr_hierarchy_each(const char *group, hr_hierarchy_fn *fn, void *arg, struct hr_err *err)
{
	struct each e = {.fn = fn, .arg = arg, .err = err};
	unsigned skipped = 0;

	if (hr_path_walk(group, visit, &e, &skipped) == 0 && skipped > 0)
		return hr_err_set(err, HR_E_RUNTIME, "%s cannot be read", group);
	return e.r;
}

/* Moves every process of a group. One that has ended meanwhile is no error. */
static int
move_all(const char *from, const char *to, struct hr_err *err)
{
	HR_FREE char *file = hr_path_join(from, "cgroup.procs");
	HR_BUF(pids, PROC_MAX);
	struct hr_err e = {0};
	char *save = NULL, *pid;

	if (file == NULL)
		return hr_err_nomem(err);
	if (hr_path_read(file, &pids, err) < 0)
		return -1;
	pid = pids.len > 0 ? strtok_r(pids.p, "\n", &save) : NULL;
	for (; pid != NULL; pid = strtok_r(NULL, "\n", &save))
		if (hr_hierarchy_put(to, "cgroup.procs", pid, &e) < 0 && e.sys != ESRCH)
			return hr_err_set(err, e.code, "%s", e.msg);
	return 0;
}

int
hr_hierarchy_share(const char *parent, const char *controllers, bool all, struct hr_err *err)
{
	HR_FREE char *server = NULL;
	struct hr_err e = {0};
	int i;

	for (i = 0; i < SHARE_TRIES; i++) {
		if (hr_hierarchy_put(parent, "cgroup.subtree_control", controllers, &e) == 0)
			return 0;
		if (e.sys != EBUSY)
			break;
		if (server == NULL)
			server = hr_hierarchy_make(parent, SERVER, err);
		if (server == NULL ||
		    (all ? move_all(parent, server, err)
			 : hr_hierarchy_put(server, "cgroup.procs", "0", err)) < 0)
			return -1;
	}
	if (err != NULL)
		*err = e;
	return -1;
}
