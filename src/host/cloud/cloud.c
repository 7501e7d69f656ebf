/* Manages the life cycle of a provider's sandbox. Costs start with the create request, so the label
 * that identifies the sandbox is recorded before it. The next process finds the sandbox of a
 * crashed one by that label, and a request whose answer was lost is not repeated before a
 * search. */
#include "config.h"

#include "host/cloud/cloud.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/random.h"
#include "host/common/owner.h"
#include "proto/json.h"

#define ENTRY "a sandbox of the list"
#define OTHER_ID 200
#define LOST_TRIES 3      /* number of searches after a lost answer */
#define LOST_WAIT_MS 2000 /* milliseconds between searches */

static void
say(const struct hr_cloud *c, const char *text)
{
	if (c->h->log != NULL)
		c->h->log(c->h->arg, text);
}

/* ---- labels ---- */

struct json_object *
hr_cloud_labels(struct hr_cloud *c)
{
	char who[HR_OWNER];

	hr_owner(who);
	return hr_json_texts(
	    NULL, "handrail_sid", c->h->sid, "handrail_run", c->run, "handrail_owner", who, NULL);
}

const char *
hr_cloud_word(const struct hr_cloud_shape *s, const char *state)
{
	const char *const(*w)[2];

	for (w = s->words; w != NULL && (*w)[0] != NULL; w++)
		if (strcmp((*w)[0], state) == 0)
			return (*w)[1];
	return state;
}

int
hr_cloud_found_in(const char *who, struct json_object *o, const char *labels,
    struct hr_cloud_found *ret, struct hr_err *err)
{
	struct json_object *in = hr_json_at(o, labels);

	*ret = (struct hr_cloud_found){0};
	if (in == NULL)
		return 0;
	if (hr_field_of(who, ENTRY, o, labels, json_type_object, &in, err) != 0 ||
	    hr_field_maybe(who, ENTRY, in, "handrail_sid", &ret->sid, err) != 0 ||
	    hr_field_maybe(who, ENTRY, in, "handrail_run", &ret->run, err) != 0)
		return -1;
	return hr_field_maybe(who, ENTRY, in, "handrail_owner", &ret->owner, err);
}

int
hr_cloud_entries(const char *who, const struct hr_cloud_shape *s, struct json_object *list,
    const char *run, hr_cloud_found_fn *fn, void *arg, struct hr_err *err)
{
	int r = 0;
	size_t i;

	for (i = 0; r == 0 && i < hr_json_count(list); i++) {
		struct json_object *o = hr_json_entry(list, i);
		struct hr_cloud_found f;
		const char *id;

		/* checks foreign entries, too: without ids this is not a list of sandboxes */
		if (hr_field_text(who, ENTRY, o, s->id, &id, err) != 0 ||
		    hr_cloud_found_in(who, o, s->labels, &f, err) != 0)
			return -1;
		if (f.run == NULL || (run != NULL && strcmp(run, f.run) != 0))
			continue;
		f.id = id;
		if (hr_field_maybe(who, ENTRY, o, s->state, &f.state, err) != 0)
			return -1;
		f.state = hr_cloud_word(s, f.state != NULL ? f.state : s->otherwise);
		if (strcmp(f.state, "gone") != 0 && (r = fn(arg, &f)) < 0)
			(void)hr_err_nomem(err);
	}
	return r;
}

/* ---- open, free ---- */

int
hr_cloud_open(const struct hr_cloud_ops *ops, const struct hr_backend_host *h, void **ret_self,
    struct hr_err *err)
{
	struct hr_cloud *c = calloc(1, sizeof(*c));
	const char *image = hr_config_text(h->config, "sandbox.runtime_container_image");
	const char *payload = hr_config_text(h->config, "sandbox.payload");

	if (c == NULL)
		return hr_err_nomem(err);
	c->ops = ops;
	c->h = h;
	c->image = image != NULL && *image != '\0' ? image : NULL;
	c->payload = payload != NULL && *payload != '\0' ? payload : NULL;
	(void)snprintf(c->state, sizeof(c->state), "gone");
	(void)pthread_mutex_init(&c->lock, NULL);
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
	char *const texts[] = {c->id, c->run, c->token, c->address, c->version, c->url,
	    c->url_header, c->key, c->url_lines};
	size_t i;

