/* Connects the service to libfcgi. Only these parameters are read; the configuration passes no
 * others. */
#include "config.h"

#include "fleet/serve.h"

#include <errno.h>
#include <fcgiapp.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"
#include "host/common/proc.h"
#include "fleet/visits.h"

#define BACKLOG 4096 /* somaxconn caps this: nginx is refused if the queue is full */

struct hr_fleet_server {
	const struct hr_fleet_api *api;
	unsigned most;                 /* maximum threads that serve one key at the same time */
	struct place *served, *parked; /* guarded by `counting` */
	int fd;
	int stop;     /* an eventfd, readable when no request may be taken */
	bool stopped; /* the same as `stop`, as a flag that is read without a system call */
	pthread_mutex_t taking;   /* held by the thread that waits for the next connection */
	pthread_mutex_t counting; /* guards the lists of places */
	pthread_cond_t ended;
	unsigned threads;
};

/* A thread's request, or one that waits while its key has all its threads. */
struct place {
	struct hr_fleet_server *server;
	struct place *next;
	uint64_t key; /* digest of the request's key; 0: none */
	FCGX_Request fcgi;
};

int
hr_fleet_listen(const char *path, gid_t group, struct hr_err *err)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t before;
	int r;

	if (fd < 0)
		return hr_err_sys(err, errno, "a socket");
	if (strlen(path) >= sizeof(a.sun_path)) {
		hr_fd_close(&fd);
		return hr_err_set(err, HR_E_INVAL, "%s: too long for the name of a socket", path);
	}
	memcpy(a.sun_path, path, strlen(path) + 1);
	/* this is a predecessor's socket: we hold the store's lock, so it has ended */
	(void)unlink(path);
	before = umask(0177);
	r = bind(fd, (struct sockaddr *)&a, sizeof(a));
	(void)umask(before);
	if (r != 0 ||
	    (group != (gid_t)-1 &&
		(chown(path, (uid_t)-1, group) != 0 || chmod(path, 0660) != 0)) ||
	    listen(fd, BACKLOG) != 0) {
		(void)hr_err_sys(err, errno, "%s", path);
		hr_fd_close(&fd);
	}
	return fd;
}

static const char *
param(const FCGX_Request *fcgi, const char *name)
{
	const char *v = FCGX_GetParam(name, fcgi->envp);

	return v != NULL ? v : "";
}

/* Reads what has arrived, without filling `room`: the caller checks the time in between. */
static int
read_some(void *arg, char *p, size_t room)
{
	const FCGX_Request *fcgi = arg;
	FCGX_Stream *in = fcgi->in;
	int c = FCGX_GetChar(in), more;

	if (c < 0)
		return FCGX_GetError(in) != 0 ? -1 : 0;
	*p = (char)c;
	more = (int)(in->stop - in->rdNext);
	if (more > (int)room - 1)
		more = (int)room - 1;
	return 1 + FCGX_GetStr(p + 1, more, in);
}

/* Reads a body, which nginx has buffered unless it streams. Returns false if it is too long. */
static bool
read_body(const FCGX_Request *fcgi, struct hr_buf *b)
{
	char part[16384];
	int n;

	while (hr_buf_check(b, NULL) == 0 && (n = FCGX_GetStr(part, sizeof(part), fcgi->in)) > 0)
		hr_buf_add(b, part, (size_t)n);
	return hr_buf_check(b, NULL) == 0;
}

static void
reply(const FCGX_Request *fcgi, const struct hr_fleet_request *q, const struct hr_fleet_answer *a)
{
	/* nginx's auth request knows three answers; @handrail_fleet_refused sends the text */
	int status = q->route == HR_FLEET_ROUTE_ASK && a->status != 200 ? 403 : a->status;

	(void)FCGX_FPrintF(fcgi->out, "Status: %d\r\n", status);
	if (status != 204)
		(void)FCGX_FPrintF(fcgi->out, "Content-Type: %s\r\n", a->type);
	if (a->retry_after_s > 0)
		(void)FCGX_FPrintF(fcgi->out, "Retry-After: %d\r\n", a->retry_after_s);
	if (a->stream != NULL)
		(void)FCGX_PutS("X-Accel-Buffering: no\r\n", fcgi->out);
	if (a->stream != NULL || q->route == HR_FLEET_ROUTE_CONSOLE)
		(void)FCGX_PutS("Cache-Control: no-store\r\n", fcgi->out);
	if (a->at.len > 0)
		(void)FCGX_FPrintF(fcgi->out, "X-Handrail-At: %s\r\n", hr_buf_str(&a->at));
	if (a->head.len > 0)
		(void)FCGX_PutStr(a->head.p, (int)a->head.len, fcgi->out);
	if (a->e2b[0] != '\0')
		(void)FCGX_FPrintF(fcgi->out, "X-Handrail-E2b: %s\r\n", a->e2b);
	if (a->cors)
		(void)FCGX_PutS("X-Handrail-Cors: *\r\n", fcgi->out);
	if (a->own_origin)
		(void)FCGX_PutS("X-Handrail-Origin: own\r\n", fcgi->out);
	if (a->cookie[0] != '\0')
		(void)FCGX_FPrintF(fcgi->out, "Set-Cookie: %s\r\n", a->cookie);
	if (a->prefix[0] != '\0')
		(void)FCGX_FPrintF(fcgi->out, "X-Handrail-Prefix: %s\r\n", a->prefix);
	if (a->server_key[0] != '\0')
		(void)FCGX_FPrintF(fcgi->out, "X-Handrail-Server-Key: %s\r\n", a->server_key);
	if (a->front[0] != '\0')
		(void)FCGX_FPrintF(fcgi->out, "X-Handrail-Front: %s\r\n", a->front);
	(void)FCGX_PutS("\r\n", fcgi->out);
	if (a->body.len > 0)
		(void)FCGX_PutStr(a->body.p, (int)a->body.len, fcgi->out);
}

