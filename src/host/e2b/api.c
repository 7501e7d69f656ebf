/* Calls the API of E2B for sandboxes: the newest routes, and the older ones for servers that lack
 * those. */
#include "config.h"

#include "host/e2b/e2b.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "proto/json.h"

#define WHO "E2B"
#define PATH_MAX_LEN 8192

static struct json_object *
copy_of(struct json_object *v)
{
	return v != NULL ? json_object_get(v) : json_object_new_object();
}

/* Returns true if the server does not know the route: the answer is not the API's own. */
static bool
unknown_route(const struct hr_api_answer *a)
{
	return (a->status == 404 || a->status == 405) &&
	       hr_json_text_at(a->json, "message") == NULL;
}

/* Takes the sandbox's id and access data from the answer of create and connect. */
static int
take_answer(struct hr_cloud *c, const char *what, struct json_object *o, struct hr_err *err)
{
	const char *id, *version, *token, *domain, *ignored;

	if (hr_field_text(WHO, what, o, "sandboxID", &id, err) != 0)
		return -1;
	/* stores the id first, so that the sandbox can be ended whatever else is wrong */
	if (hr_text_set(&c->id, id, err) != 0 ||
	    hr_field_text(WHO, what, o, "templateID", &ignored, err) != 0 ||
	    hr_field_text(WHO, what, o, "clientID", &ignored, err) != 0 ||
	    hr_field_text(WHO, what, o, "envdVersion", &version, err) != 0 ||
	    hr_field_maybe(WHO, what, o, "envdAccessToken", &token, err) != 0 ||
	    hr_field_maybe(WHO, what, o, "domain", &domain, err) != 0)
		return -1;
	if (token != NULL && c->h != NULL && c->h->secret != NULL)
		c->h->secret(c->h->arg, token);
	if (hr_text_set(&c->version, version, err) != 0 ||
	    hr_text_set(&c->token, token, err) != 0 ||
	    (domain != NULL && hr_text_set(&c->address, domain, err) != 0))
		return -1;
	return hr_e2b_plane(c, err);
}

static struct json_object *
create_body(const struct hr_cloud *c, const struct hr_e2b_new *q, struct hr_err *err)
{
	return hr_json_object(err, "templateID", json_object_new_string(q->template), "metadata",
	    copy_of(q->metadata), "envVars", copy_of(q->env), "timeout",
	    q->timeout_s > 0 || c->old
		? json_object_new_int64(q->timeout_s > 0 ? q->timeout_s : 300)
		: HR_JSON_NONE,
	    "secure", q->insecure || c->old ? json_object_new_boolean(!q->insecure) : HR_JSON_NONE,
	    "allow_internet_access",
	    q->no_internet || c->old ? json_object_new_boolean(!q->no_internet) : HR_JSON_NONE,
	    "autoPause", c->old ? json_object_new_boolean(false) : HR_JSON_NONE, NULL);
}

int
hr_e2b_create(struct hr_cloud *c, const struct hr_e2b_new *q, bool *unsure, struct hr_err *err)
{
	const char *path = c->old ? "/sandboxes" : "/v2/sandboxes";
	HR_PUT struct json_object *body = create_body(c, q, err);
	struct hr_api_call call = {.method = "POST", .path = path, .body = body, .once = true};
	HR_CLEAN(hr_api_answer_done) struct hr_api_answer a = {0};
	int r;

	*unsure = false;
	if (body == NULL)
		return -1;
	r = hr_api_do(&c->api, &call, &a, err);
	*unsure = r != 0 && a.unsure;
	c->unmade = r != 0 && !a.unsure;
	if (r != 0 && !c->old && unknown_route(&a)) {
		c->old = true;
		return hr_e2b_create(c, q, unsure, err);
	}
	if (r == 0)
		r = take_answer(c, "the answer to the request for a sandbox", a.json, err);
	return r;
}

/* Makes a request whose answer's body is not used. */
static int
post(struct hr_cloud *c, const char *id, const char *what, struct json_object *body,
    struct hr_err *err)
{
	const struct hr_api_call call = {
	    .method = "POST", .path = "/sandboxes/", .id = id, .rest = what, .body = body};

	return hr_api_json(&c->api, &call, NULL, err);
}

/* Works like the older client: sets the timeout of a running sandbox, or resumes a paused one. */
static int
connect_old(struct hr_cloud *c, const char *id, unsigned timeout_s, struct hr_err *err)
{
	struct json_object *o = NULL;
	struct hr_err why = {0};
	int r = hr_e2b_timeout(c, id, timeout_s, &why);

	if (r != 0 && why.code == HR_E_NO_SANDBOX) {
		o = hr_json_object(err, "autoPause", json_object_new_boolean(false), "timeout",
		    json_object_new_int64(timeout_s), NULL);
		r = o != NULL ? 0 : -1;
		if (r == 0)
			r = post(c, id, "/resume", o, &why);
		hr_json_drop(&o);
	}
	if (r != 0) {
		if (err != NULL && why.code != HR_OK)
			*err = why;
		return -1;
	}
	if (hr_e2b_info(c, id, &o, err) != 0)
		return -1;
	if (o == NULL)
		r = hr_err_set(err, HR_E_NO_SANDBOX, WHO " has no sandbox %s", id);
	else
		r = take_answer(c, "the sandbox", o, err);
	json_object_put(o);
	return r;
}