	if (c->ops->done != NULL)
		c->ops->done(c);
	hr_cloud_mirror_drop(c);
	(void)pthread_mutex_destroy(&c->lock);
	hr_api_done(&c->api);
	hr_api_done(&c->plane);
	hr_strv_done(&c->env);
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		free(texts[i]);
	free(c);
}

/* ---- the record ---- */

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
	HR_PUT struct json_object *o = json_object_new_object();
	const char *name;
	HR_BUF(b, 1 << 20);
	char **at, *text = NULL;
	int r = 0;
	size_t i;

	for (i = 0; r == 0 && (at = field(c, i, &name)) != NULL; i++)
		if (*at != NULL)
			r = hr_json_set(o, name, json_object_new_string(*at), err);
	if (r == 0)
		r = hr_json_set(o, "old", json_object_new_boolean(c->old), err);
	if (r == 0)
		r = hr_json_set(o, "env", hr_json_list(err, hr_strv_list(&c->env)), err);
	if (r == 0 && hr_json_put(&b, o) != 0)
		r = hr_err_set(err, HR_E_INVAL, "a variable's value is not UTF-8");
	if (r == 0 && (text = hr_buf_take(&b)) == NULL)
		(void)hr_err_nomem(err);
	return text;
}

static int
read_record(struct hr_cloud *c, const char *record, struct hr_err *err)
{
	struct json_object *env;
	HR_PUT struct json_object *o = NULL;
	const char *name;
	char **at;
	int r = 0;
	size_t i;

	if (hr_json_decode(record, strlen(record), &o, NULL) < 0 ||
	    hr_json_text_at(o, "run") == NULL)
		r = hr_err_set(err, HR_E_INVAL, "the record of the sandbox is damaged");
	for (i = 0; r == 0 && (at = field(c, i, &name)) != NULL; i++)
		r = hr_text_set(at, hr_json_text_at(o, name), err);
	c->old = hr_json_true_at(o, "old");
	env = hr_json_at(o, "env");
	for (i = 0; r == 0 && i < hr_json_count(env); i++)
		if (hr_json_text(hr_json_entry(env, i)) != NULL)
			hr_strv_add(&c->env, hr_json_text(hr_json_entry(env, i)));
	if (r == 0 && c->env.failed)
		r = hr_err_nomem(err);
	if (r == 0 && c->token != NULL && c->h->secret != NULL)
		c->h->secret(c->h->arg, c->token);
	return r;
}

static int
take_id(void *arg, const struct hr_cloud_found *f)
{
	return hr_text_set(arg, f->id, NULL) == 0 ? 1 : -1;
}

/* Finds the sandbox by its label. Returns 1, 0 if there is none, or -1 with *err set. */
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
	/* the creator died before it learned the id */
	if (c->id == NULL)
		return 0;
	if (c->ops->look(c, err) != 0) {
		c->unreached = true;
		/* the provider lacks support, which does not mean that the record belongs
		 * elsewhere */
		if (err != NULL && err->code == HR_E_UNSUPPORTED)
			err->code = HR_E_RUNTIME;
		return -1;
	}
	if (strcmp(c->state, "gone") == 0)
		return hr_err_set(err, HR_E_DISCONNECTED,
		    "%s no longer has the sandbox %s (\"%s\"): its time may be over; \"handrail "
		    "down\" clears its record away",
		    c->ops->title, c->id, c->h->sid);
	return 0;
}

/* ---- creation ---- */

