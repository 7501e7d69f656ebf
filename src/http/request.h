/* What is asked over HTTP and what is answered: the words that all who ask share. */
#ifndef HR_HTTP_REQUEST_H
#define HR_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

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
	const char *ca_pem, *cert_pem, *key_pem; /* TLS, texts; NULL: the system's, none */
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

struct hr_http_answer {
	enum hr_http_fault fault;
	bool untrusted; /* its certificate is not believed: asking again is of no use */
	long status;
	char reason[64]; /* of the status line */
	char header[64]; /* the value that was asked for, "" for none */
	struct hr_buf body;
};

#endif
