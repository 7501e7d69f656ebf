/* Builds the environment after `su USER -`, without su: HOME and SHELL always, USER and LOGNAME
 * unless root; the rest is kept. */
#include "config.h"

#include "session/environ.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session/shellproc.h"

/* handrail's own variables (SESSION_API_KEY should be removed already), and those of another
 * terminal or shell */
static const char *const removed[] = {"SESSION_API_KEY=", "NOTIFY_SOCKET=", "LISTEN_FDS=",
    "LISTEN_PID=", "LISTEN_FDNAMES=", "WATCHDOG_USEC=", "WATCHDOG_PID=", "INVOCATION_ID=",
    "JOURNAL_STREAM=", "MAINPID=", "TMUX=", "TMUX_PANE=", "TERM=", "TERM_PROGRAM=",
    "TERM_PROGRAM_VERSION=", "COLUMNS=", "LINES=", "OLDPWD=", "PWD=", "SHLVL=", "_="};
/* These change how bash starts, or how it shows its prompt. */
static const char *const unsettling[] = {
    "BASHOPTS=", "BASH_ENV=", "BASH_XTRACEFD=", "POSIXLY_CORRECT=", "PROMPT_COMMAND=", "PS0=",
    "PS1=", "PS2=", "SHELLOPTS=", "__hr_a=", "__hr_b=", "__hr_n=", "__hr_p="};

static bool
is_one_of(const char *entry, const char *const *list, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (strncmp(entry, list[i], strlen(list[i])) == 0)
			return true;
	}
	return false;
}

static bool
is_removed(const char *entry)
{
	return strncmp(entry, "HANDRAIL_", 9) == 0 ||
	       is_one_of(entry, removed, sizeof(removed) / sizeof(removed[0])) ||
	       is_one_of(entry, unsettling, sizeof(unsettling) / sizeof(unsettling[0]));
}

static bool
has_terminfo(const char *name)
{
	static const char *const dirs[] = {
	    "/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo", "/usr/lib/terminfo"};
	char path[96];
	size_t i;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%c/%s", dirs[i], name[0], name);
		if (access(path, R_OK) == 0)
			return true;
	}
	return false;
}

/* Chooses tmux's terminal type, which the terminal model implements. */
static const char *
choose_term(void)
{
	static const char *const names[] = {"tmux-256color", "tmux", "screen-256color", "screen"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (has_terminfo(names[i]))
			return names[i];
	}
	return "vt100";
}

int
hr_environ_for_shell(struct hr_strv *list, char *const *ours, const struct hr_shell_user *user,
    const char *bash, struct hr_err *err)
{
	for (; *ours != NULL; ours++)
		if (!is_removed(*ours))
			hr_strv_add(list, *ours);
	hr_strv_set_envf(list, "TERM=%s", choose_term());
	if (user->login) {
		hr_strv_set_envf(list, "HOME=%s", user->home);
		hr_strv_set_envf(list, "SHELL=%s", bash);
	}
	if (user->login && user->uid != 0) {
		hr_strv_set_envf(list, "USER=%s", user->name);
		hr_strv_set_envf(list, "LOGNAME=%s", user->name);
	}
	return list->failed ? hr_err_nomem(err) : 0;
}
