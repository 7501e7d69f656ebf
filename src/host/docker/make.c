/* Creates a container, until its server is ready. Readiness is a line in the container's log, and
 * failure the end of that log: nothing is polled. */
#include "config.h"

#include "host/docker/docker_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/command.h"
#include "host/common/payload.h"
#include "host/docker/spec.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text/text.h"
#include "proto/json.h"

#define READY_TIMEOUT_S 120
#define PORT_ATTEMPTS 5
#define STARTS 3 /* containers, each with other ports: another program can take a port */
#define LAST_LINES 20
#define LINE_SHOWN 300
#define LAST_SHOWN 800 /* bytes of the last lines in an error */

/* ---- waiting ---- */

/* Searches for the line by which a server reports that it is ready; keeps the last lines for an
 * error. */
struct await {
	bool ready;
	int64_t until_ms; /* as hr_now_ms() counts; a log may have no end */
	unsigned n;
	char last[LAST_LINES][LINE_SHOWN];
};

static int
await_line(void *arg, const char *line, size_t len)
{
	static const char *const signs[] = {
	    "ready: listening", "Application startup complete", "Uvicorn running on"};
	struct await *w = arg;
	size_t i;

	if (hr_now_ms() >= w->until_ms)
		return -1;
	(void)snprintf(w->last[w->n++ % LAST_LINES], LINE_SHOWN, "%.*s", (int)len, line);
	for (i = 0; i < sizeof(signs) / sizeof(*signs); i++)
		if (memmem(line, len, signs[i], strlen(signs[i])) != NULL)
			w->ready = true;
	return w->ready;
}

static int
has_exited(struct hr_docker *d, const struct await *w, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	unsigned from = w->n > LAST_LINES ? w->n - LAST_LINES : 0;
	struct hr_err why = {0};
	HR_BUF(b, LAST_LINES * LINE_SHOWN + 64);
	const char *end;
	unsigned i;

	if (hr_docker_call(d, "GET", "/json", &o, &why) < 0)
		return why.code == HR_E_NO_SANDBOX
			   ? hr_err_set(err, HR_E_NO_SANDBOX, "Container %s not found.", d->name)
			   : hr_err_pass(err, &why);
	for (i = from; i < w->n; i++)
		hr_buf_addf(&b, "\n%s", w->last[i % LAST_LINES]);
	end = hr_buf_str(&b);
	if (b.len > LAST_SHOWN) /* starts with a whole line: none is as long as this */
		end = strchr(end + b.len - LAST_SHOWN, '\n');
	if (hr_json_true_at(hr_json_at(o, "State"), "Running"))
		(void)hr_err_set(err, HR_E_RUNTIME_TIMEOUT, "%s was not ready within %d seconds%s",
		    d->name, READY_TIMEOUT_S, end);
	else
		(void)hr_err_set(err, HR_E_DISCONNECTED, "Container %s has exited.%s%s", d->name,
		    hr_json_true_at(hr_json_at(o, "State"), "OOMKilled") ? " It ran out of memory."
									 : "",
		    end);
	return -1;
}

/* Waits until the container is ready; `since` is needed because the log of a restarted container
 * has the line from earlier starts. */
int
hr_docker_wait_ready(struct hr_docker *d, const char *since, struct hr_err *err)
{
	HR_FREE struct await *w = calloc(1, sizeof(*w));
	struct hr_demux demux;
	char path[640];
	int r;

	if (w == NULL)
		return hr_err_nomem(err);
	w->until_ms = hr_now_ms() + READY_TIMEOUT_S * 1000;
	(void)snprintf(path, sizeof(path),
	    "/containers/%s/logs?stderr=1&stdout=1&timestamps=0&follow=1&since=%s",
	    hr_docker_ref(d), since);
	hr_demux_init(&demux, await_line, w);
	r = hr_engine_stream(
	    &d->engine, "GET", path, NULL, NULL, hr_demux_sink, &demux, READY_TIMEOUT_S, err);
	hr_demux_done(&demux);
	if (!w->ready)
		r = has_exited(d, w, err);
	return r;
}

/* ---- making ---- */

int
hr_docker_set_url(struct hr_docker *d, struct hr_err *err)
{
	const char *base = hr_config_text(d->h->config, "sandbox.local_runtime_url");
	const char *host = hr_env_get(d->h->environ, "DOCKER_HOST_ADDR");

	if (d->side.dir != NULL)
		return hr_text_setf(&d->url, err, "unix:%s/edge/" HR_SIDECAR_SOCKET, d->side.dir);
	if (host != NULL)
		return hr_text_setf(&d->url, err, "http://%s:%d", host, d->port);
	if (base == NULL || strcmp(base, "http://localhost") == 0)
		base = "http://127.0.0.1";
	return hr_text_setf(&d->url, err, "%s:%d", base, d->port);
}

static int
choose_port(struct hr_docker *d, enum hr_port_use use, int *ret, struct hr_err *err)
{
	int min, max;

	hr_port_range(use, &min, &max);
	if (hr_portlock_find(&d->locks[use], NULL, min, max,
		use == HR_PORT_SERVER ? PORT_ATTEMPTS : 20, "0.0.0.0", NULL, err) < 0)
		return -1;
	*ret = d->locks[use].port;
	return 0;
}

