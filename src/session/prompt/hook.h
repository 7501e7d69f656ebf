/* hr_hook: what bash is told to do at every prompt.
 *
 * Completion travels out of band. PROMPT_COMMAND appends one report (session/prompt/report.h) to a
 * FIFO and, in the session's own shell, waits for one line on a second FIFO before it lets readline
 * take the terminal. That line (the "ack") is the one moment at which the shell surely neither
 * reads nor changes its terminal: the keeper then puts the terminal modes right and throws away
 * input that nobody read. The line may carry shell code. No program is run and no process made.
 *
 * What PROMPT_COMMAND runs is a file, or where bash has loaded it a builtin that does the same.
 * Then bash nearly always finds that it has nothing to run: the prompt is reported when it looks.
 *
 * FIFOs by name rather than an inherited descriptor: nothing of ours is open in the user's
 * programs, `exec 9>&-` cannot cut the channel, and a child bash finds it again. */
#ifndef HR_SESSION_PROMPT_HOOK_H
#define HR_SESSION_PROMPT_HOOK_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "session/prompt/fields.h"

#define HR_HOOK_NONCE_LEN 32 /* hex digits */
#define HR_HOOK_NAME_LEN 16

/* How the names of the FIFOs begin, and of the file that PROMPT_COMMAND runs. */
#define HR_HOOK_REPORT "report."
#define HR_HOOK_EXPORTS "vars."
#define HR_HOOK_ACK "ack."
#define HR_HOOK_LINE "line."
#define HR_HOOK_SCRIPT "hook."

/* A builtin that bash may have loaded (line_module.c): readline takes a command from a FIFO, and a
 * prompt is reported without a script. */
#define HR_HOOK_LINE_BUILTIN "__hr_line"
#define HR_HOOK_LINE_HELLO "+" /* what it says there once it is set up */
#define HR_HOOK_LINE_MAX 32768 /* bytes of a text, its NUL not counted; a pipe holds more */

#define HR_HOOK_ACK_NOTHING " \n" /* an ack that asks for nothing */

/* What cannot be guessed: the nonce, and how the names of the five files end. */
struct hr_hook_secrets {
	char nonce[HR_HOOK_NONCE_LEN + 1]; /* "": none were made yet */
	char names[5][HR_HOOK_NAME_LEN + 1];
};

struct hr_hook {
	char *report_path;  /* FIFO shell -> keeper; child shells know it, too */
	char *exports_path; /* FIFO shell -> keeper, only for the shell's user: its successor runs
			       it */
	char *ack_path;     /* FIFO keeper -> shell */
	char *line_path;    /* FIFO keeper -> readline */
	char *
	    script_path; /* file of what PROMPT_COMMAND runs; child shells of others read it, too */
	char *script;    /* its text */
	char *prompt_command;
	char *expected;                    /* how a report describes it */
	char nonce[HR_HOOK_NONCE_LEN + 1]; /* known to the session's own shell, never exported */
};

/* Paths below dir, the texts. Nothing is made there. Secrets that are empty are made; NULL: those
 * of nobody else. */
int hr_hook_init(
    struct hr_hook *h, const char *dir, struct hr_hook_secrets *secrets, struct hr_err *err);
void hr_hook_done(struct hr_hook *h);

/* The start-up file: the user's own first (unless no_user_files), then ours. `module`: file of the
 * builtin HR_HOOK_LINE_BUILTIN, NULL: none. */
void
hr_hook_rcfile(const struct hr_hook *h, bool no_user_files, const char *module, struct hr_buf *out);

/* A command line that puts the hook back and keeps $?: for a shell that shows a prompt without
 * having reported. Works when builtins were redefined as functions or disabled. Where
 * PROMPT_COMMAND is read-only and another's, the shell exits with $?. */
void hr_hook_heal(const struct hr_hook *h, struct hr_buf *out);

/* For a shell that reads its commands without readline: a whole line, its end included, to be typed
 * at the terminal in canonical mode. `status` is $? afterwards. */
void hr_hook_editing(int status, struct hr_buf *out);

/* An ack line begins with a blank, which the builtin takes off where it waits for it; or it is the
 * end of a line alone and says that readline's next line comes from line_path. */
void hr_hook_ack_begin(struct hr_buf *out);
/* Pieces of it, each ended by a blank or "; ". */
void hr_hook_ack_readline(struct hr_buf *out); /* keys and paste as we need them */
/* PS0 and PROMPT_COMMAND, where they are other than ours. */
void hr_hook_ack_restore(struct hr_buf *out);
void hr_hook_ack_unexport(struct hr_buf *out); /* under set -a, what is ours alone */
void hr_hook_ack_nonce(const struct hr_hook *h, struct hr_buf *out);    /* it was changed */
void hr_hook_ack_snapshot(const struct hr_hook *h, struct hr_buf *out); /* exported variables */
void hr_hook_ack_source(const char *path, struct hr_buf *out);
void hr_hook_ack_end(bool line, struct hr_buf *out); /* line: the next one is from line_path */

#endif
