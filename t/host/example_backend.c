/* A kind of sandbox of one's own, for those who write one: libhandrail-backend-example.so. Its
 * sandbox is an echo: a command's output is the length of what was asked. It uses all of the table
 * that says where a sandbox is and what becomes of it. Built against the installed headers alone.
 *
 * $EXAMPLE_URL: a server that stands for the sandbox's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <handrail-backend.h>

struct example {
	const struct hr_backend_host *host;
	char url[200]; /* "": none */
};

static const char *
variable(const struct hr_backend_host *host, const char *name)
{
	size_t n = strlen(name);
	const char *const *e;

	for (e = host->environ; e != NULL && *e != NULL; e++)
		if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
			return *e + n + 1;
	return "";
}

static int
example_open(const struct hr_backend_host *host, void **ret_self, struct hr_err *err)
{
	struct example *e = calloc(1, sizeof(*e));

	if (e == NULL) {
		err->code = HR_E_NOMEM;
		return -1;
	}
	e->host = host;
	(void)snprintf(e->url, sizeof(e->url), "%s", variable(host, "EXAMPLE_URL"));
	*ret_self = e;
	return 0;
}

static void
example_free(void *self)
{
	free(self);
}

static int
example_connect(void *self, enum hr_connected *ret, struct hr_err *err)
{
	struct example *e = self;

	(void)err;
	*ret = e->host->attach ? HR_SANDBOX_FOUND : HR_SANDBOX_MADE;
	e->host->log(e->host->arg, "the example is connected");
	return 0;
}

static void
example_endpoint(void *self, struct hr_endpoint *ret)
{
	static const char *const headers[] = {"X-Preview: p", NULL};
	struct example *e = self;

	if (*e->url != '\0')
		ret->url = e->url;
	ret->key = "k";
	ret->headers = headers;
	ret->workspace = "/there";
}

/* What is paused goes on at the second try. */
static void
example_failed(void *self, unsigned attempt, bool *ret_again, struct hr_err *err)
{
	(void)self;
	*ret_again = attempt == 1 && err->code == HR_E_HTTP_STATUS && err->status == 503;
}

/* A text of the caller's. */
static int
give(char **ret, const char *text, struct hr_err *err)
{
	*ret = strdup(text);
	if (*ret == NULL)
		err->code = HR_E_NOMEM;
	return *ret != NULL ? 0 : -1;
}

static char *
example_record(void *self, struct hr_err *err)
{
	char *text = NULL;

	(void)self;
	(void)give(&text, "{}", err);
	return text;
}

static int
example_restore(void *self, const char *record, struct hr_err *err)
{
	(void)self;
	(void)record;
	(void)err;
	return 0;
}

/* {"observation": "run", "content": what was asked, ...} */
static int
example_action(void *self, const char *action, char **ret, struct hr_err *err)
{
	static const char form[] = "{\"observation\":\"run\",\"content\":\"%zu bytes\","
				   "\"extras\":{\"metadata\":{\"exit_code\":%lld}}}";
	char text[sizeof(form) + 64];
	struct example *e = self;

	/* a program of this machine, by its path: the kind is one that is here */
	if (strstr(action, "/handrail-git' changes") != NULL ||
	    strstr(action, "/handrail-git changes") != NULL)
		return give(ret,
		    "{\"observation\":\"run\",\"content\":\"[{\\\"status\\\":\\\"M\\\","
		    "\\\"path\\\":\\\"a\\\"}]\",\"extras\":{\"metadata\":{\"exit_code\":0}}}",
		    err);
	(void)snprintf(text, sizeof(text), form, strlen(action),
	    e->host->config_int(e->host->config, "example.status"));
	return give(ret, text, err);
}

static int
example_add_env(void *self, const char *const *env, struct hr_err *err)
{
	(void)self;
	(void)env;
	(void)err;
	return 0;
}

static int
example_logs(void *self, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err)
{
	(void)self;
	(void)follow;
	(void)err;
	(void)fn(arg, "a line", 6);
	return 0;
}

static int
example_vscode_url(void *self, char **ret, struct hr_err *err)
{
	(void)self;
	return give(ret, "https://vscode.example.test/ws", err);
}

static int
example_web_hosts(void *self, char **ret_json, struct hr_err *err)
{
	(void)self;
	return give(ret_json, "{\"https://app.example.test\": 3000}", err);
}

static int
example_events(void *self, hr_event_fn *fn, void *arg, struct hr_err *err)
{
	static bool again;

	(void)self;
	(void)err;
	(void)fn(arg, "default", "blinked", again ? "again" : "twice");
	if (again)
		return 0;
	again = true;
	return -1; /* as when the line was cut */
}

static int
example_doctor(void *self, hr_finding_fn *fn, void *arg, struct hr_err *err)
{
	(void)self;
	(void)err;
	fn(arg, true, "echo", "it is heard");
	return 0;
}

static int
example_build(void *self, const struct hr_build_options *o, char **ret_name, struct hr_err *err)
{
	(void)self;
	(void)o;
	return give(ret_name, "example/image:1", err);
}

static const struct hr_backend_option options[] = {
    {"status", HR_OPTION_INT, "7", false, "what commands end with"},
    {"token", HR_OPTION_TEXT, NULL, true, "who asks"},
    {NULL, HR_OPTION_TEXT, NULL, false, NULL},
};

static const struct hr_sandbox_ops example = {
    .abi = HR_BACKEND_ABI,
    .name = "example",
    .flags = HR_KIND_HERE | HR_KIND_AS_IT_IS,
    .ready_status = "STATUS$RUNTIME_STARTED",
    .log_prefix = "[inside the example] ",
    .options = options,
    .open = example_open,
    .free = example_free,
    .connect = example_connect,
    .endpoint = example_endpoint,
    .failed = example_failed,
    .record = example_record,
    .restore = example_restore,
    .action = example_action,
    .add_env = example_add_env,
    .logs = example_logs,
    .vscode_url = example_vscode_url,
    .web_hosts = example_web_hosts,
    .events = example_events,
    .doctor = example_doctor,
    .build = example_build,
};

const struct hr_sandbox_ops *
hr_backend_entry(unsigned abi)
{
	return abi == HR_BACKEND_ABI ? &example : NULL;
}
