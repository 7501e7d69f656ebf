/* Finds the rules above a directory, by gitignore(5): core.excludesFile, info/exclude, and
 * .gitignore of the directories from the repository's top on. Everything is read with the caller's
 * rights; inside the repository no link is followed. */
#include "config.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/process/pid.h"
#include "files/place/reach.h"
#include "files/search/search.h"

#define CONFIG_MAX (1u << 20)

int
hr_ignore_read(int dir, const char *name, struct hr_buf *text)
{
	const int links = *name == '/' ? 0 : O_NOFOLLOW;
	HR_CLOSE int fd =
	    hr_reach_check(openat(dir, name, O_RDONLY | links | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	return hr_path_read_fd(fd, name, text, NULL);
}

/* ---- info/exclude ---- */

/* Opens the directory in a file's first line after `words`, relative to `base`. Returns -1 if there
 * is none. */
static int
open_named(int base, const char *file, const char *words)
{
	HR_BUF(text, PATH_MAX);
	const size_t n = strlen(words);

	if (hr_ignore_read(base, file, &text) < 0 || strncmp(hr_buf_str(&text), words, n) != 0)
		return -1;
	text.p[n + strcspn(text.p + n, "\r\n")] = '\0';
	return hr_reach_open(base, text.p + n, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
}

/* Reads info/exclude. The .git of a work tree or a submodule is a file that names git's directory.
 * A work tree's directory in turn names the common one of all work trees. */
void
hr_ignore_exclude(int dir, struct hr_buf *text)
{
	HR_CLOSE int git = -1;
	HR_CLOSE int common = -1;

	git = openat(dir, ".git", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (git < 0)
		git = open_named(dir, ".git", "gitdir: ");
	if (git < 0)
		return;
	common = open_named(git, "commondir", "");
	(void)hr_ignore_read(common >= 0 ? common : git, "info/exclude", text);
}

/* ---- core.excludesFile ---- */

/* Reads a value as git does: quotes and backslashes, a comment at the end. */
static void
put_value(struct hr_buf *b, const char *p)
{
	bool quoted = false;
	size_t end = 0;

	hr_buf_reset(b);
	for (p += strspn(p, " \t"); *p != '\0' && (quoted || (*p != '#' && *p != ';')); p++) {
		if (*p == '"') {
			quoted = !quoted;
			continue;
		}
		if (*p == '\\' && p[1] != '\0')
			p++;
		hr_buf_addc(b, *p);
		if (quoted || strchr(" \t\r", *p) == NULL)
			end = b->len;
	}
	b->len = end;
	hr_buf_addc(b, '\0');
}

/* Finds the value of core.excludesFile in one settings file; included files are not read. */
static void
read_excludes_file(int dir, const char *file, struct hr_buf *value)
{
	HR_BUF(text, CONFIG_MAX);
	bool core = false;
	char *p, *next;

	if (hr_ignore_read(dir, file, &text) < 0)
		return;
	for (p = text.p; p != NULL; p = next) {
		next = strchr(p, '\n');
		if (next != NULL)
			*next++ = '\0';
		p += strspn(p, " \t");
		if (*p == '[') {
			core = strncasecmp(p, "[core]", 6) == 0;
			if (!core)
				continue;
			p += 6 + strspn(p + 6, " \t");
		}
		if (!core || strncasecmp(p, "excludesfile", 12) != 0)
			continue;
		p += 12 + strspn(p + 12, " \t");
		if (*p == '=')
			put_value(value, p + 1);
	}
}

static void
read_global(struct hr_ignore_above *a, int repo, const struct hr_search *s)
{
	HR_BUF(config, PATH_MAX);
	HR_BUF(path, PATH_MAX);
	HR_BUF(value, PATH_MAX);

	if (s->config_home != NULL)
		hr_buf_adds(&config, s->config_home);
	else if (s->home != NULL)
		hr_buf_addf(&config, "%s/.config", s->home);
	read_excludes_file(AT_FDCWD, "/etc/gitconfig", &value);
	if (config.len > 0) {
		hr_buf_addf(&path, "%s/git/config", config.p);
		read_excludes_file(AT_FDCWD, hr_buf_str(&path), &value);
	}
	hr_buf_reset(&path);
	if (s->home != NULL) {
		hr_buf_addf(&path, "%s/.gitconfig", s->home);
		read_excludes_file(AT_FDCWD, hr_buf_str(&path), &value);
	}
	read_excludes_file(repo, ".git/config", &value);
	hr_buf_reset(&path);
	if (value.len == 0 && config.len > 0)
		hr_buf_addf(&path, "%s/git/ignore", config.p);
	else if (strncmp(hr_buf_str(&value), "~/", 2) == 0 && s->home != NULL)
		hr_buf_addf(&path, "%s%s", s->home, value.p + 1);
	else if (*hr_buf_str(&value) == '/')
		hr_buf_adds(&path, value.p);
	if (path.len > 0 && hr_ignore_read(AT_FDCWD, path.p, &a->global) < 0) {
		a->large += a->global.fail != HR_OK;
		hr_buf_reset(&a->global);
	}
}

/* ---- all of it ---- */

/* Adds rules on top of the existing ones. */
static void
add(struct hr_ignore_above *a, const char *base, const struct hr_buf *text)
{
	struct hr_ignore *more;

	a->large += text->fail != HR_OK;
	if (text->fail != HR_OK || text->len == 0 || a->n == sizeof(a->v) / sizeof(a->v[0]))
		return;
	more = hr_ignore_new(a->n > 0 ? a->v[a->n - 1] : NULL, base, text->p, text->len);
	if (more == NULL)
		return;
	a->v[a->n++] = more;
	a->bytes += text->len;
}

static void
drop(struct hr_ignore_above *a)
{
	while (a->n > 0)
		hr_ignore_free(a->v[--a->n]);
	a->bytes = 0;
}

static void
add_file(struct hr_ignore_above *a, int dir, const char *base)
{
	HR_BUF(text, hr_ignore_room(a->bytes));

	(void)hr_ignore_read(dir, ".gitignore", &text);
	add(a, base, &text);
}

static void
add_exclude(struct hr_ignore_above *a, int repo)
{
	HR_BUF(text, hr_ignore_room(a->bytes));

	hr_ignore_exclude(repo, &text);
	add(a, "", &text);
}

/* Adds rules from the repository's top to the directory, whose .gitignore the walk reads. */
static void
add_between(struct hr_ignore_above *a, int repo, const struct hr_search *s)
{
	HR_CLOSE int dir = fcntl(repo, F_DUPFD_CLOEXEC, 3);
	HR_BUF(base, PATH_MAX);
	const char *p = hr_buf_str(&a->prefix);
	size_t n;
	int next;

	for (; dir >= 0 && *p != '\0'; p += n + 1) {
		add_file(a, dir, hr_buf_str(&base));
		n = strcspn(p, "/");
		hr_buf_addf(&base, "%s%.*s", base.len > 0 ? "/" : "", (int)n, p);
		if (hr_ignore_matches(
			a->n > 0 ? a->v[a->n - 1] : NULL, hr_buf_str(&base), true, s->until_ms)) {
			drop(a);
			return;
		}
		next = openat(repo, hr_buf_str(&base),
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		hr_fd_close(&dir);
		dir = next;
	}
}

/* Cuts path at the nearest directory that contains .git. Returns false if there is none. */
static bool
cut_at_repository(char *path)
{
	HR_BUF(git, PATH_MAX + 8);
	struct stat st;
	char *slash;

	for (;;) {
		hr_buf_reset(&git);
		hr_buf_addf(&git, "%s/.git", path);
		if (git.fail == HR_OK && lstat(git.p, &st) == 0 && !S_ISLNK(st.st_mode))
			return true;
		slash = strrchr(path, '/');
		if (slash == NULL)
			return false;
		*slash = '\0';
	}
}

void
hr_ignore_find(struct hr_ignore_above *ret, int dir, const struct hr_search *s)
{
	char path[PATH_MAX], all[PATH_MAX];
	HR_CLOSE int repo = -1;
	ssize_t n;

	memset(ret, 0, sizeof(*ret));
	hr_buf_init(&ret->prefix, PATH_MAX);
	hr_buf_init(&ret->global, HR_IGNORE_ALL);
	n = hr_pid_link(path, sizeof(path), "/proc/self/fd/%d", dir);
	if (n <= 0 || path[0] != '/')
		return;
	if (n == 1)
		path[0] = '\0'; /* the path is now the root directory */
	memcpy(all, path, sizeof(all));
	if (!cut_at_repository(path))
		return;
	if (strlen(path) < strlen(all))
		hr_buf_addf(&ret->prefix, "%s/", all + strlen(path) + 1);
	repo = open(path[0] != '\0' ? path : "/", O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	if (repo < 0)
		return;
	read_global(ret, repo, s);
	add(ret, "", &ret->global);
	add_exclude(ret, repo);
	add_between(ret, repo, s);
}

void
hr_ignore_above_done(struct hr_ignore_above *a)
{
	drop(a);
	hr_buf_done(&a->prefix);
	hr_buf_done(&a->global);
}
