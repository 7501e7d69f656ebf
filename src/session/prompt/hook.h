/* hr_hook: composes bash code that runs at every prompt. Completion is reported out of band.
 * PROMPT_COMMAND appends one report (session/prompt/report.h) to a FIFO and, in the session's own
 * shell, waits for one line on a second FIFO before it lets readline take the terminal. Only while
 * it waits for that line (the "ack") the shell certainly neither reads nor changes its terminal:
 * the keeper then sets the terminal modes and drops unread input. The line may contain shell code.
 * No program runs and no process is created. PROMPT_COMMAND runs a file, or a builtin with the same
 * effect if bash has loaded that. Then bash nearly always finds nothing to run: the prompt is
 * reported when bash looks the variable up. FIFOs have names rather than being inherited: the
 * user's programs have no descriptor of the keeper's open, `exec 9>&-` cannot cut the channel, and
 * a child bash finds it again. */
#ifndef HR_SESSION_PROMPT_HOOK_H
#define HR_SESSION_PROMPT_HOOK_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "session/prompt/fields.h"

#define HR_HOOK_NONCE_LEN 32 /* hex digits */
#define HR_HOOK_NAME_LEN 16

/* Prefixes of the FIFOs' names, and of the file that PROMPT_COMMAND runs. */
#define HR_HOOK_REPORT "report."
#define HR_HOOK_EXPORTS "vars."
#define HR_HOOK_ACK "ack."
#define HR_HOOK_LINE "line."
#define HR_HOOK_SCRIPT "hook."

/* A builtin that bash may have loaded (line_module.c): readline takes a command from a FIFO, and
 * prompts are reported without a script. */
#define HR_HOOK_LINE_BUILTIN "__hr_line"
#define HR_HOOK_LINE_HELLO "+" /* message of the builtin when it is set up */
#define HR_HOOK_LINE_MAX 32768 /* maximum bytes of a text, NUL excluded; a pipe has more room */

#define HR_HOOK_ACK_NOTHING " \n" /* an ack without requests */

/* The unguessable parts: the nonce, and the ends of the five file names. */
struct hr_hook_secrets {
	char nonce[HR_HOOK_NONCE_LEN + 1]; /* "": the nonce is not generated yet */
	char names[5][HR_HOOK_NAME_LEN + 1];
};

struct hr_hook {
	char *report_path;  /* FIFO from shell to keeper; also known to child shells */
	char *exports_path; /* private FIFO from shell to keeper: a successor runs its text */
	char *ack_path;     /* FIFO from keeper to shell */
	char *line_path;    /* FIFO from keeper to readline */
	char *script_path;  /* script of PROMPT_COMMAND; other users' child shells read it, too */
	char *script;       /* text of the script */
	char *prompt_command;
	char *expected;                    /* description of the hook that a report must contain */
	char nonce[HR_HOOK_NONCE_LEN + 1]; /* only the session's own shell has it */
};

/* Sets the paths below dir and the texts; creates no files. Generates empty secrets; NULL: secrets
 * for this hook alone. */
int hr_hook_init(
    struct hr_hook *h, const char *dir, struct hr_hook_secrets *secrets, struct hr_err *err);
void hr_hook_done(struct hr_hook *h);

/* Appends the start-up file: the user's own first (unless no_user_files), then the hook. `module`
 * is the file of the builtin HR_HOOK_LINE_BUILTIN; NULL: there is none. */
void
hr_hook_rcfile(const struct hr_hook *h, bool no_user_files, const char *module, struct hr_buf *out);

/* Appends a command line that restores the hook and keeps $?, for a shell that shows a prompt
 * without having reported. Works if builtins were redefined as functions or disabled. If
 * PROMPT_COMMAND is read-only with another value, the shell exits with $?. */
void hr_hook_heal(const struct hr_hook *h, struct hr_buf *out);

/* Appends a whole line, its end included, to be typed at a terminal in canonical mode for a shell
 * that reads its commands without readline. `status` is $? afterwards. */
void hr_hook_editing(int status, struct hr_buf *out);

/* Starts an ack line with a blank, which the builtin strips. A lone line end means instead that
 * readline's next line comes from line_path. */
void hr_hook_ack_begin(struct hr_buf *out);
/* Appends a piece of the line, as the functions below do, each ended by a blank or "; ": the keys
 * and paste mode that the keeper needs. */
void hr_hook_ack_readline(struct hr_buf *out);
/* Enters the directory of $PWD again, if it exists, and keeps OLDPWD: "/" is another mount. */
void hr_hook_ack_enter(struct hr_buf *out);
/* Restores PS0 and PROMPT_COMMAND if they have changed. */
void hr_hook_ack_restore(struct hr_buf *out);
void hr_hook_ack_unexport(struct hr_buf *out); /* Unexports the hook's variables if set -a is on. */
/* Restores the nonce if it was changed. */
void hr_hook_ack_nonce(const struct hr_hook *h, struct hr_buf *out);
/* Requests the output of export -p. */
void hr_hook_ack_snapshot(const struct hr_hook *h, struct hr_buf *out);
void hr_hook_ack_source(const char *path, struct hr_buf *out);
/* Ends the line; `line`: readline's next line is from line_path. */
void hr_hook_ack_end(bool line, struct hr_buf *out);

#endif