int
hr_e2b_connect(struct hr_cloud *c, const char *id, unsigned timeout_s, struct hr_err *err)
{
	HR_PUT struct json_object *body = NULL;
	struct hr_api_call call = {
	    .method = "POST", .path = "/v2/sandboxes/", .id = id, .rest = "/connect"};
	HR_CLEAN(hr_api_answer_done) struct hr_api_answer a = {0};
	int r;

	if (c->old)
		return connect_old(c, id, timeout_s, err);
	body = hr_json_object(
	    err, "timeout", timeout_s > 0 ? json_object_new_int64(timeout_s) : HR_JSON_NONE, NULL);
	if (body == NULL)
		return -1;
	call.body = body;
	r = hr_api_do(&c->api, &call, &a, err);
	if (r == 0)
		r = take_answer(c, "the answer to connect", a.json, err);
	else if (unknown_route(&a))
		c->old = true;
	return r != 0 && c->old ? connect_old(c, id, timeout_s > 0 ? timeout_s : 300, err) : r;
}

int
hr_e2b_kill(struct hr_cloud *c, const char *id, struct hr_err *err)
{
	const struct hr_api_call call = {.method = "DELETE", .path = "/sandboxes/", .id = id};
	struct hr_err mine = {0};
	int r = hr_api_json(&c->api, &call, NULL, &mine);

	return r == 0 ? 1 : hr_api_or_gone(r, &mine, err);
}

int
hr_e2b_timeout(struct hr_cloud *c, const char *id, unsigned timeout_s, struct hr_err *err)
{
	HR_PUT struct json_object *body =
	    hr_json_object(err, "timeout", json_object_new_int64(timeout_s), NULL);

	return body != NULL ? post(c, id, "/timeout", body, err) : -1;
}

int
hr_e2b_pause(struct hr_cloud *c, const char *id, struct hr_err *err)
{
	HR_PUT struct json_object *body = c->old ? NULL : json_object_new_object();
	struct hr_err mine = {0};
	int r;

	if (body == NULL && !c->old)
		return hr_err_nomem(err);
	r = post(c, id, "/pause", body, &mine);
	if (r == 0)
		return 1;
	if (mine.status == 409 && strstr(mine.msg, "already paused") != NULL)
		return 0;
	return hr_err_pass(err, &mine);
}

static int
get(struct hr_cloud *c, const char *id, const char *what, struct json_object **ret,
    struct hr_err *err)
{
	const struct hr_api_call call = {
	    .method = "GET", .path = "/sandboxes/", .id = id, .rest = what};
	struct hr_err mine = {0};
	int r = hr_api_json(&c->api, &call, ret, &mine);

	return hr_api_or_gone(r, &mine, err);
}

int
hr_e2b_info(struct hr_cloud *c, const char *id, struct json_object **ret, struct hr_err *err)
{
	return get(c, id, "", ret, err);
}

int
hr_e2b_metrics(struct hr_cloud *c, const char *id, struct json_object **ret, struct hr_err *err)
{
	return get(c, id, "/metrics", ret, err);
}

/* Escapes a label three times: as a form value, as the query value, and for transport; blanks
 * become %20. */
static void
put_metadata(struct hr_buf *b, const char *name, const char *value)
{
	const char *const parts[] = {name, value};
	struct hr_buf once;
	HR_BUF(pair, PATH_MAX_LEN);
	size_t i;

	for (i = 0; i < 2; i++) {
		hr_buf_init(&once, PATH_MAX_LEN);
		hr_http_escape(&once, parts[i]);
		hr_http_escape(&pair, hr_buf_str(&once));
		hr_buf_adds(&pair, i == 0 ? "=" : "");
		hr_buf_done(&once);
	}
	hr_buf_adds(b, "metadata=");
	hr_http_escape(b, hr_buf_str(&pair));
	hr_buf_addc(b, '&');
}

int
hr_e2b_list(struct hr_cloud *c, const char *name, const char *value, unsigned limit, char next[512],
    struct json_object **ret, struct hr_err *err)
{
	struct hr_api_call call = {.method = "GET", .header = "X-Next-Token"};
	HR_CLEAN(hr_api_answer_done) struct hr_api_answer a = {0};
	HR_BUF(b, PATH_MAX_LEN);
	int r;

	hr_buf_adds(&b, "/v2/sandboxes?");
	if (name != NULL)
		put_metadata(&b, name, value);
	hr_buf_adds(&b, "state=running%2Cpaused");
	if (*next != '\0') {
		hr_buf_adds(&b, "&nextToken=");
		hr_http_escape(&b, next);
	}
	if (limit > 0)
		hr_buf_addf(&b, "&limit=%u", limit);
	call.path = hr_buf_str(&b);
	r = hr_buf_check(&b, NULL) == 0 ? hr_api_do(&c->api, &call, &a, err) : hr_err_nomem(err);
	if (r == 0 && !json_object_is_type(a.json, json_type_array))
		r = hr_err_set(err, HR_E_PROTO, WHO ": the list of sandboxes is not a JSON array");
	*ret = r == 0 ? json_object_get(a.json) : NULL;
	(void)snprintf(next, 512, "%s", r == 0 ? a.header : "");
	return r;
}
