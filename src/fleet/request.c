/* Parses the body of a start. */
#include "config.h"

#include "fleet/request.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>
#include <openssl/sha.h>

#include "base/buf.h"
#include "base/text/quote.h"
#include "proto/json.h"

#define QUOTA_PERIOD 100000
#define SHAPE_MAX (1u << 20)

static bool
is_session(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || n >= HR_FLEET_SESSION)
		return false;
	for (; *s != '\0'; s++)
		if (!isalnum((unsigned char)*s) && strchr("_.:-", *s) == NULL)
			return false;
	return true;
}

int
hr_fleet_request_of(const struct hr_fleet_row *row, struct json_object **ret, struct hr_err *err)
{
	return hr_json_decode(row->request, strlen(row->request), ret, NULL) == 0
		   ? 0
		   : hr_err_set(err, HR_E_SYS, "the request of sandbox %s is damaged", row->id);
}

const char *
hr_fleet_request_wrong(struct json_object *body)
{
	struct json_object *env = hr_json_at(body, "environment");
	struct json_object *command = hr_json_at(body, "command");
	enum hr_py_type t;

	if (hr_json_type(body) != HR_PY_DICT)
		return "the body must be a JSON object";
	if (hr_json_text_at(body, "session_id") == NULL ||
	    !is_session(hr_json_text_at(body, "session_id")))
		return "session_id: up to 200 letters, digits, '_', '.', ':' and '-'";
	if (hr_json_at(body, "image") != NULL && hr_json_text_at(body, "image") == NULL)
		return "image must be a string";
	if (hr_json_at(body, "fork") != NULL)
		return "fork: POST /handrail/v1/sandboxes/fork starts branches";
	t = hr_json_type(command);
	if (t != HR_PY_NONE && t != HR_PY_LIST && t != HR_PY_STR)
		return "command must be a string or a list of strings";
	t = hr_json_type(env);
	if (t != HR_PY_NONE && t != HR_PY_DICT)
		return "environment must be an object of strings";
	if (t == HR_PY_DICT) {
		json_object_object_foreach(env, name, value)
		{
			const char *p;

			if (hr_json_text(value) == NULL || *name == '\0' ||
			    isdigit((unsigned char)*name))
				return "environment must be an object of strings";
			for (p = name; *p != '\0'; p++)
				if (!isalnum((unsigned char)*p) && *p != '_')
					return "environment: a name of a variable has letters, "
					       "digits and '_' only";
		}
	}
	if (hr_fleet_request_factor(body) < 1 ||
	    hr_fleet_request_factor(body) > HR_FLEET_FACTOR_MOST)
		return "resource_factor must be between 1 and 64";
	return NULL;
}

int64_t
hr_fleet_request_factor(struct json_object *request)
{
	return hr_json_at(request, "resource_factor") != NULL
		   ? hr_json_int_at(request, "resource_factor")
		   : 1;
}

static void
command_words(struct json_object *request, struct hr_strv *words)
{
	struct json_object *command = hr_json_at(request, "command");
	size_t i;

	if (hr_json_type(command) == HR_PY_STR)
		hr_strv_add_words(words, hr_json_text(command));
	for (i = 0; i < hr_json_count(command); i++)
		if (hr_json_text(hr_json_entry(command, i)) != NULL)
			hr_strv_add(words, hr_json_text(hr_json_entry(command, i)));
}

void
hr_fleet_request_plugins(struct json_object *request, struct hr_strv *v)
{
	HR_CLEAN(hr_strv_done) struct hr_strv words = {0};
	int v1 = hr_fleet_request_is_v1(request);
	bool on = false;
	size_t i;

	command_words(request, &words);
	for (i = 0; i < words.n; i++) {
		if (strncmp(words.v[i], "--", 2) == 0)
			on = strcmp(words.v[i], "--plugins") == 0;
		else if (on)
			hr_strv_add(v, words.v[i]);
	}
	if (v1 > 0)
		hr_strv_add(v, "agent-server");
	v->failed |= words.failed || v1 < 0;
}

