/* Inside of hr_core: core.c moves the state, answer.c builds what the client is told. */
#ifndef HR_SESSION_CORE_INT_H
#define HR_SESSION_CORE_INT_H

#include "base/buf.h"
#include "session/core.h"

#define CORE_COMMAND_CAP (64u << 20)
#define CORE_FIELD_CAP (1u << 20)

enum phase {
	PHASE_STARTING,  /* no report since it was started */
	PHASE_PREPARING, /* reported and acked; readline is about to take the terminal */
	PHASE_READY,     /* readline waits for a command */
	PHASE_TYPED,     /* a command was typed; not known to be whole yet */
	PHASE_BUSY,      /* it runs */
	PHASE_HEALING,   /* the hook was typed by us */
	PHASE_EDITING,   /* readline was turned off; `set -o emacs` was typed by us */
	PHASE_DEAD,      /* no shell; the next request tries again */
};

struct hr_core {
	struct hr_core_config config;
	struct hr_core_ops ops;
	void *arg;
	struct hr_view *view;

	enum phase phase;
	int64_t phase_deadline, suspect_at, look_ms;
	int64_t watch_at, watch_ms; /* the next look at a command that goes on */

	bool running;          /* the client was told that a command goes on */
	bool ended;            /* ... and it has ended since */
	bool begun;            /* ops.over() is to be told of a command's end */
	unsigned observations; /* given for the running command */

	/* the request in hand */
	bool active, hidden, blocking, exact;
	bool to_type;          /* waits for readline */
	bool special;          /* the text is a special key: C-x */
	bool echoed;           /* the terminal may show the input */
	bool reads_line;       /* the command uses readline itself */
	bool whole;            /* bash wants no more of it */
	struct hr_buf command; /* stripped */
	char key[8];
	size_t key_len;
	bool interrupting; /* readline was sent a C-c; phase_deadline is for the next one */
	unsigned again;    /* times it was repeated */
	int64_t had_ms;    /* of processor time, when it was late in this phase first; or -1 */
	double timeout, ready_s;
	int64_t start, last_change, hard_at;
	uint64_t generation; /* the text's, when it was last looked at */
	bool unseen;         /* output has come since, the first and the last of it at... */
	int64_t unseen_from, unseen_to;

	/* last prompt */
	int exit_code, job;
	bool is_session; /* shown by the session's own shell, not a child of it */
	bool
	    marked; /* readline marked its taking the terminal, and will mark the end of the echo */
	bool traced;      /* set -v */
	bool tracing;     /* set -x */
	bool retyped;     /* the command in hand was begun before, but not read */
	bool takes_lines; /* readline waits for ops.give, or was given a command by it */
	struct hr_buf cwd, username, py_path;
	struct hr_buf notice; /* to be told with the next completion */
	uint32_t requests;    /* their number, and that of changes of the four texts above */
	uint32_t texts;
};

/* core.c */
void core_set_phase(struct hr_core *c, enum phase phase, int64_t deadline);
void core_notice(struct hr_core *c, const char *how); /* a new shell took the old one's place */
void core_restart(struct hr_core *c, int64_t now);
/* The command in hand is about to be given to bash, in that form. */
void core_begun(struct hr_core *c, const char *p, size_t len);
void core_become_ready(struct hr_core *c, bool marked, int64_t now); /* readline waits */

/* clocks.c */
/* If the mark of readline is missed, a look at the terminal tells. */
void core_look_again(struct hr_core *c, int64_t now);
void core_await_readline(struct hr_core *c, int64_t now); /* it must take the terminal soon */
void core_start_clocks(struct hr_core *c, const struct hr_run_request *r, int64_t now);
void core_limit(struct hr_core *c, double limit_s, int64_t now); /* sets hard_at */
/* The pending command is given to the shell when that is ready, or is refused after a limit. */
void core_await_ready(struct hr_core *c, int64_t now);
int64_t core_no_change_at(const struct hr_core *c); /* a look may put it off */
void core_see_change(struct hr_core *c);            /* looks whether the output was a change */
void core_feed(struct hr_core *c, const char *p, size_t len, int64_t now); /* to the view */

/* watch.c */
void core_watch(struct hr_core *c, int64_t now);   /* looks are taken from now on */
int64_t core_watch_at(const struct hr_core *c);    /* the next one */
void core_look(struct hr_core *c, int64_t now);    /* if it is due */
void core_suspect(struct hr_core *c, int64_t now); /* readline was seen, and no report came */
/* The shell is at what it is waited for, or would be if a processor were free. One that has had so
 * much of it in this phase is busy with something else, for good. */
bool core_works(struct hr_core *c);

/* typing.c */
void core_type_command(struct hr_core *c, int64_t now);  /* the request in hand, to readline */
void core_await_command(struct hr_core *c, int64_t now); /* readline takes the next one from us */
/* Readline has the terminal: the rest of a command is read from there, or the command uses readline
 * itself, or the shell does not take commands from us after all. True: it was typed. */
bool core_stop_giving(struct hr_core *c, int64_t now);
void core_type_input(struct hr_core *c, int64_t now);            /* the same, to whatever runs */
void core_type_interrupt(struct hr_core *c, int64_t now);        /* C-c, until a prompt comes */
void core_type_heal(struct hr_core *c, bool plain, int64_t now); /* the hook; plain: no readline */
void core_type_editing(struct hr_core *c, int64_t now); /* readline, to a shell without it */

/* answer.c: each gives the one result and ends the request. */
void core_answer_completed(struct hr_core *c);
void core_answer_no_change(struct hr_core *c);
void core_answer_timeout(struct hr_core *c);
void core_answer_refused(struct hr_core *c);
void core_answer_nothing(struct hr_core *c, const char *text); /* no command to speak of */
bool core_answer_error(struct hr_core *c, const char *text, size_t len); /* false */

#endif