/* Sends the create request, which costs. After a lost answer it searches for the sandbox. */
static int
make(struct hr_cloud *c, struct hr_err *err)
{
	struct hr_err again = {0};
	bool unsure = false;
	int r = c->ops->create(c, &unsure, err);
	int i;

	c->lost = r != 0 && unsure;
	for (i = 0; r != 0 && unsure && i < LOST_TRIES; i++) {
		if (i > 0)
			(void)hr_rest_wait(-1, LOST_WAIT_MS);
		if (find_run(c, &again) == 1) {
			say(c, "The answer to the request for a sandbox was lost; the sandbox was "
			       "found by its label.");
			c->lost = false;
			return 0;
		}
	}
	return r;
}

/* Ends a sandbox whose start has failed; if that fails, too, the record stays. */
static int
give_up(struct hr_cloud *c, struct hr_err *err)
{
	struct hr_err why = {0};
	char text[600];

	if (c->unmade)
		return -1;
	if (hr_cloud_destroy(c, &why) == 0 && (!c->lost || c->ops->lists_at_once))
		return -1;
	if (c->h->left != NULL)
		c->h->left(c->h->arg);
	(void)snprintf(text, sizeof(text), "%.300s; it may %s: \"handrail down\" ends it%s%.200s",
	    err->msg, c->lost ? "exist, and is not listed yet" : "still exist",
	    *why.msg != '\0' ? ": " : "", why.msg);
	(void)snprintf(err->msg, sizeof(err->msg), "%s", text);
	return -1;
}

/* Counts sandboxes of a name that has no record. */
struct by_name {
	struct hr_cloud *c;
	char who[HR_OWNER];
	int n, others;        /* number of usable and of unusable sandboxes */
	char other[HR_OWNER]; /* owner of an unusable sandbox */
	char other_id[OTHER_ID];
};

static int
take_named(void *arg, const struct hr_cloud_found *f)
{
	struct by_name *b = arg;

	if (f->sid == NULL || strcmp(f->sid, b->c->h->sid) != 0)
		return 0;
	if (!b->c->h->any_owner && (f->owner == NULL || strcmp(f->owner, b->who) != 0)) {
		b->others++;
		(void)snprintf(
		    b->other, sizeof(b->other), "%s", f->owner != NULL ? f->owner : "unknown");
		(void)snprintf(b->other_id, sizeof(b->other_id), "%s", f->id);
		return 0;
	}
	b->n++;
	return hr_text_set(&b->c->id, f->id, NULL) == 0 &&
		       hr_text_set(&b->c->run, f->run != NULL ? f->run : "", NULL) == 0
		   ? 0
		   : -1;
}

static int
attach(struct hr_cloud *c, struct hr_err *err)
{
	struct by_name b = {.c = c};

	hr_owner(b.who);
	if (c->ops->list(c, NULL, take_named, &b, err) != 0)
		return -1;
	if (b.n == 0 && b.others > 0)
		return hr_err_set(err, HR_E_NO_SANDBOX,
		    "%s has no sandbox \"%s\" of yours; %s of that name belongs to the owner %s: "
		    "use it with --any-owner, or choose another name",
		    c->ops->title, c->h->sid, b.other_id, b.other);
	if (b.n != 1)
		return hr_err_set(err, HR_E_NO_SANDBOX,
		    b.n == 0 ? "%s has no sandbox \"%s\""
			     : "%s has several sandboxes \"%s\": \"handrail ps --all\" lists them",
		    c->ops->title, c->h->sid);
	return c->ops->wait(c, err);
}

