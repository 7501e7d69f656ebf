/* bench_http: just enough of an HTTP/1.1 client to time requests: one request text sent again and
 * again, answers told apart by Content-Length, chunks or the end of the connection. */
#ifndef BENCH_HTTP_H
#define BENCH_HTTP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

struct bench_target {
	struct sockaddr_in addr;
	const char *host, *path;    /* of the request line and the Host header */
	const char *method;         /* NULL: GET, or POST with a body */
	const char *body_file;      /* NULL: no body */
	const char *const *headers; /* "Name: value", n_headers of them */
	size_t n_headers;
	const char *expect; /* the body must hold this text; NULL: anything */
	char *request;      /* made by bench_target_make() */
	size_t request_len;
};

/* Reads the body, builds the request. Errors end the program: this is a tool. */
void bench_target_make(struct bench_target *t, const char *host, int port);
void bench_target_done(struct bench_target *t);

struct bench_answer {
	char *p; /* all bytes of the answer so far */
	size_t len, cap;
	size_t head;      /* length of the status line and the headers, 0: not complete yet */
	size_t chunk_at;  /* where the next chunk's size line begins */
	long long length; /* of the body; -1: to the end of the connection, -2: chunked */
	int status;
	bool closes; /* the server said so */
};

void bench_answer_init(struct bench_answer *a);
void bench_answer_reset(struct bench_answer *a); /* keeps the memory */
void bench_answer_done(struct bench_answer *a);

/* Room for at least one more byte: *ret_room of it at the returned place; then add what was read.
 */
char *bench_answer_room(struct bench_answer *a, size_t *ret_room);
/* 1: the answer is complete; 0: more is needed; -1: not HTTP. eof: nothing follows. */
int bench_answer_add(struct bench_answer *a, size_t n, bool eof);
/* Status 200, and the expected text is there. */
bool bench_answer_good(const struct bench_answer *a, const struct bench_target *t);

/* Connected, TCP_NODELAY; -1 with errno. */
int bench_connect(const struct bench_target *t, bool nonblock);

#endif
