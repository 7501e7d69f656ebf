/* Reports events of all sandboxes of the back-end "docker", and checks of its Engine. */
#include "config.h"

#include <poll.h>

#include <json-c/json_object.h>

#include "base/err.h"
#include "host/common/exam.h"
#include "host/docker/docker_int.h"
#include "proto/json.h"

#define LINE_MAX_BYTES (1u << 20)
#define FILTER "/events?filters=%7B%22type%22%3A%5B%22container%22%5D%7D"

/* ---- events ---- */

struct listener {
	hr_event_fn *fn;
	void *arg;
	struct hr_buf line;
	bool stopped; /* the callback asked to stop */
};

static int
event_line(struct listener *l)
{
	struct hr_engine_event e;
	int r = 0;

	if (hr_engine_event(&e, hr_buf_str(&l->line), l->line.len))
		r = l->fn(l->arg, e.sid, e.what, e.detail);
	hr_buf_reset(&l->line);
	return r;
}

static int
on_bytes(void *arg, const char *p, size_t len)
{
	struct listener *l = arg;
	size_t i;

	for (i = 0; i < len; i++) {
		if (p[i] != '\n')
			hr_buf_addc(&l->line, p[i]);
		else
			l->stopped = event_line(l) != 0;
		if (l->stopped)
			return -1;
	}
	return 0;
}

int
hr_docker_events(void *self, hr_event_fn *fn, void *arg, struct hr_err *err)
{
	struct listener l = {.fn = fn, .arg = arg};
	struct hr_docker *d = self;
	struct pollfd stop = {.fd = d->h->stop_fd, .events = POLLIN};
	int r;

	if (hr_docker_engine(d, err) < 0)
		return -1;
	hr_buf_init(&l.line, LINE_MAX_BYTES);
	r = hr_engine_stream(&d->engine, "GET", FILTER, NULL, NULL, on_bytes, &l, 0, err);
	hr_buf_done(&l.line);
	if (l.stopped)
		return 0;
	/* the Engine closes the stream when it exits */
	return r == 0 && poll(&stop, 1, 0) == 0
		   ? hr_err_set(err, HR_E_DISCONNECTED, "the Engine's stream of events has ended")
		   : r;
}

/* ---- doctor ---- */

static void
image(struct hr_docker *d, hr_finding_fn *fn, void *arg)
{
	const char *name = hr_config_text(d->h->config, "sandbox.runtime_container_image");
	struct hr_err e = {0};
	HR_BUF(path, 16384);

	if (name == NULL) {
		fn(arg, false, "image",
		    "sandbox.runtime_container_image is not set; \"handrail image build\" makes an "
		    "image");
		return;
	}
	hr_docker_image_path(&path, name);
	hr_buf_adds(&path, "/json");
	if (hr_engine_call(&d->engine, "GET", hr_buf_str(&path), NULL, NULL, &e) == 0)
		fn(arg, true, "image", name);
	else
		hr_exam_say(fn, arg, false, "image",
		    "%.400s; \"docker pull %.100s\" asks its registry, \"handrail image build\" "
		    "makes "
		    "one",
		    e.msg, name);
}

int
hr_docker_doctor(void *self, hr_finding_fn *fn, void *arg, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	struct hr_docker *d = self;
	struct hr_err e = {0};

	(void)err;
	if (hr_docker_engine(d, &e) < 0 ||
	    hr_engine_call(&d->engine, "GET", "/version", NULL, &o, &e) < 0) {
		hr_exam_say(fn, arg, false, "engine",
		    "%s Debian: \"apt-get install docker.io\" installs one, \"systemctl start "
		    "docker\" "
		    "starts it; DOCKER_HOST names another",
		    e.msg);
	} else {
		hr_exam_say(fn, arg, true, "engine", "version %s, API %s",
		    hr_json_text_or(o, "Version", "unknown"),
		    hr_json_text_or(o, "ApiVersion", "unknown"));
		image(d, fn, arg);
	}
	hr_portlock_examine("0.0.0.0", fn, arg);
	return 0;
}
