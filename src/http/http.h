/* hr_http: requests over libcurl, to TCP and Unix sockets, with bodies that may be streams. The
 * only user of libcurl. Waiting is by event: for the connection, and for one more descriptor of the
 * caller's, such as a child's end. Redirects are not followed. */
#ifndef HR_HTTP_HTTP_H
#define HR_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct hr_http; /* connections that are kept for the next request; one user at a time */

struct hr_http *hr_http_new(struct hr_err *err);
void hr_http_free(struct hr_http *h); /* NULL: nothing */

/* The next bytes of a body: number, 0 at the end, -1 to give up. */
typedef ssize_t hr_http_source_fn(void *arg, char *p, size_t room);
/* Bytes of the answer's body; negative to give up. */
typedef int hr_http_sink_fn(void *arg, const char *p, size_t len);

struct hr_http_request {
	const char *method;
	const char *url;
	const char *unix_socket;    /* NULL: TCP */
	const char *const *headers; /* "Name: value", NULL-terminated; NULL: none */
	const char *body;           /* NULL: none */
	size_t body_len;
	hr_http_source_fn *source; /* instead of body: sent in chunks */
	void *source_arg;
	const char *file; /* instead of body: a form with this file in the field "file" */
	const char *file_name;
	unsigned timeout_s; /* without progress, and to connect; 0: none */
	unsigned total_s;   /* for the whole; 0: no bound */
	/* Of an answer of 2xx. NULL, and with other statuses: into the answer, at most answer_max
	 * bytes. */
	hr_http_sink_fn *sink;
	void *sink_arg;
	size_t answer_max; /* 0: 64 MiB */
	/* Told now and then how much of the longer body has passed; total 0: not known. */
	void (*progress)(void *arg, unsigned long long done, unsigned long long total);
	void *progress_arg;
	const char *header; /* one of the answer's that is kept; NULL: none */
	/* Told each line of the answer's head, and of what follows its body; NULL: nobody asks. */
	void (*on_header)(void *arg, const char *line, size_t len);
	void *header_arg;
	bool http2;    /* nothing else, and from the first byte on where it is not https */
	int watch_fd;  /* readable: give up with HR_HTTP_CANCELLED; -1: none */
	bool fresh;    /* no kept connection: on one libcurl may send a request twice */
	bool insecure; /* a server's certificate is not looked at */
	const char *ca_file, *cert_file, *key_file; /* TLS; NULL: the system's, none */
	const char *ca_pem, *cert_pem, *key_pem;    /* the same as texts, before the files */
	const char *proxy;      /* its URL; "": none; NULL: what the environment says */
	const char *connect_to; /* "HOST:PORT" in place of the URL's, whose name TLS has; or NULL */
};

/* What kept a request from an answer. Names as the original's messages have them. */
enum hr_http_fault {
	HR_HTTP_NONE,
	HR_HTTP_CONNECT,         /* no connection */
	HR_HTTP_CONNECT_TIMEOUT, /* none in time */
	HR_HTTP_READ,
	HR_HTTP_READ_TIMEOUT,
	HR_HTTP_WRITE,
	HR_HTTP_PROTOCOL, /* it closed before the answer was whole, or talks no HTTP */
	HR_HTTP_CANCELLED,
	HR_HTTP_OTHER,
};

const char *hr_http_fault_name(enum hr_http_fault f); /* "ConnectError" and so on */

struct hr_http_answer {
	enum hr_http_fault fault;
	bool untrusted; /* its certificate is not believed: asking again is of no use */
	long status;
	char reason[64]; /* of the status line */
	char header[64]; /* the value that was asked for, "" for none */
	struct hr_buf body;
};

/* 0: an answer came, whatever its status; -1: *err, and ret->fault. hr_http_answer_done() in both
 * cases. */
int hr_http_do(struct hr_http *h, const struct hr_http_request *r, struct hr_http_answer *ret,
    struct hr_err *err);
void hr_http_answer_done(struct hr_http_answer *a);

/* Appends s with everything but letters, digits and -_.~ as %XX. */
void hr_http_escape(struct hr_buf *b, const char *s);

/* Seconds of a Retry-After header, as a number or a date; -1: it has none. */
long hr_http_seconds(const char *retry_after);

#endif
