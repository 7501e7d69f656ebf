/* Parses nginx's log. */
#include "config.h"

#include "supervisor/edge/nginxline.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* Parses "9#9: *17 1024 worker_connections are not enough", also without a client's number, and the
 * line about many requests to plugins. */
long long
hr_nginx_line_full(const char *text, size_t len)
{
	static const char words[] = " worker_connections are not enough";
	static const char many[] = "limiting connections, dry run, by zone \"handrail_many_";
	size_t at = 0, digits;
	bool early;
	char number[20];

	while (at < len && text[at] != ' ')
		at++;
	if (at + 2 < len && text[at + 1] == '*') {
		for (at++; at < len && text[at] != ' '; at++)
			;
	}
	if (at == len)
		return 0;
	at++;
	early = len - at > sizeof(many) && memcmp(text + at, many, sizeof(many) - 1) == 0;
	if (early)
		at += sizeof(many) - 1;
	for (digits = 0; at + digits < len && digits < sizeof(number) - 1 &&
			 text[at + digits] >= '0' && text[at + digits] <= '9';
	     digits++)
		number[digits] = text[at + digits];
	number[digits] = '\0';
	at += digits;
	if (!early &&
	    (len - at < sizeof(words) - 1 || memcmp(text + at, words, sizeof(words) - 1) != 0))
		return 0;
	return strtoll(number, NULL, 10);
}

int
hr_nginx_line(const char *line, size_t len, size_t *ret_skip)
{
	static const struct {
		const char *name;
		enum hr_log_level level;
	} levels[] = {{"emerg", HR_LOG_ERROR}, {"alert", HR_LOG_ERROR}, {"crit", HR_LOG_ERROR},
	    {"error", HR_LOG_ERROR}, {"warn", HR_LOG_WARNING}, {"notice", HR_LOG_DEBUG},
	    {"info", HR_LOG_DEBUG}, {"debug", HR_LOG_DEBUG}};
	/* the line is "2026/11/20 13:38:13 [notice] 9#9: text", or "nginx: [emerg] text" before
	 * nginx has a log */
	const char *open = len > 7 && memcmp(line, "nginx: [", 8) == 0     ? line + 7
			   : len > 20 && line[4] == '/' && line[20] == '[' ? line + 20
									   : NULL;
	const char *close = open != NULL ? memchr(open, ']', len - (size_t)(open - line)) : NULL;
	size_t i, at;

	*ret_skip = 0;
	if (close == NULL)
		return HR_LOG_INFO;
	for (i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		size_t n = strlen(levels[i].name);

		if ((size_t)(close - open) == n + 1 && memcmp(open + 1, levels[i].name, n) == 0)
			break;
	}
	if (i == sizeof(levels) / sizeof(levels[0]))
		return HR_LOG_INFO;
	at = (size_t)(close - line) + 1;
	if (at < len && line[at] == ' ')
		at++;
	*ret_skip = at;
	return (int)levels[i].level;
}
