/* handrail-bash-events: runs as the plugin for /sockets/bash-events of OpenHands V1
 * (handrail-plugin(5)). A client gets the events of commands as they happen, and may start
 * commands. What waits for a client is a list of ids: an event's text is read from its files when
 * the client has taken the one before. */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/random.h"
#include "http/wsserve.h"
#include "worker/harden.h"
#include "worker/v1/follow.h"

#define CLIENTS_MAX 50      /* clients with a key; as in the original */
#define CONNECTIONS_MAX 128 /* those and connections that have sent no key yet */
#define WAITING_MAX 65536   /* events for one client */
#define KEY_MS 10000
#define PING_MS 30000

enum { READY_FD = 3, HTTP_FD = 5, SUMS_FD = 6 };

struct client {
	bool known, all;   /* has the key; asked for the events so far */
	char front[256];   /* key and sum of a fleet in front; "": none */
	struct hr_buf ids; /* ids of the events that wait, each with its NUL */
	size_t sent;
};

struct server {
	struct hr_loop *loop;
	struct hr_wsserve *http;
	struct hr_v1_follow *follow; /* NULL: no client */
	struct hr_worker w;
	struct hr_rex_call c;
	struct hr_request r;
	struct hr_answer answer;
	struct hr_wsconn *clients[CLIENTS_MAX];
	unsigned n;
	bool blind; /* the log has the reason why events cannot be reported */
};

/* ---- events ---- */

/* Sends the next event once the client has taken the last one. */
static void
pump(struct server *s, struct hr_wsconn *conn)
{
	struct client *k = hr_wsconn_own_of(conn);
	const char *id;

	while (k->sent < k->ids.len && hr_wsconn_is_drained(conn)) {
		id = k->ids.p + k->sent;
		k->sent += HR_V1_ID;
		hr_answer_reset(&s->answer);
		hr_v1_get_event(&s->c, (struct hr_span){id, HR_V1_ID - 1});
		if (s->answer.status == 200 && s->answer.body.fail == HR_OK)
			hr_wsconn_send(conn, s->answer.body.p, s->answer.body.len);
		else if (s->answer.status != 404) /* 404: removed meanwhile */
			hr_wsconn_close(conn, 1011, "An event cannot be read");
	}
	if (k->sent > 0 && k->sent >= k->ids.len / 2) {
		hr_buf_drop_front(&k->ids, k->sent);
		k->sent = 0;
	}
}

static void
queue(void *arg, const char *id)
{
	struct client *k = arg;

	hr_buf_add(&k->ids, id, HR_V1_ID);
}

/* Closes a connection whose events cannot be reported. The log has the reason once, until another
 * client's events can be. */
static void
close_blind(struct server *s, struct hr_wsconn *conn, const struct hr_err *why)
{
	if (!s->blind)
		hr_log(HR_LOG_ERROR, "the events of commands: %s", why->msg);
	s->blind = true;
	hr_wsconn_close(conn, 1011, "Events cannot be followed");
}

static void
on_event(void *arg, const char *id)
{
	struct server *s = arg;
	struct client *k;
	unsigned i;

	for (i = 0; id == NULL && i < s->n; i++)
		close_blind(s, s->clients[i], hr_v1_follow_error(s->follow));
	if (id == NULL)
		return;
	for (i = 0; i < s->n; i++) {
		k = hr_wsconn_own_of(s->clients[i]);
		queue(k, id);
		if (k->ids.fail == HR_OK)
			pump(s, s->clients[i]);
		else
			hr_wsconn_close(s->clients[i], 1013, "The client reads too slowly");
	}
}

static void
on_drained(void *arg, struct hr_wsconn *conn)
{
	pump(arg, conn);
}

/* ---- keys ---- */

/* Returns true for the key of a fleet's client. The fleet's proxy adds the session key and the sum
 * of that key. */
