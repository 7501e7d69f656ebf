/* A Docker Engine that answers anything: no crash, and what is given out as JSON is JSON. The first
 * byte chooses what is asked, the rest are the answers (fake_http.h). */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "fake_http.h"
#include "host/docker/engine.h"
#include "host/handrail.h"
#include "proto/json.h"
#include "fuzz.h"

static const char *const env[] = {"DOCKER_HOST=unix:///nonexistent", "SESSION_API_KEY=k", NULL};

static void
need_json(char *text)
{
	HR_PUT struct json_object *o = NULL;
	struct hr_json_error why;

	if (text == NULL || hr_json_decode(text, strlen(text), &o, &why) != 0)
		abort();
	free(text);
}

/* An error has a code and says something. */
static void
need_error(const struct hr_err *err)
{
	if (err->code == HR_OK || *hr_err_class(err) == '\0')
		abort();
}

static void
on_finding(void *arg, bool ok, const char *what, const char *text)
{
	(void)arg;
	(void)ok;
	if (strlen(what) + strlen(text) == 0)
		abort();
}

static int
on_line(void *arg, const char *line, size_t len)
{
	(void)arg;
	if (len > 0 && line[len - 1] == '\n')
		abort();
	return 0;
}

static void
try_images(bool rm)
{
	struct hr_err err = {0};
	char *text = NULL;

	if ((rm ? hr_image_remove(env, "x/y:1", &err) : hr_image_list(env, &text, &err)) != 0)
		need_error(&err);
	else if (!rm)
		need_json(text);
}

static void
try_sandbox(struct hr_config *c, bool attach)
{
	struct hr_sandbox_options o = {
	    .sid = "x", .environ = env, .attach = attach, .headless = true};
	struct hr_err err = {0};
	struct hr_sandbox *s;
	char *text = NULL;

	s = hr_sandbox_open(c, &o, &err);
	if (s == NULL)
		abort();
	if (hr_sandbox_connect(s, &err) != 0)
		need_error(&err);
	if (strlen(hr_sandbox_state(s)) == 0)
		abort();
	if (hr_sandbox_stats(s, &text, &err) == 0)
		need_json(text);
	(void)hr_sandbox_logs(s, false, on_line, NULL, NULL);
	(void)hr_sandbox_pause(s, NULL);
	(void)hr_sandbox_resume(s, NULL);
	(void)hr_sandbox_close(s, NULL);
	(void)hr_sandbox_delete(s, NULL);
	hr_sandbox_free(s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hr_config *c;
	struct hr_err err = {0};
	bool well;

	if (size == 0 || size > 100000)
		return 0;
	c = hr_config_new(NULL);
	if (c == NULL || hr_config_set(c, "core.runtime", "docker", NULL) != 0 ||
	    hr_config_set(c, "sandbox.runtime_container_image", "i:1", NULL) != 0)
		abort();
	fake_http_answers((const char *)data + 1, size - 1, false);
	switch (data[0] % 5) {
	case 0: try_images(false); break;
	case 1: try_images(true); break;
	case 2:
		if (hr_doctor(c, env, NULL, on_finding, NULL, &well, &err) != 0)
			need_error(&err);
		break;
	case 3: try_sandbox(c, true); break;
	default: try_sandbox(c, false); break;
	}
	hr_config_free(c);
	return 0;
}
