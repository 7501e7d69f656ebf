/* Manages the life cycle of a Modal sandbox, through the API. */
#include "config.h"

#include "host/modal/modal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/err.h"
#include "host/modal/pb.h"

#define LIFE_S 3600
#define LIFE_MAX_S 86400
#define TAGS 3
#define BASE_IMAGE "debian:12"

/* ---- creation ---- */

static unsigned
life(const struct hr_cloud *c, struct hr_err *err)
{
	const char *text = hr_cloud_env(c, "MODAL_SANDBOX_TIMEOUT", NULL);
	char *end = NULL;
	long n = text != NULL ? strtol(text, &end, 10) : LIFE_S;

	if (text == NULL || (end != text && *end == '\0' && n > 0 && n <= LIFE_MAX_S))
		return (unsigned)n;
	(void)hr_err_set(err, HR_E_INVAL,
	    "MODAL_SANDBOX_TIMEOUT is \"%.40s\"; it is a number of seconds, up to %d", text,
	    LIFE_MAX_S);
	return 0;
}

struct tags {
	struct json_object *from;
	HrPb__Tag all[TAGS], *each[TAGS];
	size_t n;
};

/* Returns the text without const: protobuf-c's strings are not const, but sending only reads
 * them. */
static char *
lent(const char *text)
{
	char *p;

	memcpy(&p, &text, sizeof(p));
	return p;
}

static int
labels(struct hr_cloud *c, struct tags *t, struct hr_err *err)
{
	t->n = 0;
	t->from = hr_cloud_labels(c);
	if (t->from == NULL)
		return hr_err_nomem(err);
	json_object_object_foreach(t->from, name, value)
	{
		if (t->n == TAGS)
			break;
		hr_pb__tag__init(&t->all[t->n]);
		t->all[t->n].tag_name = name;
		t->all[t->n].tag_value = lent(json_object_get_string(value));
		t->each[t->n] = &t->all[t->n];
		t->n++;
	}
	return 0;
}

/* Takes the answer's data; once the id is stored, the sandbox can be ended whatever else is
 * wrong. */
static int
take_created(struct hr_cloud *c, const HrPb__Created *a, struct hr_err *err)
{
	struct hr_modal *m = hr_modal_of(c);
	const char *what = "the answer to the request for a sandbox";
	const HrPb__RouterAccess *r = a->command_router_access;

	if (hr_pb_text(what, "sandbox_id", a->sandbox_id, err) != 0 ||
	    hr_text_set(&c->id, a->sandbox_id, err) != 0)
		return -1;
	if (c->old)
		return 0;
	/* if they are missing, the first command asks for them */
	if (a->task_id == NULL || r == NULL)
		return 0;
	if (hr_pb_text(what, "task_id", a->task_id, err) != 0 ||
	    hr_pb_text(what, "jwt", r->jwt, err) != 0 ||
	    hr_pb_text(what, "url", r->url, err) != 0 ||
	    hr_text_set(&m->task, a->task_id, err) != 0)
		return -1;
	return hr_modal_route(c, r->url, r->jwt, err);
}

/* Sends the create request, which costs, by the newer or the older route. *end is its result. */
static int
ask_for_one(struct hr_cloud *c, HrPb__Sandbox *box, struct hr_grpc_end *end, struct hr_err *err)
{
	HrPb__CreateRequest q = HR_PB__CREATE_REQUEST__INIT;
	HrPb__SecretSource source = HR_PB__SECRET_SOURCE__INIT, *sources[] = {&source};
	HrPb__Texts texts = HR_PB__TEXTS__INIT;
	HR_CLEAN(hr_modal_texts_done) struct hr_modal_texts env = {0};
	HR_CLEAN(hr_pb_done) HrPb__Created *a = NULL;
	struct tags tags = {0};
	HR_FREE char *secret = NULL;
	int r = labels(c, &tags, err);

	if (r == 0 && c->h->env != NULL && *c->h->env != NULL) {
		if (c->old)
			r = hr_modal_secret(c, c->h->env, &secret, err);
		else
			r = hr_modal_texts(&env, c->h->env, err);
		if (r == 0 && c->old) {
			box->n_secret_ids = 1;
			box->secret_ids = &secret;
		} else if (r == 0) {
			texts.n_contents = env.n;
			texts.contents = env.each;
			source.env = &texts;
			q.n_secret_sources = 1;
			q.secret_sources = sources;
		}
	}
	q.app_id = hr_modal_of(c)->app_id;
	q.definition = box;
	q.n_tags = tags.n;
	q.tags = tags.each;
	if (r == 0)
		r = hr_modal_ask(c, "SandboxCreate", c->old ? "" : "V2", &q.base,
		    &hr_pb__created__descriptor, true, &a, end, err);
	if (r == 0)
		r = take_created(c, a, err);
	box->n_secret_ids = 0;
	json_object_put(tags.from);
	return r;
}

