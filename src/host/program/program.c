/* Runs a program as a provider of sandboxes: it answers in lines instead of over HTTP
 * (doc/programs.md). cloud.c has the life cycle, labels and records. */
#include "config.h"

#include "host/program/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/cloud/actions_int.h"
#include "host/config/settings.h"
#include "host/program/program_int.h"
#include "proto/json.h"

#define WHO "the program"
#define FOUND_MAX 10000
#define CHECK_MS 10000 /* ms for "hello" when all programs are checked */

/* A table made by hr_program_entry(); both strings follow it in memory. */
struct table {
	struct hr_sandbox_ops ops; /* first member: callers hold a pointer to it */
	const char *name, *path;
};

struct program *
hr_program_of(struct hr_cloud *c)
{
	return c->own;
}

/* ---- requests ---- */

static const char all_lack[] =
    "Each command runs in a new shell: its directory, variables and programs do not last, and a "
    "running command takes no input; no Jupyter, MCP servers, browser, editor or live view.";

/* Starts the program and takes the title and limits from its answer to "hello". */
static int
meet(struct hr_cloud *c, struct hr_err *err)
{
	struct program *p = hr_program_of(c);

	if (hr_child_start(&p->child, err) != 0)
		return -1;
	/* repeated after each start: a restarted program may answer otherwise */
	p->ops.title = p->child.about.title[0] != '\0' ? p->child.about.title : p->child.name;
	p->lacks[0] = p->child.about.lacks[0] != '\0' ? p->child.about.lacks : all_lack;
	return 0;
}

int
hr_program_talk(
    struct hr_cloud *c, const struct hr_child_call *q, struct hr_child_end *ret, struct hr_err *err)
{
	*ret = (struct hr_child_end){.told = true};
	return meet(c, err) == 0 ? hr_child_ask(&hr_program_of(c)->child, q, ret, err) : -1;
}

int
hr_program_named(struct hr_cloud *c, int r, struct hr_err *err)
{
	if (r != 0)
		hr_err_prefix(err, "back-end %s", hr_program_of(c)->child.name);
	return r;
}

struct json_object *
hr_program_args(struct hr_cloud *c, const char *name, const char *text, struct hr_err *err)
{
	return hr_json_texts(err, "sandbox", c->id, name, text, NULL);
}

unsigned
hr_program_patience(struct hr_cloud *c, unsigned times)
{
	unsigned ms = hr_program_of(c)->child.patience_ms;

	return ms < 100000000u ? ms * times : ms;
}

int
hr_program_ask(struct hr_cloud *c, const char *op, struct json_object *args, unsigned times,
    struct json_object **ret_ok, struct hr_err *err)
{
	const struct hr_child_call q = {
	    .op = op, .args = args, .timeout_ms = hr_program_patience(c, times)};
	struct hr_child_end end = {0};
	int r = args != NULL ? hr_program_talk(c, &q, &end, err) : -1;

	json_object_put(args);
	if (ret_ok != NULL)
		*ret_ok = end.ok;
	else
		json_object_put(end.ok);
	return r;
}

/* Starts the program, and returns -1 with *err set if it lacks the ability `can`; `what` names the
 * ability in the error. */
int
hr_program_need(struct hr_cloud *c, enum hr_program_can can, const char *what, struct hr_err *err)
{
	const struct hr_child *child = &hr_program_of(c)->child;

	if (meet(c, err) != 0)
		return -1;
	if ((child->about.can & (unsigned)can) != 0)
		return 0;
	return hr_err_set(err, HR_E_RUNTIME,
	    "%s runtime does not support %s: its program does not say that it can", child->name,
	    what);
}

/* ---- life ---- */

static int
p_create(struct hr_cloud *c, bool *unsure, struct hr_err *err)
{
	struct json_object *args = hr_json_object(err, "name", json_object_new_string(c->h->sid),
	    "workspace", json_object_new_string(hr_cloud_workspace(c)), "image",
	    hr_json_maybe(c->image), "labels", hr_cloud_labels(c), NULL);
	struct hr_child_call q = {
	    .op = "create", .args = args, .timeout_ms = hr_program_patience(c, HR_PROGRAM_SLOW)};
	struct hr_child_end end = {0};
	const char *id;
	int r = args != NULL ? 0 : -1;

	*unsure = false;
	/* the program refused "hello" or "open" before "create" was sent */
	c->unmade = r == 0 && meet(c, err) != 0;
	if (c->unmade)
		r = -1;
	if (r == 0 && (c->image != NULL || c->payload != NULL))
		r = hr_program_need(c, HR_PROGRAM_SERVER,
		    c->image != NULL ? "a server in its sandboxes (sandbox.runtime_container_image)"
				     : "a server in its sandboxes (sandbox.payload)",
		    err);
	if (r == 0) {
		r = hr_program_talk(c, &q, &end, err);
		*unsure = r != 0 && !end.told;
		if (r == 0)
			r = hr_program_named(c,
			    hr_program_word(end.ok, "the answer to \"create\"", "id",
				HR_PROGRAM_WORD_MAX, &id, err),
			    err);
		if (r == 0)
			r = hr_text_set(&c->id, id, err);
	}
	json_object_put(end.ok);
	json_object_put(args);
	return r;
}

