/* Implements the back-end "e2b": sandboxes of E2B (doc/clouds.md, "E2B"). */
#include "config.h"

#include "host/e2b/e2b.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "proto/json.h"

#define LIFE_S 300 /* seconds of the initial lifetime; each use extends it */

static int
e2b_open_api(struct hr_cloud *c, struct hr_err *err)
{
	static const struct hr_api_rule rule = {
	    .again = {HR_E2B_AGAIN(HR_REST_GATEWAY | HR_REST_LATE)}, .should = "should-retry"};
	const char *given = hr_cloud_env(c, "E2B_API_URL", NULL);
	HR_FREE char *key = hr_cloud_key(c, "E2B_API_KEY", err);
	HR_FREE char *url = NULL;

	if (key == NULL ||
	    (given != NULL ? hr_text_set(&url, given, err)
			   : hr_text_setf(&url, err, "https://api.%s",
				 hr_cloud_env(c, "E2B_DOMAIN", "e2b.app"))) != 0 ||
	    hr_api_init(&c->api, "E2B", &rule, url, err) != 0 ||
	    hr_api_header(&c->api, "X-API-Key", key, true, err) != 0)
		return -1;
	c->old = hr_cloud_env(c, "E2B_OLD_ROUTES", NULL) != NULL;
	return 0;
}

static int
e2b_create(struct hr_cloud *c, bool *unsure, struct hr_err *err)
{
	HR_PUT struct json_object *labels = hr_cloud_labels(c);
	struct hr_e2b_new q = {.template = c->image, .timeout_s = LIFE_S, .metadata = labels};

	*unsure = false;
	if (labels == NULL)
		return hr_err_nomem(err);
	if (q.template == NULL)
		q.template = hr_cloud_env(c, "E2B_TEMPLATE", "base");
	return hr_e2b_create(c, &q, unsure, err);
}

/* Waits for the sandbox: a created one runs already; one found by its label needs a request for its
 * token. */
static int
e2b_wait(struct hr_cloud *c, struct hr_err *err)
{
	return c->plane.rest != NULL ? 0 : hr_e2b_connect(c, c->id, LIFE_S, err);
}

static int
e2b_look(struct hr_cloud *c, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	const char *state;
	int r = hr_e2b_info(c, c->id, &o, err);

	if (r == 0 && o == NULL)
		(void)snprintf(c->state, sizeof(c->state), "gone");
	else if (r == 0 && (r = hr_field_text("E2B", "the sandbox", o, "state", &state, err)) == 0)
		(void)snprintf(c->state, sizeof(c->state), "%s", state);
	if (r == 0 && c->plane.rest == NULL)
		r = hr_e2b_plane(c, err);
	return r;
}

static const struct hr_cloud_shape shape = {
    .id = "sandboxID", .labels = "metadata", .state = "state", .otherwise = "running"};

static int
e2b_list(struct hr_cloud *c, const char *run, hr_cloud_found_fn *fn, void *arg, struct hr_err *err)
{
	char next[512] = "";
	unsigned pages = 0;
	int r = 0;

	do {
		struct json_object *list = NULL;

		if (hr_cloud_page("E2B", &pages, err) != 0)
			return -1;
		r = hr_e2b_list(c, run != NULL ? "handrail_run" : NULL, run, 100, next, &list, err);
		if (r == 0)
			r = hr_cloud_entries("E2B", &shape, list, run, fn, arg, err);
		json_object_put(list);
	} while (r == 0 && *next != '\0');
	return r < 0 ? -1 : 0;
}

static int
e2b_end(struct hr_cloud *c, const char *id, struct hr_err *err)
{
	return hr_e2b_kill(c, id, err) < 0 ? -1 : 0;
}

static int
e2b_pause(struct hr_cloud *c, struct hr_err *err)
{
	return hr_e2b_pause(c, c->id, err) < 0 ? -1 : 0;
}

static int
e2b_resume(struct hr_cloud *c, struct hr_err *err)
{
	return hr_e2b_connect(c, c->id, LIFE_S, err);
}

static int
e2b_keep(struct hr_cloud *c, unsigned seconds, struct hr_err *err)
{
	struct hr_err mine = {0};

	if (hr_e2b_timeout(c, c->id, seconds, &mine) == 0)
		return 0;
	if (mine.code == HR_E_NO_SANDBOX)
		(void)hr_err_set(&mine, HR_E_DISCONNECTED,
		    "E2B: the sandbox %s is gone or paused: \"handrail resume\" continues a paused "
		    "one",
		    c->id);
	return hr_err_pass(err, &mine);
}