static bool
passes_front(const struct hr_auth *auth, const char *front, const char *key)
{
	const char *blank = strchr(front, ' ');
	HR_BUF(own, 512);
	char text[2 * HR_KEYSUM + 1];

	if (blank == NULL)
		return false;
	hr_buf_add(&own, front, (size_t)(blank - front));
	hr_keysum_hex(key, text);
	return own.fail == HR_OK && hr_auth_passes(auth, hr_buf_str(&own)) &&
	       strlen(blank + 1) == 2 * HR_KEYSUM &&
	       hr_keysum_equal((const unsigned char *)text, (const unsigned char *)blank + 1) &&
	       hr_keysum_equal((const unsigned char *)text + HR_KEYSUM,
		   (const unsigned char *)blank + 1 + HR_KEYSUM);
}

/* Returns true for a key; NULL: for a server without keys. */
static bool
passes(const char *front, const char *key)
{
	HR_CLEAN(hr_auth_done) struct hr_auth auth = {.have = 0};

	if (!hr_auth_read(&auth, SUMS_FD))
		return false;
	if (key == NULL || auth.head.count == 0)
		return auth.head.count == 0;
	return key[0] != '\0' && (hr_auth_passes(&auth, key) || passes_front(&auth, front, key));
}

/* ---- clients ---- */

static void
welcome(struct server *s, struct hr_wsconn *conn, struct client *k)
{
	const struct hr_err *why;
	struct hr_err err = {0};

	if (s->n == CLIENTS_MAX) {
		hr_wsconn_close(conn, 1013, "Too many bash event connections");
		return;
	}
	if (s->follow == NULL)
		s->follow = hr_v1_follow_new(&s->c, s->loop, on_event, s, &err);
	/* the others are closed already, and the last of them takes the failed one with it */
	why = s->follow != NULL ? hr_v1_follow_error(s->follow) : &err;
	if (why != NULL) {
		close_blind(s, conn, why);
		return;
	}
	s->blind = false;
	k->known = true;
	hr_wsconn_trust(conn);
	s->clients[s->n++] = conn;
	if (k->all)
		hr_v1_follow_all(s->follow, queue, k);
	pump(s, conn);
}

static void
on_left(void *arg, struct hr_wsconn *conn)
{
	struct client *k = hr_wsconn_own_of(conn);
	struct server *s = arg;
	unsigned i;

	for (i = 0; i < s->n; i++)
		if (s->clients[i] == conn)
			s->clients[i--] = s->clients[--s->n];
	if (k != NULL)
		hr_buf_done(&k->ids);
	free(k);
	if (s->n == 0) {
		hr_v1_follow_free(s->follow);
		s->follow = NULL;
	}
}

/* Reads the query. Returns false for a value that the original refuses. */
static bool
read_query(struct server *s, struct client *k, struct hr_buf *key, bool *ret_key)
{
	HR_BUF(mode, 64);
	bool given = hr_request_query(&s->r, "resend_mode", &mode);

	hr_answer_reset(&s->answer);
	if (!hr_v1_truth(&s->c, "resend_all", &k->all))
		return false;
	*ret_key = hr_request_query(&s->r, "session_api_key", key);
	if (given && strcmp(hr_buf_str(&mode), "all") != 0)
		return false;
	k->all = k->all || given;
	return key->fail == HR_OK;
}

