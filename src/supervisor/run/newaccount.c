/* Adds an account by two lines and a home directory, and changes its group. The line in "passwd"
 * comes last: with it the account is complete. */
#include "config.h"

#include "supervisor/run/newaccount.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/log.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "base/text/text.h"

#define GROUP "sudo"
#define FILE_MAX (1u << 20)

/* Returns false if there is such a file, or if that cannot be known. */
static bool
is_missing(const char *etc, const char *name)
{
	HR_FREE char *path = hr_path_join(etc, name);

	return path != NULL && access(path, F_OK) != 0 && errno == ENOENT;
}

static int
read_in(const char *etc, const char *name, struct hr_buf *b, struct hr_err *err)
{
	HR_FREE char *path = hr_path_join(etc, name);

	return path != NULL ? hr_path_read(path, b, err) : hr_err_nomem(err);
}

static int
write_in(const char *etc, const char *name, const struct hr_buf *b, struct hr_err *err)
{
	HR_FREE char *path = hr_path_join(etc, name);

	if (path == NULL || hr_buf_check(b, NULL) < 0)
		return hr_err_nomem(err);
	return hr_path_write(path, hr_buf_str(b), b->len, 0644, err);
}

/* Appends the text of "group" with a member more to *ret. Returns false if there is no such
 * group. */
static bool
add_member(struct hr_buf *ret, const char *text, const char *name)
{
	static const char line[] = "\n" GROUP ":";
	const char *at = strncmp(text, line + 1, strlen(line) - 1) == 0 ? text : strstr(text, line);
	const char *end;

	if (at == NULL)
		return false;
	end = strchrnul(at + 1, '\n');
	hr_buf_add(ret, text, (size_t)(end - text));
	hr_buf_addf(ret, "%s%s%s", end[-1] == ':' ? "" : ",", name, end);
	return true;
}

struct owner {
	uid_t uid;
	gid_t gid;
};

static int
own(int dirfd, const char *name, const struct stat *st, void *arg)
{
	const struct owner *o = arg;

	(void)st;
	return fchownat(dirfd, name, o->uid, o->gid, AT_SYMLINK_NOFOLLOW);
}

/* Copies a directory that has only files of mode 0644, as "skel" has, which takes less time than
 * cp(1). Returns false if cp(1) must copy it. */
static bool
copy_plain(const char *from, const char *to)
{
	HR_CLOSEDIR DIR *d = opendir(from);
	const struct dirent *e;
	struct stat st;

	while (d != NULL && (e = hr_dir_next(d)) != NULL) {
		HR_BUF(text, FILE_MAX);

		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    st.st_mode != (S_IFREG | 0644) || read_in(from, e->d_name, &text, NULL) < 0 ||
		    write_in(to, e->d_name, &text, NULL) < 0)
			return false;
	}
	return d != NULL && errno == 0;
}

/* Makes the home directory with the files of "skel", if that exists; whole, since this process may
 * be killed. A directory that is there stays as it is: it may be a volume of the host's. */
static int
make_home(const char *etc, const char *home, struct owner o, struct hr_err *err)
{
	HR_FREE char *skel = hr_path_join(etc, "skel");
	HR_FREE char *fresh = NULL;
	const char *argv[] = {"cp", "-rT", "--", skel, NULL, NULL};
	char said[160] = "";
	struct stat st;
	int status = 0;

	if (lstat(home, &st) == 0)
		return 0;
	if (skel == NULL)
		return hr_err_nomem(err);
	if (hr_text_setf(&fresh, err, "%s~new", home) < 0)
		return -1;
	argv[4] = fresh;
	if (hr_path_remove(fresh, err) < 0)
		return -1;
	if (mkdir(fresh, 0755) != 0)
		return hr_err_sys(err, errno, "create %s", fresh);
	if (access(skel, F_OK) == 0 && !copy_plain(skel, fresh))
		status = hr_spawn_wait(argv, said, sizeof(said), err);
	if (status != 0)
		return status < 0 ? -1 : hr_err_set(err, HR_E_SYS, "copy %s: %s", skel, said);
	return hr_path_walk(fresh, own, &o, NULL) == 0 && rename(fresh, home) == 0
		   ? 0
		   : hr_err_sys(err, errno, "make %s", home);
}

