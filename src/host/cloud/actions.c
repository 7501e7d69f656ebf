/* Performs actions for providers that offer only commands and files: each command runs in a shell
 * of its own, and the editor of the back-end "cli" works on local copies of files. */
#include "config.h"

#include "host/cloud/actions_int.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/err.h"
#include "base/random.h"
#include "host/direct/direct_int.h"
#include "proto/json.h"
#include "proto/obs.h"

#define MARK "HANDRAIL_COMMAND"

/* ---- run ---- */

static void
on_output(void *arg, int stream, const char *p, size_t len)
{
	(void)stream;
	hr_direct_said_add(arg, p, len);
}

/* Signals all processes that a command has started: the provider knows only the shell. *ret is set
 * if a process was found. */
static int
signal_all(struct hr_cloud *c, const char *mark, const char *name, bool *ret, struct hr_err *err)
{
	char line[500];
	int status = 1, r;

	/* stop all processes first, as a terminal signals all at once: a process started meanwhile
	 * would miss the signal, and a shell that waits for it would not end */
	(void)snprintf(line, sizeof(line),
	    "s=; n=1; while [ $n = 1 ]; do n=0; "
	    "for p in $(grep -lsz '^" MARK "=%s$' /proc/[0-9]*/environ); do "
	    "p=${p#/proc/}; p=${p%%/environ}; case \"$s \" in *\" $p \"*) ;; "
	    "*) s=\"$s $p\"; n=1; kill -STOP \"$p\" 2>/dev/null ;; esac; done; done; "
	    "[ -n \"$s\" ] || exit 1; kill -%s $s 2>/dev/null; r=$?; "
	    "kill -CONT $s 2>/dev/null; exit $r",
	    mark, name);
	r = hr_cloud_helper(c, line, NULL, &status, err);
	*ret = r == 0 && status == 0;
	return r;
}

/* Kills the processes that a timed-out command left. */
static void
end_rest(struct hr_cloud *c, const char *mark)
{
	struct hr_err e = {0};
	bool some;

	if (signal_all(c, mark, "KILL", &some, &e) != 0 && c->h->log != NULL)
		c->h->log(c->h->arg, e.msg);
}

/* Makes the command known to interrupt(); mark NULL: no command runs. */
static void
set_running(struct hr_cloud *c, const char *mark)
{
	char *record = mark != NULL ? hr_cloud_record(c, NULL) : NULL;

	(void)pthread_mutex_lock(&c->lock);
	free(c->running);
	c->running = record;
	(void)snprintf(c->mark, sizeof(c->mark), "%s", mark != NULL ? mark : "");
	(void)pthread_mutex_unlock(&c->lock);
}

/* Uses its own connections, because those of *self wait for the command. */
int
hr_cloud_interrupt(void *self, int number, bool *ret, struct hr_err *err)
{
	struct hr_cloud *c = self;
	HR_FREE char *record = NULL;
	char mark[sizeof(c->mark)];
	void *other = NULL;
	int r;

	*ret = false;
	(void)pthread_mutex_lock(&c->lock);
	if (c->running != NULL)
		record = strdup(c->running);
	(void)snprintf(mark, sizeof(mark), "%s", c->mark);
	(void)pthread_mutex_unlock(&c->lock);
	if (*mark == '\0')
		return 0;
	if (record == NULL)
		return hr_err_nomem(err);
	r = hr_cloud_open(c->ops, c->h, &other, err);
	if (r == 0)
		r = hr_cloud_restore(other, record, err);
	if (r == 0)
		r = signal_all(other, mark, number == SIGKILL ? "KILL" : "INT", ret, err);
	if (other != NULL)
		hr_cloud_free(other);
	return r;
}