static int
p_wait(struct hr_cloud *c, struct hr_err *err)
{
	if (meet(c, err) != 0)
		return -1;
	if ((hr_program_of(c)->child.about.can & HR_PROGRAM_WAIT) == 0)
		return 0;
	return hr_program_ask(
	    c, "wait", hr_program_args(c, NULL, NULL, err), HR_PROGRAM_SLOW, NULL, err);
}

static int
read_state(struct json_object *o, const char *subject, const char **ret, struct hr_err *err)
{
	static const char *const known[] = {"running", "paused", "exited", "gone"};
	const char *state;
	size_t i;

	if (hr_program_word(o, subject, "state", HR_PROGRAM_WORD_MAX, &state, err) != 0)
		return -1;
	for (i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(known[i], state) == 0) {
			*ret = known[i];
			return 0;
		}
	return hr_err_set(err, HR_E_PROTO,
	    WHO ": \"state\" of %s must be running, paused, exited or gone", subject);
}

static int
p_look(struct hr_cloud *c, struct hr_err *err)
{
	HR_PUT struct json_object *ok = NULL;
	const char *state = "gone";
	struct hr_err mine = {0};
	int r = hr_program_ask(c, "look", hr_program_args(c, NULL, NULL, &mine), 1, &ok, &mine);

	if (r == 0)
		r = hr_program_named(
		    c, read_state(ok, "the answer to \"look\"", &state, &mine), &mine);
	r = hr_api_or_gone(r, &mine, err);
	if (r == 0)
		(void)snprintf(c->state, sizeof(c->state), "%s", state);
	return r;
}

struct listed {
	const char *run;
	hr_cloud_found_fn *fn;
	void *arg;
	unsigned n;
	bool enough;
};

static int
on_found(void *arg, const struct hr_program_answer *a, struct hr_err *err)
{
	static const char one[] = "a sandbox of its list";
	struct json_object *labels;
	struct listed *l = arg;
	struct hr_cloud_found f;
	const char *id;
	int r;

	if (a->kind != HR_PROGRAM_FOUND)
		return hr_err_set(err, HR_E_PROTO, WHO ": a list entry is not a sandbox");
	if (++l->n > FOUND_MAX)
		return hr_err_set(
		    err, HR_E_TOOLARGE, WHO ": its list has more than %d sandboxes", FOUND_MAX);
	if (hr_program_word(a->body, one, "id", HR_PROGRAM_WORD_MAX, &id, err) != 0 ||
	    hr_field_of(WHO, one, a->body, "labels", json_type_object, &labels, err) != 0 ||
	    hr_cloud_found_in(WHO, a->body, "labels", &f, err) != 0)
		return -1;
	f.id = id;
	if (read_state(a->body, one, &f.state, err) != 0)
		return -1;
	if (l->enough || f.run == NULL || (l->run != NULL && strcmp(l->run, f.run) != 0) ||
	    strcmp(f.state, "gone") == 0)
		return 0;
	r = l->fn(l->arg, &f);
	l->enough = r > 0;
	return r < 0 ? hr_err_nomem(err) : 0;
}

static int
p_list(struct hr_cloud *c, const char *run, hr_cloud_found_fn *fn, void *arg, struct hr_err *err)
{
	struct listed l = {.run = run, .fn = fn, .arg = arg};
	struct hr_child_call q = {
	    .op = "list", .timeout_ms = hr_program_patience(c, 1), .event = on_found, .arg = &l};
	struct hr_child_end end = {0};
	int r;

	q.args = hr_json_texts(err, "run", run, NULL);
	r = q.args != NULL ? hr_program_talk(c, &q, &end, err) : -1;
	json_object_put(q.args);
	json_object_put(end.ok);
	return r;
}

static int
p_end(struct hr_cloud *c, const char *id, struct hr_err *err)
{
	struct hr_err mine = {0};
	int r = hr_program_ask(
	    c, "end", hr_json_texts(&mine, "sandbox", id, NULL), HR_PROGRAM_SLOW, NULL, &mine);

	return hr_api_or_gone(r, &mine, err);
}

static int
p_pause(struct hr_cloud *c, struct hr_err *err)
{
	return hr_program_need(c, HR_PROGRAM_PAUSE, "pause", err) == 0
		   ? hr_program_ask(c, "pause", hr_program_args(c, NULL, NULL, err),
			 HR_PROGRAM_SLOW, NULL, err)
		   : -1;
}

