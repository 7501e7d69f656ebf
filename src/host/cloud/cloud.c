/* The life of a sandbox that a provider runs. Money is spent from the request to make one on, so
 * the label that leads to it is recorded before that request; whoever comes after a process that
 * died finds what it made by it, and a request whose answer got lost is not sent again before that.
 */
#include "config.h"

#include "host/cloud/cloud.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "host/command.h"
#include "base/err.h"
#include "host/config/settings.h"
#include "proto/json.h"
#include "shell/quote.h"

#define LOST_TRIES 3      /* to find what a lost answer told of */
#define LOST_WAIT_MS 2000 /* between them */
#define ALIVE_S 120
#define ALIVE_EVERY_MS 1000
#define KEY_FILE "/tmp/.handrail-start-" /* and what nobody guesses */

static void
say(const struct hr_cloud *c, const char *text)
{
	if (c->h->log != NULL)
		c->h->log(c->h->arg, text);
}

/* ---- labels ---- */

/* Who of all that share an account has made it: this user of this machine. */
static void
owner(char text[48])
{
	char id[40] = "";
	struct hr_buf b;

	hr_buf_init(&b, sizeof(id));
	if (hr_path_read("/etc/machine-id", &b, NULL) == 0)
		(void)snprintf(id, sizeof(id), "%.*s", (int)strcspn(hr_buf_str(&b), "\n"), b.p);
	if (*id == '\0' && gethostname(id, sizeof(id) - 1) != 0)
		(void)snprintf(id, sizeof(id), "unknown");
	hr_buf_done(&b);
	/* not the whole of it: the number itself is nobody's business */
	(void)snprintf(text, 48, "%.12s-%u", id, (unsigned)geteuid());
}

int
hr_cloud_labels(struct hr_cloud *c, struct json_object *o, struct hr_err *err)
{
	char who[48];

	owner(who);
	if (hr_cloud_put(o, "handrail_sid", json_object_new_string(c->h->sid), err) < 0 ||
	    hr_cloud_put(o, "handrail_run", json_object_new_string(c->run), err) < 0)
		return -1;
	return hr_cloud_put(o, "handrail_owner", json_object_new_string(who), err);
}

struct hr_cloud_found
hr_cloud_found_in(const char *id, struct json_object *labels)
{
	return (struct hr_cloud_found){.id = id,
	    .sid = hr_json_text_at(labels, "handrail_sid"),
	    .run = hr_json_text_at(labels, "handrail_run"),
	    .owner = hr_json_text_at(labels, "handrail_owner"),
	    .state = "running"};
}

/* ---- open, free ---- */

int
hr_cloud_open(const struct hr_cloud_ops *ops, const struct hr_backend_host *h, void **ret_self,
    struct hr_err *err)
{
	struct hr_cloud *c = calloc(1, sizeof(*c));
	const char *image = hr_config_text(h->config, "sandbox.runtime_container_image");

	if (c == NULL)
		return hr_err_nomem(err);
	c->ops = ops;
	c->h = h;
	c->image = image != NULL && *image != '\0' ? image : NULL;
	(void)snprintf(c->state, sizeof(c->state), "gone");
	if (ops->open(c, err) != 0) {
		hr_cloud_free(c);
		return -1;
	}
	if (hr_config_text(h->config, "core.workspace_base") != NULL)
		say(c, "core.workspace_base is for sandboxes of this machine: it is left out");
	*ret_self = c;
	return 0;
}

void
hr_cloud_free(void *self)
{
	struct hr_cloud *c = self;
	char *const texts[] = {
	    c->id, c->run, c->token, c->address, c->version, c->url, c->url_header, c->key};

	if (c->ops->done != NULL)
		c->ops->done(c);
	hr_cloud_mirror_drop(c);
	hr_api_done(&c->api);
	hr_api_done(&c->plane);
	hr_strv_done(&c->env);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		free(texts[i]);
	free(c);
}

/* ---- what is recorded ---- */

static char **
field(struct hr_cloud *c, size_t i, const char **name)
{
	const struct {
		const char *name;
		char **at;
	} fields[] = {{"id", &c->id}, {"run", &c->run}, {"token", &c->token},
	    {"address", &c->address}, {"version", &c->version}, {"url", &c->url},
	    {"url_header", &c->url_header}, {"key", &c->key}};

	if (i >= sizeof(fields) / sizeof(*fields))
		return NULL;
	*name = fields[i].name;
	return fields[i].at;
}

