/* hr_log: writes one line per event on one descriptor (stderr by default). The supervisor writes
 * text or JSON lines with a time stamp. The programs it starts write HR_LOG_CHILD lines, "<N>text"
 * with the level as a digit: the supervisor reads them from a pipe and adds time, name and process
 * id. No control character reaches the log in any form. */
#ifndef HR_BASE_LOG_H
#define HR_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* the numbers of syslog */
enum hr_log_level {
	HR_LOG_ERROR = 3,
	HR_LOG_WARNING = 4,
	HR_LOG_NOTICE = 5,
	HR_LOG_INFO = 6,
	HR_LOG_DEBUG = 7,
};

enum hr_log_format { HR_LOG_TEXT, HR_LOG_JSON, HR_LOG_CHILD };

/* Sets module (borrowed for ever), format, level and descriptor; lines above max are dropped. The
 * defaults are "-", HR_LOG_CHILD, HR_LOG_INFO and 2. */
void hr_log_setup(const char *module, enum hr_log_format format, enum hr_log_level max);
/* Sets the descriptor, which is borrowed; the caller closes the old one. */
void hr_log_set_fd(int fd);
/* Adds each logged line to these lines as well, even if no reader takes it from the descriptor;
 * borrowed. NULL: no copy. */
struct hr_loglines;
void hr_log_keep(struct hr_loglines *lines);
bool hr_log_enabled(enum hr_log_level level);

/* Logs a line and keeps errno. Never fails and never waits for a slow reader: such lines are lost,
 * and the next one that is written is preceded by their number. Lines are cut at PIPE_BUF bytes. */
void hr_log(enum hr_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Logs a line of another program. */
void
hr_log_from(const char *module, pid_t pid, enum hr_log_level level, const char *text, size_t len);

/* Parses "error", "warning", "notice", "info", "debug" in any case (also "warn", "critical",
 * "fatal"). Returns 0 with *ret, or -1. */
int hr_log_level_parse(const char *name, enum hr_log_level *ret);
const char *hr_log_level_name(enum hr_log_level level);

/* Parses the "<N>" prefix of a child's line: returns its level and the number of bytes to skip. A
 * line without prefix is HR_LOG_INFO. Pure. */
enum hr_log_level hr_log_child_level(const char *line, size_t len, size_t *ret_skip);

#endif