static int
choose_ports(struct hr_docker *d, struct hr_err *err)
{
	long long fixed = hr_config_int(d->h->config, "sandbox.vscode_port");

	if (choose_port(d, HR_PORT_SERVER, &d->port, err) < 0)
		return -1;
	if (fixed > 0)
		d->vscode_port = (int)fixed;
	else if (choose_port(d, HR_PORT_VSCODE, &d->vscode_port, err) < 0)
		return -1;
	return choose_port(d, HR_PORT_APP1, &d->app_ports[0], err) == 0 &&
		       choose_port(d, HR_PORT_APP2, &d->app_ports[1], err) == 0
		   ? 0
		   : -1;
}

/* Sends the create call, and treats a lost answer not as a refusal. */
static int
ask_to_create(struct hr_docker *d, const char *where, struct json_object *body,
    struct json_object **ret, struct hr_err *err)
{
	int r;

	err->status = 0;
	r = hr_engine_call(&d->engine, "POST", where, body, ret, err);
	if (r != 0 && err->status == 0)
		d->h->left(d->h->arg);
	return r;
}

static int
create(struct hr_docker *d, const char *image, struct json_object *body, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	struct hr_err why = {0};
	char where[512];
	int r;

	(void)snprintf(where, sizeof(where), "/containers/create?name=%s", d->name);
	r = ask_to_create(d, where, body, &o, &why);
	if (r != 0 && why.code == HR_E_NOTFOUND) {
		d->h->log(d->h->arg, "the image is not on this machine; pulling it");
		r = hr_docker_pull(&d->engine, image, d->h->progress, d->h->arg, &why);
		if (r == 0)
			r = ask_to_create(d, where, body, &o, &why);
	}
	if (r != 0 && err != NULL)
		*err = why;
	if (r == 0)
		r = hr_text_set(&d->id, hr_docker_id(o, "Id"), err);
	return r;
}

static void
undo(struct hr_docker *d)
{
	struct hr_err why = {0};

	if (hr_docker_call(d, "DELETE", "?v=true&force=true", NULL, &why) != 0 &&
	    why.code != HR_E_NO_SANDBOX)
		d->h->left(d->h->arg);
}

/* Creates and starts the container. It is recorded before it has an id: the name leads to the
 * container even if this process dies before the answer. */
static int
begin(struct hr_docker *d, const struct hr_dockerspec *spec, struct hr_err *err)
{
	HR_PUT struct json_object *body = hr_dockerspec_build(spec, err);
	int r = -1;

	free(d->id);
	d->id = NULL;
	if (body != NULL) {
		d->h->begun(d->h->arg);
		r = create(d, spec->image, body, err);
	}
	if (r != 0)
		return -1;
	r = hr_docker_call(d, "POST", "/start", NULL, err);
	if (r == 0)
		r = hr_docker_keep_rules(d, err);
	if (r == 0)
		d->h->status(d->h->arg, "STATUS$RUNTIME_STARTED");
	else
		undo(d);
	return r;
}

/* Does the same; if the image lacks handrail's programs, mounts the payload's. */
static int
begin_somehow(struct hr_docker *d, struct hr_dockerspec *spec, struct hr_err *err)
{
	struct hr_err why = {0};
	int r = begin(d, spec, &why);

	if (r != 0 && spec->payload == NULL && hr_payload_lacks(why.msg)) {
		spec->payload = hr_payload_installed();
		if (spec->payload != NULL) {
			d->h->log(d->h->arg, "the image lacks handrail's programs; the payload's "
					     "are mounted at " HR_PAYLOAD_PLACE);
			r = begin(d, spec, &why);
		} else {
			(void)hr_err_set(&why, HR_E_NOTFOUND,
			    "%s lacks handrail's programs; \"handrail image preflight %s\" prints "
			    "how to fix that",
			    spec->image, spec->image);
		}
	}
	return r != 0 ? hr_err_pass(err, &why) : 0;
}

/* Warns that the original's default opens the ports of a container to other machines. */
static void
note_open_ports(const struct hr_docker *d)
{
	static const char *const everywhere[] = {"0.0.0.0", "::", "", NULL};
	const char *at = hr_config_text(d->h->config, "sandbox.runtime_binding_address");

	if (at != NULL && hr_is_one_of(at, everywhere) && d->side.dir == NULL &&
	    !hr_config_bool(d->h->config, "sandbox.use_host_network"))
		d->h->log(d->h->arg,
		    "other machines can reach the sandbox's ports; set "
		    "sandbox.runtime_binding_address to 127.0.0.1 if only this machine uses them");
}

