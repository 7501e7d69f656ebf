#include "config.h"

#include "egress/dial.h"

#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop.h"
#include "egress/policy_int.h"
#include "egress/proxy.h"
#include "proto/json.h"

#define NEXT_MS 3000 /* time for one address while there is another */
#define LAST_MS 20000
#define OWN_MS 5000 /* time for which the addresses of the machine are remembered */

struct egress_dial {
	struct hr_loop *loop;
	struct egress_policy *const *policy;
	struct egress_resolver *const *resolver;
	struct json_object *const *secrets;
	egress_dialled_fn *fn;
	void *arg;
	struct egress_query *query;
	struct hr_watch *timer, *ready; /* ready: the socket */
	struct egress_talk *talk;       /* NULL: no proxy */
	union egress_address proxy;
	int fd, port;
	union egress_address to[EGRESS_RESULTS_MAX]; /* [0] is known at once for an address */
	size_t n, at;
	char why[128];    /* the error of the last address */
	const char *name; /* NULL: an address */
};

static void next(struct egress_dial *d);

void
egress_dial_cancel(struct egress_dial *d)
{
	if (d == NULL)
		return;
	egress_query_cancel(d->query);
	hr_watch_free(d->timer);
	hr_watch_free(d->ready);
	egress_talk_free(d->talk);
	hr_fd_close(&d->fd);
	free(d);
}

static void
finish(struct egress_dial *d, const char *why, bool refused)
{
	egress_dialled_fn *fn = d->fn;
	const union egress_address server = d->to[d->at > 0 ? d->at - 1 : 0];
	char text[sizeof(d->why)];
	void *arg = d->arg;
	int fd = d->fd;

	if (why != NULL)
		(void)snprintf(text, sizeof(text), "%s", why);
	d->fd = -1;
	hr_watch_drop(&d->ready);
	egress_dial_cancel(d);
	fn(arg, fd, &server, why != NULL ? text : NULL, refused);
}

static void
fail_one(struct egress_dial *d, const char *why)
{
	(void)snprintf(d->why, sizeof(d->why), "%s", why);
	hr_watch_drop(&d->ready);
	hr_fd_close(&d->fd);
	next(d);
}

static void
on_proxy(void *arg)
{
	struct egress_dial *d = arg;
	const char *why;
	int r = egress_talk(d->talk, d->fd, &why);

	if (r > 0)
		finish(d, NULL, false);
	else if (r < 0)
		fail_one(d, why);
}

static void
on_connected(void *arg)
{
	struct egress_dial *d = arg;
	const char *why = "no memory";
	int error = 0;
	socklen_t len = sizeof(error);

	if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		error = errno;
	if (error != 0) {
		fail_one(d, strerror(error));
		return;
	}
	if (d->talk == NULL) {
		finish(d, NULL, false);
		return;
	}
	hr_watch_free(d->ready);
	d->ready = hr_loop_readable(d->loop, d->fd, on_proxy, d, NULL);
	if (d->ready == NULL || egress_talk_start(d->talk, d->fd, &d->to[d->at - 1].any, &why) < 0)
		fail_one(d, why);
}

/* Connects to the next address, or to the proxy for that. */
static void
next(struct egress_dial *d)
{
	const struct sockaddr *to = d->talk != NULL ? &d->proxy.any : &d->to[d->at].any;
	int on = 1;

	if (d->at == d->n) {
		finish(d, d->why, false);
		return;
	}
	d->at++;
	d->fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0 || (connect(d->fd, to,
			      to->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						       : sizeof(struct sockaddr_in6)) < 0 &&
			     errno != EINPROGRESS)) {
		fail_one(d, strerror(errno));
		return;
	}
	/* a peer that has vanished must not hold a tunnel for ever */
	(void)setsockopt(d->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	d->ready = hr_loop_writable(d->loop, d->fd, on_connected, d, NULL);
	if (d->ready == NULL || hr_watch_arm(d->timer, d->at < d->n ? NEXT_MS : LAST_MS, NULL) < 0)
		fail_one(d, strerror(ENOMEM));
}

/* Returns true if an interface has the address, lo included: the machine's firewall does not see
 * a connection to it as one from outside. Without a list, every address may be such a one. */