char *
hr_cloud_record(void *self, struct hr_err *err)
{
	struct hr_cloud *c = self;
	struct json_object *o = json_object_new_object(), *env = json_object_new_array();
	const char *name;
	struct hr_buf b;
	char **at, *text = NULL;
	int rc = o != NULL && env != NULL ? 0 : hr_err_nomem(err);

	for (size_t i = 0; rc == 0 && (at = field(c, i, &name)) != NULL; i++)
		if (*at != NULL)
			rc = hr_cloud_put(o, name, json_object_new_string(*at), err);
	for (size_t i = 0; rc == 0 && i < c->env.n; i++)
		if (json_object_array_add(env, json_object_new_string(c->env.v[i])) != 0)
			rc = hr_err_nomem(err);
	if (rc == 0)
		rc = hr_cloud_put(o, "old", json_object_new_boolean(c->old), err);
	if (rc == 0) {
		rc = hr_cloud_put(o, "env", env, err);
		env = NULL;
	}
	hr_buf_init(&b, 1 << 20);
	if (rc == 0 && hr_json_put(&b, o) != 0)
		rc = hr_err_set(err, HR_E_INVAL, "a variable's value is not UTF-8");
	if (rc == 0 && (text = hr_buf_take(&b)) == NULL)
		(void)hr_err_nomem(err);
	hr_buf_done(&b);
	json_object_put(env);
	json_object_put(o);
	return text;
}

static int
read_record(struct hr_cloud *c, const char *record, struct hr_err *err)
{
	struct json_object *o = NULL, *env;
	struct hr_json_error why;
	const char *name;
	char **at;
	int rc = 0;

	if (hr_json_decode(record, strlen(record), &o, &why) < 0 ||
	    hr_json_text_at(o, "run") == NULL)
		rc = hr_err_set(err, HR_E_INVAL, "the record of the sandbox is damaged");
	for (size_t i = 0; rc == 0 && (at = field(c, i, &name)) != NULL; i++)
		rc = hr_cloud_set(at, hr_json_text_at(o, name), err);
	c->old = hr_json_true_at(o, "old");
	env = hr_json_at(o, "env");
	for (size_t i = 0; rc == 0 && i < hr_json_count(env); i++)
		if (hr_json_text(hr_json_entry(env, i)) != NULL)
			hr_strv_add(&c->env, hr_json_text(hr_json_entry(env, i)));
	json_object_put(o);
	if (rc == 0 && c->env.failed)
		rc = hr_err_nomem(err);
	if (rc == 0 && c->token != NULL && c->h->secret != NULL)
		c->h->secret(c->h->arg, c->token);
	return rc;
}

static int
take_id(void *arg, const struct hr_cloud_found *f)
{
	return hr_cloud_set(arg, f->id, NULL) == 0 ? 1 : -1;
}

/* By the label: 1 found, 0 there is none. */
static int
find_run(struct hr_cloud *c, struct hr_err *err)
{
	if (c->ops->list(c, c->run, take_id, &c->id, err) != 0)
		return -1;
	return c->id != NULL;
}

int
hr_cloud_restore(void *self, const char *record, struct hr_err *err)
{
	struct hr_cloud *c = self;

	if (read_record(c, record, err) < 0)
		return -1;
	/* whoever made it died before it was told which one it is */
	if (c->id == NULL)
		return 0;
	if (c->ops->look(c, err) != 0) {
		c->unreached = true;
		return -1;
	}
	if (strcmp(c->state, "gone") == 0)
		return hr_err_set(err, HR_E_DISCONNECTED,
		    "%s no longer has the sandbox %s (\"%s\"): its time may be over; \"handrail "
		    "down\" clears its record away",
		    c->ops->title, c->id, c->h->sid);
	return 0;
}

/* ---- making one ---- */