/* Answers the request of a connection, which s->r describes. */
static void
answer(struct server *s, struct hr_wsconn *conn, struct client *k)
{
	HR_BUF(key, 4096);
	bool given = false;

	hr_buf_init(&k->ids, WAITING_MAX * HR_V1_ID);
	(void)snprintf(
	    k->front, sizeof(k->front), "%s", hr_wsconn_header(conn, "X-Handrail-Front"));
	if (strcasecmp(hr_wsconn_header(conn, "Upgrade"), "websocket") != 0) {
		hr_wsconn_refuse(conn, "404 Not Found", "{\"detail\":\"Not Found\"}");
		return;
	}
	if (!read_query(s, k, &key, &given)) {
		hr_wsconn_refuse(conn, "403 Forbidden", "");
		return;
	}
	if (!given) {
		hr_buf_adds(&key, hr_wsconn_header(conn, "X-Session-API-Key"));
		given = key.len > 0;
	}
	if (passes(k->front, NULL) ? hr_request_from_here(&s->r)
				   : given && passes(k->front, hr_buf_str(&key))) {
		hr_wsconn_accept(conn);
		welcome(s, conn, k);
	} else if (given || passes(k->front, NULL)) {
		hr_wsconn_refuse(conn, "403 Forbidden", "");
	} else {
		hr_wsconn_accept(conn);
		hr_wsconn_limit(conn, KEY_MS, 4001, "Authentication failed");
	}
}

static void
on_asked(void *arg, struct hr_wsconn *conn)
{
	struct server *s = arg;
	struct client *k = calloc(1, sizeof(*k));

	hr_wsconn_own(conn, k);
	s->r.uri = hr_wsconn_target(conn);
	s->r.origin = hr_wsconn_header(conn, "Origin");
	s->r.host = hr_wsconn_header(conn, "Host");
	s->r.scheme = hr_wsconn_header(conn, "X-Forwarded-Proto");
	s->r.cors = hr_wsconn_header(conn, "X-Handrail-Cors")[0] != '\0';
	if (k == NULL || hr_request_split(&s->r) < 0)
		hr_wsconn_refuse(conn, "500 Internal Server Error", "");
	else
		answer(s, conn, k);
	/* messages come later */
	s->r.uri = s->r.origin = s->r.host = s->r.scheme = NULL;
	s->r.query = "";
}

/* ---- messages ---- */

static void
send_error(struct hr_wsconn *conn, const char *code, struct hr_span detail)
{
	char id[HR_V1_ID];
	struct hr_err err = {0};
	HR_BUF(text, HR_JSON_BODY_MAX);

	if (hr_random_uuid(id, &err) < 0)
		return;
	hr_buf_addf(&text, "{\"id\":\"%s\",", id);
	hr_v1_put_time(&text, hr_wall_ms());
	hr_json_put_named(&text, "code", code);
	hr_json_put_member(&text, "detail", detail);
	hr_buf_adds(&text, ",\"kind\":\"BashError\"}");
	if (text.fail == HR_OK)
		hr_wsconn_send(conn, text.p, text.len);
}

/* Sends the text of a refusal, or of its first error if it has a list of them. */
static void
send_refusal(const struct server *s, struct hr_wsconn *conn, const char *code)
{
	HR_PUT struct json_object *body = NULL;
	struct hr_span whole = hr_span_of_buf(&s->answer.body);
	struct json_object *list;
	const char *text;

	(void)hr_json_decode(whole.p, whole.len, &body, NULL);
	text = hr_json_text_at(body, "detail");
	list = hr_json_at(body, "detail");
	if (text == NULL && hr_json_type(list) == HR_PY_LIST && hr_json_count(list) > 0)
		text = hr_json_text_at(hr_json_entry(list, 0), "msg");
	send_error(conn, code, hr_span_of(text != NULL ? text : "the command was refused"));
}

/* Returns true for {"type": "auth", "session_api_key": ...} and nothing else in it. */
static bool
is_key_message(struct json_object *o, bool only)
{
	const char *type = hr_json_text_at(o, "type");

	if (type == NULL || strcmp(type, "auth") != 0)
		return false;
	return !only || json_object_object_length(o) ==
			    1 + (int)json_object_object_get_ex(o, "session_api_key", NULL);
}

static void
start(struct server *s, struct hr_wsconn *conn, struct json_object *o)
{
	s->c.body = o;
	hr_answer_reset(&s->answer);
	if (!hr_rex_check(&hr_v1_bash_model, o, &s->answer))
		send_refusal(s, conn, "ValidationError");
	else if (!hr_v1_begin(&s->c))
		send_refusal(s, conn, "RuntimeError");
	s->c.body = NULL;
}

