/* Connects to libfcgi. It reads only these parameters; the configuration passes no others. */
#include "config.h"

#include "worker/request/reply.h"

#include <errno.h>
#include <fastcgi.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/fd.h"
#include "base/log.h"
#include "proto/evclass.h"

static const char *
param(const FCGX_Request *fcgi, const char *name)
{
	const char *v =
	    FCGX_GetParam(name, fcgi->envp); /* returns the first value of a repeated parameter */

	return v != NULL ? v : "";
}

static ssize_t
body_read(void *ctx, char *p, size_t len)
{
	FCGX_Stream *in = ctx;
	int n = FCGX_GetStr(p, len > INT_MAX ? INT_MAX : (int)len, in);

	if (n > 0)
		return n;
	return FCGX_GetError(in) != 0 ? -1 : 0;
}

void
hr_reply_request(FCGX_Request *fcgi, struct hr_request *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->method = param(fcgi, "REQUEST_METHOD");
	ret->uri = param(fcgi, "REQUEST_URI");
	ret->content_type = param(fcgi, "CONTENT_TYPE");
	ret->session_key = param(fcgi, "HTTP_X_SESSION_API_KEY");
	ret->authorization = param(fcgi, "HTTP_AUTHORIZATION");
	ret->host = param(fcgi, "HTTP_HOST");
	ret->scheme = param(fcgi, "REQUEST_SCHEME");
	if (ret->scheme[0] == '\0')
		ret->scheme = "http";
	ret->client_id = param(fcgi, "HTTP_X_REQUEST_ID");
	ret->idempotency_key = param(fcgi, "HTTP_IDEMPOTENCY_KEY");
	ret->request_id = param(fcgi, "REQUEST_ID");
	ret->traceparent = param(fcgi, "HTTP_TRACEPARENT");
	ret->connection = param(fcgi, "HANDRAIL_CONNECTION");
	ret->forwarded_for = param(fcgi, "HTTP_X_FORWARDED_FOR");
	ret->user_agent = param(fcgi, "HTTP_USER_AGENT");
	ret->range = param(fcgi, "HTTP_RANGE");
	ret->if_range = param(fcgi, "HTTP_IF_RANGE");
	ret->if_none_match = param(fcgi, "HTTP_IF_NONE_MATCH");
	ret->conditional = param(fcgi, "HANDRAIL_CONDITIONAL")[0] != '\0';
	ret->accept = param(fcgi, "HTTP_ACCEPT");
	ret->last_event_id = param(fcgi, "HTTP_LAST_EVENT_ID");
	ret->cookie = param(fcgi, "HTTP_COOKIE");
	ret->page_token = param(fcgi, "HTTP_X_HANDRAIL_PAGE");
	ret->asked_method = param(fcgi, "HANDRAIL_ASKED_METHOD");
	ret->asked_uri = param(fcgi, "HANDRAIL_ASKED_URI");
	ret->mcp_version = param(fcgi, "HTTP_MCP_PROTOCOL_VERSION");
	ret->mcp_method = param(fcgi, "HTTP_MCP_METHOD");
	ret->mcp_name = param(fcgi, "HTTP_MCP_NAME");
	ret->rex_key = param(fcgi, "HTTP_X_API_KEY");
	ret->origin = param(fcgi, "HTTP_ORIGIN");
	ret->cors = param(fcgi, "HANDRAIL_CORS")[0] != '\0';
	ret->mcp = param(fcgi, "HANDRAIL_MCP")[0] != '\0';
	ret->rex = param(fcgi, "HANDRAIL_SWEREX")[0] != '\0';
	ret->v1 = param(fcgi, "HANDRAIL_OPENHANDS_V1")[0] != '\0';
	ret->direct = param(fcgi, "HANDRAIL_DIRECT")[0] != '\0';
	ret->viewer_base = param(fcgi, "HANDRAIL_VIEWER");
	ret->viewer = ret->viewer_base[0] != '\0';
	ret->action_limit = param(fcgi, "HANDRAIL_ACTION_LIMIT");
	ret->remote = param(fcgi, "REMOTE_ADDR");
	ret->params = fcgi->envp;
	ret->body.read = body_read;
	ret->body.ctx = fcgi->in;
}

