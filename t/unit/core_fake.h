/* A scripted world around hr_core: it records what the core types, acknowledges and answers, and
 * plays the shell's part byte for byte as bash 5.2 does. No clock but `now`. */
#ifndef HR_T_CORE_FAKE_H
#define HR_T_CORE_FAKE_H

#include "base/buf.h"
#include "session/core.h"
#include "session/prompt/hook.h"

#define FAKE_NO_CHANGE_MS 10000
/* The one advice in three kinds of suffixes, as the clients know it. */
#define FAKE_ADVICE                                                                                \
	"You may wait longer to see additional output by sending empty command '', send other "    \
	"commands to interact with the current process, send keys (\"C-c\", \"C-z\", \"C-d\") to " \
	"interrupt/kill the previous command before sending your new command, or use the timeout " \
	"parameter in execute_bash for future commands."
#define FAKE_BELOW "[Below is the output of the previous command.]\n"
#define FAKE_NO_OUTPUT "\n[The command has no new output after 10 seconds. " FAKE_ADVICE "]"

struct fake_result {
	bool is_error, hidden, has_metadata;
	int exit_code, job;
	enum hr_clock clock;
	char *content, *command, *username, *hostname, *working_dir, *py_path, *prefix, *suffix;
	size_t content_len;
};

struct fake {
	struct hr_core *core;
	struct hr_hook hook;
	int64_t now;
	bool in_readline, echoes, blind, away, strays; /* what the core is told when it asks */
	int64_t works;                                 /* ... of its processor time; 0: it waits */
	bool sees;                                     /* ... if it may look (fake_init_seen) */
	enum hr_core_seen seen;                        /* ... if it may look (fake_init_seen) */
	unsigned looks;
	bool no_editing, tracing; /* ... at a prompt */
	bool takes_lines;         /* ... what op_give gives */
	struct hr_buf given;      /* not taken yet; each text ended by a '|' */
	const char *restart_dir;  /* NULL: there will be no new shell */
	struct hr_buf typed;      /* since the last fake_forget() */
	bool literal;             /* of the last bytes typed */
	unsigned barren;          /* restarts since the last report */
	unsigned acks, readies, restarts, results, requests;
	bool careful;            /* of the last ack */
	struct fake_result last; /* valid if results > 0 */
	void (*outside)(bool);   /* called when the core calls us, and when it goes on; or NULL */
	/* with FAKE_RESUMES: what a killed keeper would leave */
	struct hr_core_kept kept;
	struct hr_buf fed;           /* all that the core showed since fed_from */
	uint64_t fed_from, replayed; /* where that of the replay stands */
	unsigned resumed;
};

void fake_init(struct fake *f);
void fake_init_seen(struct fake *f); /* the core may look at the shell's process */
void fake_done(struct fake *f);
void fake_forget(struct fake *f); /* what was typed */

/* The shell's part. Text: LF becomes CR LF, as the terminal has it. */
void fake_out(struct fake *f, const char *text);
void fake_bytes(struct fake *f, const char *p, size_t len); /* as they are */
void fake_take(struct fake *f);        /* readline echoes and takes the line that was pasted */
void fake_take_given(struct fake *f);  /* readline takes what was given, the command runs */
void fake_begin(struct fake *f);       /* the command was read whole and runs */
void fake_interrupted(struct fake *f); /* readline leaves the terminal for a C-c or a SIGINT */
void fake_report(struct fake *f, int exit_code); /* the hook, in /w, of the own shell */
void fake_readline(struct fake *f);              /* readline waits */
void fake_prompt(struct fake *f, int exit_code); /* both */
void fake_start(struct fake *f);                 /* the first prompt of a shell */

/* With FAKE_RESUMES another core takes the place of this one, wherever it can: as if the keeper
 * were killed after each event. All tests of the core must be true of those, too. */
void fake_resume(struct fake *f);

/* The client's part. */
struct fake_ask {
	const char *command;
	bool is_input, blocking, hidden;
	double timeout, ready_s; /* 0: none */
};
void fake_ask(struct fake *f, const struct fake_ask *a);
#define ASK(f, ...) fake_ask((f), &(const struct fake_ask){.command = __VA_ARGS__})

/* Lets time pass, serving every deadline on the way. */
void fake_wait(struct fake *f, int64_t ms);

#endif
