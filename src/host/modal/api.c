/* Calls of Modal's API and helpers for them. */
#include "config.h"

#include "host/modal/modal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "host/modal/pb.h"

#define CLIENT "/modal.client.ModalClient/"
#define CLIENT_VERSION "1.6.4" /* version of Modal's client that sends these requests */

int
hr_modal_open(struct hr_cloud *c, struct hr_err *err)
{
	HR_FREE char *id = hr_cloud_key(c, "MODAL_TOKEN_ID", err);
	HR_FREE char *secret = id != NULL ? hr_cloud_key(c, "MODAL_TOKEN_SECRET", err) : NULL;
	struct hr_modal *m = secret != NULL ? calloc(1, sizeof(*m)) : NULL;
	int r = secret == NULL ? -1 : m != NULL ? 0 : hr_err_nomem(err);

	c->own = m;
	if (r == 0)
		r = hr_grpc_init(
		    &m->api, hr_cloud_env(c, "MODAL_SERVER_URL", "https://api.modal.com"), err);
	if (r == 0) {
		hr_strv_add(&m->api.secrets, id);
		hr_strv_add(&m->api.secrets, secret);
		hr_strv_addf(&m->api.headers, "x-modal-token-id: %s", id);
		hr_strv_addf(&m->api.headers, "x-modal-token-secret: %s", secret);
		hr_strv_add(&m->api.headers, "x-modal-client-version: " CLIENT_VERSION);
		hr_strv_add(&m->api.headers, "x-modal-client-type: 1");
		r = m->api.headers.failed || m->api.secrets.failed ? hr_err_nomem(err) : 0;
	}
	c->old = hr_cloud_env(c, "MODAL_OLD_ROUTES", NULL) != NULL;
	return r;
}

void
hr_modal_done(struct hr_cloud *c)
{
	struct hr_modal *m = c->own;

	if (m == NULL)
		return;
	hr_grpc_done(&m->api);
	hr_grpc_done(&m->router);
	free(m->app_id);
	free(m->auth);
	free(m->task);
	free(m);
	c->own = NULL;
}

/* ---- calls of the API ---- */

int
hr_modal_ask(struct hr_cloud *c, const char *method, const char *after, const ProtobufCMessage *q,
    const ProtobufCMessageDescriptor *type, bool once, void *ret, struct hr_grpc_end *end,
    struct hr_err *err)
{
	struct hr_grpc_call g = {.q = q, .type = type, .once = once, .key = true};
	char path[200];

	(void)snprintf(path, sizeof(path), CLIENT "%s%s", method, after);
	g.path = path;
	return hr_grpc_do(&hr_modal_of(c)->api, &g, ret, end, err);
}

int
hr_modal_call(struct hr_cloud *c, const char *method, const ProtobufCMessage *q,
    const ProtobufCMessageDescriptor *type, void *ret, struct hr_err *err)
{
	struct hr_grpc_end end;

	return hr_modal_ask(c, method, "", q, type, false, ret, &end, err);
}

int
hr_modal_authorize(struct hr_cloud *c, struct hr_err *err)
{
	struct hr_modal *m = hr_modal_of(c);
	const HrPb__Empty q = HR_PB__EMPTY__INIT;
	HR_CLEAN(hr_pb_done) HrPb__AuthToken *a = NULL;
	struct hr_grpc_end end;
	struct hr_err mine = {0};
	int r;

	if (c->old || m->auth != NULL)
		return 0;
	r = hr_modal_ask(
	    c, "AuthTokenGet", "", &q.base, &hr_pb__auth_token__descriptor, false, &a, &end, &mine);
	if (r == 0)
		r = hr_pb_text("the answer of AuthTokenGet", "token", a->token, &mine);
	if (r == 0)
		r = hr_text_set(&m->auth, a->token, &mine);
	if (r == 0 && c->h->secret != NULL)
		c->h->secret(c->h->arg, m->auth);
	if (r == 0) {
		hr_strv_add(&m->api.secrets, m->auth);
		hr_strv_addf(&m->api.headers, "x-modal-auth-token: %s", m->auth);
		r = m->api.headers.failed ? hr_err_nomem(&mine) : 0;
	}
	if (r != 0 && end.status == HR_GRPC_UNIMPLEMENTED) {
		c->old = true;
		return 0;
	}
	return r != 0 ? hr_err_pass(err, &mine) : 0;
}

int
hr_modal_sandbox_call(struct hr_cloud *c, const char *method, const ProtobufCMessage *q,
    const ProtobufCMessageDescriptor *type, void *ret, struct hr_err *err)
{
	struct hr_err mine = {0};
	struct hr_grpc_end end;
	int r;

	if (hr_modal_authorize(c, err) != 0)
		return -1;
	r = hr_modal_ask(c, method, c->old ? "" : "V2", q, type, false, ret, &end, &mine);
	if (r != 0 && !c->old && end.status == HR_GRPC_UNIMPLEMENTED) {
		c->old = true;
		r = hr_modal_ask(c, method, "", q, type, false, ret, &end, &mine);
	}
	return r != 0 ? hr_err_pass(err, &mine) : 0;
}