/* The words that start the server in an image of ours. */
static int
server_line(struct hr_cloud *c, struct hr_buf *b, struct hr_err *err)
{
	static const char *const prefix[] = {"handraild", NULL};
	const char *dir = hr_config_text(c->h->config, "core.workspace_mount_path_in_sandbox");
	const struct hr_command q = {.prefix = prefix,
	    .port = HR_CLOUD_PORT,
	    .working_dir = dir != NULL ? dir : "/workspace",
	    .plugins = c->h->plugins,
	    .user_id = -1};
	struct hr_strv words = {0};
	int rc = hr_command_build(&words, &q, c->h->config, c->h->environ, err);

	if (rc == 0) {
		/* not on a command line, which others in it can read */
		hr_buf_addf(b,
		    "f=" KEY_FILE "%s; SESSION_API_KEY=$(cat \"$f\"); rm -f \"$f\"; "
		    "export SESSION_API_KEY; mkdir -p ",
		    c->run);
		hr_shell_quote(b, q.working_dir, strlen(q.working_dir));
		hr_buf_adds(b, " && exec");
	}
	for (size_t i = 0; rc == 0 && i < words.n; i++) {
		hr_buf_addc(b, ' ');
		hr_shell_quote(b, words.v[i], strlen(words.v[i]));
	}
	hr_strv_done(&words);
	if (rc == 0 && hr_buf_check(b, NULL) != 0)
		rc = hr_err_nomem(err);
	return rc;
}

static int
wait_alive(struct hr_cloud *c, struct hr_err *err)
{
	static const struct hr_api_rule once = {.attempts = 1};
	const char *const headers[] = {c->url_header, NULL};
	const struct hr_api_call q = {
	    .method = "GET", .path = "/alive", .headers = headers, .timeout_s = 10};
	time_t end = time(NULL) + ALIVE_S;
	struct hr_api_answer a;
	struct hr_api r;
	int rc;

	if (hr_api_init(&r, "the server", &once, c->url, err) < 0)
		return -1;
	while ((rc = hr_api_do(&r, &q, &a, err)) != 0 && time(NULL) < end) {
		hr_api_answer_done(&a);
		if (hr_cloud_pause_ms(c, ALIVE_EVERY_MS, err) < 0)
			break;
	}
	hr_api_answer_done(&a);
	hr_api_done(&r);
	return rc;
}

static int
serve(struct hr_cloud *c, struct hr_err *err)
{
	char file[100];
	struct hr_buf b;
	int rc = 0;

	(void)snprintf(file, sizeof(file), KEY_FILE "%s", c->run);
	hr_buf_init(&b, 1 << 20);
	if (c->ops->launch != NULL) {
		rc = server_line(c, &b, err);
		if (rc == 0)
			rc = c->ops->put(c, file, c->key, strlen(c->key), err);
		if (rc == 0)
			rc = c->ops->launch(c, hr_buf_str(&b), err);
	}
	hr_buf_done(&b);
	if (rc == 0)
		rc = c->ops->publish(c, HR_CLOUD_PORT, err);
	return rc == 0 ? wait_alive(c, err) : -1;
}

/* The directory of the workspace, which the account's user may write in. */
static int
make_workspace(struct hr_cloud *c, struct hr_err *err)
{
	const char *dir = hr_config_text(c->h->config, "core.workspace_mount_path_in_sandbox");
	struct hr_cloud_command q = {.timeout_ms = 60000};
	struct hr_cloud_end end = {0};
	struct hr_buf b;
	int rc;

	dir = dir != NULL ? dir : "/workspace";
	hr_buf_init(&b, 65536);
	hr_buf_adds(&b, "d=");
	hr_shell_quote(&b, dir, strlen(dir));
	hr_buf_adds(&b, "; mkdir -p \"$d\" 2>/dev/null && [ -w \"$d\" ] || "
			"{ sudo -n mkdir -p \"$d\" && sudo -n chmod 777 \"$d\"; }");
	q.line = hr_buf_str(&b);
	rc = hr_buf_check(&b, NULL) == 0 ? c->ops->exec(c, &q, &end, err) : hr_err_nomem(err);
	hr_buf_done(&b);
	if (rc == 0 && end.code != 0)
		rc = hr_err_set(err, HR_E_RUNTIME,
		    "%s: the directory %s cannot be made in the sandbox (status %d)", c->ops->title,
		    dir, end.code);
	for (const char *const *l = c->ops->lacks; rc == 0 && *l != NULL; l++)
		say(c, *l);
	return rc;
}

