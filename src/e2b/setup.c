#include "config.h"

#include "e2b/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/clean.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text/text.h"
#include "proto/json.h"

#define FILE_MAX (4u << 20)
#define SHOWN "/run/e2b" /* programs of E2B's templates read the ids here */

static char *
file_of(const char *run_dir)
{
	return hr_path_join(run_dir, "e2b.json");
}

void
hr_e2b_setup_done(struct hr_e2b_setup *s)
{
	json_object_put(s->doc);
	memset(s, 0, sizeof(*s));
}

static bool
is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int
hr_e2b_setup_read(struct hr_e2b_setup *s, const char *run_dir, struct hr_err *err)
{
	HR_FREE char *path = file_of(run_dir);
	HR_BUF(text, FILE_MAX);
	struct stat st;

	if (path == NULL)
		return hr_err_nomem(err);
	if (lstat(path, &st) < 0) {
		hr_e2b_setup_done(s);
		return errno == ENOENT ? 0 : hr_err_sys(err, errno, "%s", path);
	}
	if (is_same(&st, &s->st))
		return 0;
	hr_e2b_setup_done(s);
	if (hr_path_read(path, &text, err) < 0)
		return -1;
	if (hr_json_decode(hr_buf_str(&text), text.len, &s->doc, NULL) < 0)
		return hr_err_set(err, HR_E_INVAL, "%s is not JSON", path);
	if (hr_e2b_setup_check(s->doc, err) < 0) {
		hr_e2b_setup_done(s);
		return -1;
	}
	s->st = st;
	s->user = hr_json_text_at(s->doc, "defaultUser");
	s->directory = hr_json_text_at(s->doc, "defaultWorkdir");
	return 0;
}

int
hr_e2b_setup_check(struct json_object *doc, struct hr_err *err)
{
	static const char *const texts[] = {
	    "defaultUser", "defaultWorkdir", "sandboxId", "templateId"};
	struct json_object *v;
	size_t i;

	if (hr_json_type(doc) != HR_PY_DICT)
		return hr_err_set(err, HR_E_INVAL, "the setup must be an object");
	if (hr_json_has_null(doc))
		return hr_err_set(err, HR_E_INVAL, "the setup must not contain null characters");
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		v = hr_json_at(doc, texts[i]);
		if (v != NULL && hr_json_type(v) != HR_PY_STR)
			return hr_err_set(err, HR_E_INVAL, "%s must be a string", texts[i]);
	}
	v = hr_json_at(doc, "envVars");
	if (v != NULL && (hr_json_type(v) != HR_PY_DICT || !hr_json_all_strings(v)))
		return hr_err_set(err, HR_E_INVAL, "envVars must be an object of strings");
	return 0;
}

int
hr_e2b_setup_write(const char *run_dir, struct json_object *doc, uid_t sandbox, struct hr_err *err)
{
	const struct passwd *account = geteuid() == 0 ? getpwuid(sandbox) : NULL;
	HR_FREE char *path = file_of(run_dir);
	HR_FREE char *text = hr_json_string(doc, FILE_MAX, err);

	if (text == NULL)
		return -1;
	if (path == NULL)
		return hr_err_nomem(err);
	if (hr_path_write(path, text, strlen(text), 0640, err) < 0)
		return -1;
	if (account != NULL && chown(path, (uid_t)-1, account->pw_gid) != 0)
		return hr_err_sys(err, errno, "%s", path);
	return 0;
}

static int
show(int dir, const char *name, const char *text, struct hr_err *err)
{
	HR_FREE char *part = NULL;
	HR_CLOSE int fd = -1;

	if (text == NULL)
		return 0;
	if (hr_text_setf(&part, err, "%s.%ld~", name, (long)getpid()) < 0)
		return -1;
	(void)unlinkat(dir, part, 0);
	fd = openat(dir, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 || hr_fd_write_full(fd, text, strlen(text), NULL) < 0 ||
	    renameat(dir, part, dir, name) < 0) {
		(void)hr_err_sys(err, errno, SHOWN "/%s", name);
		(void)unlinkat(dir, part, 0);
		return -1;
	}
	return 0;
}

int
hr_e2b_setup_show(struct json_object *doc, struct hr_err *err)
{
	HR_CLOSE int dir = -1;

	if (!hr_json_true_at(doc, "ownRun"))
		return 0;
	if (mkdir(SHOWN, 0755) != 0 && errno != EEXIST)
		return hr_err_sys(err, errno, SHOWN);
	dir = open(SHOWN, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return hr_err_sys(err, errno, SHOWN);
	return show(dir, ".E2B_SANDBOX", "true", err) < 0 ||
		       show(dir, ".E2B_SANDBOX_ID", hr_json_text_at(doc, "sandboxId"), err) < 0
		   ? -1
		   : show(dir, ".E2B_TEMPLATE_ID", hr_json_text_at(doc, "templateId"), err);
}

struct json_object *
hr_e2b_setup_variables(const struct hr_e2b_setup *s, struct hr_err *err)
{
	struct json_object *own = hr_json_texts(err, "E2B_SANDBOX", "true", "E2B_SANDBOX_ID",
	    hr_json_text_at(s->doc, "sandboxId"), "E2B_TEMPLATE_ID",
	    hr_json_text_at(s->doc, "templateId"), NULL);
	struct json_object *from = hr_json_typed_at(s->doc, "envVars", HR_PY_DICT);

	if (own == NULL || from == NULL)
		return own;
	json_object_object_foreach(from, name, value)
	{
		if (hr_json_at(own, name) == NULL &&
		    hr_json_set(own, name, json_object_get(value), err) < 0) {
			json_object_put(own);
			return NULL;
		}
	}
	return own;
}
