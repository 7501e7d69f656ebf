/* Holds the state of a worker process and the parts that several handlers use. */
#include "config.h"

#include "worker/worker.h"

#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "proto/json.h"

#define KEEP_MAX (1u << 20) /* memory of a larger body is freed */
#define READ_SIZE (64u << 10)
#define PATH_BYTES_MAX (64u << 10)

void
hr_worker_init(struct hr_worker *w, const char *run_dir, const char *work_dir,
    struct hr_scoreboard *board, struct hr_worker_slot *slot)
{
	memset(w, 0, sizeof(*w));
	w->run_dir = run_dir;
	w->work_dir = work_dir;
	w->libexec_dir = "";
	w->channel = -1;
	w->shell_fd = -1;
	w->board_fd = -1;
	w->peers = -1;
	w->shell_uid = 65534; /* this is the number of the account nobody */
	w->board = board;
	w->slot = slot;
	hr_journal_init(&w->journal);
	w->journal.counts = &board->journal;
	w->once.fd = -1;
	hr_buf_init(&w->body, HR_JSON_BODY_MAX + READ_SIZE);
	hr_buf_init(&w->path, PATH_BYTES_MAX);
	hr_buf_init(&w->session, PATH_BYTES_MAX);
}

void
hr_worker_done(struct hr_worker *w)
{
	hr_buf_done(&w->body);
	hr_buf_done(&w->path);
	hr_buf_done(&w->session);
	hr_auth_done(&w->auth);
	hr_journal_close(&w->journal);
	hr_fd_close(&w->shell_fd);
	hr_fd_close(&w->board_fd);
	hr_fd_close(&w->peers);
}

void
hr_worker_stage(struct hr_worker *w, enum hr_worker_stage stage)
{
	atomic_store(&w->slot->since_ns, hr_now_ns());
	atomic_store(&w->slot->stage, (uint32_t)stage);
}

bool
hr_worker_body(struct hr_worker *w, const struct hr_request *r, size_t cap, struct hr_answer *ret)
{
	ssize_t n;
	char *p;

	hr_worker_stage(w, HR_STAGE_READING);
	if (w->body.room > KEEP_MAX)
		hr_buf_done(&w->body);
	hr_buf_reset(&w->body);
	do {
		p = hr_buf_reserve(&w->body, READ_SIZE);
		if (p == NULL)
			return hr_answer_generic(ret);
		n = r->body.read(r->body.ctx, p, READ_SIZE);
		if (n > 0)
			hr_buf_grew(&w->body, (size_t)n);
		if (w->body.len > cap)
			return hr_answer_detail(ret, 413, "Request Entity Too Large");
	} while (n > 0);
	if (n < 0)
		return hr_answer_detail(ret, 400, "There was an error parsing the body");
	hr_worker_stage(w, HR_STAGE_RUNNING);
	return true;
}