/* The request that costs. A lost answer is looked for. */
static int
make(struct hr_cloud *c, struct hr_err *err)
{
	struct hr_err again = {0};
	bool unsure = false;
	int rc = c->ops->create(c, &unsure, err);

	for (int i = 0; rc != 0 && unsure && i < LOST_TRIES; i++) {
		if (i > 0 && hr_cloud_pause_ms(c, LOST_WAIT_MS, err) < 0)
			break;
		if (find_run(c, &again) == 1) {
			say(c, "The answer to the request for a sandbox was lost; the sandbox was "
			       "found by its label.");
			return 0;
		}
	}
	return rc;
}

/* What is begun and fails ends, or its record stays. */
static int
give_up(struct hr_cloud *c, struct hr_err *err)
{
	struct hr_err why = {0};
	char text[600];

	if (hr_cloud_destroy(c, &why) == 0)
		return -1;
	if (c->h->left != NULL)
		c->h->left(c->h->arg);
	(void)snprintf(text, sizeof(text),
	    "%.300s; it may still be there (%.200s): \"handrail down\" ends it", err->msg, why.msg);
	(void)snprintf(err->msg, sizeof(err->msg), "%s", text);
	return -1;
}

/* Of nobody's record: by its name, where somebody attaches. */
struct by_name {
	struct hr_cloud *c;
	char who[48];
	int n;
};

static int
take_named(void *arg, const struct hr_cloud_found *f)
{
	struct by_name *b = arg;

	if (f->sid == NULL || strcmp(f->sid, b->c->h->sid) != 0)
		return 0;
	b->n++;
	return hr_cloud_set(&b->c->id, f->id, NULL) == 0 &&
		       hr_cloud_set(&b->c->run, f->run != NULL ? f->run : "", NULL) == 0
		   ? 0
		   : -1;
}

static int
attach(struct hr_cloud *c, struct hr_err *err)
{
	struct by_name b = {.c = c};

	if (c->ops->list(c, NULL, take_named, &b, err) != 0)
		return -1;
	if (b.n != 1)
		return hr_err_set(err, HR_E_NO_SANDBOX,
		    b.n == 0 ? "%s has no sandbox \"%s\""
			     : "%s has several sandboxes \"%s\": \"handrail ps --all\" lists them",
		    c->ops->title, c->h->sid);
	return c->ops->wait(c, err);
}

int
hr_cloud_connect(void *self, bool *ret_made, struct hr_err *err)
{
	struct hr_cloud *c = self;
	struct hr_err mine = {0};
	char uuid[37], key[37];
	int rc;

	if (err == NULL)
		err = &mine;
	if (c->h->attach)
		return attach(c, err);
	/* a second one would cost as well, and the record would lead to it alone */
	if (c->unreached)
		return hr_err_set(err, HR_E_UNAVAILABLE,
		    "%s cannot be asked about the sandbox %s that is recorded as \"%s\", so no "
		    "other "
		    "one is made: try again, or end it with \"handrail down\"",
		    c->ops->title, c->id, c->h->sid);
	/* what a record led to and cannot be used again */
	hr_strv_done(&c->env);
	if (hr_cloud_set(&c->id, NULL, err) < 0 || hr_uuid(uuid, err) < 0 ||
	    hr_cloud_set(&c->run, uuid, err) < 0 || hr_uuid(key, err) < 0 ||
	    hr_cloud_set(&c->key, c->image != NULL ? hr_cloud_env(c, "SESSION_API_KEY", key) : NULL,
		err) < 0)
		return -1;
	if (c->h->begun != NULL)
		c->h->begun(c->h->arg);
	rc = make(c, err);
	if (rc == 0)
		rc = c->ops->wait(c, err);
	if (rc == 0)
		rc = c->image != NULL ? serve(c, err) : make_workspace(c, err);
	if (rc != 0)
		return give_up(c, err);
	(void)snprintf(c->state, sizeof(c->state), "running");
	*ret_made = true;
	return 0;
}