void
hr_fleet_request_env(struct json_object *request, struct hr_strv *env)
{
	struct json_object *map = hr_json_typed_at(request, "environment", HR_PY_DICT);

	if (map == NULL)
		return;
	json_object_object_foreach(map, name, value)
	{
		if (hr_json_text(value) != NULL)
			hr_strv_addf(env, "%s=%s", name, hr_json_text(value));
	}
}

int
hr_fleet_set_number(
    struct hr_config *c, const char *key, int64_t n, const char *unit, struct hr_err *err)
{
	char text[40];

	(void)snprintf(text, sizeof(text), "%lld%s", (long long)n, unit);
	return hr_config_set(c, key, text, err);
}

int
hr_fleet_request_set(struct json_object *request, const struct hr_fleet_options *o, int64_t factor,
    struct hr_config *c, struct hr_err *err)
{
	const char *image = hr_json_text_at(request, "image");
	int r = 0;

	image = image != NULL && *image != '\0' ? image : o->image;
	if (image != NULL)
		r = hr_config_set(c, "sandbox.runtime_container_image", image, err);
	if (r == 0 && o->memory_mb > 0)
		r = hr_fleet_set_number(
		    c, "sandbox.limits.mem_limit", o->memory_mb * factor, "m", err);
	if (r == 0 && o->cpu_percent > 0)
		r = hr_fleet_set_number(c, "sandbox.limits.cpu_period", QUOTA_PERIOD, "", err);
	if (r == 0 && o->cpu_percent > 0)
		r = hr_fleet_set_number(c, "sandbox.limits.cpu_quota",
		    QUOTA_PERIOD / 100 * o->cpu_percent * factor, "", err);
	return r;
}

int
hr_fleet_request_is_v1(struct json_object *request)
{
	HR_CLEAN(hr_strv_done) struct hr_strv words = {0};
	const char *name;
	int r = 0;
	size_t i;

	command_words(request, &words);
	for (i = 0; i < words.n; i++) {
		name = strrchr(words.v[i], '/');
		name = name != NULL ? name + 1 : words.v[i];
		if (strcmp(name, "openhands-agent-server") == 0 ||
		    strcmp(name, "openhands.agent_server") == 0)
			r = 1;
	}
	if (words.failed)
		r = -1;
	return r;
}

/* Digests each string after its length, so that different pairs of strings never digest alike. */
static void
put(struct hr_buf *b, const char *text)
{
	hr_buf_addf(b, "%zu:%s", strlen(text), text);
}

int
hr_fleet_request_shape(
    struct json_object *request, const char *image, char ret[HR_FLEET_SHAPE], struct hr_err *err)
{
	static const char *const members[] = {
	    "runtime_class", "run_as_user", "run_as_group", "fs_group", "network", "from", "fork"};
	const char *named = hr_json_text_or(request, "image", "");
	struct json_object *e2b = hr_json_typed_at(request, "e2b", HR_PY_DICT);
	unsigned char sum[SHA256_DIGEST_LENGTH];
	HR_BUF(b, SHAPE_MAX);
	HR_CLEAN(hr_strv_done) struct hr_strv plugins = {0};
	int v1 = hr_fleet_request_is_v1(request), r;
	size_t i;

	put(&b, *named == '\0' && image != NULL ? image : named);
	hr_buf_addf(&b, "%lld,", (long long)hr_fleet_request_factor(request));
	for (i = 0; i < sizeof(members) / sizeof(*members); i++) {
		if (hr_json_at(request, members[i]) != NULL)
			(void)hr_json_put(&b, hr_json_at(request, members[i]));
		hr_buf_addc(&b, ',');
	}
	hr_fleet_request_plugins(request, &plugins);
	for (i = 0; i < plugins.n; i++)
		put(&b, plugins.v[i]);
	if (v1 > 0)
		hr_buf_adds(&b, ",v1");
	for (i = 0; e2b != NULL && i < 2; i++)
		put(&b, hr_json_text_or(e2b, i == 0 ? "user" : "root", ""));
	r = plugins.failed || v1 < 0 ? hr_err_nomem(err) : hr_buf_check(&b, err);
	if (r == 0) {
		(void)SHA256((const unsigned char *)b.p, b.len, sum);
		hr_quote_hex(ret, sum, sizeof(sum));
	}
	return r;
}