int
hr_modal_create(struct hr_cloud *c, bool *unsure, struct hr_err *err)
{
	HrPb__Sandbox box = HR_PB__SANDBOX__INIT;
	HrPb__Resources resources = HR_PB__RESOURCES__INIT;
	HrPb__Empty gpu = HR_PB__EMPTY__INIT;
	HrPb__Ports ports = HR_PB__PORTS__INIT;
	HrPb__Port port = HR_PB__PORT__INIT, *port_list[] = {&port};
	HrPb__Network network = HR_PB__NETWORK__INIT;
	char sleep[] = "sleep", forever[] = "infinity", *entry[] = {sleep, forever};
	struct hr_grpc_end end = {0};
	struct hr_err mine = {0};
	HR_FREE char *image = NULL;
	int r;

	*unsure = false;
	box.timeout_secs = life(c, err);
	if (box.timeout_secs == 0 || hr_modal_app(c, err) != 0 ||
	    hr_modal_image(c,
		c->image != NULL ? c->image : hr_cloud_env(c, "MODAL_IMAGE", BASE_IMAGE), &image,
		err) != 0 ||
	    hr_modal_authorize(c, err) != 0) {
		c->unmade = true;
		return -1;
	}
	box.has_timeout_secs = 1;
	box.image_id = image;
	box.n_entrypoint_args = 2;
	box.entrypoint_args = entry;
	resources.gpu_config = &gpu;
	box.resources = &resources;
	port.has_port = 1;
	port.port = HR_CLOUD_PORT;
	ports.n_ports = 1;
	ports.ports = port_list;
	box.open_ports = &ports;
	network.has_network_access_type = 1;
	network.network_access_type = 1;
	box.network_access = &network;
	r = ask_for_one(c, &box, &end, &mine);
	if (r != 0 && !c->old && end.status == HR_GRPC_UNIMPLEMENTED) {
		c->old = true;
		r = ask_for_one(c, &box, &end, &mine);
	}
	*unsure = r != 0 && end.unsure && c->id == NULL &&
		  (end.status == HR_GRPC_LOST || end.status == HR_GRPC_DEADLINE ||
		      end.status == HR_GRPC_UNAVAILABLE || end.status == HR_GRPC_UNKNOWN ||
		      end.status == HR_GRPC_INTERNAL || end.status == HR_GRPC_CANCELLED);
	c->unmade = r != 0 && !end.unsure && c->id == NULL;
	return r != 0 ? hr_err_pass(err, &mine) : 0;
}

/* ---- state and list ---- */

int
hr_modal_look(struct hr_cloud *c, struct hr_err *err)
{
	HrPb__SandboxRequest q = HR_PB__SANDBOX_REQUEST__INIT;
	struct hr_err mine = {0};
	HR_CLEAN(hr_pb_done) HrPb__Waited *a = NULL;
	int r;

	q.sandbox_id = c->id;
	r = hr_modal_sandbox_call(c, "SandboxWait", &q.base, &hr_pb__waited__descriptor, &a, &mine);
	/* no result means that it runs; an ended sandbox cannot be used again */
	if (r == 0)
		(void)snprintf(c->state, sizeof(c->state), "%s",
		    a->result != NULL && a->result->has_status && a->result->status != 0
			? "gone"
			: "running");
	else if (mine.code == HR_E_NO_SANDBOX) {
		(void)snprintf(c->state, sizeof(c->state), "gone");
		r = 0;
	}
	return r != 0 ? hr_err_pass(err, &mine) : 0;
}

static const char *
tag(const HrPb__Listed *l, const char *name)
{
	size_t i;

	for (i = 0; i < l->n_tags; i++)
		if (l->tags[i]->tag_name != NULL && strcmp(l->tags[i]->tag_name, name) == 0)
			return l->tags[i]->tag_value;
	return NULL;
}

/* Lists one page of sandboxes created before *before. Returns 0, 1 after the last page, or -1 with
 * *err set. */
static int
one_page(struct hr_cloud *c, const char *run, double *before, hr_cloud_found_fn *fn, void *arg,
    struct hr_err *err)
{
	size_t i;

	HrPb__ListRequest q = HR_PB__LIST_REQUEST__INIT;
	HrPb__Tag wanted = HR_PB__TAG__INIT, *tags[] = {&wanted};
	char name[] = "handrail_run";
	HR_CLEAN(hr_pb_done) HrPb__List *a = NULL;
	double first = *before;
	int r;