static char *
run(struct hr_cloud *c, struct json_object *action, struct hr_err *err)
{
	struct json_object *args = hr_json_at(action, "args");
	const char *line = hr_json_text_or(args, "command", "");
	const char *dir = hr_json_text_at(args, "cwd");
	double seconds = hr_json_number_at(action, "timeout");
	HR_CLEAN(hr_direct_said_done) struct hr_direct_said said = {0};
	struct hr_cloud_end end = {0};
	struct hr_err e = {0};
	struct hr_cloud_command q = {.line = line,
	    .cwd = dir != NULL && *dir == '/' ? dir : hr_cloud_workspace(c),
	    .output = on_output,
	    .arg = &said};
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	char mark[37], *text;
	int r;

	if (hr_direct_is_true(args, "is_input"))
		return hr_direct_error("AGENT_ERROR$BAD_ACTION", err,
		    "%s: each command runs in a new shell, so input such as '%s' cannot reach a "
		    "running one. Nothing was sent.",
		    c->ops->title, line);
	if (hr_random_uuid(mark, err) < 0)
		return NULL;
	hr_strv_add_all(&env, hr_strv_list(&c->env));
	hr_strv_addf(&env, MARK "=%s", mark);
	q.env = hr_strv_list(&env);
	if (seconds > 0)
		q.timeout_ms = seconds < 4e6 ? (unsigned)(seconds * 1000) : 4000000000u;
	hr_direct_said_init(&said, c->h);
	r = env.failed ? hr_err_nomem(&e) : hr_cloud_keep(c, seconds, &e);
	set_running(c, mark);
	if (r == 0)
		r = c->ops->exec(c, &q, &end, &e);
	set_running(c, NULL);
	if (r == 0 && end.timed_out)
		end_rest(c, mark);
	if (r == 0 && *end.note != '\0') {
		/* appends the note as output, so that live viewers see it, too */
		if (said.text.len > 0 && said.text.p[said.text.len - 1] != '\n')
			hr_direct_said_add(&said, "\n", 1);
		hr_direct_said_add(&said, end.note, strlen(end.note));
	}
	if (r == 0)
		text = hr_direct_observe(&said, line, q.cwd, end.code, end.timed_out ? seconds : -1,
		    hr_direct_is_true(args, "hidden"), err);
	else if (said.text.len > 0)
		text = hr_direct_error("", err,
		    "Failed to execute command: %s\nUntil then it printed:\n%.*s", e.msg,
		    (int)(said.text.len < 30000 ? said.text.len : 30000), said.text.p);
	else
		text = hr_direct_error("", err, "Failed to execute command: %s", e.msg);
	return text;
}

/* ---- cells ---- */

static char *
cell(struct hr_cloud *c, struct json_object *args, struct hr_err *err)
{
	const char *code = hr_json_text_or(args, "code", "");
	const struct hr_obs_extra extras[] = {
	    {.name = "code", .kind = HR_OBS_STR, .str = hr_span_of(code)},
	    {.name = "image_urls", .kind = HR_OBS_NULL}};
	struct hr_obs o = {.type = "run_ipython",
	    .message = {HR_OBS_SPAN("Code executed in IPython cell.")},
	    .extras = extras,
	    .extras_n = 2,
	    .has_success = true,
	    .bad = HR_JSON_REPLACE};
	struct hr_err e = {0};
	HR_BUF(content, HR_CLOUD_REPLY_MAX);
	HR_BUF(b, HR_DIRECT_TEXT_MAX);
	int r;

	r = hr_cloud_keep(c, 0, &e);
	if (r == 0)
		r = c->ops->code(c, code, &content, &e);
	o.content = hr_span_of_buf(&content);
	o.success = r == 0;
	if (r >= 0 && hr_obs_put(&b, &o) != 0)
		b.fail = HR_E_NOMEM;
	if (r >= 0)
		return hr_buf_end(&b, err);
	return hr_direct_error("", err, "IPython error: %s", e.msg);
}

/* ---- the editor's files ---- */

/* Copies a directory's listing, two levels deep, as empty files. Returns 1, or 0 if the path is not
 * a directory. */
static int
mirror_directory(struct hr_cloud *c, const char *path, const char *file, struct hr_err *err)
{
	struct hr_err e = {0};
	HR_BUF(out, HR_CLOUD_REPLY_MAX);
	int status = 0, r;
	size_t at;

	r = hr_cloud_helper_on(c, "d=", path,
	    "; [ -d \"$d\" ] && cd \"$d\" && find . -maxdepth 2 -printf '%y%P\\0'", &out, &status,
	    err);
	if (r == 0 && status == 0 && hr_path_mkdirs(file, 0700, NULL, &e) < 0)
		r = hr_err_from(err, HR_E_SYS, &e);
	for (at = 0; r == 0 && status == 0 && at + 1 < out.len;) {
		const char *entry = out.p + at;
		HR_FREE char *place = NULL;

		at += strlen(entry) + 1;
		if (entry[1] == '\0' || hr_path_leads_out(entry + 1))
			continue;
		place = hr_path_join(file, entry + 1);
		if (place == NULL)
			r = hr_err_nomem(err);
		else if (entry[0] == 'd')
			r = hr_path_mkdirs(place, 0700, NULL, &e) == 0
				? 0
				: hr_err_from(err, HR_E_SYS, &e);
		else
			r = hr_cloud_save(place, "", 0, err);
	}
	return r != 0 ? -1 : status == 0;
}

/* Copies the file to this machine; a missing file gives no copy. */
static int
fetch(struct hr_cloud *c, const char *path, const char *file, struct hr_buf *b, struct hr_err *err)
{
	struct hr_err e = {0};
	int r = c->ops->get(c, path, b, &e), is;

	if (r == 0)
		return hr_cloud_save(file, hr_buf_str(b), b->len, err);
	if (e.code == HR_E_NOTFOUND)
		return 0;
	is = e.code == HR_E_HTTP_STATUS || e.code == HR_E_RUNTIME
		 ? mirror_directory(c, path, file, err)
		 : 0;
	if (is == 0 && err != NULL)
		*err = e;
	return is == 1 ? 0 : -1;
}

