/* Pulls an image from its registry. */
#include "config.h"

#include <string.h>

#include "host/docker/docker_int.h"
#include "host/docker/progress.h"
#include "base/err.h"
#include "proto/json.h"

#define LAYERS_MAX 1000 /* maximum layers per image */

/* The state of a pull, which the Engine reports per layer. */
struct pull {
	hr_progress_fn *progress; /* NULL: progress is not reported */
	void *arg;
	struct json_object *done, *total; /* bytes by layer */
};

static unsigned long long
sum(struct json_object *layers)
{
	unsigned long long all = 0;

	json_object_object_foreach(layers, id, n)
	{
		(void)id;
		/* on_message() has bounded the number */
		all += (unsigned long long)json_object_get_int64(n);
	}
	return all;
}

static void
on_message(void *arg, struct json_object *o, const char *failed)
{
	struct pull *p = arg;
	struct json_object *part = hr_json_at(o, "progressDetail");
	int64_t now = hr_json_int_at(part, "current"), all = hr_json_int_at(part, "total");
	const char *id = hr_json_text_or(o, "id", "");

	(void)failed;
	/* only downloads count, not unpacking */
	if (now > 0 && all > 0 && json_object_object_length(p->total) < LAYERS_MAX &&
	    strcmp(hr_json_text_or(o, "status", ""), "Downloading") == 0) {
		(void)json_object_object_add(p->done, id, json_object_new_int64(now));
		(void)json_object_object_add(p->total, id, json_object_new_int64(all));
	}
	if (p->progress != NULL && json_object_object_length(p->total) > 0)
		p->progress(p->arg, "pull", sum(p->done), sum(p->total));
}

/* Returns true if the name has no tag and no digest: an Engine would pull all tags. */
static bool
is_any(const char *image)
{
	const char *slash = strrchr(image, '/');

	return strchr(image, '@') == NULL && strchr(slash != NULL ? slash : image, ':') == NULL;
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

	hr_buf_adds(&path, "/images/create?fromImage=");
	hr_http_escape(&path, image);
	if (is_any(image))
		hr_buf_adds(&path, "&tag=latest");
	if (p.done == NULL || p.total == NULL || hr_buf_check(&path, NULL) != 0)
		r = hr_err_nomem(err);
	else
		r = hr_engine_messages(e, path.p, NULL, NULL, on_message, &p, HR_E_NOTFOUND, err);
	json_object_put(p.done);
	json_object_put(p.total);
	return r;
}
