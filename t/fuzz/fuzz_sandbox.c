/* A sandbox's server and git's providers that answer anything: no crash, and what is given out as
 * JSON is JSON. The first byte chooses what is asked, the rest are the answers (fake_http.h). */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "fake_http.h"
#include "host/handrail.h"
#include "proto/json.h"
#include "fuzz.h"

static const char *const env[] = {"DOCKER_HOST=unix:///nonexistent", "GITHUB_TOKEN=ghp_secret",
    "GITLAB_TOKEN=glpat_secret", "WEB_HOST=web.example", NULL};

static void
need_json(char *text)
{
	HR_PUT struct json_object *o = NULL;
	struct hr_json_error why;

	if (text == NULL || hr_json_decode(text, strlen(text), &o, &why) != 0)
		abort();
	free(text);
}

static const char *const actions[] = {
    "{\"action\":\"run\",\"args\":{\"command\":\"echo $GITHUB_TOKEN\",\"hidden\":true},\"id\":1}",
    "{\"action\":\"read\",\"args\":{\"path\":\"a\"}}",
};

static int
ask(struct hr_sandbox *s, unsigned what, struct hr_err *err)
{
	static const char *const variables[] = {"A=1", NULL};
	char *text = NULL;
	int r, status;

	switch (what) {
	case 0:
	case 1:
		r = hr_sandbox_action(s, actions[what], &text, err);
		if (r == 0)
			need_json(text);
		return r;
	case 2: r = hr_sandbox_list_files(s, "a", &text, err); break; /* as it came */
	case 3: r = hr_sandbox_stats(s, &text, err); break;
	case 4: r = hr_sandbox_vscode_url(s, &text, err); break;
	case 5:
	case 6:
		r = what == 5 ? hr_sandbox_git_changes(s, NULL, &text, err)
			      : hr_sandbox_git_diff(s, "a", &text, err);
		if (r == 0)
			need_json(text);
		return r;
	case 7: r = hr_sandbox_git_branch(s, NULL, &text, err); break;
	case 8: r = hr_sandbox_clone(s, "a/b", NULL, true, &text, err); break;
	case 9:
		r = hr_sandbox_microagents(s, "a/b", &text, err);
		if (r == 0)
			need_json(text);
		return r;
	case 10: r = hr_sandbox_run_setup_script(s, &status, err); break;
	case 11: r = hr_sandbox_install_git_hooks(s, err); break;
	case 12: r = hr_sandbox_add_env(s, variables, err); break;
	default: r = hr_sandbox_add_mcp(s, "[{\"name\":\"n\",\"command\":\"c\"}]", err); break;
	}
	free(text);
	return r;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hr_sandbox_options o = {
	    .sid = "x", .environ = env, .attach = true, .headless = true, .any_owner = true};
	struct hr_err err = {0};
	struct hr_config *c;
	struct hr_sandbox *s;

	if (size == 0 || size > 100000)
		return 0;
	c = hr_config_new(NULL);
	if (c == NULL || hr_config_set(c, "core.runtime", "docker", NULL) != 0)
		abort();
	fake_http_answers((const char *)data + 1, size - 1, true);
	s = hr_sandbox_open(c, &o, &err);
	if (s == NULL || hr_sandbox_connect(s, &err) != 0)
		abort();
	if (ask(s, data[0] % 14, &err) != 0 && (err.code == HR_OK || *hr_err_class(&err) == '\0'))
		abort();
	/* no secret is told */
	if (strstr(err.msg, "ghp_secret") != NULL || strstr(err.msg, "glpat_secret") != NULL)
		abort();
	hr_sandbox_free(s);
	hr_config_free(c);
	return 0;
}