int
hr_cloud_connect(void *self, enum hr_connected *ret, struct hr_err *err)
{
	struct hr_cloud *c = self;
	const bool served = c->image != NULL || c->payload != NULL;
	const char *const *l;
	struct hr_err mine = {0};
	char uuid[37], key[37];
	int r;

	if (err == NULL)
		err = &mine;
	*ret = c->h->attach ? HR_SANDBOX_FOUND : HR_SANDBOX_MADE;
	if (c->h->attach)
		return attach(c, err);
	/* a second sandbox would cost as well and replace the first in the record */
	if (c->unreached)
		return hr_err_set(err, HR_E_UNAVAILABLE,
		    "%s does not answer about the sandbox %s, recorded as \"%s\", so no new one is "
		    "made: try again, or end it with \"handrail down\"",
		    c->ops->title, c->id, c->h->sid);
	/* drops the state of a recorded sandbox that cannot be used */
	hr_strv_done(&c->env);
	if (hr_text_set(&c->id, NULL, err) < 0 || hr_random_uuid(uuid, err) < 0 ||
	    hr_text_set(&c->run, uuid, err) < 0 || hr_random_uuid(key, err) < 0 ||
	    hr_text_set(&c->key, served ? hr_cloud_env(c, "SESSION_API_KEY", key) : NULL, err) < 0)
		return -1;
	/* this check comes before anything costs */
	if (hr_cloud_payload_look(c, err) != 0)
		return -1;
	if (c->h->begun != NULL)
		c->h->begun(c->h->arg);
	r = make(c, err);
	if (r == 0)
		r = c->ops->wait(c, err);
	if (r == 0)
		r = served ? hr_cloud_serve(c, err) : hr_cloud_make_workspace(c, err);
	for (l = c->ops->lacks; r == 0 && !served && *l != NULL; l++)
		say(c, *l);
	if (r != 0)
		return give_up(c, err);
	(void)snprintf(c->state, sizeof(c->state), "running");
	return 0;
}

void
hr_cloud_endpoint(void *self, struct hr_endpoint *ret)
{
	struct hr_cloud *c = self;

	ret->url = c->url;
	ret->headers = hr_cloud_url_headers(c);
	ret->key = c->key;
	ret->serves = c->url != NULL;
}

/* ---- running sandboxes ---- */

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
	if (c->ops->resume(c, err) != 0)
		return -1;
	/* the pause may have ended its programs */
	return c->url != NULL ? hr_cloud_serve_again(c, err) : 0;
}

int
hr_cloud_stats(void *self, char **ret_json, struct hr_err *err)
{
	struct hr_cloud *c = self;

	if (c->ops->stats == NULL)
		return hr_err_set(err, HR_E_RUNTIME,
		    "%s runtime does not support stats: %s reports no figures", c->ops->name,
		    c->ops->title);
	return c->ops->stats(c, ret_json, err);
}

int
hr_cloud_destroy(void *self, struct hr_err *err)
{
	struct hr_cloud *c = self;
	int r = c->id != NULL || c->run == NULL ? 0 : find_run(c, err);
	char text[300];

	if (r < 0)
		return -1;
	if (r == 1) {
		(void)snprintf(text, sizeof(text),
		    "%s has the sandbox %.100s, whose making was interrupted: it is ended.",
		    c->ops->title, c->id);
		say(c, text);
		c->lost = false;
	}
	if (c->id != NULL && c->ops->end(c, c->id, err) != 0)
		return -1;
	(void)snprintf(c->state, sizeof(c->state), "gone");
	return hr_text_set(&c->id, NULL, err);
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

/* ---- listing ---- */

struct all {
	struct json_object *list;
	char who[HR_OWNER];
};

static int
add_found(void *arg, const struct hr_cloud_found *f)
{
	struct all *a = arg;
	struct json_object *o;
	bool ours = f->owner != NULL && strcmp(f->owner, a->who) == 0;

	if (f->sid == NULL)
		return 0;
	o = hr_json_object(NULL, "id", hr_json_maybe(f->id), "sid", hr_json_maybe(f->sid), "run",
	    json_object_new_string(f->run != NULL ? f->run : ""), "state", hr_json_maybe(f->state),
	    "ours", json_object_new_boolean(ours), NULL);
	return hr_json_append(a->list, o, NULL);
}

int
hr_cloud_all(void *self, char **ret_json, struct hr_err *err)
{
	struct all a = {.list = json_object_new_array()};
	struct hr_cloud *c = self;
	int r = a.list != NULL ? 0 : hr_err_nomem(err);

	hr_owner(a.who);
	if (r == 0)
		r = c->ops->list(c, NULL, add_found, &a, err);
	if (r == 0 && (*ret_json = hr_json_string(a.list, HR_CLOUD_REPLY_MAX, err)) == NULL)
		r = -1;
	json_object_put(a.list);
	return r;
}
