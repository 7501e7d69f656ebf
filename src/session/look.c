/* Examines the activity of the shell's process according to the kernel, for cases that the shell
 * does not report. Only names and numbers of /proc are read, not the files they refer to. */
#include "config.h"

#include "session/keeper_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/path.h"
#include "base/process/pid.h"
#include "session/prompt/mount.h"

/* Number of bytes that bash 5.2 reads at once without readline; `read` asks for another number. */
#define PLAIN_READ 1024

/* Returns true if the process is still the bash that was started, not another program. */
static bool
is_bash(const struct hr_keeper *k)
{
	static const char deleted[] = " (deleted)";
	const char *base;
	char link[4096];
	ssize_t n = hr_pid_link(link, sizeof(link), "/proc/%d/exe", (int)k->shell.pid);

	if (n <= 0)
		return false;
	/* the program was upgraded meanwhile */
	if ((size_t)n >= sizeof(deleted) && strcmp(link + n + 1 - sizeof(deleted), deleted) == 0)
		link[n + 1 - (ssize_t)sizeof(deleted)] = '\0';
	base = hr_path_leaf(link);
	return strcmp(base, "bash") == 0 || strcmp(base, hr_path_leaf(k->config->bash)) == 0;
}

bool
look_in_readline(void *arg)
{
	const struct hr_keeper *k = arg;

	return hr_shellproc_raw(&k->shell) && hr_shellproc_foreground(&k->shell, k->shell.pid) &&
	       is_bash(k);
}

static bool
is_select(unsigned long call)
{
#ifdef SYS_pselect6_time64
	if (call == SYS_pselect6_time64)
		return true;
#endif
	return call == SYS_pselect6;
}

bool
look_strays(void *arg)
{
	const struct hr_keeper *k = arg;

	/* the builtin sees that by itself */
	return !k->has_line && hr_root_mount() != k->kept->root;
}

/* Detects that the shell has the terminal and sleeps: readline waits for its input without a time
 * limit, and bash without readline reads as much as fits. */
enum hr_core_seen
look_waits(void *keeper)
{
	struct hr_keeper *k = keeper;
	unsigned long call, arg[5];
	char line[256];

	hr_shellproc_flow(&k->shell);
	if (k->typed.len > 0 || k->shell.pid <= 0 ||
	    !hr_shellproc_foreground(&k->shell, k->shell.pid))
		return HR_SEEN_NOTHING;
	hr_pid_read(k->shell.pid, "syscall", line, sizeof(line));
	if (sscanf(line, "%lu %lx %lx %lx %lx %lx", &call, &arg[0], &arg[1], &arg[2], &arg[3],
		&arg[4]) != 6 ||
	    !is_bash(k))
		return HR_SEEN_NOTHING;
	if (is_select(call) && arg[0] == STDIN_FILENO + 1 && arg[4] == 0)
		return hr_shellproc_raw(&k->shell) ? HR_SEEN_READLINE : HR_SEEN_NOTHING;
	if (call == SYS_read && arg[0] == STDIN_FILENO && arg[2] == PLAIN_READ)
		return hr_shellproc_raw(&k->shell) ? HR_SEEN_NOTHING : HR_SEEN_LINE;
	return HR_SEEN_NOTHING;
}

int64_t
look_works(void *arg)
{
	const struct hr_keeper *k = arg;
	int unread = 0;
	char text[HR_PID_STAT];
	const char *stat;

	if (k->shell.pid <= 0)
		return -1;
	stat = hr_pid_stat(k->shell.pid, text);
	if (*stat == '\0')
		return -1;
	if (*stat != 'R' && *stat != 'D' &&
	    (ioctl(k->shell.master, FIONREAD, &unread) != 0 || unread == 0))
		return -1;
	return (int64_t)(hr_pid_field(stat, HR_PID_USER_TIME) +
			 hr_pid_field(stat, HR_PID_SYSTEM_TIME)) *
	       1000 / sysconf(_SC_CLK_TCK);
}

unsigned
look_hides(const struct hr_keeper *k, pid_t pid)
{
	static const unsigned hides[] = {0, HR_HIDES_OUTPUT, HR_HIDES_ERRORS};
	char terminal[64], link[4096];
	unsigned hidden = 0;
	int fd;

	if (k->shell.master < 0 || ptsname_r(k->shell.master, terminal, sizeof(terminal)) != 0)
		return 0;
	for (fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
		if (hr_pid_link(link, sizeof(link), "/proc/%d/fd/%d", (int)pid, fd) < 0 &&
		    errno != ENOENT) /* the directory of descriptors is not accessible */
			continue;
		if (strcmp(link, terminal) != 0 && strcmp(link, "/dev/tty") != 0)
			hidden |= hides[fd];
	}
	return hidden;
}

/* Returns the reason why the shell can neither continue nor end; NULL: none known. Excludes stop
 * signals, which are undone at once (shell_on_child). */
const char *
look_held(const struct hr_keeper *k)
{
	char line[256], text[HR_PID_STAT];

	if (k->shell.pid <= 0)
		return NULL; /* the next request starts a shell */
	hr_pid_read(k->shell.pid, "wchan", line, sizeof(line));
	if (strstr(line, "freezer") != NULL || strstr(line, "refrigerator") != NULL)
		return "the shell does not answer: its control group is frozen";
	switch (*hr_pid_stat(k->shell.pid, text)) {
	case 't': return "the shell does not answer: a process that traces it holds it";
	case 'T': return "the shell does not answer: it is stopped";
	default: return NULL;
	}
}
