/* The client's side of HTTP for the benchmarks. The answers come from servers we started. */
#include "config.h"

#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clean.h"

static void
fail(const char *what)
{
	perror(what);
	exit(1);
}

static char *
read_file(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "rb");
	char *p = NULL;
	size_t cap = 0, n;

	*ret_len = 0;
	if (f == NULL)
		fail(path);
	do {
		if (*ret_len == cap) {
			cap += 1 << 16;
			p = realloc(p, cap);
			if (p == NULL)
				fail(path);
		}
		n = fread(p + *ret_len, 1, cap - *ret_len, f);
		*ret_len += n;
	} while (n > 0);
	if (ferror(f))
		fail(path);
	(void)fclose(f);
	return p;
}

void
bench_target_make(struct bench_target *t, const char *host, int port)
{
	const char *method = t->method != NULL ? t->method : t->body_file != NULL ? "POST" : "GET";
	HR_FREE char *body = NULL;
	size_t body_len = 0, i;
	FILE *f;

	t->host = host;
	t->addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	if (inet_pton(AF_INET, host, &t->addr.sin_addr) != 1) {
		(void)fprintf(stderr, "bench: not an IPv4 address: %s\n", host);
		exit(2);
	}
	if (t->body_file != NULL)
		body = read_file(t->body_file, &body_len);
	f = open_memstream(&t->request, &t->request_len);
	if (f == NULL)
		fail("request");
	(void)fprintf(f, "%s %s HTTP/1.1\r\nHost: %s:%d\r\n", method, t->path, host, port);
	for (i = 0; i < t->n_headers; i++)
		(void)fprintf(f, "%s\r\n", t->headers[i]);
	if (body != NULL)
		(void)fprintf(
		    f, "Content-Type: application/json\r\nContent-Length: %zu\r\n", body_len);
	(void)fputs("\r\n", f);
	if (body_len > 0)
		(void)fwrite(body, 1, body_len, f);
	if (fclose(f) != 0)
		fail("request");
}

void
bench_target_done(struct bench_target *t)
{
	free(t->request);
	t->request = NULL;
}

void
bench_answer_init(struct bench_answer *a)
{
	memset(a, 0, sizeof(*a));
	a->length = -1;
}

void
bench_answer_reset(struct bench_answer *a)
{
	char *p = a->p;
	size_t cap = a->cap;

	bench_answer_init(a);
	a->p = p;
	a->cap = cap;
}

void
bench_answer_done(struct bench_answer *a)
{
	free(a->p);
	bench_answer_init(a);
}

char *
bench_answer_room(struct bench_answer *a, size_t *ret_room)
{
	if (a->cap - a->len < 4096) {
		a->cap = a->cap > 0 ? 2 * a->cap : 1 << 16;
		a->p = realloc(a->p, a->cap);
		if (a->p == NULL)
			fail("answer");
	}
	*ret_room = a->cap - a->len - 1; /* a NUL may follow */
	return a->p + a->len;
}

static void
answer_header(struct bench_answer *a, const char *line, size_t len)
{
	if (len > 15 && strncasecmp(line, "content-length:", 15) == 0)
		a->length = strtoll(line + 15, NULL, 10);
	else if (len > 18 && strncasecmp(line, "transfer-encoding:", 18) == 0)
		a->length = -2; /* nothing but chunked is in use */
	else if (len > 11 && strncasecmp(line, "connection:", 11) == 0)
		a->closes =
		    strcasestr(line, "close") != NULL && strcasestr(line, "close") < line + len;
}

/* 1: the head is there and was read; 0: not yet; -1: not HTTP. */
static int
answer_head(struct bench_answer *a)
{
	const char *end, *line, *next;

	a->p[a->len] = '\0';
	end = strstr(a->p, "\r\n\r\n");
	if (end == NULL)
		return 0;
	if (a->len < 12 || strncmp(a->p, "HTTP/1.", 7) != 0)
		return -1;
	a->status = (int)strtol(a->p + 9, NULL, 10);
	a->head = (size_t)(end - a->p) + 4;
	a->chunk_at = a->head;
	for (line = strstr(a->p, "\r\n") + 2; line < end; line = next + 2) {
		next = strstr(line, "\r\n");
		answer_header(a, line, (size_t)(next - line));
	}
	return 1;
}

/* 1: the last chunk is there. Trailers are not in use. */
static int
answer_chunks(struct bench_answer *a)
{
	const char *line, *end;
	unsigned long long size;
	char *after;

	a->p[a->len] = '\0';
	for (;;) {
		line = a->p + a->chunk_at;
		end = memchr(line, '\n', a->len - a->chunk_at);
		if (end == NULL)
			return 0;
		size = strtoull(line, &after, 16);
		if (after == line)
			return -1;
		if ((size_t)(end + 1 - a->p) + size + 2 > a->len)
			return 0;
		a->chunk_at = (size_t)(end + 1 - a->p) + (size_t)size + 2;
		if (size == 0)
			return 1;
	}
}

int
bench_answer_add(struct bench_answer *a, size_t n, bool eof)
{
	int r = 1;

	a->len += n;
	if (a->head == 0)
		r = a->len > 0 ? answer_head(a) : 0;
	if (r == 1 && a->length == -2)
		r = answer_chunks(a);
	else if (r == 1 && a->length >= 0)
		r = a->len - a->head >= (size_t)a->length;
	else if (r == 1)
		r = eof;
	return r == 0 && eof ? -1 : r;
}

bool
bench_answer_good(const struct bench_answer *a, const struct bench_target *t)
{
	if (a->status != 200)
		return false;
	return t->expect == NULL ||
	       memmem(a->p + a->head, a->len - a->head, t->expect, strlen(t->expect)) != NULL;
}

int
bench_connect(const struct bench_target *t, bool nonblock)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, sys;

	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)&t->addr, sizeof(t->addr)) == 0 &&
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0 &&
	    (!nonblock || fcntl(fd, F_SETFL, O_NONBLOCK) == 0))
		return fd;
	sys = errno;
	(void)close(fd);
	errno = sys;
	return -1;
}
