#include "config.h"

#include "egress/broker.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <json-c/json_object.h>

#include "base/fd.h"
#include "base/path.h"
#include "egress/broker_int.h"
#include "egress/listen.h"
#include "egress/told.h"
#include "proto/json.h"

#define MANY 64 /* tunnels, after which their memory is given back */
#define SECRETS_MAX (32u << 20)
#define FILES_WANTED 4096

/* ---- files ---- */

/* Reads a file of JSON; a missing one is no value. */
static int
read_json(const char *name, size_t most, struct json_object **ret, struct hr_err *err)
{
	HR_BUF(text, most);
	struct hr_err e = {0};

	*ret = NULL;
	if (hr_path_read(name, &text, &e) < 0)
		return e.sys == ENOENT ? 0 : hr_err_pass(err, &e);
	return hr_json_decode(hr_buf_str(&text), text.len, ret, NULL) == 0
		   ? 0
		   : hr_err_set(err, HR_E_INVAL, "%s is not JSON", name);
}

struct egress_policy *
egress_broker_policy(struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	const char *data = getenv("HANDRAIL_DATADIR");
	HR_FREE char *presets = hr_path_join(data != NULL ? data : HR_PKGDATADIR, "network");

	if (presets == NULL || read_json("policy.json", EGRESS_POLICY_MAX, &o, err) < 0)
		return presets == NULL ? hr_err_null(err) : NULL;
	return egress_policy_read(o, presets, err);
}

/* ---- listeners ---- */

static void
on_listener(void *arg)
{
	struct egress_listener *l = arg;
	int fd;

	if (!egress_is_tcp(l->fd)) {
		egress_dns_datagrams(l->b, l->fd);
		return;
	}
	fd = hr_fd_accept(l->fd, SOCK_NONBLOCK, l->b->held->box);
	if (fd >= 0)
		egress_conn_accept(l->b, fd);
}

static void
listener_free(struct egress_listener *l)
{
	if (l == NULL)
		return;
	hr_watch_free(l->watch);
	hr_fd_close(&l->fd);
	free(l);
}

/* Serves a listener, which this function owns. */
static int
add_listener(struct egress_broker *b, int fd, struct hr_err *err)
{
	struct egress_listener *l =
	    b->nlisteners < EGRESS_LISTENERS_MAX ? calloc(1, sizeof(*l)) : NULL;

	if (l == NULL) {
		hr_fd_close(&fd);
		return hr_err_nomem(err);
	}
	l->b = b;
	l->fd = fd;
	l->port = ntohs(egress_local(fd).sin_port);
	l->watch = hr_loop_readable(b->loop, fd, on_listener, l, err);
	if (l->watch == NULL) {
		listener_free(l);
		return -1;
	}
	b->listeners[b->nlisteners++] = l;
	return 0;
}

/* Asks the keeper for a listener and waits, which takes as long as a fork. */
static int
ask_listener(struct egress_broker *b, int port, struct hr_err *err)
{
	struct egress_message m = {.op = EGRESS_LISTEN, .port = port};
	int fd = -1;

	if (hr_fd_send(b->held->peer, &m, sizeof(m), -1, NULL) < 0)
		return hr_err_set(err, HR_E_GONE,
		    "the process that listens for the sandbox was killed: any handrail command "
		    "starts "
		    "it again");
	do {
		hr_fd_close(&fd);
		if (hr_fd_recv(b->held->peer, &m, sizeof(m), &fd, err) != (ssize_t)sizeof(m))
			return hr_err_set(err, HR_E_GONE, "the process that listens was killed");
		b->retired = b->retired || m.op == EGRESS_RETIRE;
	} while (m.op != EGRESS_LISTEN);
	m.text[sizeof(m.text) - 1] = '\0';
	return fd >= 0 ? add_listener(b, fd, err) : hr_err_set(err, HR_E_SYS, "%s", m.text);
}

static void
close_listener(struct egress_broker *b, size_t at)
{
	struct egress_message m = {.op = EGRESS_UNLISTEN, .port = b->listeners[at]->port};

	listener_free(b->listeners[at]);
	b->listeners[at] = b->listeners[--b->nlisteners];
	(void)hr_fd_send(b->held->peer, &m, sizeof(m), -1, NULL);
}

static bool
is_in(int port, const int *ports, size_t n)
{
	while (n > 0 && ports[n - 1] != port)
		n--;
	return n > 0;
}

/* Closes the listeners of ports that no rule names. */
static void
close_others(struct egress_broker *b, const int *ports, size_t n)
{
	static const int own[] = {EGRESS_PORT_DNS, EGRESS_PORT_PROXY, EGRESS_PORT_SOCKS};
	size_t i;

	for (i = b->nlisteners; i-- > 0;)
		if (!is_in(b->listeners[i]->port, own, 3) &&
		    !is_in(b->listeners[i]->port, ports, n))
			close_listener(b, i);
}

static int
open_missing(struct egress_broker *b, const int *ports, size_t n, struct hr_err *err)
{
	size_t i, k;

	for (i = 0; i < n; i++) {
		for (k = 0; k < b->nlisteners && b->listeners[k]->port != ports[i]; k++)
			;
		if (k == b->nlisteners && ask_listener(b, ports[i], err) < 0)
			return -1;
	}
	return 0;
}

/* ---- the policy ---- */

static bool
same_servers(const struct egress_policy *a, const struct egress_policy *b)
{
	const char *const *v = a != NULL ? egress_policy_servers(a) : NULL;
	const char *const *w = egress_policy_servers(b);

	while (v != NULL && w != NULL && *v != NULL && *w != NULL && strcmp(*v, *w) == 0) {
		v++;
		w++;
	}
	return v == NULL || w == NULL ? v == w : *v == *w;
}