static int
p_resume(struct hr_cloud *c, struct hr_err *err)
{
	return hr_program_need(c, HR_PROGRAM_RESUME, "resume", err) == 0
		   ? hr_program_ask(c, "resume", hr_program_args(c, NULL, NULL, err),
			 HR_PROGRAM_SLOW, NULL, err)
		   : -1;
}

/* Passes on only known figures, and only numbers. */
static int
p_stats(struct hr_cloud *c, char **ret_json, struct hr_err *err)
{
	static const char *const names[] = {
	    "cpu_percent", "mem_bytes", "mem_limit_bytes", "mem_percent"};
	HR_PUT struct json_object *ok = NULL;
	double v = 0;
	HR_BUF(b, 1000);
	int r = hr_program_need(c, HR_PROGRAM_STATS, "stats", err);
	size_t i;

	if (r == 0)
		r = hr_program_ask(c, "stats", hr_program_args(c, NULL, NULL, err), 1, &ok, err);
	for (i = 0; r == 0 && i < sizeof(names) / sizeof(*names); i++) {
		r = hr_program_named(
		    c, hr_field_number(WHO, "the answer to \"stats\"", ok, names[i], &v, err), err);
		hr_buf_addf(&b, "%s\"%s\":%.1f", i == 0 ? "{" : ",", names[i], v);
	}
	hr_buf_addc(&b, '}');
	if (r == 0 && (*ret_json = hr_buf_take(&b)) == NULL)
		r = hr_err_nomem(err);
	return r;
}

static int
p_keep(struct hr_cloud *c, unsigned seconds, struct hr_err *err)
{
	struct json_object *args;

	if (meet(c, err) != 0)
		return -1;
	if ((hr_program_of(c)->child.about.can & HR_PROGRAM_KEEP) == 0)
		return 0;
	args = hr_json_object(err, "sandbox", json_object_new_string(c->id), "seconds",
	    json_object_new_int64(seconds), NULL);
	return hr_program_ask(c, "keep", args, 1, NULL, err);
}

/* ---- open ---- */

static void
on_words(void *arg, const char *line)
{
	struct hr_cloud *c = arg;
	char text[1500];

	(void)snprintf(text, sizeof(text), "%s: %s", c->ops->name, line);
	if (c->h->log != NULL)
		c->h->log(c->h->arg, text);
}

/* Copies the variables that any program gets; the user names further ones. */
static void
plain_env(struct hr_strv *to, const char *const *given)
{
	static const char *const names[] = {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL",
	    "LC_CTYPE", "TERM", "TMPDIR", "TZ", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *v = hr_env_get(given, names[i]);

		if (v != NULL)
			hr_strv_addf(to, "%s=%s", names[i], v);
	}
}

static struct json_object *
setting(struct hr_cloud *c, const char *name)
{
	char key[300];

	(void)snprintf(key, sizeof(key), "%s.%s", hr_program_of(c)->child.name, name);
	return hr_config_value(c->h->config, key);
}

/* Makes {"NAME": value} of the variables that the setting "credentials" names. */
static int
credentials(struct hr_cloud *c, struct json_object *to, struct hr_err *err)
{
	struct json_object *list = setting(c, "credentials");
	size_t i;

	for (i = 0; i < hr_json_count(list); i++) {
		const char *name = hr_json_text(hr_json_entry(list, i));
		HR_FREE char *value = name != NULL ? hr_cloud_key(c, name, err) : NULL;
		int r = -1;

		if (name == NULL)
			return hr_err_set(err, HR_E_INVAL,
			    "%s.credentials has an entry that is not the name of a variable",
			    hr_program_of(c)->child.name);
		if (value != NULL) {
			hr_strv_add(&hr_program_of(c)->secrets, value);
			r = hr_json_set(to, name, json_object_new_string(value), err);
		}
		if (r != 0)
			return -1;
	}
	return hr_program_of(c)->secrets.failed ? hr_err_nomem(err) : 0;
}

static int
environment(struct hr_cloud *c, struct hr_err *err)
{
	struct json_object *list = setting(c, "environment");
	struct program *p = hr_program_of(c);
	size_t i;

	plain_env(&p->env, c->h->environ);
	for (i = 0; i < hr_json_count(list); i++) {
		const char *name = hr_json_text(hr_json_entry(list, i));
		const char *v = name != NULL ? hr_env_get(c->h->environ, name) : NULL;

		if (v != NULL)
			hr_strv_addf(&p->env, "%s=%s", name, v);
	}
	return p->env.failed ? hr_err_nomem(err) : 0;
}

