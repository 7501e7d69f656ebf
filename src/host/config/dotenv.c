/* Parses lines of a ".env". */
#include "config.h"

#include "host/config/dotenv.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void
dotenv_line(char *line, const char **ret_entry)
{
	char *eq, *value, *end;

	while (isspace((unsigned char)*line))
		line++;
	if (strncmp(line, "export ", 7) == 0)
		line += 7;
	eq = strchr(line, '=');
	*ret_entry = NULL;
	if (*line == '#' || eq == NULL || eq == line)
		return;
	value = eq + 1;
	end = value + strlen(value);
	while (end > value && isspace((unsigned char)end[-1]))
		*--end = '\0';
	if (end - value >= 2 && (*value == '"' || *value == '\'') && end[-1] == *value) {
		end[-1] = '\0';
		memmove(value, value + 1, strlen(value));
	}
	*ret_entry = line;
}

const char **
hr_dotenv_merge(const char *const *env, char *text)
{
	size_t n = 0, room = 1, i, len;
	const char **all, *entry, *p;
	char *line, *next, *eq;

	for (; env != NULL && env[n] != NULL; n++)
		;
	for (p = text; *p != '\0'; p++)
		room += *p == '\n';
	all = calloc(n + room + 1, sizeof(*all));
	if (all == NULL)
		return NULL;
	if (n > 0)
		memcpy(all, env, n * sizeof(*all));
	for (line = text; line != NULL && *line != '\0'; line = next) {
		next = strchr(line, '\n');
		if (next != NULL)
			*next++ = '\0';
		dotenv_line(line, &entry);
		if (entry == NULL)
			continue;
		eq = strchr(entry, '=');
		*eq = '\0';
		/* an existing variable takes precedence, even if it is empty */
		len = strlen(entry);
		i = 0;
		while (i < n && !(strncmp(all[i], entry, len) == 0 && all[i][len] == '='))
			i++;
		*eq = '=';
		if (i == n)
			all[n++] = entry;
	}
	return all;
}
