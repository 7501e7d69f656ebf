/* Defines requests and answers of HTTP: the structs that all clients share. */
#ifndef HR_HTTP_REQUEST_H
#define HR_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Returns the next bytes of a body: their number, 0 at the end, -1 to give up. */
typedef ssize_t hr_http_source_fn(void *arg, char *p, size_t room);
/* Receives bytes of the answer's body; a negative return gives up. */
typedef int hr_http_sink_fn(void *arg, const char *p, size_t len);

struct hr_http_request {
	const char *method;
	const char *url;
	const char *unix_socket;    /* NULL: TCP */
	const char *const *headers; /* lines "Name: value", NULL-terminated; NULL: none */
	const char *body;           /* NULL: none */
	size_t body_len;
	hr_http_source_fn *source; /* sent in chunks instead of body */
	void *source_arg;
	const char *file; /* path of a file sent as a form's field "file" instead of body */
	const char *file_name;
	/* Seconds without progress, and to connect; 0: no limit. Fewer than timeout_s KiB of the
	 * request are no progress unless they are its last, so that a hostile server cannot hold it
	 * by reading single bytes. */
	unsigned timeout_s;
	unsigned total_s; /* seconds for the whole request; 0: no limit */
	/* Receives the body of a 2xx answer. NULL, and with other statuses: the body goes into the
	 * answer, at most answer_max bytes. */
	hr_http_sink_fn *sink;
	void *sink_arg;
	/* Bytes that the sink must get within each timeout_s seconds, not counting the time that it
	 * takes itself, so that a hostile server cannot hold the request by single bytes; 0: any.
	 */
	size_t sink_least;
	size_t answer_max; /* 0: 64 MiB */
	/* Called now and then with the progress of the longer body; total 0: unknown. */
	void (*progress)(void *arg, unsigned long long done, unsigned long long total);
	void *progress_arg;
	const char *header; /* name of an answer's header to keep; NULL: none */
	/* Called with each line of the answer's head and trailer; NULL: not needed. */
	void (*on_header)(void *arg, const char *line, size_t len);
	void *header_arg;
	bool http2;    /* HTTP/2 only, without an upgrade if the URL is not https */
	int watch_fd;  /* when it is readable, give up with HR_HTTP_CANCELLED; -1: none */
	bool fresh;    /* use a new connection: libcurl may send a request twice on a kept one */
	bool insecure; /* do not verify the server's certificate */
	/* PEM texts for TLS; NULL: the system's authorities, no certificate */
	const char *ca_pem, *cert_pem, *key_pem;
	/* URL of the proxy; "": no proxy; NULL: the environment decides, except for this machine */
	const char *proxy;
	const char *connect_to; /* "HOST:PORT" to connect to; TLS keeps the URL's name; or NULL */
};

/* The reason why a request has no answer. The names are those of the original's messages. */
enum hr_http_fault {
	HR_HTTP_NONE,
	HR_HTTP_CONNECT,         /* connecting failed */
	HR_HTTP_CONNECT_TIMEOUT, /* connecting timed out */
	HR_HTTP_READ,
	HR_HTTP_READ_TIMEOUT,
	HR_HTTP_WRITE,
	HR_HTTP_PROTOCOL, /* the answer ended early, or is not HTTP */
	HR_HTTP_CANCELLED,
	HR_HTTP_OTHER,
};

struct hr_http_answer {
	enum hr_http_fault fault;
	bool untrusted; /* the certificate is not trusted: a retry cannot succeed */
	long status;
	char reason[64]; /* text of the status line */
	char header[64]; /* value of the requested header; "": none */
	struct hr_buf body;
};

#endif