void
hr_reply_drain(FCGX_Request *fcgi)
{
	char trash[8192];

	while (FCGX_GetStr(trash, sizeof(trash), fcgi->in) == (int)sizeof(trash))
		;
}

/* Adds headers for nginx's log, which hides them from the client. */
static void
put_note(FCGX_Stream *out, const struct hr_answer *a)
{
	static const char *const clocks[HR_CLOCKS] = {"none", "no_output", "hard"};
	const struct hr_note *n = &a->note;
	size_t i;

	if (a->trace[0] != '\0')
		(void)FCGX_FPrintF(out, "traceparent: %s\r\n", a->trace);
	if (n->cls == NULL)
		return;
	(void)FCGX_FPrintF(out, "X-Handrail-Action: %s\r\nX-Handrail-Key: ", n->cls->type);
	for (i = 0; i < a->key.len; i++)
		(void)FCGX_PutChar(a->key.p[i] < ' ' || a->key.p[i] > '~' ? '?' : a->key.p[i], out);
	(void)FCGX_PutS("\r\n", out);
	if (n->session != NULL)
		(void)FCGX_FPrintF(out,
		    "X-Handrail-Session: %s\r\nX-Handrail-Exit: %d\r\nX-Handrail-Clock: %s\r\n",
		    n->session, (int)n->exit_code, clocks[n->clock]);
}

static void
put_head(FCGX_Stream *out, const struct hr_answer *a, int64_t body_len)
{
	(void)FCGX_FPrintF(out, "Status: %d %s\r\n", a->status, hr_answer_reason(a->status));
	if (a->content_type != NULL)
		(void)FCGX_FPrintF(out, "Content-Type: %s\r\n", a->content_type);
	if (a->status != 204 && a->status != 304 && body_len >= 0)
		(void)FCGX_FPrintF(out, "Content-Length: %lu\r\n", (unsigned long)body_len);
	if (a->location.len > 0) {
		(void)FCGX_PutS("Location: ", out);
		(void)FCGX_PutS(hr_buf_str(&a->location), out);
		(void)FCGX_PutS("\r\n", out);
	}
	if (a->retry_after_s > 0)
		(void)FCGX_FPrintF(out, "Retry-After: %d\r\n", a->retry_after_s);
	if (a->replayed)
		(void)FCGX_PutS("Idempotent-Replayed: true\r\n", out);
	put_note(out, a);
	(void)FCGX_PutS(hr_buf_str(&a->headers), out);
	(void)FCGX_PutS("\r\n", out);
}

/* libfcgi copies everything into records of 8 KB. A large body is sent in records of maximal size,
 * many per system call, without a copy. */
#define RECORD_MAX 65528 /* a multiple of 8, so that no record needs padding */
#define RECORDS 8        /* records per call: about as much as a Unix socket takes at once */

#define SEND_BUFFER (1 << 20)

struct record_sink {
	struct hr_sink sink;
	int fd;
	int request_id;
	bool gone;
};

