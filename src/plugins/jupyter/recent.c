/* Keeps cells in a ring. Invariant: cell number N is in cells[N % HR_RECENT_MAX]. */
#include "config.h"

#include "plugins/jupyter/recent.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "proto/json.h"

uint64_t
hr_recent_begin(struct hr_recent *r, const char *code, size_t len)
{
	uint64_t id = ++r->begun;
	struct hr_recent_cell *c = &r->cells[id % HR_RECENT_MAX];

	c->state = HR_RECENT_RUNNING;
	c->started_ms = hr_wall_ms();
	c->began_ms = hr_now_ms();
	c->length = len;
	c->kept = len < sizeof(c->code) ? len : sizeof(c->code);
	if (c->kept > 0)
		memcpy(c->code, code, c->kept);
	return id;
}

void
hr_recent_end(struct hr_recent *r, uint64_t id, bool failed)
{
	struct hr_recent_cell *c = &r->cells[id % HR_RECENT_MAX];

	if (r->begun - id >= HR_RECENT_MAX)
		return;
	c->state = failed ? HR_RECENT_FAILED : HR_RECENT_COMPLETED;
	c->ended_ms = hr_now_ms();
}

static void
put_cell(struct hr_buf *b, uint64_t id, const struct hr_recent_cell *c)
{
	static const char *const states[] = {"running", "completed", "failed"};
	int64_t end_ms = c->state == HR_RECENT_RUNNING ? hr_now_ms() : c->ended_ms;

	hr_buf_addf(b, "{\"id\":%" PRIu64 ",\"code\":", id);
	(void)hr_json_put_str(b, c->code, c->kept, HR_JSON_REPLACE);
	hr_buf_addf(b, ",\"length\":%zu,\"state\":\"%s\",\"clock\":{", c->length, states[c->state]);
	hr_buf_addf(
	    b, "\"started\":%" PRId64 ".%03d,", c->started_ms / 1000, (int)(c->started_ms % 1000));
	hr_buf_addf(b, "\"elapsed\":%" PRId64 ".%03d}}", (end_ms - c->began_ms) / 1000,
	    (int)((end_ms - c->began_ms) % 1000));
}

void
hr_recent_put(struct hr_buf *b, const struct hr_recent *r)
{
	uint64_t id = r->begun > HR_RECENT_MAX ? r->begun - HR_RECENT_MAX + 1 : 1;

	hr_buf_adds(b, "{\"cells\":[");
	for (; id <= r->begun; id++) {
		put_cell(b, id, &r->cells[id % HR_RECENT_MAX]);
		hr_buf_adds(b, id < r->begun ? "," : "");
	}
	hr_buf_adds(b, "]}");
}
