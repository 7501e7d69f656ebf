/* Checks the words of the setting cors_origins. */
#include "config.h"

#include "supervisor/settings/origins.h"

#include <stdbool.h>
#include <string.h>

#define WORD_MAX 300 /* bytes: a scheme, the longest DNS name, a port */

static bool
has_only(const char *word, size_t len, const char *more)
{
	static const char good[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	size_t i;

	for (i = 0; i < len; i++)
		if (strchr(good, word[i]) == NULL && strchr(more, word[i]) == NULL)
			return false;
	return len > 0 && len <= WORD_MAX;
}

enum hr_origins_word
hr_origins_type(const char *word, size_t len)
{
	static const char sep[] = "://";
	const char *at = memmem(word, len, sep, sizeof(sep) - 1);

	if (len == 1 && *word == '*')
		return HR_ORIGINS_ANY;
	if (at != NULL && at > word && has_only(word, len, ":/[]+"))
		return HR_ORIGINS_ORIGIN;
	return has_only(word, len, ":[]") ? HR_ORIGINS_HOST : HR_ORIGINS_BAD;
}