/* ---- threads are shared fairly among the keys ---- */

static bool
has_room(const struct hr_fleet_server *s, uint64_t key)
{
	const struct place *p;
	unsigned n = 0;

	for (p = s->served; p != NULL; p = p->next)
		n += p->key == key;
	return key == 0 || n < s->most;
}

static void
move_to(struct place **list, struct place *p)
{
	while (*list != NULL)
		list = &(*list)->next;
	p->next = NULL;
	*list = p;
}

static bool
drop(struct place **list, const struct place *p)
{
	while (*list != NULL && *list != p)
		list = &(*list)->next;
	if (*list == NULL)
		return false;
	*list = p->next;
	return true;
}

static struct place *
new_place(struct hr_fleet_server *s)
{
	struct place *p = calloc(1, sizeof(*p));

	if (p == NULL || FCGX_InitRequest(&p->fcgi, s->fd, 0) != 0) {
		free(p);
		return NULL;
	}
	p->server = s;
	return p;
}

/* Returns NULL if the request is served now. Otherwise another thread serves it later, and the
 * caller gets a new place; out of memory, a key may exceed its share. */
static struct place *
park(struct place *p)
{
	const char *key = param(&p->fcgi, "HTTP_X_API_KEY");
	struct hr_fleet_server *s = p->server;
	struct place *other = NULL;

	if (*key == '\0') /* the request may also sign in to the console */
		key = param(&p->fcgi, "HTTP_X_HANDRAIL_PAGE");
	p->key = *key != '\0' ? hr_hash(HR_HASH, key, strlen(key)) | 1 : 0;
	(void)pthread_mutex_lock(&s->counting);
	if (!has_room(s, p->key))
		other = new_place(s);
	move_to(other != NULL ? &s->parked : &s->served, p);
	(void)pthread_mutex_unlock(&s->counting);
	return other;
}

/* Stops counting the request. */
static void
release(struct place *p)
{
	(void)pthread_mutex_lock(&p->server->counting);
	(void)drop(&p->server->served, p);
	(void)pthread_mutex_unlock(&p->server->counting);
}

/* Returns the first waiting place that may be served now, or NULL if there is none. */
static struct place *
unpark(struct hr_fleet_server *s)
{
	struct place *p;

	(void)pthread_mutex_lock(&s->counting);
	p = s->parked;
	while (p != NULL && !has_room(s, p->key))
		p = p->next;
	if (p != NULL) {
		(void)drop(&s->parked, p);
		move_to(&s->served, p);
	}
	(void)pthread_mutex_unlock(&s->counting);
	return p;
}

static void *serve_thread(void *arg);

static void
count(struct hr_fleet_server *s, int change)
{
	(void)pthread_mutex_lock(&s->counting);
	s->threads += (unsigned)change;
	(void)pthread_cond_signal(&s->ended);
	(void)pthread_mutex_unlock(&s->counting);
}

/* Starts a thread. Everything is allocated first: a thread that replaces a stream's cannot fail. */
static int
add_thread(struct hr_fleet_server *s, struct hr_err *err)
{
	struct place *p = new_place(s);
	int r;

	if (p == NULL)
		return hr_err_nomem(err);
	count(s, 1);
	r = hr_thread_detached(serve_thread, p, err);
	if (r != 0) {
		count(s, -1);
		free(p);
	}
	return r;
}

