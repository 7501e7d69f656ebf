/* Wraps c-ares, as its only user. */
#include "config.h"

#include "egress/resolve.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <ares.h>

#include "base/buf.h"
#include "base/loop.h"

#define TIMEOUT_MS 2000
#define TRIES 3
#define SERVERS "/etc/resolv.conf"

/* A socket of c-ares. */
struct sock {
	struct sock *next;
	struct egress_resolver *r;
	ares_socket_t fd;
	struct hr_watch *readable, *writable;
};

/* A question to the servers, which all that ask for the same name meanwhile share: hundreds of
 * connections to one host at once must not flood them. */
struct lookup {
	struct lookup *next, **at;
	struct egress_query *queries;
	char name[];
};

struct egress_resolver {
	struct hr_loop *loop;
	struct lookup *lookups;
	ares_channel channel; /* NULL: none */
	struct hr_watch *timer;
	struct sock *socks;
	bool machine;        /* asks the machine's servers */
	struct stat servers; /* the file that names them */
};

struct egress_query {
	egress_resolved_fn *fn; /* NULL: cancelled */
	void *arg;
	int port;
	struct egress_query **at; /* the caller's pointer to this query */
	struct egress_query *next;
};

static void
arm(struct egress_resolver *r)
{
	struct timeval tv, *t = ares_timeout(r->channel, NULL, &tv);

	if (t != NULL)
		(void)hr_watch_arm(r->timer, t->tv_sec * 1000 + t->tv_usec / 1000 + 1, NULL);
	else
		hr_watch_disarm(r->timer);
}

static void
on_timer(void *arg)
{
	struct egress_resolver *r = arg;

	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	arm(r);
}

static void
on_readable(void *arg)
{
	struct sock *s = arg;
	struct egress_resolver *r = s->r;

	ares_process_fd(r->channel, s->fd, ARES_SOCKET_BAD);
	arm(r);
}

static void
on_writable(void *arg)
{
	struct sock *s = arg;
	struct egress_resolver *r = s->r;

	ares_process_fd(r->channel, ARES_SOCKET_BAD, s->fd);
	arm(r);
}

/* Watches a socket of c-ares, or ends that, as it demands. */
static void
on_state(void *arg, ares_socket_t fd, int readable, int writable)
{
	struct egress_resolver *r = arg;
	struct sock **at = &r->socks, *s;

	while (*at != NULL && (*at)->fd != fd)
		at = &(*at)->next;
	s = *at;
	if (s == NULL && (readable || writable) && (s = calloc(1, sizeof(*s))) != NULL) {
		s->r = r;
		s->fd = fd;
		*at = s;
	}
	if (s == NULL)
		return; /* no memory: the query ends by its time limit */
	hr_watch_free(s->readable);
	hr_watch_free(s->writable);
	s->readable = readable ? hr_loop_readable(r->loop, fd, on_readable, s, NULL) : NULL;
	s->writable = writable ? hr_loop_writable(r->loop, fd, on_writable, s, NULL) : NULL;
	if (!readable && !writable) {
		*at = s->next;
		free(s);
	}
}

static int
use_servers(struct egress_resolver *r, const char *const *servers, struct hr_err *err)
{
	HR_BUF(list, 1u << 16);
	size_t i;
	int code;

	for (i = 0; servers[i] != NULL; i++)
		hr_buf_addf(&list, "%s%s", i > 0 ? "," : "", servers[i]);
	code = ares_set_servers_ports_csv(r->channel, hr_buf_str(&list));
	return code == ARES_SUCCESS
		   ? 0
		   : hr_err_set(err, HR_E_INVAL, "dnsServers: %s", ares_strerror(code));
}

static int
open_channel(struct egress_resolver *r, struct hr_err *err)
{
	/* names are complete: the machine's search list must not change their meaning */
	struct ares_options o = {.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
	    .timeout = TIMEOUT_MS,
	    .tries = TRIES,
	    .lookups = (char[]){'b', '\0'},
	    .sock_state_cb = on_state,
	    .sock_state_cb_data = r};
	int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB |
		   (r->machine ? 0 : ARES_OPT_LOOKUPS);
	int code = ares_init_options(&r->channel, &o, mask);

	if (code == ARES_SUCCESS)
		return 0;
	r->channel = NULL;
	return hr_err_set(err, HR_E_SYS, "the resolver: %s", ares_strerror(code));
}

/* Opens the channel again after a change of the machine's servers, as on another network; queries
 * to the earlier ones end. Returns false if there is no channel. */
