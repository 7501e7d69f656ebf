/* Composes environments. Commands get the server's (the contract), less the variables about the
 * server itself. */
#include "config.h"

#include "supervisor/children/childenv.h"

#include <stdbool.h>
#include <string.h>

static bool
is_ours(const char *entry)
{
	static const char *const names[] = {"SESSION_API_KEY=", "OH_SECRET_KEY=",
	    "OH_SESSION_API_KEYS", "NOTIFY_SOCKET=", "WATCHDOG_USEC=", "WATCHDOG_PID=",
	    "LISTEN_FDS=", "LISTEN_PID=", "LISTEN_FDNAMES=", "HANDRAIL_"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strncmp(entry, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

int
hr_childenv_fill(struct hr_strv *list, char *const *env, struct hr_err *err)
{
	for (; *env != NULL; env++)
		if (!is_ours(*env))
			hr_strv_add(list, *env);
	return list->failed ? hr_err_nomem(err) : 0;
}
