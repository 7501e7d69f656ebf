/* hr_log: one line per event on one descriptor (stderr unless told otherwise).
 *
 * The supervisor writes text or JSON lines with a time stamp. The programs it starts write
 * HR_LOG_CHILD lines, "<N>text" with the level as a digit: the supervisor reads them from a pipe
 * and adds time, name and process id. No control character reaches the log in any form. */
#ifndef HR_BASE_LOG_H
#define HR_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* syslog's numbers */
enum hr_log_level {
	HR_LOG_ERROR = 3,
	HR_LOG_WARNING = 4,
	HR_LOG_NOTICE = 5,
	HR_LOG_INFO = 6,
	HR_LOG_DEBUG = 7,
};

enum hr_log_format { HR_LOG_TEXT, HR_LOG_JSON, HR_LOG_CHILD };

/* Before the first call: module "-", HR_LOG_CHILD, level HR_LOG_INFO, descriptor 2. module is
 * borrowed for good. Nothing above max is written. */
void hr_log_setup(const char *module, enum hr_log_format format, enum hr_log_level max);
void hr_log_set_fd(int fd); /* borrowed; the caller closes the old one */
/* Each line of what is logged goes to these as well, also one that no reader of the log takes;
 * borrowed. NULL: nowhere else. */
struct hr_loglines;
void hr_log_keep(struct hr_loglines *lines);
bool hr_log_enabled(enum hr_log_level level);

/* errno is kept. Logging never fails and never waits for a slow reader: such lines are lost, and
 * the next one that goes out is preceded by their number. Lines are cut at PIPE_BUF bytes. */
void hr_log(enum hr_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same for a line of another program. */
void
hr_log_from(const char *module, pid_t pid, enum hr_log_level level, const char *text, size_t len);

/* 0 and *ret for "error", "warning", "notice", "info", "debug" in any case (also "warn",
 * "critical", "fatal"); -1 otherwise. */
int hr_log_level_parse(const char *name, enum hr_log_level *ret);
const char *hr_log_level_name(enum hr_log_level level);

/* Takes the "<N>" prefix off a line of a child: its level and the number of bytes to skip. A line
 * without one is HR_LOG_INFO. Pure. */
enum hr_log_level hr_log_child_level(const char *line, size_t len, size_t *ret_skip);

#endif