void
hr_cloud_endpoint(void *self, struct hr_endpoint *ret)
{
	struct hr_cloud *c = self;

	ret->url = c->url;
	c->headers[0] = c->url_header;
	ret->headers = c->url_header != NULL ? c->headers : NULL;
	ret->key = c->key;
	ret->serves = c->url != NULL;
}

/* ---- the rest of its life ---- */

const char *
hr_cloud_state(void *self)
{
	struct hr_cloud *c = self;
	struct hr_err e = {0};

	if (c->id != NULL && c->ops->look(c, &e) != 0)
		(void)snprintf(c->state, sizeof(c->state), "unknown");
	return c->state;
}

int
hr_cloud_pause(void *self, struct hr_err *err)
{
	struct hr_cloud *c = self;

	if (c->ops->pause == NULL)
		return hr_err_set(
		    err, HR_E_RUNTIME, "%s runtime does not support pause", c->ops->name);
	return c->ops->pause(c, err);
}

int
hr_cloud_resume(void *self, struct hr_err *err)
{
	struct hr_cloud *c = self;

	if (c->ops->resume == NULL)
		return hr_err_set(
		    err, HR_E_RUNTIME, "%s runtime does not support resume", c->ops->name);
	return c->ops->resume(c, err);
}

int
hr_cloud_stats(void *self, char **ret_json, struct hr_err *err)
{
	struct hr_cloud *c = self;

	if (c->ops->stats == NULL)
		return hr_err_set(err, HR_E_RUNTIME,
		    "%s runtime does not support stats: %s tells no figures", c->ops->name,
		    c->ops->title);
	return c->ops->stats(c, ret_json, err);
}

int
hr_cloud_destroy(void *self, struct hr_err *err)
{
	struct hr_cloud *c = self;
	int rc = c->id != NULL || c->run == NULL ? 0 : find_run(c, err);
	char text[300];

	if (rc < 0)
		return -1;
	if (rc == 1) {
		(void)snprintf(text, sizeof(text),
		    "%s has the sandbox %.100s, whose making was interrupted: it is ended.",
		    c->ops->title, c->id);
		say(c, text);
	}
	if (c->id != NULL && c->ops->end(c, c->id, err) != 0)
		return -1;
	(void)snprintf(c->state, sizeof(c->state), "gone");
	return hr_cloud_set(&c->id, NULL, err);
}

int
hr_cloud_close(void *self, struct hr_err *err)
{
	struct hr_cloud *c = self;

	if (hr_config_bool(c->h->config, "sandbox.keep_runtime_alive"))
		return 0;
	return hr_cloud_destroy(c, err);
}

int
hr_cloud_end_one(void *self, const char *id, struct hr_err *err)
{
	struct hr_cloud *c = self;

	return c->ops->end(c, id, err);
}

/* ---- all of them ---- */

struct all {
	struct json_object *list;
	char who[48];
};

static int
add_found(void *arg, const struct hr_cloud_found *f)
{
	struct all *a = arg;
	struct json_object *o;
	bool ours = f->owner != NULL && strcmp(f->owner, a->who) == 0;

	if (f->sid == NULL)
		return 0;
	o = hr_cloud_object(NULL, "id", f->id, "sid", f->sid, "run", f->run != NULL ? f->run : "",
	    "state", f->state, NULL);
	if (o == NULL)
		return -1;
	if (hr_cloud_put(o, "ours", json_object_new_boolean(ours), NULL) == 0 &&
	    json_object_array_add(a->list, o) == 0)
		return 0;
	json_object_put(o);
	return -1;
}

int
hr_cloud_all(void *self, char **ret_json, struct hr_err *err)
{
	struct all a = {.list = json_object_new_array()};
	struct hr_cloud *c = self;
	struct hr_buf b;
	int rc = a.list != NULL ? 0 : hr_err_nomem(err);

	owner(a.who);
	if (rc == 0)
		rc = c->ops->list(c, NULL, add_found, &a, err);
	hr_buf_init(&b, HR_CLOUD_REPLY_MAX);
	if (rc == 0 && (hr_json_put(&b, a.list) != 0 || (*ret_json = hr_buf_take(&b)) == NULL))
		rc = hr_err_nomem(err);
	hr_buf_done(&b);
	json_object_put(a.list);
	return rc;
}
