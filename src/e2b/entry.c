#include "config.h"

#include "e2b/entry.h"

#include <ctype.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/path.h"
#include "base/process/pid.h"
#include "base/text/quote.h"

#define XATTRS_MAX 65536 /* the kernel's limit of a list and of a value */

void
hr_e2b_entry_mode(struct hr_buf *b, mode_t mode)
{
	static const char bits[] = "rwxrwxrwx";
	size_t start = b->len;
	int i;

	if (S_ISDIR(mode))
		hr_buf_addc(b, 'd');
	if (S_ISLNK(mode))
		hr_buf_addc(b, 'L');
	if (S_ISBLK(mode) || S_ISCHR(mode))
		hr_buf_addc(b, 'D');
	if (S_ISFIFO(mode))
		hr_buf_addc(b, 'p');
	if (S_ISSOCK(mode))
		hr_buf_addc(b, 'S');
	if ((mode & S_ISUID) != 0)
		hr_buf_addc(b, 'u');
	if ((mode & S_ISGID) != 0)
		hr_buf_addc(b, 'g');
	if (S_ISCHR(mode))
		hr_buf_addc(b, 'c');
	if ((mode & S_ISVTX) != 0)
		hr_buf_addc(b, 't');
	if (b->len == start)
		hr_buf_addc(b, '-');
	for (i = 0; i < 9; i++)
		hr_buf_addc(b, (mode & (0400u >> i)) != 0 ? bits[i] : '-');
}

void
hr_e2b_entry_errno(struct hr_buf *b, int sys)
{
	const char *text = strerror(sys);

	hr_buf_addc(b, (char)tolower((unsigned char)text[0]));
	hr_buf_adds(b, text + 1);
}

static void
put_text(struct hr_buf *b, const char *name, const char *text)
{
	hr_buf_addf(b, ",\"%s\":", name);
	hr_quote_json(b, text, strlen(text));
}

static void
put_owner(struct hr_buf *b, const struct stat *st)
{
	const struct passwd *pw = getpwuid(st->st_uid);
	const struct group *gr;
	char number[16];

	(void)snprintf(number, sizeof(number), "%u", (unsigned)st->st_uid);
	put_text(b, "owner", pw != NULL ? pw->pw_name : number);
	gr = getgrgid(st->st_gid);
	(void)snprintf(number, sizeof(number), "%u", (unsigned)st->st_gid);
	put_text(b, "group", gr != NULL ? gr->gr_name : number);
}

static void
put_time(struct hr_buf *b, const struct timespec *at)
{
	char text[64];
	struct tm tm;

	if (gmtime_r(&at->tv_sec, &tm) == NULL ||
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
		return;
	hr_buf_addf(b, ",\"modifiedTime\":\"%s", text);
	if (at->tv_nsec != 0)
		hr_buf_addf(b, ".%09ld", at->tv_nsec);
	hr_buf_adds(b, "Z\"");
}

/* Appends the metadata of a file, which is none on a file system without extended attributes. */
static void
put_metadata(struct hr_buf *b, const char *proc)
{
	HR_FREE char *names = malloc(XATTRS_MAX);
	HR_FREE char *value = malloc(XATTRS_MAX);
	ssize_t len = names != NULL && value != NULL ? listxattr(proc, names, XATTRS_MAX) : -1, n;
	const char *name, *key;
	bool some = false;

	if (names == NULL || value == NULL)
		b->fail = HR_E_NOMEM;
	for (name = names; len > 0 && name < names + len; name += strlen(name) + 1) {
		if (strncmp(name, HR_E2B_XATTR, strlen(HR_E2B_XATTR)) != 0)
			continue;
		n = getxattr(proc, name, value, XATTRS_MAX);
		if (n < 0)
			continue;
		key = name + strlen(HR_E2B_XATTR);
		hr_buf_adds(b, some ? "," : ",\"metadata\":{");
		hr_quote_json(b, key, strlen(key));
		hr_buf_addc(b, ':');
		hr_quote_json(b, value, (size_t)n);
		some = true;
	}
	if (some)
		hr_buf_addc(b, '}');
}

int
hr_e2b_entry_put(struct hr_buf *b, const char *path, int fd, int target)
{
	const char *name = path[1] != '\0' ? hr_path_leaf(path) : path;
	char proc[64], way[PATH_MAX];
	struct stat own, st;

	if (fstat(fd, &own) < 0)
		return -1;
	st = own;
	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", target >= 0 ? target : fd);
	if (S_ISLNK(own.st_mode) && target >= 0 && fstat(target, &st) < 0)
		return -1;
	hr_buf_adds(b, "{\"name\":");
	hr_quote_json(b, name, strlen(name));
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
		hr_buf_addf(
		    b, ",\"type\":\"FILE_TYPE_%s\"", S_ISDIR(st.st_mode) ? "DIRECTORY" : "FILE");
	put_text(b, "path", path);
	if (own.st_size != 0)
		hr_buf_addf(b, ",\"size\":\"%lld\"", (long long)own.st_size);
	if (!S_ISLNK(st.st_mode) && (st.st_mode & 0777) != 0)
		hr_buf_addf(b, ",\"mode\":%u", (unsigned)st.st_mode & 0777);
	hr_buf_adds(b, ",\"permissions\":\"");
	hr_e2b_entry_mode(b, own.st_mode);
	hr_buf_addc(b, '"');
	put_owner(b, &own);
	put_time(b, &own.st_mtim);
	if (S_ISLNK(own.st_mode))
		put_text(b, "symlinkTarget",
		    target >= 0 && hr_pid_link(way, sizeof(way), "%s", proc) > 0 ? way : path);
	if (!S_ISLNK(st.st_mode))
		put_metadata(b, proc);
	hr_buf_addc(b, '}');
	return 0;
}