/* Streams as long as the client stays connected. Another thread takes requests meanwhile. */
static void
send_stream(const FCGX_Request *fcgi, struct hr_fleet_answer *a)
{
	bool sent = FCGX_FFlush(fcgi->out) == 0;

	while (sent) {
		hr_buf_reset(&a->body);
		sent = hr_fleet_stream_next(a->stream, &a->body) &&
		       FCGX_PutStr(a->body.p, (int)a->body.len, fcgi->out) >= 0 &&
		       FCGX_FFlush(fcgi->out) == 0;
	}
}

/* Returns true if the thread must end, because another has replaced it. */
static bool
serve_one(struct hr_fleet_server *s, struct place *p)
{
	FCGX_Request *fcgi = &p->fcgi;
	const char *route = param(fcgi, "HANDRAIL_ROUTE");
	struct hr_fleet_request q = {
	    .method = param(fcgi, "REQUEST_METHOD"),
	    .uri = param(fcgi, "REQUEST_URI"),
	    .api_key = param(fcgi, "HTTP_X_API_KEY"),
	    .session_key = param(fcgi, "HTTP_X_SESSION_API_KEY"),
	    .host = param(fcgi, "HTTP_HOST"),
	    .scheme = param(fcgi, "REQUEST_SCHEME"),
	    .sandbox_id = param(fcgi, "HTTP_X_SANDBOX_ID"),
	    .sandbox_port = param(fcgi, "HTTP_X_SANDBOX_PORT"),
	    .e2b_id = param(fcgi, "HTTP_E2B_SANDBOX_ID"),
	    .e2b_port = param(fcgi, "HTTP_E2B_SANDBOX_PORT"),
	    .access_token = param(fcgi, "HTTP_X_ACCESS_TOKEN"),
	    .traffic_token = param(fcgi, "HTTP_E2B_TRAFFIC_ACCESS_TOKEN"),
	    .idempotency_key = param(fcgi, "HTTP_IDEMPOTENCY_KEY"),
	    .authorization = param(fcgi, "HTTP_AUTHORIZATION"),
	    .content_type = param(fcgi, "CONTENT_TYPE"),
	    .accept = param(fcgi, "HTTP_ACCEPT"),
	    .last_event_id = param(fcgi, "HTTP_LAST_EVENT_ID"),
	    .cookie = param(fcgi, "HTTP_COOKIE"),
	    .page_token = param(fcgi, "HTTP_X_HANDRAIL_PAGE"),
	    .origin = param(fcgi, "HTTP_ORIGIN"),
	    .direct = strcmp(param(fcgi, "HANDRAIL_WAY"), "@handrail_fleet_direct") == 0,
	    .route = strcmp(route, "ask") == 0       ? HR_FLEET_ROUTE_ASK
		     : strcmp(route, "console") == 0 ? HR_FLEET_ROUTE_CONSOLE
		     : strcmp(route, "e2b") == 0     ? HR_FLEET_ROUTE_E2B
		     : strcmp(route, "refused") == 0 ? HR_FLEET_ROUTE_REFUSED
						     : HR_FLEET_ROUTE_NONE,
	};
	HR_BUF(body, HR_FLEET_BODY_MAX);
	HR_CLEAN(hr_fleet_answer_done) struct hr_fleet_answer a = {.status = 0};
	bool replaced = false, whole = false;

	/* the connection can be another client's than the one of its port before */
	hr_fleet_visit(param(fcgi, "HANDRAIL_CLIENT"), "");
	/* The handler reads a body that nginx passes on as it arrives, once the key is known. Only
	 * nginx decides which routes stream, since paths have many spellings. The body of a refused
	 * request is not read: any client may send one, and it may never end. */
	if (strcmp(route, "build") == 0) {
		q.read_body = read_some;
		q.read_arg = (void *)(uintptr_t)fcgi;
		q.body = "";
		hr_fleet_handle(s->api, &q, &a);
	} else if (q.route == HR_FLEET_ROUTE_REFUSED || (whole = read_body(fcgi, &body))) {
		q.body = hr_buf_str(&body);
		q.body_len = body.len;
		hr_fleet_handle(s->api, &q, &a);
	} else {
		hr_buf_init(&a.body, 4096);
		a.type = "application/json";
		(void)hr_fleet_say(&a, 413, "Request Entity Too Large");
	}
	hr_fleet_visit(param(fcgi, "HANDRAIL_CLIENT"), a.e2b);
	/* after an unread body, libfcgi would wait for nginx to close its end */
	(void)(whole ? FCGX_Detach(fcgi) : FCGX_Attach(fcgi));
	if (a.stream != NULL && !(replaced = add_thread(s, NULL) == 0)) {
		(void)hr_fleet_say(&a, 503, "no thread for another stream");
		a.type = "application/json";
	}
	if (!a.again)
		reply(fcgi, &q, &a);
	else /* nginx asks again, and the next process answers */
		FCGX_Free(fcgi, 1);
	if (replaced) {
		release(p);
		send_stream(fcgi, &a);
	}
	return replaced;
}