	q.has_before_timestamp = *before > 0;
	q.before_timestamp = *before;
	wanted.tag_name = name;
	wanted.tag_value = lent(run);
	q.n_tags = run != NULL ? 1 : 0;
	q.tags = tags;
	r = hr_modal_sandbox_call(c, "SandboxList", &q.base, &hr_pb__list__descriptor, &a, err);
	for (i = 0; r == 0 && i < a->n_sandboxes; i++) {
		const HrPb__Listed *l = a->sandboxes[i];
		struct hr_cloud_found f = {.id = l->id,
		    .sid = tag(l, "handrail_sid"),
		    .run = tag(l, "handrail_run"),
		    .owner = tag(l, "handrail_owner"),
		    .state = "running"};

		r = hr_pb_text("a sandbox of the list", "id", l->id, err);
		/* NaN fails this test, too */
		if (r == 0 && (!l->has_created_at || !(l->created_at > 0)))
			r = hr_err_set(err, HR_E_PROTO,
			    HR_MODAL_WHO ": a sandbox of the list has no \"created_at\"");
		if (r == 0 && (*before <= 0 || l->created_at < *before))
			*before = l->created_at;
		if (r == 0 && f.run != NULL && (run == NULL || strcmp(run, f.run) == 0))
			r = fn(arg, &f) < 0 ? hr_err_nomem(err) : 0;
	}
	if (r == 0 && a->n_sandboxes > 0 && first > 0 && *before >= first)
		r = hr_err_set(err, HR_E_PROTO,
		    HR_MODAL_WHO ": the list of sandboxes does not end: a page repeats");
	if (r == 0 && a->n_sandboxes == 0)
		r = 1;
	return r;
}

int
hr_modal_list(
    struct hr_cloud *c, const char *run, hr_cloud_found_fn *fn, void *arg, struct hr_err *err)
{
	unsigned pages = 0;
	double before = 0;
	int r;

	do
		r = hr_cloud_page(HR_MODAL_WHO, &pages, err) == 0
			? one_page(c, run, &before, fn, arg, err)
			: -1;
	while (r == 0);
	return r < 0 ? -1 : 0;
}

int
hr_modal_end(struct hr_cloud *c, const char *id, struct hr_err *err)
{
	HrPb__SandboxRequest q = HR_PB__SANDBOX_REQUEST__INIT;
	struct hr_err mine = {0};
	HR_CLEAN(hr_pb_done) HrPb__Empty *a = NULL;
	int r;

	q.sandbox_id = lent(id);
	r = hr_modal_sandbox_call(
	    c, "SandboxTerminate", &q.base, &hr_pb__empty__descriptor, &a, &mine);
	return hr_api_or_gone(r, &mine, err);
}

int
hr_modal_publish(struct hr_cloud *c, int port, struct hr_err *err)
{
	const char *what = "the answer of SandboxGetTunnels";
	size_t i;
	HrPb__SandboxRequest q = HR_PB__SANDBOX_REQUEST__INIT;
	const HrPb__Tunnel *found = NULL;
	HR_CLEAN(hr_pb_done) HrPb__Tunnels *a = NULL;

	q.sandbox_id = c->id;
	q.has_timeout = 1;
	q.timeout = HR_MODAL_POLL_S;
	if (hr_modal_sandbox_call(
		c, "SandboxGetTunnels", &q.base, &hr_pb__tunnels__descriptor, &a, err) != 0)
		return -1;
	if (a->result != NULL && a->result->has_status && a->result->status != HR_MODAL_SUCCESS)
		return hr_err_set(err, HR_E_RUNTIME,
		    HR_MODAL_WHO ": the sandbox has no tunnels (status %d): %.200s",
		    a->result->status, a->result->exception != NULL ? a->result->exception : "");
	for (i = 0; i < a->n_tunnels; i++)
		if (a->tunnels[i]->has_container_port &&
		    a->tunnels[i]->container_port == (unsigned)port)
			found = a->tunnels[i];
	if (found == NULL)
		return hr_err_set(err, HR_E_PROTO,
		    HR_MODAL_WHO ": %s has no tunnel whose \"container_port\" is %d", what, port);
	if (hr_pb_text(what, "host", found->host, err) != 0)
		return -1;
	if (!found->has_port)
		return hr_err_set(err, HR_E_PROTO, HR_MODAL_WHO ": %s has no \"port\"", what);
	return found->port == 443
		   ? hr_text_setf(&c->url, err, "https://%s", found->host)
		   : hr_text_setf(&c->url, err, "https://%s:%u", found->host, found->port);
}