static int
p_open(struct hr_cloud *c, struct hr_err *err)
{
	const struct table *t = (const struct table *)(const void *)c->h->ops;
	struct program *p = calloc(1, sizeof(*p));
	struct json_object *secrets, *settings, *timeout;
	int64_t seconds = 60;
	int r;

	if (p == NULL)
		return hr_err_nomem(err);
	p->common = c->ops;
	p->ops = *c->ops;
	p->ops.name = p->ops.title = t->name;
	p->lacks[0] = all_lack;
	p->ops.lacks = p->lacks;
	hr_child_init(&p->child, t->name, t->path, NULL);
	c->own = p;
	c->ops = &p->ops;
	if (environment(c, err) != 0)
		return -1;
	timeout = setting(c, "timeout");
	if (timeout != NULL)
		seconds = json_object_get_int64(timeout);
	if (seconds < 1 || seconds > 3600)
		return hr_err_set(err, HR_E_INVAL, "%s.timeout is %lld, not 1 to 3600 seconds",
		    t->name, (long long)seconds);
	settings = setting(c, "settings");
	secrets = json_object_new_object();
	r = secrets != NULL ? credentials(c, secrets, err) : hr_err_nomem(err);
	p->opening = hr_json_object(err, "settings",
	    settings != NULL ? json_object_get(settings) : json_object_new_object(), "credentials",
	    secrets, NULL);
	if (r == 0 && p->opening == NULL)
		r = -1;
	p->child.env = hr_strv_list(&p->env);
	p->child.opening = p->opening;
	p->child.secrets = hr_strv_list(&p->secrets);
	p->child.patience_ms = (unsigned)seconds * 1000;
	if (p->child.greet_ms < p->child.patience_ms)
		p->child.greet_ms = p->child.patience_ms;
	p->child.say = on_words;
	p->child.arg = c;
	return r;
}

static void
p_done(struct hr_cloud *c)
{
	struct program *p = hr_program_of(c);

	if (p == NULL)
		return;
	hr_child_done(&p->child);
	hr_strv_done(&p->env);
	hr_strv_done(&p->secrets);
	json_object_put(p->opening);
	c->own = NULL;
	c->ops = p->common;
	free(p);
}

static const struct hr_cloud_ops program_ops = {
    .name = "program",
    .title = "program",
    .open = p_open,
    .lists_at_once = true, /* doc/programs.md requires that "list" has a new sandbox at once */
    .create = p_create,
    .wait = p_wait,
    .look = p_look,
    .list = p_list,
    .end = p_end,
    .pause = p_pause,
    .resume = p_resume,
    .stats = p_stats,
    .keep = p_keep,
    .exec = hr_program_exec,
    .get = hr_program_get,
    .put = hr_program_put,
    .launch = hr_program_launch,
    .publish = hr_program_publish,
    .done = p_done,
};

static int
program_open(const struct hr_backend_host *h, void **ret_self, struct hr_err *err)
{
	return hr_cloud_open(&program_ops, h, ret_self, err);
}

static const struct hr_backend_option options[] = {
    {"settings", HR_OPTION_MAP, NULL, false, "settings that the program gets unchanged"},
    {"credentials", HR_OPTION_LIST, NULL, false,
	"names of variables whose values only the program gets"},
    {"environment", HR_OPTION_LIST, NULL, false,
	"names of variables that are in the program's environment"},
    {"timeout", HR_OPTION_INT, "60", false, "seconds that it may take to answer"}, {0}};

static const struct hr_sandbox_ops kind_ops = HR_CLOUD_TABLE("program", program_open);

static int
program_doctor(void *self, hr_finding_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_cloud *c = self;
	struct hr_err why = {0};
	bool ok = meet(c, &why) == 0;

	(void)err;
	fn(arg, ok, "program", ok ? hr_program_of(c)->child.path : why.msg);
	return 0;
}

struct hr_sandbox_ops *
hr_program_entry(unsigned abi, const char *name, const char *path)
{
	size_t n = strlen(name) + 1, m = strlen(path) + 1;
	struct table *t = abi == HR_BACKEND_ABI ? malloc(sizeof(*t) + n + m) : NULL;
	char *texts = (char *)(t + 1);

	if (t == NULL)
		return NULL;
	memcpy(texts, name, n);
	memcpy(texts + n, path, m);
	t->ops = kind_ops;
	t->ops.name = t->name = texts;
	t->path = texts + n;
	t->ops.options = options;
	t->ops.exec = hr_program_shell;
	t->ops.doctor = program_doctor;
	return &t->ops;
}

int
hr_programcheck_entry(
    const char *name, const char *path, const char *const *given, struct hr_err *err)
{
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	HR_CLEAN(hr_child_done) struct hr_child c = {0};

	plain_env(&env, given);
	hr_child_init(&c, name, path, hr_strv_list(&env));
	c.greet_ms = CHECK_MS;
	return env.failed ? hr_err_nomem(err) : hr_child_start(&c, err);
}