/* Returns the next connection, or -1 if the server is stopped. libfcgi's own accept cannot be
 * stopped without losing a connection. */
static int
take(struct hr_fleet_server *s)
{
	struct pollfd p[2] = {{.fd = s->stop, .events = POLLIN}, {.fd = s->fd, .events = POLLIN}};
	int fd = -1;

	/* an awake thread takes a connection that is already there */
	if (!__atomic_load_n(&s->stopped, __ATOMIC_RELAXED))
		fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		return fd;
	(void)pthread_mutex_lock(&s->taking);
	while (fd < 0) {
		if (poll(p, 2, -1) > 0 && p[0].revents != 0)
			break;
		fd = hr_fd_accept(s->fd, 0, s->stop);
		if (fd < 0 && errno != EAGAIN)
			hr_log(HR_LOG_ERROR, "requests cannot be taken: %s", strerror(errno));
	}
	(void)pthread_mutex_unlock(&s->taking);
	return fd;
}

/* Serves a request, then those that waited for its end. Returns the thread's next place. */
static struct place *
serve_all(struct place *p, bool *replaced)
{
	struct hr_fleet_server *s = p->server;
	struct place *other = park(p);

	if (other != NULL)
		return other;
	for (;;) {
		*replaced |= serve_one(s, p);
		FCGX_Finish_r(&p->fcgi);
		FCGX_Free(&p->fcgi, 1); /* nginx opens a connection per request */
		release(p);
		other = *replaced ? NULL : unpark(s);
		if (other == NULL)
			return p;
		free(p);
		p = other;
	}
}

static void *
serve_thread(void *arg)
{
	struct place *p = arg;
	struct hr_fleet_server *s = p->server;
	bool replaced = false;
	int fd;

	while (!replaced && (fd = take(s)) >= 0) {
		/* pretend that the connection was kept after a request: libfcgi reads from it */
		p->fcgi.ipcFd = fd;
		p->fcgi.keepConnection = 1;
		if (FCGX_Accept_r(&p->fcgi) == 0) {
			/* libfcgi may have accepted another connection after one that was cut */
			(void)fcntl(p->fcgi.ipcFd, F_SETFD, FD_CLOEXEC);
			p = serve_all(p, &replaced);
		} else {
			FCGX_Free(&p->fcgi, 1);
		}
	}
	free(p);
	count(s, -1);
	return NULL;
}

struct hr_fleet_server *
hr_fleet_serve(const struct hr_fleet_api *api, int fd, unsigned threads, struct hr_err *err)
{
	struct hr_fleet_server *s = calloc(1, sizeof(*s));
	pthread_condattr_t a;
	int r = 0;
	unsigned i;

	if (s == NULL)
		return hr_err_null(err);
	s->api = api;
	s->fd = fd;
	s->most = threads * 3 / 8 + 1;
	s->stop = eventfd(0, EFD_CLOEXEC);
	if (s->stop < 0 || pthread_mutex_init(&s->taking, NULL) != 0 ||
	    pthread_mutex_init(&s->counting, NULL) != 0 || pthread_condattr_init(&a) != 0 ||
	    pthread_condattr_setclock(&a, CLOCK_MONOTONIC) != 0 ||
	    pthread_cond_init(&s->ended, &a) != 0 || FCGX_Init() != 0) {
		(void)hr_err_set(err, HR_E_SYS, "requests cannot be served: %s", strerror(errno));
		hr_fd_close(&s->stop);
		free(s);
		return NULL;
	}
	for (i = 0; r == 0 && i < threads; i++)
		r = add_thread(s, err);
	return r == 0 ? s : NULL; /* the existing threads use it */
}

void
hr_fleet_serve_stop(struct hr_fleet_server *s)
{
	__atomic_store_n(&s->stopped, true, __ATOMIC_RELAXED);
	(void)eventfd_write(s->stop, 1); /* the counter cannot overflow */
}

bool
hr_fleet_serve_wait(struct hr_fleet_server *s, int patience_s)
{
	struct timespec until = {.tv_sec = hr_now_ms() / 1000 + patience_s};
	bool late = false, all;

	(void)pthread_mutex_lock(&s->counting);
	while (s->threads > 0 && !late)
		late = pthread_cond_timedwait(&s->ended, &s->counting, &until) != 0;
	all = s->threads == 0;
	(void)pthread_mutex_unlock(&s->counting);
	return all;
}
