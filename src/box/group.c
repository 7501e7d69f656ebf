/* The control groups of a box, of both versions. */
#include "config.h"

#include "box/group.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"

#define PARENT "handrail"
#define CPU_PERIOD_US 100000
#define MOUNTINFO_MAX (4u << 20)

enum controller { MEMORY, PROCESSES, CPUS, FREEZER, CONTROLLERS };
static const char *const names[CONTROLLERS] = {"memory", "pids", "cpu", "freezer"};

/* Each controller's hierarchy: its directory ("": there is none) and its version. */
struct hierarchies {
	char at[CONTROLLERS][PATH_MAX];
	int version[CONTROLLERS];
};

static bool
has_word(const char *list, const char *word)
{
	size_t n = strlen(word);
	const char *at = list;

	while ((at = strstr(at, word)) != NULL) {
		if ((at == list || strchr(", \n", at[-1]) != NULL) &&
		    (at[n] == '\0' || strchr(", \n", at[n]) != NULL))
			return true;
		at += n;
	}
	return false;
}

/* The controllers that the root of a hierarchy of version 2 has to give. */
static void
look_at_v2(struct hierarchies *h, const char *dir)
{
	char path[PATH_MAX];
	HR_BUF(list, 4096);
	int c;

	if ((size_t)snprintf(path, sizeof(path), "%s/cgroup.controllers", dir) >= sizeof(path) ||
	    hr_path_read(path, &list, NULL) < 0)
		return;
	for (c = 0; c < CONTROLLERS; c++)
		/* version 2 freezes without a controller */
		if (c == FREEZER || has_word(hr_buf_str(&list), names[c])) {
			(void)snprintf(h->at[c], sizeof(h->at[c]), "%s", dir);
			h->version[c] = 2;
		}
}

/* Reads /proc/self/mountinfo: "... DIR OPTIONS ... - TYPE SOURCE SUPER". */
static int
look(struct hierarchies *h, struct hr_err *err)
{
	HR_BUF(b, MOUNTINFO_MAX);
	char *line, *next, *rest, *end, dir[PATH_MAX];
	int c, pass;

	if (hr_path_read("/proc/self/mountinfo", &b, err) < 0)
		return -1;
	/* version 2 last, so that it replaces version 1 */
	for (pass = 1; pass <= 2; pass++) {
		HR_FREE char *text = strdup(hr_buf_str(&b));

		if (text == NULL)
			return hr_err_nomem(err);
		for (line = text; *line != '\0'; line = next) {
			next = strchrnul(line, '\n');
			if (*next != '\0')
				*next++ = '\0';
			rest = strstr(line, " - cgroup");
			if (rest == NULL || sscanf(line, "%*s %*s %*s %*s %4095s", dir) != 1 ||
			    strchr(dir, '\\') != NULL)
				continue;
			rest += strlen(" - cgroup");
			if (pass == 2 && *rest == '2')
				look_at_v2(h, dir);
			if (pass == 2 || *rest != ' ' || (end = strrchr(rest, ' ')) == NULL)
				continue;
			for (c = 0; c < CONTROLLERS; c++)
				if (has_word(end, names[c])) {
					(void)snprintf(h->at[c], sizeof(h->at[c]), "%s", dir);
					h->version[c] = 1;
				}
		}
	}
	return 0;
}

static int
put(const char *dir, const char *file, const char *value)
{
	HR_CLOSE int fd = -1;
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -1 : (write(fd, value, strlen(value)) < 0 ? -1 : 0);
}

/* Makes "handrail" and "handrail/NAME" below a hierarchy; *ret: the latter. */
static int
make_group(const char *top, int version, const char *name, const char *controllers,
    char ret[PATH_MAX], struct hr_err *err)
{
	char parent[PATH_MAX];

	if ((size_t)snprintf(parent, sizeof(parent), "%s/" PARENT, top) >= sizeof(parent) ||
	    (size_t)snprintf(ret, PATH_MAX, "%s/" PARENT "/%s", top, name) >= PATH_MAX)
		return hr_err_set(err, HR_E_SYS, "the path of a control group is too long");
	if (version == 2 && *controllers != '\0' &&
	    put(top, "cgroup.subtree_control", controllers) < 0)
		return hr_err_sys(err, errno, "give the controllers%s on in %s", controllers, top);
	if (mkdir(parent, 0755) != 0 && errno != EEXIST)
		return hr_err_sys(err, errno, "make the control group %s", parent);
	if (version == 2 && *controllers != '\0' &&
	    put(parent, "cgroup.subtree_control", controllers) < 0)
		return hr_err_sys(
		    err, errno, "give the controllers%s on in %s", controllers, parent);
	/* a leftover group has limits of its own */
	(void)rmdir(ret);
	if (mkdir(ret, 0755) != 0)
		return hr_err_sys(err, errno, "make the control group %s%s", ret,
		    errno == EEXIST ? ", which a box that runs has" : "");
	return 0;
}

