/* A worker without FastCGI, for tests: requests from memory, a board and directories of its own. */
#ifndef HR_T_UNIT_HANDLE_H
#define HR_T_UNIT_HANDLE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "worker/worker.h"
#include "keysums.h"
#include "request.h"

struct handle_body {
	const char *p;
	size_t len;
	bool broken; /* the sender breaks off at the end */
};

struct handle {
	struct hr_worker w;
	struct hr_answer answer;
	struct hr_request r;
	struct handle_body body;
	struct hr_scoreboard *board;
	char dir[64]; /* run directory; its "ws" is the working directory */
	char work_dir[80];
};

/* Gives the body out in pieces of at most 1000 bytes. */
static inline ssize_t
handle_read(void *ctx, char *p, size_t len)
{
	struct handle_body *b = ctx;
	size_t n = b->len < len ? b->len : len;

	if (n > 1000)
		n = 1000;
	if (n == 0)
		return b->broken ? -1 : 0;
	memcpy(p, b->p, n);
	b->p += n;
	b->len -= n;
	return (ssize_t)n;
}

static inline void
handle_init(struct handle *h, const char *keys)
{
	struct hr_err err = {0};
	int fd;

	memset(h, 0, sizeof(*h));
	strcpy(h->dir, "/tmp/hr-handle-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(h->dir));
	(void)snprintf(h->work_dir, sizeof(h->work_dir), "%s/ws", h->dir);
	ck_assert_int_eq(mkdir(h->work_dir, 0755), 0);
	h->board = hr_scoreboard_create(&fd, &err);
	ck_assert_msg(h->board != NULL, "%s", err.msg);
	(void)close(fd);
	atomic_store(&h->board->ready, 1);
	atomic_store(&h->board->started_ns, hr_wall_ns() - 5000000000);
	hr_worker_init(&h->w, h->dir, h->work_dir, h->board, &h->board->slots[0]);
	ck_assert_int_eq(keysums_set(&h->w.auth, keys, &err), 0);
	hr_answer_init(&h->answer);
}

static inline void
handle_done(struct handle *h)
{
	struct hr_err err = {0};

	ck_assert_msg(hr_path_remove(h->dir, &err) == 0, "%s", err.msg);
	hr_answer_done(&h->answer);
	hr_worker_done(&h->w);
	hr_scoreboard_detach(h->board);
}

/* A request that further fields of h->r may be set of. */
static inline void
handle_begin(struct handle *h, const char *method, const char *uri)
{
	h->r = request_blank(method, uri);
	h->r.body = (struct hr_body){handle_read, &h->body};
	h->body = (struct handle_body){"", 0, false};
}

static inline void
handle_body(struct handle *h, const char *p, size_t len)
{
	h->body.p = p;
	h->body.len = len;
}

static inline int
handle_perform(struct handle *h)
{
	hr_handle(&h->w, &h->r, &h->answer);
	ck_assert_int_eq(h->answer.body.fail, HR_OK);
	return h->answer.status;
}

static inline int
handle_simple(struct handle *h, const char *method, const char *uri)
{
	handle_begin(h, method, uri);
	return handle_perform(h);
}

/* POST /execute_action */
static inline int
handle_action(struct handle *h, const char *json)
{
	handle_begin(h, "POST", "/execute_action");
	handle_body(h, json, strlen(json));
	return handle_perform(h);
}

#endif