/* Starts a container with ports of its own, and waits until it is ready; removes one that fails. */
static int
start(struct hr_docker *d, struct hr_command *c, struct hr_dockerspec *spec, struct hr_err *err)
{
	HR_CLEAN(hr_strv_done) struct hr_strv command = {0};
	int r;

	if (choose_ports(d, err) < 0)
		return -1;
	c->port = spec->port = d->port;
	spec->vscode_port = d->vscode_port;
	spec->app_ports[0] = d->app_ports[0];
	spec->app_ports[1] = d->app_ports[1];
	if (hr_command_build(&command, c, d->h->config, d->h->environ, err) < 0)
		return -1;
	if (spec->side != NULL)
		hr_strv_add_all(&command, (const char *const[]){"--listen",
					      "unix:" HR_SIDECAR_EDGE "/" HR_SIDECAR_SOCKET, NULL});
	if (command.failed)
		return hr_err_nomem(err);
	spec->command = hr_strv_list(&command);
	if (hr_docker_set_url(d, err) < 0 || begin_somehow(d, spec, err) < 0)
		return -1;
	r = hr_docker_wait_ready(d, "0", err);
	if (r == 0)
		r = hr_docker_open_socket(d, err);
	if (r != 0) {
		d->h->log(d->h->arg, "the container could not be started; removing it");
		undo(d);
	}
	return r;
}

/* Returns true if `text` has the number in decimal digits, not as part of a longer one. */
static bool
has_number(const char *text, int number)
{
	char digits[16];
	const int n = snprintf(digits, sizeof(digits), "%d", number);
	const char *p;

	for (p = text; (p = strstr(p, digits)) != NULL; p++)
		if ((p == text || !isdigit((unsigned char)p[-1])) && !isdigit((unsigned char)p[n]))
			return true;
	return false;
}

/* Returns the chosen port that is taken according to the Engine's error or the server's last lines,
 * or 0. Programs write a port in different ways: ":80", "port 80", "('0.0.0.0', 80)". A server that
 * still runs (HR_E_RUNTIME_TIMEOUT) has its port. */
static int
taken_port(const struct hr_docker *d, const struct hr_err *why)
{
	size_t i;

	if (why->code == HR_E_RUNTIME_TIMEOUT || (strstr(why->msg, "already in use") == NULL &&
						     strstr(why->msg, "already allocated") == NULL))
		return 0;
	for (i = 0; i < sizeof(d->locks) / sizeof(*d->locks); i++)
		if (d->locks[i].fd >= 0 && has_number(why->msg, d->locks[i].port))
			return d->locks[i].port;
	return 0;
}

static int
make(struct hr_docker *d, struct hr_err *err)
{
	struct json_object *uid = hr_config_value(d->h->config, "sandbox.security.run_as_user");
	const char *image = hr_config_text(d->h->config, "sandbox.runtime_container_image");
	struct hr_command c = hr_command_in_image(d->h, 0);
	struct hr_dockerspec spec = {.host = d->h, .image = image};
	HR_FREE char *owner = NULL;
	struct hr_err why = {0};
	char text[120];
	int n, taken;

	if (image == NULL)
		return hr_err_set(err, HR_E_INVAL,
		    "sandbox.runtime_container_image is not set; \"handrail image build\" makes an "
		    "image");
	if (uid != NULL) {
		c.username = "openhands";
		c.user_id = (long)json_object_get_int64(uid);
	}
	if (hr_docker_owner(d->h, &owner, err) < 0 ||
	    hr_payload_given(d->h->config, &spec.payload, err) < 0 ||
	    /* a pool's container that could not be used had another key */
	    hr_command_key(d->h->environ, &d->key, err) < 0 || hr_docker_prepare_rules(d, err) < 0)
		return -1;
	spec.side = d->side.dir != NULL ? &d->side : NULL;
	spec.key = d->key;
	spec.owner = owner;
	for (n = 1; start(d, &c, &spec, &why) < 0; n++) {
		taken = taken_port(d, &why);
		if (taken == 0 || n == STARTS)
			return hr_err_pass(err, &why);
		(void)snprintf(text, sizeof(text),
		    "another program took port %d before the container; trying others", taken);
		d->h->log(d->h->arg, text);
	}
	note_open_ports(d);
	return 0;
}

int
hr_docker_make(struct hr_docker *d, struct hr_err *err)
{
	hr_docker_forget_rules(d);
	if (make(d, err) == 0)
		return 0;
	hr_docker_end_rules(d);
	return -1;
}

void
hr_docker_join_networks(struct hr_docker *d)
{
	struct json_object *list = hr_config_value(d->h->config, "sandbox.additional_networks");
	char path[512], text[700];
	struct hr_err why = {0};
	size_t i;

	for (i = 0; i < hr_json_count(list); i++) {
		const char *net = hr_json_text(hr_json_entry(list, i));
		HR_PUT struct json_object *body = NULL;

		if (net == NULL)
			continue;
		body = hr_json_texts(NULL, "Container", d->id, NULL);
		(void)snprintf(path, sizeof(path), "/networks/%.300s/connect", net);
		if (body == NULL ||
		    hr_engine_call(&d->engine, "POST", path, body, NULL, &why) < 0) {
			(void)snprintf(text, sizeof(text),
			    "Error: Failed to connect instance %s to network %.300s", d->name, net);
			d->h->log(d->h->arg, text);
		}
	}
}