static int
limit_in(const char *dir, const char *file, const char *value, struct hr_err *err)
{
	return put(dir, file, value) == 0
		   ? 0
		   : hr_err_sys(err, errno, "set the limit %s to %s in %s", file, value, dir);
}

static int
set_limit(
    enum controller c, int version, const char *dir, const struct box_limits *l, struct hr_err *err)
{
	char value[64];
	long long quota = (long long)(l->cpus * CPU_PERIOD_US);

	switch (c) {
	case MEMORY:
		(void)snprintf(value, sizeof(value), "%lld", (long long)l->memory_bytes);
		if (limit_in(
			dir, version == 2 ? "memory.max" : "memory.limit_in_bytes", value, err) < 0)
			return -1;
		/* memory that is swapped out counts; a kernel without swap has no such file */
		return put(dir, version == 2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes",
			   version == 2 ? "0" : value) == 0 ||
			       errno == ENOENT
			   ? 0
			   : hr_err_sys(err, errno, "limit swap in %s", dir);
	case PROCESSES:
		(void)snprintf(value, sizeof(value), "%lld", (long long)l->processes);
		return limit_in(dir, "pids.max", value, err);
	case CPUS:
		(void)snprintf(
		    value, sizeof(value), version == 2 ? "%lld %d" : "%lld", quota, CPU_PERIOD_US);
		return limit_in(dir, version == 2 ? "cpu.max" : "cpu.cfs_quota_us", value, err);
	default: return 0;
	}
}

static int
join(const char *dir, pid_t pid, struct hr_err *err)
{
	char value[24];

	(void)snprintf(value, sizeof(value), "%ld", (long)pid);
	return put(dir, "cgroup.procs", value) == 0
		   ? 0
		   : hr_err_sys(err, errno, "enter the control group %s", dir);
}

static int
make_all(const struct box_spec *s, const struct hierarchies *h, const bool wanted[CONTROLLERS],
    pid_t pid, struct hr_err *err)
{
	char dir[PATH_MAX], controllers[64] = "";
	int c;

	for (c = 0; c < FREEZER; c++)
		if (wanted[c] && h->version[c] == 2)
			(void)snprintf(controllers + strlen(controllers),
			    sizeof(controllers) - strlen(controllers), " +%s", names[c]);
	for (c = 0; c < CONTROLLERS; c++) {
		if (!wanted[c])
			continue;
		if (make_group(h->at[c], h->version[c], s->name,
			h->version[c] == 2 ? controllers : "", dir, err) < 0 ||
		    set_limit((enum controller)c, h->version[c], dir, &s->limits, err) < 0 ||
		    join(dir, pid, err) < 0)
			return -1;
	}
	return 0;
}

int
box_group_make(const struct box_spec *s, pid_t pid, struct hr_err *err)
{
	const bool limited[CONTROLLERS] = {
	    s->limits.memory_bytes > 0, s->limits.processes > 0, s->limits.cpus > 0, false};
	bool wanted[CONTROLLERS];
	HR_FREE struct hierarchies *h = calloc(1, sizeof(*h));
	int c;

	if (h == NULL)
		return hr_err_nomem(err);
	if (look(h, err) < 0)
		return -1;
	for (c = 0; c < CONTROLLERS; c++) {
		wanted[c] = limited[c] || (c == FREEZER && geteuid() == 0 && h->at[c][0] != '\0');
		if (limited[c] && h->at[c][0] == '\0')
			return hr_err_set(err, HR_E_UNSUPPORTED,
			    "the limit of %s cannot be enforced: this machine has no such control "
			    "group",
			    names[c]);
		if (limited[c] && geteuid() != 0)
			return hr_err_set(err, HR_E_UNSUPPORTED,
			    "the limit of %s cannot be enforced: only root makes control groups "
			    "here",
			    names[c]);
	}
	return make_all(s, h, wanted, pid, err);
}

void
box_group_remove(const char *name)
{
	HR_FREE struct hierarchies *h = calloc(1, sizeof(*h));
	char dir[PATH_MAX];
	int c;

	if (h == NULL || look(h, NULL) < 0)
		return;
	for (c = 0; c < CONTROLLERS; c++)
		if (h->at[c][0] != '\0' && (size_t)snprintf(dir, sizeof(dir), "%s/" PARENT "/%s",
					       h->at[c], name) < sizeof(dir))
			(void)rmdir(dir);
}
