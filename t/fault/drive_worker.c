/* worker: from a request to its answer. A 500 or 503 counts as an error; every other answer must be
 * the one of a run without failures. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "../unit/keysums.h"
#include "../unit/request.h"
#include "fault.h"
#include "worker/worker.h"

struct source {
	const char *p;
	size_t len;
};

static ssize_t
source_read(void *ctx, char *p, size_t len)
{
	struct source *s = ctx;
	size_t n = s->len < len ? s->len : len;

	if (n > 7) /* in pieces */
		n = 7;
	if (n > 0)
		memcpy(p, s->p, n);
	s->p += n;
	s->len -= n;
	return (ssize_t)n;
}

static int
ask(struct hr_worker *w, const char *method, const char *uri, const char *body, bool tell,
    struct hr_err *err)
{
	struct source s = {body, strlen(body)};
	struct hr_request r = request_blank(method, uri);
	struct hr_answer a;
	int ret = 0;

	r.content_type = "application/json";
	r.session_key = "k1";
	r.body = (struct hr_body){source_read, &s};
	hr_answer_init(&a);
	hr_handle(w, &r, &a);
	fault_tell("%d ", a.status);
	if (tell)
		fault_tell_bytes(a.body.p, a.body.len);
	if (a.body.fail != HR_OK)
		ret = -1; /* an answer that is not settled: wrong */
	else if (a.status == 500 || a.status == 503)
		ret = hr_err_set(err, HR_E_SYS, "%d %s", a.status, hr_buf_str(&a.body));
	hr_answer_done(&a);
	return ret;
}

static int
with_worker(const char *method, const char *uri, const char *body, bool tell, struct hr_err *err)
{
	struct hr_worker w;
	char path[128];
	int fd = -1, r = -1;
	struct hr_scoreboard *board = hr_scoreboard_create(&fd, err);

	if (board == NULL)
		return -1;
	hr_fd_close(&fd);
	(void)snprintf(path, sizeof(path), "%s/ws/sub", fault_dir());
	atomic_store(&board->ready, 1);
	hr_worker_init(&w, fault_dir(), path, board, &board->slots[0]);
	if (keysums_set(&w.auth, "k0\nk1\n", err) == 0 &&
	    hr_path_mkdirs(path, 0755, NULL, err) == 0)
		r = ask(&w, method, uri, body, tell, err);
	hr_worker_done(&w);
	hr_scoreboard_detach(board);
	return r;
}

static int
alive(struct hr_err *err)
{
	return with_worker("GET", "/alive", "", true, err);
}

/* Its figures are as good as /proc lets them be. */
static int
info(struct hr_err *err)
{
	return with_worker("GET", "/server_info", "", false, err);
}

/* What cannot be opened is an empty list, as in the original. */
static int
list(struct hr_err *err)
{
	return with_worker("POST", "/list_files", "{\"path\": \"..\"}", true, err);
}

static int
not_json(struct hr_err *err)
{
	return with_worker("POST", "/execute_action", "{\"action\": nope}", true, err);
}

static int
missing_field(struct hr_err *err)
{
	return with_worker("POST", "/execute_action", "{\"b\": [1, {\"c\": null}]}", true, err);
}

/* The original answers these with 500 themselves; the text says which it was. */
static int
unknown_action(struct hr_err *err)
{
	struct hr_err why = {0};
	int r = with_worker("POST", "/execute_action",
	    "{\"action\":{\"action\":\"fly\",\"args\":{\"x\":\"\\u00e9\"}}}", true, &why);

	if (r != 0 && strstr(why.msg, "fly") != NULL)
		return 0;
	*err = why;
	return r;
}

static int
not_found(struct hr_err *err)
{
	return with_worker("GET", "/nothing/here?x=%41", "", true, err);
}

const struct fault_scenario fault_scenarios[] = {{"alive", alive, 0}, {"server_info", info, 0},
    {"list_files", list, FAULT_LOSSY}, {"not JSON", not_json, 0},
    {"missing field", missing_field, 0}, {"unknown action", unknown_action, 0},
    {"not found", not_found, 0}, {NULL, NULL, 0}};
