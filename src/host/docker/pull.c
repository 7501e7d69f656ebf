/* Pulls an image from its registry. */
#include "config.h"

#include <string.h>

#include "host/docker/docker_int.h"
#include "base/err.h"
#include "proto/json.h"

#define LAYERS_MAX 1000 /* maximum layers per image */

/* The state of a pull, which the Engine reports per layer, as JSON objects, one a line. */
struct pull {
	hr_progress_fn *progress; /* NULL: progress is not reported */
	void *arg;
	struct hr_buf line;
	struct json_object *done, *total; /* bytes by layer */
	char failed[400];                 /* the Engine's error; "": none */
};

static unsigned long long
sum(struct json_object *layers)
{
	unsigned long long all = 0;

	json_object_object_foreach(layers, id, n)
	{
		(void)id;
		/* pull_line() has bounded the number */
		all += (unsigned long long)json_object_get_int64(n);
	}
	return all;
}

static void
pull_line(struct pull *p)
{
	struct json_object *part;
	HR_PUT struct json_object *o = NULL;
	int64_t now, all;
	const char *id;

	if (p->line.len > 0 && hr_json_decode_foreign(p->line.p, p->line.len, &o, NULL) == 0) {
		id = hr_json_text_or(o, "id", "");
		part = hr_json_at(o, "progressDetail");
		now = hr_json_int_at(part, "current");
		all = hr_json_int_at(part, "total");
		hr_engine_told_error(o, p->failed, sizeof(p->failed));
		/* only downloads count, not unpacking */
		if (now > 0 && all > 0 && json_object_object_length(p->total) < LAYERS_MAX &&
		    strcmp(hr_json_text_or(o, "status", ""), "Downloading") == 0) {
			(void)json_object_object_add(p->done, id, json_object_new_int64(now));
			(void)json_object_object_add(p->total, id, json_object_new_int64(all));
		}
		if (p->progress != NULL && json_object_object_length(p->total) > 0)
			p->progress(p->arg, "pull", sum(p->done), sum(p->total));
	}
	hr_buf_reset(&p->line);
}

static int
on_pull(void *arg, const char *s, size_t len)
{
	struct pull *p = arg;

	for (; len > 0; s++, len--) {
		if (*s == '\n')
			pull_line(p);
		else
			hr_buf_addc(&p->line, *s);
	}
	return 0;
}

int
hr_docker_pull(
    struct hr_engine *e, const char *image, hr_progress_fn *progress, void *arg, struct hr_err *err)
{
	struct pull p = {.progress = progress,
	    .arg = arg,
	    .done = json_object_new_object(),
	    .total = json_object_new_object()};
	HR_BUF(path, 8192);
	int r;

	hr_buf_init(&p.line, 1u << 20);
	hr_buf_adds(&path, "/images/create?fromImage=");
	hr_http_escape(&path, image);
	if (p.done == NULL || p.total == NULL || hr_buf_check(&path, NULL) != 0)
		r = hr_err_nomem(err);
	else
		r = hr_engine_stream(e, "POST", path.p, NULL, NULL, on_pull, &p, 0, err);
	pull_line(&p);
	/* a status of 200 only means that the pull was started */
	if (r == 0 && p.failed[0] != '\0')
		r = hr_err_set(err, HR_E_NOTFOUND, "%s", p.failed);
	json_object_put(p.done);
	json_object_put(p.total);
	hr_buf_done(&p.line);
	return r;
}
