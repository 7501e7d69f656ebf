/* Writes all observation types by one table; `run`, the frequent one, is a row of it. */
#include "config.h"

#include "proto/obs.h"

#include <inttypes.h>
#include <stdio.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int
put_extras(struct hr_buf *b, const struct hr_obs_extra *e, size_t n, enum hr_json_bad bad);

static int
put_span(struct hr_buf *b, struct hr_span s, enum hr_json_bad bad)
{
	return hr_json_put_str(b, s.p, s.len, bad);
}

static int
put_extra(struct hr_buf *b, const struct hr_obs_extra *e, enum hr_json_bad bad)
{
	switch (e->kind) {
	case HR_OBS_NULL: hr_buf_adds(b, "null"); return 0;
	case HR_OBS_STR: return put_span(b, e->str, bad);
	case HR_OBS_BOOL: hr_buf_adds(b, e->number != 0 ? "true" : "false"); return 0;
	case HR_OBS_INT: hr_buf_addf(b, "%" PRId64, e->number); return 0;
	case HR_OBS_JSON: return hr_json_put(b, e->json);
	case HR_OBS_EXTRAS: return put_extras(b, e->extras, e->extras_n, bad);
	}
	return 0;
}

static int
put_extras(struct hr_buf *b, const struct hr_obs_extra *e, size_t n, enum hr_json_bad bad)
{
	size_t i;

	hr_buf_addc(b, '{');
	for (i = 0; i < n; i++) {
		hr_buf_addf(b, "%s\"%s\":", i > 0 ? "," : "", e[i].name);
		if (put_extra(b, &e[i], bad) < 0)
			return -1;
	}
	hr_buf_addc(b, '}');
	return 0;
}

int
hr_obs_put(struct hr_buf *b, const struct hr_obs *o)
{
	size_t i;

	hr_buf_adds(b, "{\"message\":\"");
	for (i = 0; i < COUNT(o->message); i++)
		if (hr_json_put_text(b, o->message[i].p, o->message[i].len, o->bad) < 0)
			return -1;
	hr_buf_addf(b, "\",\"observation\":\"%s\",\"content\":", o->type);
	if (put_span(b, o->content, o->bad) < 0)
		return -1;
	hr_buf_adds(b, ",\"extras\":");
	if (put_extras(b, o->extras, o->extras_n, o->bad) < 0)
		return -1;
	if (o->has_success)
		hr_buf_addf(b, ",\"success\":%s", o->success ? "true" : "false");
	hr_buf_addc(b, '}');
	return 0;
}

void
hr_obs_put_error(struct hr_buf *b, const char *text, size_t len)
{
	static const struct hr_obs_extra extras[] = {
	    {.name = "error_id", .kind = HR_OBS_STR, .str = {"", 0}}};
	const struct hr_obs o = {.type = "error",
	    .message = {{text, len}},
	    .content = {text, len},
	    .extras = extras,
	    .extras_n = COUNT(extras),
	    .bad = HR_JSON_REPLACE};

	/* cannot be refused: the only strings are replaced where they are invalid */
	(void)hr_obs_put(b, &o);
}

int
hr_obs_put_read(struct hr_buf *b, struct hr_span path, const char *impl, struct hr_span content,
    enum hr_json_bad bad)
{
	const struct hr_obs_extra extras[] = {
	    {.name = "path", .kind = HR_OBS_STR, .str = path},
	    {.name = "impl_source", .kind = HR_OBS_STR, .str = hr_span_of(impl)},
	};
	const struct hr_obs o = {.type = "read",
	    .message = {HR_OBS_SPAN("I read the file "), path, HR_OBS_SPAN(".")},
	    .content = content,
	    .extras = extras,
	    .extras_n = COUNT(extras),
	    .bad = bad};

	return hr_obs_put(b, &o);
}

int
hr_obs_put_write(struct hr_buf *b, struct hr_span path, enum hr_json_bad bad)
{
	const struct hr_obs_extra extras[] = {{.name = "path", .kind = HR_OBS_STR, .str = path}};
	const struct hr_obs o = {.type = "write",
	    .message = {HR_OBS_SPAN("I wrote to the file "), path, HR_OBS_SPAN(".")},
	    .content = HR_OBS_SPAN(""),
	    .extras = extras,
	    .extras_n = COUNT(extras),
	    .bad = bad};

	return hr_obs_put(b, &o);
}