static bool
is_own(const struct sockaddr *a)
{
	static struct ifaddrs *list;
	static int64_t until;
	struct policy_range wanted, found;
	const struct ifaddrs *i;

	if (list == NULL || hr_now_ms() >= until) {
		if (list != NULL)
			freeifaddrs(list);
		list = NULL;
		if (getifaddrs(&list) != 0) {
			list = NULL;
			return true;
		}
		until = hr_now_ms() + OWN_MS;
	}
	if (policy_range_of(a, &wanted) < 0)
		return true;
	for (i = list; i != NULL; i = i->ifa_next)
		if (policy_range_of(i->ifa_addr, &found) >= 0 &&
		    memcmp(&found, &wanted, sizeof(found)) == 0)
			return true;
	return false;
}

/* ---- the proxy ---- */

static void
on_proxy_found(void *arg, const union egress_address *v, size_t n, const char *why)
{
	struct egress_dial *d = arg;
	const struct sockaddr *a;
	size_t i;

	for (i = 0; i < n; i++) {
		a = &v[i].any;
		if (!egress_policy_result(*d->policy, a) || is_own(a))
			continue;
		d->proxy = v[i];
		next(d);
		return;
	}
	finish(
	    d, n == 0 ? why : "egressProxy: the address is private or this machine's own", false);
}

/* Looks for the proxy's address. Only an operator can write a private one; a name can be a
 * client's, and leads to public ones. */
static void
find_proxy(struct egress_dial *d)
{
	const struct egress_proxy *p = egress_policy_proxy(*d->policy);
	const char *password = NULL;
	struct policy_range r;

	if (p == NULL) {
		finish(d, "the rules have changed", false);
		return;
	}
	if (p->secret != NULL && (password = hr_json_text_at(*d->secrets, p->secret)) == NULL) {
		finish(d, "egressProxy: the secret is not set", false);
		return;
	}
	d->proxy = p->address;
	d->talk = egress_talk_new(p, password);
	if (d->talk == NULL)
		finish(d, "no memory", false);
	else if (policy_range_of(&d->proxy.any, &r) >= 0 && policy_is_private(&r))
		next(d);
	else if (p->name[0] == '\0')
		on_proxy_found(d, &p->address, 1, NULL);
	else
		egress_resolve(*d->resolver, p->name, p->port, on_proxy_found, d, &d->query);
}

static void
on_resolved(void *arg, const union egress_address *v, size_t n, const char *why)
{
	struct egress_dial *d = arg;
	const struct sockaddr *a;
	bool own = false;
	size_t i;

	if (n == 0) {
		finish(d, why, false);
		return;
	}
	for (i = 0; i < n; i++) {
		a = &v[i].any;
		if (!egress_policy_result(*d->policy, a))
			continue;
		if (!egress_policy_names(*d->policy, a) && is_own(a))
			own = true;
		else
			d->to[d->n++] = v[i];
	}
	if (d->n > 0 && egress_policy_proxy(*d->policy) == NULL)
		next(d);
	else if (d->n > 0 && hr_watch_arm(d->timer, 0, NULL) == 0)
		; /* later, since the resolver may have called */
	else
		finish(d,
		    own               ? "the address is this machine's own, and no rule names it"
		    : d->name != NULL ? "the name has only private addresses"
				      : "no rule allows the address any more",
		    true);
}

static void
on_time(void *arg)
{
	struct egress_dial *d = arg;

	if (d->fd >= 0)
		fail_one(d, strerror(ETIMEDOUT));
	else if (d->n > 0)
		find_proxy(d);
	else if (d->name == NULL)
		on_resolved(d, d->to, 1, NULL);
	else
		egress_resolve(*d->resolver, d->name, d->port, on_resolved, d, &d->query);
}

struct egress_dial *
egress_dial(struct hr_loop *loop, struct egress_resolver *const *resolver,
    struct egress_policy *const *policy, struct json_object *const *secrets, const char *name,
    struct in_addr address, int port, egress_dialled_fn *fn, void *arg)
{
	struct egress_dial *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->loop = loop;
	d->resolver = resolver;
	d->policy = policy;
	d->secrets = secrets;
	d->fn = fn;
	d->arg = arg;
	d->fd = -1;
	d->port = port;
	d->name = name;
	if (name == NULL)
		d->to[0].in = (struct sockaddr_in){
		    .sin_family = AF_INET, .sin_addr = address, .sin_port = htons((uint16_t)port)};
	d->timer = hr_loop_timer(loop, on_time, d, NULL);
	if (d->timer == NULL || hr_watch_arm(d->timer, 0, NULL) < 0) {
		egress_dial_cancel(d);
		return NULL;
	}
	return d;
}