static bool
follow_servers(struct egress_resolver *r)
{
	struct stat st;

	if (r->machine && stat(SERVERS, &st) == 0 &&
	    (st.st_ino != r->servers.st_ino || st.st_mtim.tv_sec != r->servers.st_mtim.tv_sec ||
		st.st_mtim.tv_nsec != r->servers.st_mtim.tv_nsec)) {
		r->servers = st;
		if (r->channel != NULL)
			ares_destroy(r->channel);
		hr_watch_disarm(r->timer);
		(void)open_channel(r, NULL);
	}
	return r->channel != NULL;
}

struct egress_resolver *
egress_resolver_new(struct hr_loop *loop, const char *const *servers, struct hr_err *err)
{
	struct egress_resolver *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return hr_err_null(err);
	r->loop = loop;
	r->machine = servers == NULL;
	(void)stat(SERVERS, &r->servers);
	r->timer = hr_loop_timer(loop, on_timer, r, err);
	if (r->timer == NULL || open_channel(r, err) < 0 ||
	    (servers != NULL && use_servers(r, servers, err) < 0)) {
		egress_resolver_free(r);
		return NULL;
	}
	return r;
}

void
egress_resolver_free(struct egress_resolver *r)
{
	struct sock *s;

	if (r == NULL)
		return;
	if (r->channel != NULL)
		ares_destroy(r->channel);
	while ((s = r->socks) != NULL) {
		r->socks = s->next;
		hr_watch_free(s->readable);
		hr_watch_free(s->writable);
		free(s);
	}
	hr_watch_free(r->timer);
	free(r);
}

/* Copies the addresses of one family. */
static size_t
copy(const struct ares_addrinfo *found, int family, int port, union egress_address *v, size_t n)
{
	const struct ares_addrinfo_node *a;

	for (a = found->nodes; a != NULL && n < EGRESS_RESULTS_MAX; a = a->ai_next) {
		if (a->ai_family != family || a->ai_addrlen > sizeof(*v))
			continue;
		memcpy(&v[n], a->ai_addr, a->ai_addrlen);
		if (family == AF_INET)
			v[n].in.sin_port = htons((uint16_t)port);
		else
			v[n].in6.sin6_port = htons((uint16_t)port);
		n++;
	}
	return n;
}

static void
on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *found)
{
	struct lookup *l = arg;
	struct egress_query *q;
	size_t n;

	(void)timeouts;
	*l->at = l->next;
	if (l->next != NULL)
		l->next->at = l->at;
	while ((q = l->queries) != NULL) {
		union egress_address v[EGRESS_RESULTS_MAX] = {0};

		l->queries = q->next;
		n = 0;
		if (status == ARES_SUCCESS && found != NULL) {
			n = copy(found, AF_INET, q->port, v, 0);
			n = copy(found, AF_INET6, q->port, v, n);
		}
		if (q->fn != NULL) {
			*q->at = NULL;
			q->fn(q->arg, v, n,
			    status == ARES_SUCCESS ? "no address" : ares_strerror(status));
		}
		free(q);
	}
	if (found != NULL)
		ares_freeaddrinfo(found);
	free(l);
}

/* Returns the lookup of the name, which may be new; NULL without memory. */
static struct lookup *
lookup_of(struct egress_resolver *r, const char *name, bool *ret_new)
{
	struct lookup *l = r->lookups;

	while (l != NULL && strcmp(l->name, name) != 0)
		l = l->next;
	*ret_new = l == NULL;
	if (l != NULL || (l = calloc(1, sizeof(*l) + strlen(name) + 1)) == NULL)
		return l;
	memcpy(l->name, name, strlen(name) + 1);
	l->next = r->lookups;
	l->at = &r->lookups;
	if (l->next != NULL)
		l->next->at = &l->next;
	r->lookups = l;
	return l;
}

void
egress_resolve(struct egress_resolver *r, const char *name, int port, egress_resolved_fn *fn,
    void *arg, struct egress_query **ret)
{
	const struct ares_addrinfo_hints hints = {
	    .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = ARES_AI_NOSORT};
	struct egress_query *q = follow_servers(r) ? calloc(1, sizeof(*q)) : NULL;
	bool new = false;
	struct lookup *l = q != NULL ? lookup_of(r, name, &new) : NULL;

	*ret = l != NULL ? q : NULL;
	if (l == NULL) {
		free(q);
		fn(arg, NULL, 0, "no memory");
		return;
	}
	q->fn = fn;
	q->arg = arg;
	q->port = port;
	q->at = ret;
	q->next = l->queries;
	l->queries = q;
	if (new)
		ares_getaddrinfo(r->channel, name, NULL, &hints, on_answer, l);
	arm(r);
}

void
egress_query_cancel(struct egress_query *q)
{
	if (q != NULL)
		q->fn = NULL;
}
