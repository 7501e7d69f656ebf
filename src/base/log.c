/* Writes log lines. Invariants: each line is one write, so lines of several processes on one
 * descriptor do not mix; a reader that stopped reading costs lines, never the writer's time. */
#include "config.h"

#include "base/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/loglines.h"
#include "base/text/quote.h"

/* A writable pipe takes PIPE_BUF bytes at once: no line is longer, so no write blocks. */
#define LOG_LINE_MAX PIPE_BUF

static struct {
	const char *module;
	enum hr_log_format format;
	enum hr_log_level max;
	int fd;
	unsigned long lost; /* lines lost since the last one that was written */
	struct hr_loglines *kept;
} log_state = {"-", HR_LOG_CHILD, HR_LOG_INFO, STDERR_FILENO, 0, NULL};

static const struct {
	const char *name;
	enum hr_log_level level;
} log_levels[] = {
    {"error", HR_LOG_ERROR},
    {"warning", HR_LOG_WARNING},
    {"notice", HR_LOG_NOTICE},
    {"info", HR_LOG_INFO},
    {"debug", HR_LOG_DEBUG},
    {"warn", HR_LOG_WARNING},
    {"critical", HR_LOG_ERROR},
    {"fatal", HR_LOG_ERROR},
};

void
hr_log_setup(const char *module, enum hr_log_format format, enum hr_log_level max)
{
	log_state.module = module;
	log_state.format = format;
	log_state.max = max;
}

void
hr_log_set_fd(int fd)
{
	log_state.fd = fd;
}

void
hr_log_keep(struct hr_loglines *lines)
{
	log_state.kept = lines;
}

bool
hr_log_enabled(enum hr_log_level level)
{
	return level <= log_state.max;
}

int
hr_log_level_parse(const char *name, enum hr_log_level *ret)
{
	size_t i;

	for (i = 0; i < sizeof(log_levels) / sizeof(log_levels[0]); i++) {
		if (strcasecmp(name, log_levels[i].name) == 0) {
			*ret = log_levels[i].level;
			return 0;
		}
	}
	return -1;
}

const char *
hr_log_level_name(enum hr_log_level level)
{
	size_t i;

	for (i = 0; i < sizeof(log_levels) / sizeof(log_levels[0]); i++) {
		if (log_levels[i].level == level)
			return log_levels[i].name;
	}
	return "info";
}

enum hr_log_level
hr_log_child_level(const char *line, size_t len, size_t *ret_skip)
{
	*ret_skip = 0;
	if (len < 3 || line[0] != '<' || line[2] != '>' || line[1] < '0' || line[1] > '7')
		return HR_LOG_INFO;
	*ret_skip = 3;
	return line[1] <= '3' ? HR_LOG_ERROR : (enum hr_log_level)(line[1] - '0');
}

static void
log_compose(struct hr_buf *b, enum hr_log_format format, const char *module, pid_t pid,
    enum hr_log_level level, const char *text, size_t len)
{
	char now[HR_WALL_TEXT] = "";

	if (format != HR_LOG_CHILD)
		hr_wall_text(hr_wall_ms(), now);
	switch (format) {
	case HR_LOG_JSON:
		hr_buf_addf(b, "{\"time\":\"%s\",\"level\":\"%s\",\"module\":", now,
		    hr_log_level_name(level));
		hr_quote_json(b, module, strlen(module));
		hr_buf_addf(b, ",\"pid\":%ld,\"message\":", (long)pid);
		hr_quote_json(b, text, len);
		hr_buf_adds(b, "}");
		break;
	case HR_LOG_TEXT:
		hr_buf_addf(b, "%s %s %s[%ld] ", now, hr_log_level_name(level), module, (long)pid);
		hr_quote_text(b, text, len);
		break;
	case HR_LOG_CHILD:
		hr_buf_addf(b, "<%d>", (int)level);
		hr_quote_text(b, text, len);
		break;
	}
	hr_buf_addc(b, '\n');
}

static bool
log_would_block(void)
{
	struct pollfd p = {.fd = log_state.fd, .events = POLLOUT};

	return poll(&p, 1, 0) != 1 || (p.revents & POLLOUT) == 0;
}

/* Formats the line into b, whose cap is that of a line, cutting the text until it fits. */
static void
log_fit(struct hr_buf *b, enum hr_log_format format, const char *module, pid_t pid,
    enum hr_log_level level, const char *text, size_t len)
{
	for (;;) {
		log_compose(b, format, module, pid, level, text, len);
		if (b->fail != HR_E_TOOLARGE || len == 0)
			break;
		len -= len / 4 + 1; /* quoting made the text too long */
		hr_buf_reset(b);
	}
}

static void
log_write(const char *module, pid_t pid, enum hr_log_level level, const char *text, size_t len)
{
	HR_BUF(b, LOG_LINE_MAX);

	log_fit(&b, log_state.format, module, pid, level, text, len);
	if (hr_buf_check(&b, NULL) != 0 || hr_fd_write_full(log_state.fd, b.p, b.len, NULL) != 0)
		log_state.lost++;
}

static void
log_keep(const char *module, pid_t pid, enum hr_log_level level, const char *text, size_t len)
{
	HR_BUF(b, LOG_LINE_MAX);

	log_fit(&b, HR_LOG_JSON, module, pid, level, text, len);
	if (hr_buf_check(&b, NULL) == 0)
		hr_loglines_add(log_state.kept, b.p, b.len - 1);
}

void
hr_log_from(const char *module, pid_t pid, enum hr_log_level level, const char *text, size_t len)
{
	int saved = errno;

	if (level > log_state.max)
		return;
	if (log_state.kept != NULL)
		log_keep(module, pid, level, text, len);
	if (log_would_block()) {
		log_state.lost++;
	} else {
		if (log_state.lost > 0) {
			char note[64];
			int n = snprintf(note, sizeof(note), "%lu log lines could not be written",
			    log_state.lost);

			log_state.lost = 0;
			log_write(log_state.module, getpid(), HR_LOG_WARNING, note, (size_t)n);
		}
		log_write(module, pid, level, text, len);
	}
	errno = saved;
}

void
hr_log(enum hr_log_level level, const char *fmt, ...)
{
	char text[LOG_LINE_MAX];
	va_list ap;
	int n;

	if (level > log_state.max)
		return;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	hr_log_from(log_state.module, getpid(), level, text,
	    (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}