/* Returns true for the names that useradd takes; it decides about others itself. */
static bool
is_plain(const char *name)
{
	const char *p = name;

	if (!(*p >= 'a' && *p <= 'z') && *p != '_')
		return false;
	while ((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || *p == '_' || *p == '-')
		p++;
	return *p == '\0';
}

bool
hr_newaccount_has_group(const char *name)
{
	return strcmp(name, "user") == 0;
}

int
hr_newaccount_add(
    const char *etc, const char *homes, const char *name, uid_t uid, struct hr_err *err)
{
	HR_FREE char *home = hr_path_join(homes, name);
	HR_BUF(accounts, FILE_MAX);
	HR_BUF(groups, FILE_MAX);
	HR_BUF(more, FILE_MAX);
	struct owner o = {uid, 0};

	if (home == NULL)
		return hr_err_nomem(err);
	if (geteuid() != 0 || !is_plain(name) || !is_missing(etc, "shadow") ||
	    !is_missing(etc, "gshadow") || read_in(etc, "passwd", &accounts, NULL) < 0 ||
	    read_in(etc, "group", &groups, NULL) < 0 ||
	    !add_member(&more, hr_buf_str(&groups), name))
		return 0;
	if (hr_newaccount_has_group(name)) {
		if (getgrgid((gid_t)uid) != NULL || getgrnam(name) != NULL)
			return 0;
		o.gid = (gid_t)uid;
		if (more.len > 0 && more.p[more.len - 1] != '\n')
			hr_buf_addc(&more, '\n');
		hr_buf_addf(&more, "%s:x:%lu:\n", name, (unsigned long)uid);
	}
	if (accounts.len > 0 && accounts.p[accounts.len - 1] != '\n')
		hr_buf_addc(&accounts, '\n');
	/* no password fits "!" */
	hr_buf_addf(&accounts, "%s:!:%lu:%lu::%s:/bin/bash\n", name, (unsigned long)uid,
	    (unsigned long)o.gid, home);
	return make_home(etc, home, o, err) < 0 || write_in(etc, "group", &more, err) < 0 ||
		       write_in(etc, "passwd", &accounts, err) < 0
		   ? -1
		   : 1;
}

/* Returns the field of that number of a line of "passwd" or "group", with its bytes, or NULL if the
 * line has fewer fields. */
static const char *
field_of(const char *line, int number, size_t *ret_len)
{
	for (; number > 0; number--) {
		line += strcspn(line, ":\n");
		if (*line++ != ':')
			return NULL;
	}
	*ret_len = strcspn(line, ":\n");
	return line;
}

/* Returns the first line whose field of that number is `value`, or NULL. */
static const char *
line_with(const char *text, int number, const char *value)
{
	const char *line = text, *at;
	size_t n;

	while (*line != '\0') {
		at = field_of(line, number, &n);
		if (at != NULL && n == strlen(value) && memcmp(at, value, n) == 0)
			return line;
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return NULL;
}

/* Adds a group of that number if there is none. Its name is the account's, if that is free. */
static int
add_group(const char *etc, const char *name, const char *number, struct hr_err *err)
{
	HR_BUF(groups, FILE_MAX);

	if (!is_missing(etc, "group") && read_in(etc, "group", &groups, err) < 0)
		return -1;
	if (line_with(hr_buf_str(&groups), 2, number) != NULL)
		return 0;
	if (groups.len > 0 && groups.p[groups.len - 1] != '\n')
		hr_buf_addc(&groups, '\n');
	if (line_with(hr_buf_str(&groups), 0, name) != NULL)
		hr_buf_addf(&groups, "%s-%s:x:%s:\n", name, number, number);
	else
		hr_buf_addf(&groups, "%s:x:%s:\n", name, number);
	return write_in(etc, "group", &groups, err);
}

struct regroup {
	struct owner from;
	gid_t to;
	unsigned failed;
	int sys; /* errno of the first failure */
};

static int
regroup(int dirfd, const char *name, const struct stat *st, void *arg)
{
	struct regroup *g = arg;

	if (st->st_uid == g->from.uid && st->st_gid == g->from.gid &&
	    fchownat(dirfd, name, (uid_t)-1, g->to, AT_SYMLINK_NOFOLLOW) != 0 && g->failed++ == 0)
		g->sys = errno;
	return 0;
}

int
hr_newaccount_set_group(const char *etc, const char *name, gid_t gid, struct hr_err *err)
{
	struct regroup g = {.to = gid};
	HR_FREE char *home = NULL;
	HR_BUF(accounts, FILE_MAX);
	HR_BUF(more, FILE_MAX);
	const char *line, *uid, *group, *dir;
	size_t n, group_len;
	char number[24];

	(void)snprintf(number, sizeof(number), "%lu", (unsigned long)gid);
	if (add_group(etc, name, number, err) < 0 || read_in(etc, "passwd", &accounts, err) < 0)
		return -1;
	if ((line = line_with(hr_buf_str(&accounts), 0, name)) == NULL ||
	    (uid = field_of(line, 2, &n)) == NULL ||
	    (group = field_of(line, 3, &group_len)) == NULL ||
	    (dir = field_of(line, 5, &n)) == NULL)
		return hr_err_set(err, HR_E_NOTFOUND,
		    "the account %s cannot get group %s: %s/passwd has no line for it", name,
		    number, etc);
	if (group_len == strlen(number) && memcmp(group, number, group_len) == 0)
		return 0;
	g.from = (struct owner){(uid_t)strtoul(uid, NULL, 10), (gid_t)strtoul(group, NULL, 10)};
	home = strndup(dir, n);
	if (home == NULL)
		return hr_err_nomem(err);
	if (n > 1)
		(void)hr_path_walk(home, regroup, &g, NULL);
	if (g.failed > 0)
		hr_log(HR_LOG_WARNING, "%s: %u files keep their group (%s)", home, g.failed,
		    strerror(g.sys));
	hr_buf_add(&more, accounts.p, (size_t)(group - accounts.p));
	hr_buf_adds(&more, number);
	group += group_len;
	hr_buf_add(&more, group, accounts.len - (size_t)(group - accounts.p));
	return write_in(etc, "passwd", &more, err);
}