int
hr_modal_app(struct hr_cloud *c, struct hr_err *err)
{
	struct hr_modal *m = hr_modal_of(c);
	char name[] = "openhands";
	HrPb__AppRequest q = HR_PB__APP_REQUEST__INIT;
	HR_CLEAN(hr_pb_done) HrPb__App *a = NULL;

	if (m->app_id != NULL)
		return 0;
	q.app_name = name;
	q.has_object_creation_type = 1;
	q.object_creation_type = HR_MODAL_CREATE_IF_MISSING;
	if (hr_modal_call(c, "AppGetOrCreate", &q.base, &hr_pb__app__descriptor, &a, err) != 0 ||
	    hr_pb_text("the answer of AppGetOrCreate", "app_id", a->app_id, err) != 0)
		return -1;
	return hr_text_set(&m->app_id, a->app_id, err);
}

/* ---- lists of strings ---- */

int
hr_modal_texts(struct hr_modal_texts *t, const char *const *env, struct hr_err *err)
{
	size_t n = 0;
	size_t i;

	memset(t, 0, sizeof(*t));
	while (env != NULL && env[n] != NULL)
		n++;
	t->all = calloc(n + 1, sizeof(*t->all));
	t->each = calloc(n + 1, sizeof(*t->each));
	t->names = calloc(n + 1, sizeof(*t->names));
	if (t->all == NULL || t->each == NULL || t->names == NULL)
		return hr_err_nomem(err);
	for (i = 0; i < n; i++) {
		const char *eq = strchr(env[i], '=');

		if (eq == NULL)
			continue;
		hr_pb__text__init(&t->all[t->n]);
		t->names[t->n] = strdup(env[i]);
		if (t->names[t->n] == NULL)
			return hr_err_nomem(err);
		t->names[t->n][eq - env[i]] = '\0';
		t->all[t->n].key = t->names[t->n];
		t->all[t->n].value = t->names[t->n] + (eq - env[i]) + 1;
		t->each[t->n] = &t->all[t->n];
		t->n++;
	}
	return 0;
}

void
hr_modal_texts_done(struct hr_modal_texts *t)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		free(t->names[i]);
	free(t->all);
	free(t->each);
	free(t->names);
}

int
hr_modal_secret(struct hr_cloud *c, const char *const *env, char **ret_id, struct hr_err *err)
{
	HrPb__SecretRequest q = HR_PB__SECRET_REQUEST__INIT;
	HR_CLEAN(hr_modal_texts_done) struct hr_modal_texts t = {0};
	HR_CLEAN(hr_pb_done) HrPb__Secret *a = NULL;
	int r = hr_modal_app(c, err);

	if (r != 0)
		return -1;
	r = hr_modal_texts(&t, env, err);
	q.has_object_creation_type = 1;
	q.object_creation_type = HR_MODAL_ANONYMOUS;
	q.n_env_dict = t.n;
	q.env_dict = t.each;
	q.app_id = hr_modal_of(c)->app_id;
	if (r == 0)
		r = hr_modal_call(
		    c, "SecretGetOrCreate", &q.base, &hr_pb__secret__descriptor, &a, err);
	if (r == 0)
		r = hr_pb_text("the answer of SecretGetOrCreate", "secret_id", a->secret_id, err);
	if (r == 0)
		r = hr_text_set(ret_id, a->secret_id, err);
	return r;
}

/* ---- the router for commands ---- */

int
hr_modal_route(struct hr_cloud *c, const char *url, const char *jwt, struct hr_err *err)
{
	struct hr_modal *m = hr_modal_of(c);

	hr_grpc_done(&m->router);
	if (c->h->secret != NULL)
		c->h->secret(c->h->arg, jwt);
	if (hr_grpc_init(&m->router, url, err) != 0)
		return -1;
	hr_strv_add(&m->router.secrets, jwt);
	hr_strv_addf(&m->router.headers, "authorization: Bearer %s", jwt);
	return m->router.headers.failed || m->router.secrets.failed ? hr_err_nomem(err) : 0;
}

int
hr_modal_task(struct hr_cloud *c, struct hr_err *err)
{
	struct hr_modal *m = hr_modal_of(c);
	HrPb__SandboxRequest q = HR_PB__SANDBOX_REQUEST__INIT;
	HR_CLEAN(hr_pb_done) HrPb__RouterAccess *router = NULL;
	HR_CLEAN(hr_pb_done) HrPb__TaskId *a = NULL;
	int r = 0;

	q.sandbox_id = c->id;
	if (m->task == NULL) {
		r = hr_modal_sandbox_call(
		    c, "SandboxGetTaskId", &q.base, &hr_pb__task_id__descriptor, &a, err);
		if (r == 0 && a->task_result != NULL && a->task_result->has_status &&
		    a->task_result->status != 0)
			r = hr_err_set(err, HR_E_DISCONNECTED,
			    HR_MODAL_WHO ": the sandbox %s has ended (status %d)", c->id,
			    a->task_result->status);
		if (r == 0)
			r = hr_pb_text(
			    "the answer of SandboxGetTaskId", "task_id", a->task_id, err);
		if (r == 0)
			r = hr_text_set(&m->task, a->task_id, err);
	}
	if (r != 0 || c->old || m->router.url != NULL)
		return r;
	r = hr_modal_call(c, "SandboxGetCommandRouterAccess", &q.base,
	    &hr_pb__router_access__descriptor, &router, err);
	if (r == 0)
		r = hr_pb_text(
		    "the answer of SandboxGetCommandRouterAccess", "jwt", router->jwt, err);
	if (r == 0)
		r = hr_pb_text(
		    "the answer of SandboxGetCommandRouterAccess", "url", router->url, err);
	if (r == 0)
		r = hr_modal_route(c, router->url, router->jwt, err);
	return r;
}
