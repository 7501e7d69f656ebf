/* Writes the token's file. Invariant: under its name it has the right owner and complete
 * content. */
#include "config.h"

#include "supervisor/run/token.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

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
take_over(char ret[HR_TOKEN_LEN + 1], const struct hr_rundir *r, const char *file)
{
	HR_BUF(b, 256);
	HR_FREE char *path = hr_rundir_file(r, "%s", file);
	bool found = path != NULL && hr_path_read(path, &b, NULL) == 0 && b.len == HR_TOKEN_LEN &&
		     is_uuid(b.p);

	if (found)
		memcpy(ret, hr_buf_str(&b), HR_TOKEN_LEN + 1);
	return found;
}

int
hr_token_take(
    char ret[HR_TOKEN_LEN + 1], const struct hr_rundir *r, const char *file, struct hr_err *err)
{
	if (r->inherited && take_over(ret, r, file))
		return 0;
	return hr_random_uuid(ret, err);
}

int
hr_token_keep(const char *text, const struct hr_rundir *r, const char *file, struct hr_err *err)
{
	HR_FREE char *path = hr_rundir_file(r, "%s", file);

	return path != NULL ? hr_path_write(path, text, HR_TOKEN_LEN, S_IRUSR, err)
			    : hr_err_nomem(err);
}

int
hr_token_init(struct hr_token *t, const struct hr_rundir *r, struct hr_err *err)
{
	t->shown = false;
	return hr_token_take(t->text, r, KEPT_FILE, err);
}

int
hr_token_show(struct hr_token *t, const struct hr_rundir *r, bool shown, struct hr_err *err)
{
	HR_BUF(b, 256);
	HR_FREE char *path = hr_rundir_file(r, TOKEN_FILE);

	if (path == NULL)
		return hr_err_nomem(err);
	if (shown)
		hr_buf_addf(&b, "{\"token\":\"%s\"}", t->text);
	else
		hr_buf_adds(&b, "{\"token\":null}");
	/* sets the owner before the name, since nginx may read it at any time */
	if (hr_token_keep(t->text, r, KEPT_FILE, err) < 0 || hr_buf_check(&b, err) < 0 ||
	    hr_path_write_for(path, hr_buf_str(&b), b.len, S_IRUSR,
		r->privileged ? r->nginx_uid : HR_PATH_OWN, err) < 0)
		return -1;
	t->shown = shown;
	return 0;
}
