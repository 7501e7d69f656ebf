#include "config.h"

#include "e2b/who.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/text/quote.h"

#define NAME_CAP 4096

bool
hr_e2b_who_named(const char *authorization, struct hr_buf *ret)
{
	static const char scheme[] = "Basic ";
	HR_BUF(pair, NAME_CAP);
	const char *text = authorization + sizeof(scheme) - 1, *colon;

	if (strncasecmp(authorization, scheme, sizeof(scheme) - 1) != 0 ||
	    !hr_quote_unbase64(&pair, text, strlen(text)))
		return false;
	if (pair.fail != HR_OK) /* no user has the empty name: it is not the default user */
		return true;
	colon = memchr(hr_buf_str(&pair), ':', pair.len);
	if (colon == NULL)
		return false;
	hr_buf_add(ret, pair.p, (size_t)(colon - pair.p));
	return true;
}

bool
hr_e2b_who_find(
    struct hr_e2b_who *who, const char *name, const struct hr_e2b_setup *s, uid_t sandbox)
{
	const struct passwd *pw;

	memset(who, 0, sizeof(*who));
	if (name == NULL)
		name = s->user;
	pw = name != NULL ? getpwnam(name) : getpwuid(sandbox);
	if (pw == NULL && name != NULL)
		return false;
	/* the sandbox's user may have no entry in /etc/passwd of a container */
	who->uid = pw != NULL ? pw->pw_uid : sandbox;
	who->gid = pw != NULL ? pw->pw_gid : getegid();
	who->home = strdup(pw != NULL && pw->pw_dir[0] == '/' ? pw->pw_dir : "/");
	if (pw != NULL)
		who->name = strdup(pw->pw_name);
	else if (asprintf(&who->name, "%u", (unsigned)sandbox) < 0)
		who->name = NULL;
	return who->name != NULL && who->home != NULL;
}

void
hr_e2b_who_done(struct hr_e2b_who *who)
{
	free(who->name);
	free(who->home);
	who->name = who->home = NULL;
}
