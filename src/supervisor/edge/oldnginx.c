/* Orphans of a predecessor are not our children: they are found by their process group. */
#include "config.h"

#include "supervisor/edge/oldnginx.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/path.h"

static bool
read_proc(const char *pid, const char *file, struct hr_buf *b)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%.20s/%s", pid, file);
	hr_buf_reset(b);
	return hr_path_read(path, b, NULL) == 0 && b->len > 0;
}

/* Field 5 of /proc/PID/stat; the name before it is in parentheses and may hold any byte. */
static pid_t
group_of(const char *pid, struct hr_buf *b)
{
	const char *at;
	int field;

	at = read_proc(pid, "stat", b) ? strrchr(b->p, ')') : NULL;
	for (field = 2; at != NULL && field < 5; field++)
		at = strchr(at + 1, ' ');
	return at != NULL ? (pid_t)strtol(at, NULL, 10) : 0;
}

void
hr_oldnginx_quit(pid_t master)
{
	static const char title[] = "nginx: ";
	DIR *d = opendir("/proc");
	struct dirent *e;
	struct hr_buf b;

	hr_buf_init(&b, 1 << 20);
	while (d != NULL && (e = readdir(d)) != NULL) {
		if (!isdigit((unsigned char)e->d_name[0]) || group_of(e->d_name, &b) != master ||
		    !read_proc(e->d_name, "cmdline", &b) || b.len < sizeof(title) ||
		    memcmp(b.p, title, sizeof(title) - 1) != 0)
			continue;
		(void)kill((pid_t)strtol(e->d_name, NULL, 10), SIGQUIT);
	}
	if (d != NULL)
		(void)closedir(d);
	hr_buf_done(&b);
}
