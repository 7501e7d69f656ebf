/* Environments. Commands see ours (the contract), less what would tell them about us. */
#include "config.h"

#include "supervisor/children/childenv.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool
is_ours(const char *entry)
{
	static const char *const names[] = {"SESSION_API_KEY=", "NOTIFY_SOCKET=", "WATCHDOG_USEC=",
	    "WATCHDOG_PID=", "LISTEN_FDS=", "LISTEN_PID=", "LISTEN_FDNAMES=", "HANDRAIL_"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strncmp(entry, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

char **
hr_childenv_new(char *const *env, struct hr_err *err)
{
	size_t n = 0, i;
	char **copy;

	while (env[n] != NULL)
		n++;
	copy = calloc(n + 1, sizeof(*copy));
	for (i = n = 0; copy != NULL && env[i] != NULL; i++) {
		if (is_ours(env[i]))
			continue;
		copy[n] = strdup(env[i]);
		if (copy[n++] == NULL) {
			hr_childenv_free(copy);
			copy = NULL;
		}
	}
	return copy != NULL ? copy : hr_err_null(err);
}

void
hr_childenv_free(char **env)
{
	size_t i;

	if (env == NULL)
		return;
	for (i = 0; env[i] != NULL; i++)
		free(env[i]);
	free(env);
}
