/* The token's file. Invariant: under its name it has the right owner and holds a whole text. */
#include "config.h"

#include "supervisor/run/token.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/random.h"
#include "supervisor/run/rundir.h"

#define TOKEN_FILE "www/connection_token"
#define KEPT_FILE "www/token"

static bool
is_uuid(const char *p)
{
	static const char form[] = "xxxxxxxx-xxxx-4xxx-xxxx-xxxxxxxxxxxx";
	size_t i;

	for (i = 0; i < sizeof(form) - 1; i++)
		if (form[i] == 'x' ? !isxdigit((unsigned char)p[i]) || isupper((unsigned char)p[i])
				   : p[i] != form[i])
			return false;
	return true;
}

static bool
take_over(struct hr_token *t, const struct hr_rundir *r)
{
	const size_t id = sizeof(t->text) - 1;
	HR_BUF(b, 256);
	HR_FREE char *path = hr_rundir_file(r, KEPT_FILE);
	bool found;

	found = path != NULL && hr_path_read(path, &b, NULL) == 0 && b.len == id && is_uuid(b.p);
	if (found) {
		memcpy(t->text, b.p, id);
		t->text[id] = '\0';
	}
	return found;
}

int
hr_token_init(struct hr_token *t, const struct hr_rundir *r, struct hr_err *err)
{
	t->shown = false;
	if (r->inherited && take_over(t, r))
		return 0;
	return hr_random_uuid(t->text, err);
}

/* Under another name until its owner is right: nginx may ask at any time. */
static int
write_file(const struct hr_rundir *r, const char *path, const char *fresh, bool shown,
    const char *token, struct hr_err *err)
{
	HR_BUF(b, 256);

	if (shown)
		hr_buf_addf(&b, "{\"token\":\"%s\"}", token);
	else
		hr_buf_adds(&b, "{\"token\":null}");
	if (hr_buf_check(&b, err) != 0 ||
	    hr_path_write(fresh, hr_buf_str(&b), b.len, S_IRUSR, err) != 0)
		return -1;
	if ((r->privileged && chown(fresh, r->nginx_uid, 0) != 0) || rename(fresh, path) != 0) {
		(void)hr_err_sys(err, errno, "%s", path);
		(void)unlink(fresh);
		return -1;
	}
	return 0;
}

int
hr_token_show(struct hr_token *t, const struct hr_rundir *r, bool shown, struct hr_err *err)
{
	HR_FREE char *path = hr_rundir_file(r, TOKEN_FILE);
	HR_FREE char *fresh = hr_rundir_file(r, TOKEN_FILE ".new");
	HR_FREE char *kept = hr_rundir_file(r, KEPT_FILE);

	if (path == NULL || fresh == NULL || kept == NULL)
		return hr_err_nomem(err);
	if (hr_path_write(kept, t->text, sizeof(t->text) - 1, S_IRUSR, err) != 0 ||
	    write_file(r, path, fresh, shown, t->text, err) != 0)
		return -1;
	t->shown = shown;
	return 0;
}