/* Takes a new policy with its resolver and secrets. Returns -1 with the old ones in force. */
static int
take(struct egress_broker *b, struct egress_policy *p, struct json_object *secrets,
    struct json_object *placeholders, struct hr_err *err)
{
	bool same = b->resolver != NULL && same_servers(b->policy, p);
	struct egress_resolver *r =
	    same ? b->resolver : egress_resolver_new(b->loop, egress_policy_servers(p), err);
	const struct egress_broker old = *b;

	if (r == NULL)
		return -1;
	b->policy = p;
	b->secrets = secrets;
	b->placeholders = placeholders;
	b->resolver = r;
	if (b->inspect != NULL && egress_inspect_reload(b->inspect, err) < 0) {
		b->policy = old.policy;
		b->secrets = old.secrets;
		b->placeholders = old.placeholders;
		b->resolver = old.resolver;
		if (!same)
			egress_resolver_free(r);
		return -1;
	}
	if (!same)
		egress_resolver_free(old.resolver);
	egress_policy_free(old.policy);
	json_object_put(old.secrets);
	json_object_put(old.placeholders);
	return 0;
}

/* Retires as the keeper has asked, and answers, since its upgrade waits for that. */
static void
retire_asked(struct egress_broker *b)
{
	static const struct egress_message m = {.op = EGRESS_RETIRE};

	egress_broker_retire(b);
	(void)hr_fd_send(b->held->peer, &m, sizeof(m), -1, NULL);
}

int
egress_broker_reload(struct egress_broker *b, struct hr_err *err)
{
	struct egress_policy *p = egress_broker_policy(err);
	struct json_object *secrets = NULL, *placeholders = NULL;
	int ports[EGRESS_PORTS_MAX + 2], r;
	size_t n;

	if (p == NULL)
		return -1;
	n = egress_policy_ports(p, ports);
	r = read_json("secrets.json", SECRETS_MAX, &secrets, err) < 0 ||
		    read_json("placeholders.json", SECRETS_MAX, &placeholders, err) < 0 ||
		    egress_policy_password(p, secrets, err) < 0 ||
		    open_missing(b, ports, n, err) < 0 || take(b, p, secrets, placeholders, err) < 0
		? -1
		: 0;
	if (r < 0) {
		egress_policy_free(p);
		json_object_put(secrets);
		json_object_put(placeholders);
		n = b->policy != NULL ? egress_policy_ports(b->policy, ports) : n;
	}
	close_others(b, ports, n);
	if (r == 0)
		r = egress_conn_judge(b);
	if (b->retired)
		retire_asked(b);
	return r;
}

/* ---- the process ---- */

void
egress_broker_less(struct egress_broker *b)
{
	b->tunnels--;
	if (b->tunnels == 0 && b->peak > MANY) {
		(void)malloc_trim(0);
		b->peak = 0;
	}
	if (b->retired && b->tunnels == 0)
		hr_loop_stop(b->loop);
}

void
egress_broker_retire(struct egress_broker *b)
{
	b->retired = true;
	while (b->nlisteners > 0)
		listener_free(b->listeners[--b->nlisteners]);
	hr_watch_drop(&b->clients);
	hr_fd_close(&b->held->control);
	egress_inspect_retire(b->inspect);
	if (b->tunnels == 0)
		hr_loop_stop(b->loop);
}

/* Reads a message of the keeper; its end is no reason to stop. */
static void
on_asked(void *arg)
{
	struct egress_broker *b = arg;
	struct egress_message m;
	int fd;
	ssize_t n = hr_fd_recv(b->held->peer, &m, sizeof(m), &fd, NULL);

	hr_fd_close(&fd);
	if (n <= 0)
		hr_watch_drop(&b->asked);
	else if (n == (ssize_t)sizeof(m) && m.op == EGRESS_RETIRE)
		retire_asked(b);
}

static void
on_control(void *arg)
{
	struct egress_broker *b = arg;
	int fd = hr_fd_accept(b->held->control, SOCK_NONBLOCK, b->held->box);

	if (fd >= 0)
		egress_control_accept(b, fd);
}

static void
on_end(void *arg)
{
	hr_loop_stop(arg);
}

static void
raise_files(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < FILES_WANTED) {
		lim.rlim_cur = lim.rlim_max < FILES_WANTED ? lim.rlim_max : FILES_WANTED;
		(void)setrlimit(RLIMIT_NOFILE, &lim);
	}
}

int
egress_broker_run(struct egress_held *h, struct hr_err *err)
{
	static struct egress_broker b;
	size_t i;

	raise_files();
	b.held = h;
	b.loop = hr_loop_new(err);
	if (b.loop == NULL)
		return -1;
	b.log = egress_log_open(b.loop, "log", EGRESS_TOLD_DIR, egress_control_line, &b, err);
	b.names = egress_names_open("names", err);
	b.end = hr_loop_readable(b.loop, h->box, on_end, b.loop, err);
	b.asked = hr_loop_readable(b.loop, h->peer, on_asked, &b, err);
	b.clients = hr_loop_readable(b.loop, h->control, on_control, &b, err);
	if (b.log == NULL || b.names == NULL || b.end == NULL || b.asked == NULL ||
	    b.clients == NULL)
		return -1;
	for (i = 0; i < h->n; i++)
		if (add_listener(&b, h->listeners[i], err) < 0)
			return -1;
	b.inspect = egress_inspect_new(&b, err);
	if (b.inspect == NULL)
		return -1;
	if (egress_broker_reload(&b, err) < 0) {
		egress_log_add(
		    b.log, &(const struct egress_event){.kind = "error", .rule = err->msg});
		return -1;
	}
	return hr_loop_run(b.loop, err);
}