/* Uploads the copy if it differs from b, the original content. */
static int
send_back(struct hr_cloud *c, const char *path, const char *file, const struct hr_buf *b,
    struct hr_err *err)
{
	struct hr_err e = {0};
	HR_BUF(now, HR_CLOUD_FILE_MAX);
	struct stat st;
	int r = 0;

	if (stat(file, &st) != 0 || !S_ISREG(st.st_mode))
		return 0;
	if (hr_path_read(file, &now, &e) != 0)
		r = hr_err_from(err, HR_E_SYS, &e);
	else if (b == NULL || b->p == NULL || b->len != now.len ||
		 memcmp(hr_buf_str(b), hr_buf_str(&now), now.len) != 0)
		r = c->ops->put(c, path, hr_buf_str(&now), now.len, err);
	return r;
}

/* Removes the copies' directory from the text: paths become the sandbox's again. */
static char *
without_mirror(struct hr_cloud *c, char *text)
{
	size_t n = strlen(c->mirror);
	char *from = text, *to = text, *at;

	for (; (at = strstr(from, c->mirror)) != NULL; from = at + n) {
		memmove(to, from, (size_t)(at - from));
		to += at - from;
	}
	memmove(to, from, strlen(from) + 1);
	return text;
}

typedef char *file_fn(struct hr_direct *d, struct json_object *args, struct hr_err *err);

/* Performs the action on a copy of the file. */
static char *
with_copy(struct hr_cloud *c, struct json_object *args, file_fn *fn, bool reads, bool writes,
    struct hr_err *err)
{
	const char *path = hr_json_text_or(args, "path", "");
	struct hr_direct d = {.h = c->h};
	struct hr_err e = {0};
	HR_BUF(b, HR_CLOUD_FILE_MAX);
	char *text = NULL;
	HR_FREE char *all = hr_cloud_absolute(c, path, err);
	HR_FREE char *there = NULL;
	HR_FREE char *file = NULL;
	char undo[PATH_MAX];

	if (all == NULL || hr_cloud_mirror(c, err) < 0)
		goto out;
	if (c->h->state_dir != NULL)
		(void)snprintf(undo, sizeof(undo), "%s/%s.undo", c->h->state_dir, c->h->sid);
	else
		(void)snprintf(undo, sizeof(undo), "%s/.undo", c->mirror);
	d.workspace = d.named = c->mirror;
	d.undo = undo;
	if (hr_text_setf(&there, err, "%s%s", c->mirror, all) != 0)
		goto out;
	file = hr_direct_path(&d, there, err);
	if (file == NULL)
		goto out;
	if ((reads && fetch(c, all, file, &b, &e) < 0) || hr_cloud_keep(c, 0, &e) != 0) {
		text = hr_direct_error("", err, "%s: %s", path, e.msg);
		goto out;
	}
	if (hr_json_set(args, "path", json_object_new_string(file), err) < 0)
		goto out;
	text = fn(&d, args, err);
	if (text != NULL && writes && send_back(c, all, file, reads ? &b : NULL, &e) != 0) {
		free(text);
		text = hr_direct_error("", err, "%s is not written: %s", all, e.msg);
	}
	if (text != NULL)
		text = without_mirror(c, text);
out:
	if (file != NULL)
		(void)hr_path_remove(file, NULL);
	return text;
}

/* ---- actions ---- */

static char *
perform(void *self, struct json_object *action, struct hr_err *err)
{
	struct hr_cloud *c = self;
	const char *type = hr_json_text_or(action, "action", "");
	struct json_object *args = hr_json_at(action, "args");

	if (strcmp(type, "run") == 0)
		return run(c, action, err);
	if (strcmp(type, "read") == 0)
		return with_copy(c, args, hr_direct_read, true, false, err);
	if (strcmp(type, "write") == 0)
		return with_copy(c, args, hr_direct_write, false, true, err);
	if (strcmp(type, "edit") == 0)
		return with_copy(c, args, hr_direct_edit, true, true, err);
	if (strcmp(type, "run_ipython") == 0 && c->ops->code != NULL)
		return cell(c, args, err);
	return hr_direct_error("", err,
	    "%s: \"%s\" needs handrail in the sandbox: sandbox.runtime_container_image names an "
	    "image with it",
	    c->ops->title, type);
}

int
hr_cloud_action(void *self, const char *text, char **ret, struct hr_err *err)
{
	return hr_direct_act(self, perform, text, ret, err);
}

int
hr_cloud_add_env(void *self, const char *const *env, struct hr_err *err)
{
	struct hr_cloud *c = self;

	return hr_strv_set_vars(&c->env, env, err);
}