/* Reports the last entry, which is the newest. */
static int
e2b_stats(struct hr_cloud *c, char **ret_json, struct hr_err *err)
{
	static const char *const names[] = {"cpuUsedPct", "memUsed", "memTotal"};
	HR_PUT struct json_object *list = NULL;
	double v[3] = {0, 0, 0};
	HR_BUF(b, 4096);
	int r = 0;
	size_t i;

	if (hr_e2b_metrics(c, c->id, &list, err) != 0)
		return -1;
	if (hr_json_count(list) == 0)
		r = hr_err_set(
		    err, HR_E_NOT_READY, "E2B has no figures of the sandbox yet: try again");
	for (i = 0; r == 0 && i < 3; i++)
		r = hr_field_number("E2B", "its figures",
		    hr_json_entry(list, hr_json_count(list) - 1), names[i], &v[i], err);
	if (r != 0)
		return -1;
	hr_buf_addf(&b,
	    "{\"cpu_percent\":%.1f,\"mem_bytes\":%.0f,\"mem_limit_bytes\":%.0f,\"mem_percent\":%."
	    "1f}",
	    v[0], v[1], v[2], v[2] > 0 ? v[1] / v[2] * 100 : 0);
	return (*ret_json = hr_buf_end(&b, err)) != NULL ? 0 : -1;
}

static int
e2b_exec(struct hr_cloud *c, const struct hr_cloud_command *q, struct hr_cloud_end *ret,
    struct hr_err *err)
{
	struct hr_e2b_process p = {.q = q};

	return hr_e2b_run(c, &p, ret, err);
}

static int
e2b_put(struct hr_cloud *c, const char *path, const char *p, size_t len, struct hr_err *err)
{
	const struct hr_api_part part = {.name = "file",
	    .filename = path,
	    .type = "application/octet-stream",
	    .p = p,
	    .len = len};

	return hr_e2b_put_files(c, &part, 1, NULL, err);
}

static int
e2b_launch(struct hr_cloud *c, const char *line, struct hr_err *err)
{
	const struct hr_cloud_command q = {.line = line};
	struct hr_e2b_process p = {.q = &q, .user = "root", .leave = true};
	struct hr_cloud_end end;

	return hr_e2b_run(c, &p, &end, err);
}

static int
e2b_publish(struct hr_cloud *c, int port, struct hr_err *err)
{
	const char *given = hr_cloud_env(c, "E2B_SANDBOX_URL", NULL);
	char *url = hr_e2b_url(c, port, err);

	if (url == NULL)
		return -1;
	free(c->url);
	c->url = url;
	/* all sandboxes and ports have one address */
	if (given == NULL)
		return hr_text_set(&c->url_header, NULL, err);
	return hr_text_set(&c->url, given, err) == 0 ? hr_text_setf(&c->url_header, err,
							   "E2b-Sandbox-Id: %s\n"
							   "E2b-Sandbox-Port: %d",
							   c->id, port)
						     : -1;
}

static const char *const lacks[] = {
    "E2B: without an image that has handrail in it (sandbox.runtime_container_image: a template's "
    "name) each command runs in a new shell: its directory, variables and programs do not last, "
    "and a running command takes no input; no MCP servers, browser, editor or live view; a "
    "command's output is lost while its connection is. Cells of Python need a template with E2B's "
    "code interpreter.",
    NULL};

static const struct hr_cloud_ops ops = {
    .name = "e2b",
    .title = "E2B",
    .lacks = lacks,
    .open = e2b_open_api,
    .create = e2b_create,
    .wait = e2b_wait,
    .look = e2b_look,
    .list = e2b_list,
    .end = e2b_end,
    .pause = e2b_pause,
    .resume = e2b_resume,
    .stats = e2b_stats,
    .keep = e2b_keep,
    .exec = e2b_exec,
    .get = hr_e2b_get,
    .put = e2b_put,
    .code = hr_e2b_code,
    .launch = e2b_launch,
    .publish = e2b_publish,
};

HR_CLOUD_KIND(hr_e2b_entry, "e2b", ops)
