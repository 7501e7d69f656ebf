/* Internals of hr_core: core.c moves the state, answer.c builds the observations. */
#ifndef HR_SESSION_CORE_INT_H
#define HR_SESSION_CORE_INT_H

#include "base/buf.h"
#include "session/core.h"

#define CORE_COMMAND_CAP (64u << 20)
#define CORE_FIELD_CAP (1u << 20)

enum phase {
	PHASE_STARTING,  /* the shell has not reported since its start */
	PHASE_PREPARING, /* reported and acked; readline is about to take the terminal */
	PHASE_READY,     /* readline waits for a command */
	PHASE_TYPED,     /* a command was typed; it may not be complete yet */
	PHASE_BUSY,      /* the command runs */
	PHASE_HEALING,   /* the core has typed the hook */
	/* the core has typed `set -o emacs`, since readline is off, or nothing for a new prompt */
	PHASE_EDITING,
	PHASE_DEAD, /* there is no shell; the next request tries again */
};

struct hr_core {
	struct hr_core_config config;
	struct hr_core_ops ops;
	void *arg;
	struct hr_view *view;

	enum phase phase;
	struct hr_core_state s;

	/* the current request */
	bool to_type;          /* waits for readline before typing */
	struct hr_buf command; /* the command, trimmed */
	char key[8];
	size_t key_len;
	bool retyped;        /* the command was given to a former shell, which did not read it */
	bool interrupting;   /* a C-c was sent to readline; phase_deadline is for the next one */
	uint64_t generation; /* generation of the text when last checked */
	bool unseen; /* true: output is not examined yet; times of its first and last byte */
	int64_t unseen_from, unseen_to;

	/* as reported at the last prompt */
	struct hr_buf cwd, username, py_path;
	struct hr_buf notice; /* text for the next completion */
	uint32_t requests;    /* number of requests, and of changes of the four texts above */
	uint32_t texts;
};

/* ---- core.c ---- */
void core_set_phase(struct hr_core *c, enum phase phase, int64_t deadline);
/* Notes that a new shell replaced the old one. */
void core_notice(struct hr_core *c, const char *how);
void core_restart(struct hr_core *c, int64_t now);
/* Records that bash is about to get the current command, in the form p. */
void core_begun(struct hr_core *c, const char *p, size_t len);
/* Makes the shell ready, as readline waits; `marked`: readline has printed its mark. */
void core_become_ready(struct hr_core *c, bool marked, int64_t now);

/* ---- clocks.c ---- */
/* Examines the terminal, in case the mark of readline was missed. */
void core_look_again(struct hr_core *c, int64_t now);
/* Sets the limit within which readline must take the terminal. */
void core_await_readline(struct hr_core *c, int64_t now);
void core_start_clocks(struct hr_core *c, const struct hr_run_request *r, int64_t now);
void core_limit(struct hr_core *c, double limit_s, int64_t now); /* Sets hard_at. */
/* Gives the pending command to the shell as soon as that is ready, or refuses it after a limit. */
void core_await_ready(struct hr_core *c, int64_t now);
/* Returns the limit without a change, which a look may postpone. */
int64_t core_no_change_at(const struct hr_core *c);
void core_see_change(struct hr_core *c); /* Checks whether the output was a change. */
void core_feed(struct hr_core *c, const char *p, size_t len, int64_t now); /* Feeds the view. */

/* ---- watch.c ---- */
void core_watch(struct hr_core *c, int64_t now); /* Starts the looks at a running command. */
int64_t core_watch_at(const struct hr_core *c);  /* Returns the time of the next look. */
void core_look(struct hr_core *c, int64_t now);  /* Takes the look that is due, if any. */
/* Acts if readline has the terminal although the shell has sent no report. */
void core_suspect(struct hr_core *c, int64_t now);
/* Returns true if the shell works towards the expected step, or would if a processor were free. A
 * shell that has used too much processor time in this phase is busy with something else, for
 * ever. */
bool core_works(struct hr_core *c);

/* ---- typing.c ---- */
/* Types the current request for readline. */
void core_type_command(struct hr_core *c, int64_t now);
/* Expects the current request to be taken by ops.give. */
void core_await_command(struct hr_core *c, int64_t now);
/* Switches to typing, since readline has the terminal: it reads the rest of a command there, or the
 * command uses readline itself, or the shell does not take commands by ops.give after all. Returns
 * true if the command was typed. */
bool core_stop_giving(struct hr_core *c, int64_t now);
/* Types the request for the running program. */
void core_type_input(struct hr_core *c, int64_t now);
void core_type_interrupt(struct hr_core *c, int64_t now); /* Types C-c until a prompt comes. */
/* Types the hook; `plain`: the shell does not use readline. */
void core_type_heal(struct hr_core *c, bool plain, int64_t now);
void core_type_nothing(struct hr_core *c, int64_t now); /* Brings another prompt. */
void core_type_editing(struct hr_core *c, int64_t now); /* Turns readline on. */

/* answer.c: each function passes the one result and ends the request. */
void core_answer_completed(struct hr_core *c);
void core_answer_no_change(struct hr_core *c);
void core_answer_timeout(struct hr_core *c);
void core_answer_refused(struct hr_core *c);
/* Answers that there is no command to report. */
void core_answer_nothing(struct hr_core *c, const char *text);
/* Answers with an error and returns false. */
bool core_answer_error(struct hr_core *c, const char *text, size_t len);

#endif
