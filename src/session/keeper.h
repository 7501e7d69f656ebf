/* hr_keeper: runs the process around one shell: its terminal, its FIFOs and the socket it
 * serves. */
#ifndef HR_SESSION_KEEPER_H
#define HR_SESSION_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct hr_confine;

struct hr_keeper_config {
	const char *name;
	const char *user; /* the shell's user */
	bool change_user; /* true: take the user's identity */
	const char *work_dir;
	const char *state_dir; /* directory for session/statedir.h */
	const char *journal;   /* directory (proto/journal.h); NULL: none */
	bool journal_sync;
	const char *bash;
	const char *line_module; /* builtin for bash (line_module.c); NULL: none */
	int64_t no_change_ms;
	const char *const *init_commands; /* commands run before readiness; they must succeed */
	size_t n_init_commands;
	size_t output_log;          /* bytes of output to retain for viewers */
	const char *network_log;    /* file for session/netlog.h; NULL: none */
	struct hr_confine *confine; /* limits of the shell */
	bool is_static;             /* serve_fd is one connection, not a listener */
	int notify_fd;              /* -1: none */
	int serve_fd;
	int keep_in, keep_out; /* descriptors of session/kept.h; -1: none */
};

/* Serves until SIGTERM, SIGINT or, if static, the one answer. Returns 0 after a requested end. */
int hr_keeper_run(const struct hr_keeper_config *config, struct hr_err *err);

#endif
