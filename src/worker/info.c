/* Answers GET /server_info (doc/http.md, "GET /server_info") and /handrail/v1/usage. */
#include "config.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/text/floatrepr.h"
#include "worker/worker.h"

static void
put_seconds_since(struct hr_buf *b, int64_t now_ns, int64_t then_ns)
{
	hr_float_repr(b, (double)(now_ns - then_ns) / 1e9);
}

void
hr_handle_info(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	int64_t now = hr_wall_ns(), started = atomic_load(&w->board->started_ns);
	int64_t last = atomic_load(&w->board->last_execution_ns);
	struct hr_stats_now s;
	struct hr_buf *b = &ret->body;

	(void)r;
	hr_stats_sample(&w->stats, w->board, &s);
	hr_buf_adds(b, "{\"uptime\":");
	put_seconds_since(b, now, started);
	hr_buf_adds(b, ",\"idle_time\":");
	put_seconds_since(b, now, last != 0 ? last : started);
	hr_buf_adds(b, ",\"resources\":{\"cpu_percent\":");
	hr_float_repr(b, s.cpu_percent);
	hr_buf_addf(
	    b, ",\"memory\":{\"rss\":%" PRIu64 ",\"vms\":%" PRIu64 ",\"percent\":", s.rss, s.vms);
	hr_float_repr(b, s.memory_percent);
	hr_buf_addf(b,
	    "},\"disk\":{\"total\":%" PRIu64 ",\"used\":%" PRIu64 ",\"free\":%" PRIu64
	    ",\"percent\":",
	    s.disk_total, s.disk_used, s.disk_free);
	hr_float_repr(b, s.disk_percent);
	hr_buf_addf(b, "},\"io\":{\"read_bytes\":%" PRIu64 ",\"write_bytes\":%" PRIu64 "}}}",
	    s.read_bytes, s.write_bytes);
}

void
hr_handle_usage(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_stats_tree t;

	(void)r;
	hr_stats_tree(atomic_load(&w->board->supervisor_pid), &t);
	hr_buf_addf(&ret->body,
	    "{\"time\":%.3f,\"processes\":%u,\"memory_bytes\":%" PRIu64 ",\"cpu_seconds\":%.2f}",
	    (double)hr_wall_ms() / 1000, t.processes, t.anonymous, (double)t.cpu_ns / 1e9);
}
