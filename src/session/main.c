/* handrail-session: keeps one shell. handraild starts it (proto/PROTOCOL); people do not. */
#include "config.h"

#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/log.h"
#include "session/confine.h"
#include "session/keeper.h"

#define NOTIFY_FD 3
#define SERVE_FD 4
#define KEEP_IN_FD 5
#define KEEP_OUT_FD 6
#define MAX_INIT 16
#define OPT_SYNC 300 /* options that are not in the list */
#define OPT_LINE 301

const char *argp_program_version = "handrail-session (" PACKAGE_NAME ") " PACKAGE_VERSION;

enum {
	OPT_MEMORY = 256,
	OPT_PROCESSES,
	OPT_FILES,
	OPT_NO_PRIVILEGES,
	OPT_OOM,
	OPT_OUTPUT_LOG,
	OPT_NETWORK_LOG
};

static const struct argp_option options[] = {
    {"name", 'n', "NAME", 0, "name of the session, for the log", 0},
    {"user", 'u', "NAME", 0, "account of the shell", 0},
    {"stay", 's', NULL, 0, "do not change to that account", 0},
    {"work-dir", 'w', "DIR", 0, "directory the shell starts in", 0},
    {"state-dir", 'd', "DIR", 0, "directory for the shell's private files", 0},
    {"journal", 'j', "DIR", 0, "journal, to record started commands", 0},
    {"journal-sync", OPT_SYNC, NULL, 0, "and wait for the disk", 0},
    {"no-change-timeout", 't', "SECONDS", 0, "no-output clock", 0},
    {"init-command", 'i', "TEXT", 0, "run before readiness; must succeed (repeatable)", 0},
    {"static", 'S', NULL, 0, "descriptor 4 is one connection: serve it and end", 0},
    {"shell", 'b', "PATH", 0, "the bash to run", 0},
    {"line-module", OPT_LINE, "PATH", 0, "builtin for it that reads commands from handrail", 0},
    {"cgroup", 'g', "DIR", 0, "a control group that the shell joins (repeatable)", 0},
    {"limit-memory", OPT_MEMORY, "BYTES", 0, "address space of each of its processes", 0},
    {"limit-processes", OPT_PROCESSES, "N", 0, "processes of its user", 0},
    {"limit-files", OPT_FILES, "N", 0, "open files of each of its processes", 0},
    {"output-log", OPT_OUTPUT_LOG, "BYTES", 0, "output kept for viewers", 0},
    {"network-log", OPT_NETWORK_LOG, "FILE", 0, "sentences about refused connections", 0},
    {"oom-score", OPT_OOM, "N", 0, "oom_score_adj of the shell, up to 1000", 0},
    {"no-new-privileges", OPT_NO_PRIVILEGES, NULL, 0, "no program gains any: no sudo", 0},
    {0},
};

struct arguments {
	struct hr_keeper_config config;
	const char *init[MAX_INIT];
	struct hr_confine confine;
};

static uint64_t
parse_limit(const char *arg, struct argp_state *state)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(arg, &end, 10);
	if (end == arg || *end != '\0' || errno != 0 || arg[0] == '-' || n == 0)
		argp_error(state, "\"%s\" is not a limit", arg);
	return n;
}

static error_t
parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;
	struct hr_keeper_config *c = &a->config;
	char *end;
	long v;

	switch (key) {
	case 'n': c->name = arg; break;
	case 'u': c->user = arg; break;
	case 's': c->change_user = false; break;
	case 'w': c->work_dir = arg; break;
	case 'd': c->state_dir = arg; break;
	case 'j': c->journal = arg; break;
	case OPT_SYNC: c->journal_sync = true; break;
	case 'S': c->is_static = true; break;
	case 'b': c->bash = arg; break;
	case OPT_LINE: c->line_module = arg; break;
	case 'g':
		if (a->confine.ngroups == HR_CONFINE_GROUPS)
			argp_error(state, "more than %d --cgroup", HR_CONFINE_GROUPS);
		a->confine.groups[a->confine.ngroups++] = arg;
		break;
	case OPT_MEMORY: a->confine.memory = parse_limit(arg, state); break;
	case OPT_PROCESSES: a->confine.processes = parse_limit(arg, state); break;
	case OPT_FILES: a->confine.files = parse_limit(arg, state); break;
	case OPT_NO_PRIVILEGES: a->confine.no_new_privileges = true; break;
	case OPT_OUTPUT_LOG: c->output_log = parse_limit(arg, state); break;
	case OPT_NETWORK_LOG: c->network_log = arg; break;
	case OPT_OOM:
		if (parse_limit(arg, state) > 1000)
			argp_error(state, "--oom-score is more than 1000");
		a->confine.oom_score = (unsigned)parse_limit(arg, state);
		break;
	case 't':
		errno = 0;
		v = strtol(arg, &end, 10);
		if (end == arg || *end != '\0' || errno != 0 || v < 1 || v > 1000000000)
			argp_error(state, "--no-change-timeout needs a whole number of seconds");
		c->no_change_ms = v * 1000;
		break;
	case 'i':
		if (c->n_init_commands == MAX_INIT)
			argp_error(state, "more than %d --init-command", MAX_INIT);
		a->init[c->n_init_commands++] = arg;
		break;
	case ARGP_KEY_END:
		if (c->work_dir == NULL || c->state_dir == NULL || c->user == NULL)
			argp_error(state, "--user, --work-dir and --state-dir are needed");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	static const struct argp argp = {options, parse, NULL,
	    "Keeps one interactive bash on a pseudo-terminal and serves it on a Unix socket. "
	    "handraild starts it; see handrail-session(8).",
	    NULL, NULL, NULL};
	struct arguments a = {.config = {.name = "default",
				  .change_user = true,
				  .bash = HR_BASH_PATH,
				  .no_change_ms = 10000,
				  .notify_fd = NOTIFY_FD,
				  .serve_fd = SERVE_FD,
				  .keep_in = KEEP_IN_FD,
				  .keep_out = KEEP_OUT_FD}};
	struct hr_err err = {0};

	a.config.init_commands = a.init;
	a.config.confine = &a.confine;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	hr_log_setup(a.config.name, HR_LOG_CHILD, HR_LOG_INFO);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN); /* a file over its size limit must be an ordinary error */
	/* Setting modes of the terminal, which belongs to the shell, must not stop this process. */
	(void)signal(SIGTTOU, SIG_IGN);
	if (hr_fd_cloexec(SERVE_FD, &err) < 0) {
		hr_log(HR_LOG_ERROR, "descriptor %d is not open; handraild starts this program",
		    SERVE_FD);
		return 2;
	}
	if (hr_fd_cloexec(NOTIFY_FD, NULL) < 0)
		a.config.notify_fd = -1;
	if (a.config.is_static || hr_fd_cloexec(KEEP_IN_FD, NULL) < 0 ||
	    hr_fd_cloexec(KEEP_OUT_FD, NULL) < 0)
		a.config.keep_in = a.config.keep_out = -1;
	if (hr_keeper_run(&a.config, &err) < 0) {
		hr_log(HR_LOG_ERROR, "%s", err.msg);
		return 1;
	}
	return 0;
}
