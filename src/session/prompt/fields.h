/* Defines the strings of the prompt's protocol, shared by the script and the builtin of bash and by
 * the keeper. */
#ifndef HR_SESSION_PROMPT_FIELDS_H
#define HR_SESSION_PROMPT_FIELDS_H

/* ---- a report ---- */

/* The fields in order, each ended by a NUL: a name, and the word of the script that expands to it.
 * The first command must expand $?. */
#define HR_REPORT_FIELDS(X)                                                                        \
	X(KIND, HR_REPORT_PROMPT)                                                                  \
	X(NONCE, "\"${__hr_n-}\"") /* "" in a child shell, since the variable is never exported */ \
	X(PID, "\"$$\"")                                                                           \
	X(STATUS, "\"$?\"")                                                                        \
	X(JOB, "\"${!-}\"") /* "": there is no job yet */                                          \
	X(EUID, "\"$EUID\"")                                                                       \
	X(PWD, "\"${PWD-}\"")                                                                      \
	X(PATH, "\"${PATH-}\"")                                                                    \
	X(HOOK, "\"${!PROMPT_COMMAND[*]}:${PROMPT_COMMAND+${#PROMPT_COMMAND}}:${PS0-}\"")          \
	X(FLAGS, "\"$-\"")                                                                         \
	X(OPTIONS, "\"${SHELLOPTS-}\"")

/* Further fields, which the builtin writes. The first two are "=" and the value found, or "" if
 * unknown. */
#define HR_REPORT_LOOKED_FIELDS(X)                                                                 \
	X(PWD_SEEN, ) /* "=": the kernel reports the same directory */                             \
	X(PYTHON, )   /* result of `command -v python` */                                          \
	X(TAKEN, )    /* number of lines that readline took from the FIFO */                       \
	X(HIDES, )    /* HR_HIDES_* */

#define HR_REPORT_NAME(name, word) REPORT_##name,
enum hr_report_field {
	HR_REPORT_FIELDS(HR_REPORT_NAME) REPORT_FIELDS,
	REPORT_BEFORE_LOOKED = REPORT_FIELDS - 1,
	HR_REPORT_LOOKED_FIELDS(HR_REPORT_NAME) REPORT_FIELDS_LOOKED,
};
#undef HR_REPORT_NAME

/* The first field of a report. */
#define HR_REPORT_PROMPT "hr1" /* a prompt is about to be shown */
/* a prompt is about to be shown, and the further fields follow */
#define HR_REPORT_LOOKED "hr2"

/* Output to these descriptors does not reach the shell's terminal. */
#define HR_HIDES_OUTPUT 1u
#define HR_HIDES_ERRORS 2u
#define HR_HIDES_UNKNOWN 4u /* no other flag is known */

/* The description of an unchanged hook: the index and the length of PROMPT_COMMAND, followed by
 * PS0. */
#define HR_REPORT_HOOK_FORMAT "0:%zu:"

/* ---- marks on the terminal, which shows nothing for them ---- */

#define HR_MARK(escape, number, bell) escape "]777;" number bell

/* Printed by PS0, after a command was read completely and before it runs: distinguishes a running
 * command from an incomplete one. */
#define HR_HOOK_STARTED HR_MARK("\033", "0", "\a")
#define HR_HOOK_STARTED_QUOTED HR_MARK("\\e", "0", "\\a") /* quoted for $'' or printf */
#define HR_HOOK_STARTED_LEN (sizeof(HR_HOOK_STARTED) - 1)
/* A command that came from line_path prints nothing else if bash asks the terminal for the rest of
 * the command. */
#define HR_HOOK_MORE HR_MARK("\033", "1", "\a")

/* Readline prints these when it takes the terminal, and when it leaves it. */
#define HR_READLINE_TAKES "\033[?2004h"
#define HR_READLINE_LEAVES "\033[?2004l\r"

#endif
