#include "config.h"

#include "egress/dial.h"

#include <errno.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop.h"
#include "egress/policy_int.h"

#define NEXT_MS 3000 /* time for one address while there is another */
#define LAST_MS 20000
#define OWN_MS 5000 /* time for which the addresses of the machine are remembered */

struct egress_dial {
	struct hr_loop *loop;
	struct egress_policy *const *policy;
	struct egress_resolver *const *resolver;
	egress_dialled_fn *fn;
	void *arg;
	struct egress_query *query;
	struct hr_watch *timer, *writable;
	int fd, port;
	struct sockaddr_storage to[EGRESS_RESULTS_MAX]; /* without a name, [0] is there at once */
	size_t n, at;
	int error; /* of the last address */
	char name[EGRESS_NAME_MAX + 1];
};

static void next(struct egress_dial *d);

void
egress_dial_cancel(struct egress_dial *d)
{
	if (d == NULL)
		return;
	egress_query_cancel(d->query);
	hr_watch_free(d->timer);
	hr_watch_free(d->writable);
	hr_fd_close(&d->fd);
	free(d);
}

static void
finish(struct egress_dial *d, const char *why, bool refused)
{
	egress_dialled_fn *fn = d->fn;
	void *arg = d->arg;
	int fd = d->fd;

	d->fd = -1;
	hr_watch_free(d->writable);
	d->writable = NULL;
	egress_dial_cancel(d);
	fn(arg, fd, why, refused);
}

static void
fail_one(struct egress_dial *d, int error)
{
	d->error = error;
	hr_watch_free(d->writable);
	d->writable = NULL;
	hr_fd_close(&d->fd);
	next(d);
}

static void
on_connected(void *arg)
{
	struct egress_dial *d = arg;
	int error = 0;
	socklen_t len = sizeof(error);

	if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		error = errno;
	if (error == 0)
		finish(d, NULL, false);
	else
		fail_one(d, error);
}

/* Connects to the next address. */
static void
next(struct egress_dial *d)
{
	const struct sockaddr *to = (const struct sockaddr *)&d->to[d->at];
	int on = 1;

	if (d->at == d->n) {
		finish(d, strerror(d->error), false);
		return;
	}
	d->at++;
	d->fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0 || (connect(d->fd, to,
			      to->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						       : sizeof(struct sockaddr_in6)) < 0 &&
			     errno != EINPROGRESS)) {
		fail_one(d, errno);
		return;
	}
	/* a peer that has vanished must not hold a tunnel for ever */
	(void)setsockopt(d->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	d->writable = hr_loop_writable(d->loop, d->fd, on_connected, d, NULL);
	if (d->writable == NULL ||
	    hr_watch_arm(d->timer, d->at < d->n ? NEXT_MS : LAST_MS, NULL) < 0)
		fail_one(d, ENOMEM);
}

/* Returns true if an interface other than lo has the address: the machine's firewall does not see
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
		if (strcmp(i->ifa_name, "lo") != 0 && policy_range_of(i->ifa_addr, &found) >= 0 &&
		    memcmp(&found, &wanted, sizeof(found)) == 0)
			return true;
	return false;
}

static void
on_resolved(void *arg, const struct sockaddr_storage *v, size_t n, const char *why)
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
		a = (const struct sockaddr *)&v[i];
		if (!egress_policy_result(*d->policy, a))
			continue;
		if (!egress_policy_names(*d->policy, a) && is_own(a))
			own = true;
		else
			d->to[d->n++] = v[i];
	}
	if (d->n > 0)
		next(d);
	else
		finish(d,
		    own               ? "the address is this machine's own, and no rule names it"
		    : d->name[0] != 0 ? "the name has only private addresses"
				      : "no rule allows the address any more",
		    true);
}

static void
on_time(void *arg)
{
	struct egress_dial *d = arg;

	if (d->fd >= 0)
		fail_one(d, ETIMEDOUT);
	else if (d->name[0] == '\0')
		on_resolved(d, d->to, 1, NULL);
	else
		egress_resolve(*d->resolver, d->name, d->port, on_resolved, d, &d->query);
}

struct egress_dial *
egress_dial(struct hr_loop *loop, struct egress_resolver *const *resolver,
    struct egress_policy *const *policy, const char *name, struct in_addr address, int port,
    egress_dialled_fn *fn, void *arg)
{
	struct egress_dial *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->loop = loop;
	d->resolver = resolver;
	d->policy = policy;
	d->fn = fn;
	d->arg = arg;
	d->fd = -1;
	d->port = port;
	if (name != NULL)
		memcpy(d->name, name, strlen(name) + 1);
	else
		*(struct sockaddr_in *)&d->to[0] = (struct sockaddr_in){
		    .sin_family = AF_INET, .sin_addr = address, .sin_port = htons((uint16_t)port)};
	d->timer = hr_loop_timer(loop, on_time, d, NULL);
	if (d->timer == NULL || hr_watch_arm(d->timer, 0, NULL) < 0) {
		egress_dial_cancel(d);
		return NULL;
	}
	return d;
}