int
hr_obs_put_edit(struct hr_buf *b, const struct hr_obs_edit *e, enum hr_json_bad bad)
{
	const struct hr_obs_extra extras[] = {
	    {.name = "path", .kind = HR_OBS_STR, .str = e->path},
	    {.name = "prev_exist", .kind = HR_OBS_BOOL, .number = 0},
	    {.name = "old_content", .kind = HR_OBS_JSON, .json = e->old_str},
	    {.name = "new_content", .kind = HR_OBS_JSON, .json = e->new_str},
	    {.name = "impl_source", .kind = HR_OBS_STR, .str = HR_OBS_SPAN("oh_aci")},
	    {.name = "diff", .kind = HR_OBS_STR, .str = e->diff},
	    {.name = "_diff_cache", .kind = HR_OBS_NULL},
	};
	const struct hr_obs o = {.type = "edit",
	    .message = {HR_OBS_SPAN("I edited the file "), e->path, HR_OBS_SPAN(".")},
	    .content = e->content,
	    .extras = extras,
	    .extras_n = COUNT(extras),
	    .bad = bad};

	return hr_obs_put(b, &o);
}

int
hr_obs_put_run(struct hr_buf *b, const struct hr_run_result *r, const struct hr_arg *hidden)
{
	enum hr_obs_kind kind = r->has_metadata ? HR_OBS_STR : HR_OBS_NULL;
	enum hr_obs_kind where = r->has_directory ? HR_OBS_STR : kind;
	const struct hr_obs_extra metadata[] = {
	    {.name = "exit_code", .kind = HR_OBS_INT, .number = r->exit_code},
	    {.name = "pid", .kind = HR_OBS_INT, .number = r->pid},
	    {.name = "username", .kind = kind, .str = r->username},
	    {.name = "hostname", .kind = kind, .str = r->hostname},
	    {.name = "working_dir", .kind = where, .str = r->working_dir},
	    {.name = "py_interpreter_path", .kind = kind, .str = r->py_path},
	    {.name = "prefix", .kind = HR_OBS_STR, .str = r->prefix},
	    {.name = "suffix", .kind = HR_OBS_STR, .str = r->suffix},
	};
	const struct hr_obs_extra output[] = {
	    {.name = "command", .kind = HR_OBS_INT, .number = r->id},
	    {.name = "start", .kind = HR_OBS_INT, .number = (int64_t)r->log_start},
	    {.name = "end", .kind = HR_OBS_INT, .number = (int64_t)r->log_end},
	};
	const struct hr_obs_extra extras[] = {
	    {.name = "command", .kind = HR_OBS_STR, .str = r->command},
	    {.name = "metadata",
		.kind = HR_OBS_EXTRAS,
		.extras = metadata,
		.extras_n = COUNT(metadata)},
	    {.name = "hidden",
		.kind =
		    hidden->given == NULL && hidden->type == HR_PY_BOOL ? HR_OBS_BOOL : HR_OBS_JSON,
		.number = hidden->number,
		.json = hidden->given},
	    {.name = "output", .kind = HR_OBS_EXTRAS, .extras = output, .extras_n = COUNT(output)},
	};
	char end[64];
	struct hr_obs o = {.type = "run",
	    .message = {HR_OBS_SPAN("Command `"), r->command},
	    .content = r->content,
	    .extras = extras,
	    .extras_n = COUNT(extras) - (r->id == 0),
	    .has_success = true,
	    .success = r->exit_code == 0,
	    .bad = HR_JSON_REPLACE};

	if (r->is_error) {
		hr_obs_put_error(b, r->content.p, r->content.len);
		return 0;
	}
	o.message[2].p = end;
	o.message[2].len = (size_t)snprintf(
	    end, sizeof(end), "` executed with exit code %" PRId64 ".", r->exit_code);
	return hr_obs_put(b, &o);
}