static int
write_vector(int fd, struct iovec *v, int n)
{
	ssize_t done;

	while (n > 0) {
		done = writev(fd, v, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -1;
		for (; n > 0 && (size_t)done >= v->iov_len; n--, v++)
			done -= (ssize_t)v->iov_len;
		if (n > 0) {
			v->iov_base = (char *)v->iov_base + done;
			v->iov_len -= (size_t)done;
		}
	}
	return 0;
}

static int
record_write(struct hr_sink *sink, const void *p, size_t len)
{
	struct record_sink *s = (struct record_sink *)sink;
	FCGI_Header heads[RECORDS];
	struct iovec v[2 * RECORDS];
	const char *at = p;
	size_t n;
	int i;

	while (len > 0 && !s->gone) {
		for (i = 0; i < RECORDS && len > 0; i++) {
			n = len < RECORD_MAX ? len : RECORD_MAX;
			heads[i] = (FCGI_Header){.version = FCGI_VERSION_1,
			    .type = FCGI_STDOUT,
			    .requestIdB1 = (unsigned char)(s->request_id >> 8),
			    .requestIdB0 = (unsigned char)s->request_id,
			    .contentLengthB1 = (unsigned char)(n >> 8),
			    .contentLengthB0 = (unsigned char)n};
			v[2 * i] = (struct iovec){&heads[i], sizeof(heads[i])};
			v[2 * i + 1] = (struct iovec){(void *)(uintptr_t)at, n};
			at += n;
			len -= n;
		}
		s->gone = write_vector(s->fd, v, 2 * i) < 0;
	}
	return s->gone ? -1 : 0;
}

/* Pads the head's length to a multiple of 8: nginx passes on the head of an unbuffered answer at
 * once only if nothing follows it in the same read, and it counts a record's padding as data (1.22
 * to 1.27). Otherwise the client would see no head before the first body data. */
static void
put_stream_head(FCGX_Stream *out, const struct hr_answer *a)
{
	unsigned char *start = out->wrNext;
	size_t n;

	put_head(out, a, a->stream.length);
	n = (size_t)(out->wrNext - start) + sizeof("X-Handrail-Pad: \r\n") - 1;
	/* a head that was already flushed is larger than any that waits for a body */
	if (out->wrNext < start || a->stream.length >= 0)
		return;
	out->wrNext = start;
	(void)FCGX_FPrintF(out, "X-Handrail-Pad: %s\r\n", &"--------"[n % 8]);
	put_head(out, a, a->stream.length);
}

static bool
send_stream(FCGX_Request *fcgi, const struct hr_answer *a)
{
	struct record_sink s = {
	    .sink = {record_write, fcgi->ipcFd}, .fd = fcgi->ipcFd, .request_id = fcgi->requestId};
	struct hr_err err = {.code = HR_OK};
	const int room = SEND_BUFFER;

	/* ask for a large buffer: the body is produced while nginx sends earlier parts */
	(void)setsockopt(s.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	put_stream_head(fcgi->out, a);
	if (FCGX_FFlush(fcgi->out) == 0 && a->stream.send(a->stream.arg, &s.sink, &err) == 0)
		return true;
	if (err.code != HR_OK) {
		/* nginx takes the end of the connection for the end of the answer; these bytes are
		 * not a record and make it abort its answer */
		(void)hr_fd_write_full(s.fd, "\0\0\0\0\0\0\0", 8, NULL);
		hr_log(HR_LOG_WARNING, "%s: the answer ends here: %s", param(fcgi, "REQUEST_ID"),
		    err.msg);
	}
	FCGX_Free(fcgi, 1);
	return false;
}

int
hr_reply_hold(FCGX_Request *fcgi, const struct hr_answer *a)
{
	struct hr_answer head = *a;
	int fd = fcgi->ipcFd;

	head.stream.length = -1; /* the length is unknown */
	put_stream_head(fcgi->out, &head);
	if (FCGX_FFlush(fcgi->out) != 0)
		hr_fd_close(&fd);
	FCGX_Free(fcgi, 0); /* frees without an end record and leaves the connection open */
	fcgi->ipcFd = -1;
	return fd;
}

bool
hr_reply_send(FCGX_Request *fcgi, const struct hr_answer *a, bool *ret_sent)
{
	static const char no_memory[] = "{\"detail\":\"Out of memory\"}";
	const char *body = hr_buf_str(&a->body);
	size_t len = a->body.len;
	struct hr_answer last = *a;

	if (a->stream.send != NULL)
		return *ret_sent = send_stream(fcgi, a);
	if (a->body.fail != HR_OK) {
		last.status = 500;
		body = no_memory;
		len = sizeof(no_memory) - 1;
	}
	put_head(fcgi->out, &last, (int64_t)len);
	(void)FCGX_PutStr(body, (int)len, fcgi->out); /* HR_ANSWER_MAX fits an int */
	/* FCGX_Finish_r() does the same first but hides the result; the end record goes with the
	 * last stream */
	(void)FCGX_FClose(fcgi->err);
	*ret_sent = FCGX_FClose(fcgi->out) == 0;
	return true;
}