static void
on_message(void *arg, struct hr_wsconn *conn, const char *p, size_t len)
{
	struct client *k = hr_wsconn_own_of(conn);
	HR_PUT struct json_object *o = NULL;
	struct server *s = arg;
	/* a byte order mark begins a body of HTTP only */
	bool whole =
	    p != NULL && (len == 0 || p[0] != '\xef') && hr_json_decode(p, len, &o, NULL) == 0;
	const char *key = hr_json_text_at(o, "session_api_key");

	if (!k->known) {
		if (is_key_message(o, false) && key != NULL && passes(k->front, key)) {
			welcome(s, conn, k);
		} else {
			hr_wsconn_close(conn, 4001, "Authentication failed");
		}
	} else if (p == NULL) {
		send_error(conn, "KeyError", hr_span_of("the message is no text"));
	} else if (!whole) {
		send_error(conn, "JSONDecodeError", hr_span_of("the message is no JSON"));
	} else if (!is_key_message(o, true)) {
		start(s, conn, o);
	}
}

/* ---- the process ---- */

static void
stop(void *arg)
{
	struct server *s = arg;

	hr_wsserve_leave(s->http);
	hr_loop_stop(s->loop);
}

/* Fills the worker of which the handlers need the directories and the account. */
static int
open_worker(struct server *s, char *program, struct hr_err *err)
{
	const char *dir = getenv("HANDRAIL_STATE_DIR"), *uid = getenv("HANDRAIL_USER_ID");
	char *slash = strrchr(program, '/'), *run = dir != NULL ? strdup(dir) : NULL;
	int i;

	if (run == NULL || uid == NULL || slash == NULL) {
		free(run);
		return hr_err_set(err, HR_E_INVAL, "handraild must start this program");
	}
	*slash = '\0';
	s->w.libexec_dir = program;
	for (i = 0; i < 2; i++) /* the plugin's directory is two levels below */
		if ((slash = strrchr(run, '/')) != NULL)
			*slash = '\0';
	s->w.run_dir = run;
	s->w.shell_uid = (uid_t)strtoul(uid, NULL, 10);
	return 0;
}

static int
serve(struct server *s, struct hr_err *err)
{
	static const struct hr_wsserve_calls calls = {on_asked, on_message, on_drained, on_left};
	int ready = READY_FD, fd;

	for (fd = READY_FD; fd <= SUMS_FD; fd++)
		if (fcntl(fd, F_GETFD) >= 0 && hr_fd_cloexec(fd, err) < 0)
			return -1;
	s->loop = hr_loop_new(err);
	if (s->loop == NULL)
		return -1;
	s->http = hr_wsserve_open(s->loop, HTTP_FD, CONNECTIONS_MAX, PING_MS, &calls, s, err);
	if (s->http == NULL || hr_loop_signal(s->loop, SIGTERM, stop, s, err) == NULL ||
	    hr_fd_write_full(ready, "ready\n", 6, err) < 0)
		return -1;
	hr_fd_close(&ready);
	return hr_loop_run(s->loop, err);
}

int
main(int argc, char **argv)
{
	static struct server s;
	struct hr_err err = {0};
	HR_BUF(path, 65536);
	int r = argc > 0 ? hr_harden(&err) : -1;

	hr_log_setup("bash-events", HR_LOG_CHILD, HR_LOG_INFO);
	(void)signal(SIGPIPE, SIG_IGN);
	s.w.channel = s.w.shell_fd = s.w.board_fd = s.w.peers = -1;
	s.r.path = &path;
	s.c = (struct hr_rex_call){.w = &s.w, .r = &s.r, .ret = &s.answer};
	hr_answer_init(&s.answer);
	if (r == 0)
		r = open_worker(&s, argv[0], &err);
	if (r == 0)
		r = serve(&s, &err);
	if (r < 0)
		hr_log(HR_LOG_ERROR, "%s", err.msg);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
