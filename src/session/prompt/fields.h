/* The words of the prompt's protocol, once for all who write or read them: the script and the
 * builtin of bash, and the keeper. */
#ifndef HR_SESSION_PROMPT_FIELDS_H
#define HR_SESSION_PROMPT_FIELDS_H

/* ---- a report ---- */

/* Its fields in their order, each ended by a NUL: a name, and the word of the script that expands
 * to it. $? has to be expanded by the first command. */
#define HR_REPORT_FIELDS(X)                                                                        \
	X(KIND, HR_REPORT_PROMPT)                                                                  \
	X(NONCE, "\"${__hr_n-}\"") /* "" in a child shell: it is never exported */                 \
	X(PID, "\"$$\"")                                                                           \
	X(STATUS, "\"$?\"")                                                                        \
	X(JOB, "\"${!-}\"") /* "": none yet */                                                     \
	X(EUID, "\"$EUID\"")                                                                       \
	X(PWD, "\"${PWD-}\"")                                                                      \
	X(PATH, "\"${PATH-}\"")                                                                    \
	X(HOOK, "\"${!PROMPT_COMMAND[*]}:${PROMPT_COMMAND+${#PROMPT_COMMAND}}:${PS0-}\"")          \
	X(FLAGS, "\"$-\"")                                                                         \
	X(OPTIONS, "\"${SHELLOPTS-}\"")

/* Further ones, of a shell that looked itself: the builtin writes them. Of the first two each is
 * "=" and what was found, or "" where nothing can be said. */
#define HR_REPORT_LOOKED_FIELDS(X)                                                                 \
	X(PWD_SEEN, ) /* "=": the kernel says the same of its directory */                         \
	X(PYTHON, )   /* of `command -v python` */                                                 \
	X(TAKEN, )    /* how many lines readline took from the FIFO so far */                      \
	X(HIDES, )    /* HR_HIDES_* */

#define HR_REPORT_NAME(name, word) REPORT_##name,
enum hr_report_field {
	HR_REPORT_FIELDS(HR_REPORT_NAME) REPORT_FIELDS,
	REPORT_BEFORE_LOOKED = REPORT_FIELDS - 1,
	HR_REPORT_LOOKED_FIELDS(HR_REPORT_NAME) REPORT_FIELDS_LOOKED,
};
#undef HR_REPORT_NAME

/* The first field. */
#define HR_REPORT_PROMPT "hr1" /* a prompt is about to be shown */
#define HR_REPORT_LOOKED "hr2" /* ... of a shell that looked itself */

/* What is printed there does not come to the shell's terminal. */
#define HR_HIDES_OUTPUT 1u
#define HR_HIDES_ERRORS 2u
#define HR_HIDES_UNKNOWN 4u /* alone */

/* How the hook is described where nobody changed it: the index and the length of PROMPT_COMMAND,
 * and PS0 behind it. */
#define HR_REPORT_HOOK_FORMAT "0:%zu:"

/* ---- marks on the terminal, which shows nothing for them ---- */

#define HR_MARK(escape, number, bell) escape "]777;" number bell

/* Printed by PS0, after a command was read completely and before it runs: tells a command that
 * started from one that waits for the rest of its text. */
#define HR_HOOK_STARTED HR_MARK("\033", "0", "\a")
#define HR_HOOK_STARTED_QUOTED HR_MARK("\\e", "0", "\\a") /* between $'' or for printf */
#define HR_HOOK_STARTED_LEN (sizeof(HR_HOOK_STARTED) - 1)
/* Of a command that came from line_path nothing is printed, but this where bash asks the terminal
 * for its rest. */
#define HR_HOOK_MORE HR_MARK("\033", "1", "\a")

/* Readline takes the terminal, and leaves it. */
#define HR_READLINE_TAKES "\033[?2004h"
#define HR_READLINE_LEAVES "\033[?2004l\r"

#endif
