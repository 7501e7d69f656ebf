/* What the host reads line by line or from files: frames of a container's log, events of an Engine,
 * ".env", values of variables, a configuration, records of sandboxes. The first byte chooses. */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/path.h"
#include "host/config/dotenv.h"
#include "host/docker/engine.h"
#include "host/records/record.h"
#include "host/config/toml.h"
#include "proto/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static char dir[] = "/tmp/handrail-fuzz-XXXXXX";

static void
remove_dir(void)
{
	(void)hr_path_remove(dir, NULL);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	if (mkdtemp(dir) == NULL || atexit(remove_dir) != 0)
		abort();
	return 0;
}

/* Cut anywhere, the lines are the same. */
struct told {
	size_t lines, bytes;
};

static int
on_line(void *arg, const char *line, size_t len)
{
	struct told *t = arg;

	if (memchr(line, '\n', len) != NULL)
		abort();
	t->lines++;
	t->bytes += len;
	return 0;
}

static struct told
demux(const char *p, size_t len, size_t piece)
{
	struct told t = {0};
	struct hr_demux d;
	size_t n;

	hr_demux_init(&d, on_line, &t);
	for (; len > 0; p += n, len -= n) {
		n = len < piece ? len : piece;
		if (hr_demux_sink(&d, p, n) != 0)
			abort();
	}
	hr_demux_done(&d);
	return t;
}

static void
try_demux(const char *p, size_t len)
{
	struct told whole = demux(p, len, len), cut = demux(p, len, 3);

	if (whole.lines != cut.lines || whole.bytes != cut.bytes)
		abort();
}

static void
try_event(const char *p, size_t len)
{
	struct hr_engine_event e;

	if (hr_engine_event(&e, p, len) && (e.what == NULL || !hr_sid_valid(e.sid)))
		abort();
}

/* No name twice, and what was there stays as it is. */
static void
try_dotenv(char *text)
{
	size_t i;

	static const char *const env[] = {"A=own", "EMPTY=", NULL};
	const char **all = hr_dotenv_merge(env, text);

	if (all == NULL || all[0] != env[0] || all[1] != env[1])
		abort();
	for (i = 2; all[i] != NULL; i++) {
		if (strchr(all[i], '=') == NULL || strncmp(all[i], "A=", 2) == 0 ||
		    strncmp(all[i], "EMPTY=", 6) == 0)
			abort();
	}
	free(all);
}

static void
try_value(const char *text)
{
	struct hr_config *c = hr_config_new(NULL);
	char key[160];
	HR_FREE char *json = NULL;
	size_t i;

	for (i = 0; c != NULL && i < hr_keys_all_n; i++) {
		(void)snprintf(
		    key, sizeof(key), "%s.%s", hr_keys_all[i].section, hr_keys_all[i].name);
		(void)hr_config_set(c, key, text, NULL);
	}
	json = c != NULL ? hr_config_json(c, NULL) : NULL;
	if (json == NULL)
		abort();
	hr_config_free(c);
}

static void
try_config(const char *p, size_t len)
{
	struct hr_config *c = hr_config_new(NULL);
	HR_FREE char *json = NULL;
	HR_PUT struct json_object *root = NULL;

	if (c == NULL)
		abort();
	if (hr_toml_parse(p, len, &root, NULL) == 0) {
		(void)hr_config_apply(c, root, "f", NULL);
		json = hr_config_json(c, NULL);
		if (json == NULL)
			abort();
	}
	hr_config_free(c);
}

static void
try_record(const char *p, size_t len)
{
	size_t i;

	static const char *const kinds[] = {"local", "docker"};
	static const char *const env[] = {"DOCKER_HOST=unix:///nonexistent", NULL};
	struct hr_sandbox_options o = {
	    .sid = "x", .environ = env, .attach = true, .headless = true, .state_dir = dir};
	struct hr_record r;
	struct hr_sandbox *s;
	char path[64], *list;

	(void)snprintf(path, sizeof(path), "%s/x.json", dir);
	if (hr_path_write(path, p, len, 0600, NULL) != 0)
		abort();
	list = hr_sandbox_list(dir, NULL);
	if (list == NULL)
		abort();
	free(list);
	(void)hr_record_load(dir, "x", &r, NULL);
	hr_record_done(&r);
	for (i = 0; i < 2; i++) {
		struct hr_config *c = hr_config_new(NULL);

		if (c == NULL || hr_config_set(c, "core.runtime", kinds[i], NULL) != 0)
			abort();
		s = hr_sandbox_open(c, &o, NULL);
		if (s != NULL)
			(void)hr_sandbox_connect(s, NULL);
		hr_sandbox_free(s);
		hr_config_free(c);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HR_FREE char *text = NULL;

	if (size == 0 || size > 100000)
		return 0;
	text = malloc(size);
	if (text == NULL)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] % 6) {
	case 0: try_demux(text, size - 1); break;
	case 1: try_event(text, size - 1); break;
	case 2: try_dotenv(text); break;
	case 3: try_value(text); break;
	case 4: try_config(text, size - 1); break;
	default: try_record(text, size - 1); break;
	}
	return 0;
}
