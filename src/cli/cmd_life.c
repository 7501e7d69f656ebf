/* Implements up, ps, pause, resume and down: the life of sandboxes. */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/span.h"
#include "base/process/spawn.h"
#include "cli/commands.h"
#include "cli/live.h"
#include "cli/observation.h"
#include "cli/progress.h"
#include "host/config/settings.h"
#include "base/strv.h"
#include "host/handle.h"
#include "host/kind.h"
#include "host/records/record.h"
#include "proto/json.h"

#define RUN 1 /* letters of options without a short form */
#define PAYLOAD 2
#define NETWORK 3
#define FROM 4

/* ---- up ---- */

static const struct cli_option up_options[] = {
    {'e', "env", "NAME=VALUE", "a variable for the sandbox; may be repeated"},
    {'p', "plugin", "NAME", "vscode, none, ...; repeatable [agent_skills, jupyter]"},
    {'i', "image", "IMAGE", "image [sandbox.runtime_container_image]"},
    {PAYLOAD, "payload", "DIR", "handrail's programs for an image without them [sandbox.payload]"},
    {NETWORK, "network", "MODE", "none, host or egress [sandbox.security.network_mode]"},
    {FROM, "from", "TAG", "start a box or a container with the files of a snapshot [box.from]"},
    {RUN, "run", "COMMAND", "then run COMMAND, as \"handrail run\" does"},
    {'t', "timeout", "SECONDS", "with --run: how long to wait [sandbox.timeout]"},
    {0, NULL, NULL, NULL},
};

/* Prints what was started. The line comes before the server is asked for its page, so that nobody
 * who reads it waits for that; JSON has the page in it. */
static int
show_up(struct cli *c, struct hr_sandbox *s)
{
	const char *url = hr_sandbox_url(s);
	/* the address for a browser is a process of its own, which nobody may need */
	const bool near = url != NULL && strncmp(url, "unix:", 5) == 0;
	HR_BUF(b, 1 << 16);
	HR_BUF(note, 1 << 16);
	HR_FREE char *page = c->json && !near ? cli_page(c, s) : NULL;
	int r;

	if (c->json) {
		hr_buf_addc(&b, '{');
		hr_json_put_named(&b, "sid", hr_sandbox_id(s));
		hr_json_put_named(&b, "url", url);
		hr_json_put_named(&b, "page", page);
		hr_buf_adds(&b, "}\n");
	} else {
		hr_buf_addf(&b, "%s %s\n", hr_sandbox_id(s), url != NULL ? url : "-");
	}
	r = cli_out_buf(&b);
	if (r != CLI_OK || c->json || c->quiet)
		return r;
	if (near)
		hr_buf_addf(&note, "\"handrail url%s%s\" makes an address for a browser",
		    strcmp(c->name, "default") != 0 ? " " : "",
		    strcmp(c->name, "default") != 0 ? c->name : "");
	else if ((page = cli_page(c, s)) != NULL)
		hr_buf_addf(&note, "its page in a browser: %s", page);
	if (note.len > 0)
		cli_note(c, hr_buf_str(&note));
	return CLI_OK;
}

/* The options that set a setting. */
static const struct {
	char letter;
	const char *key;
} settings[] = {{'i', "sandbox.runtime_container_image"}, {PAYLOAD, "sandbox.payload"},
    {NETWORK, "sandbox.security.network_mode"}, {FROM, "box.from"}};

/* Refuses --payload for back-ends whose image or machine must contain handrail already. */
static int
payload_fits(const struct cli *c)
{
	static const char *const without[] = {"cli", "kubernetes", "local", "remote", NULL};
	const char *kind = hr_config_text(c->config, "core.runtime");

	if (kind == NULL || !hr_is_one_of(kind, without))
		return CLI_OK;
	return cli_usage(
	    "--payload cannot be used with the back-end %s: use docker or a provider", kind);
}

static int
set_by_options(struct cli *c, const struct cli_args *a)
{
	struct hr_err err = {0};
	static const char *const from[] = {"box", "docker", NULL};
	const char *value;
	bool docker;
	size_t i;

	if (cli_value(a, PAYLOAD) != NULL && payload_fits(c) != CLI_OK)
		return CLI_USAGE;
	value = hr_config_text(c->config, "core.runtime");
	value = value != NULL ? value : HR_KIND_DEFAULT;
	if (cli_value(a, FROM) != NULL && !hr_is_one_of(value, from))
		return cli_usage("--from: the back-end %s has no snapshots: add -r box or -r "
				 "docker",
		    value);
	if (cli_value(a, FROM) != NULL && cli_tag(cli_value(a, FROM)) != CLI_OK)
		return CLI_USAGE;
	docker = strcmp(value, "docker") == 0;
	for (i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		value = cli_value(a, settings[i].letter);
		if (value != NULL && settings[i].letter == FROM && docker)
			return cli_start_from(c, value);
		if (value != NULL && hr_config_set(c->config, settings[i].key, value, &err) != 0)
			return cli_fail(&err);
	}
	return CLI_OK;
}

/* Refills the pool to the requested number, in a process that nothing waits for. */
static void
refill(struct cli *c, const struct cli_args *a)
{
	static const char *const words[] = {"handrail", "pool", "-q", "-w", NULL};
	static const char passed[] = "crsp";
	const char *number = hr_env_get(c->env, "DESIRED_NUM_WARM_SERVERS");
	struct hr_spawn sp = {.path = "/proc/self/exe", .setsid = true, .umask = -1};
	HR_CLEAN(hr_strv_done) struct hr_strv argv = {0};
	struct hr_err e = {0};
	size_t i;

	if (number == NULL || strtol(number, NULL, 10) <= 0)
		return;
	hr_strv_add_all(&argv, words);
	for (i = 0; i < a->n; i++)
		if (strchr(passed, a->given[i].letter) != NULL) {
			hr_strv_addf(&argv, "-%c", a->given[i].letter);
			hr_strv_add(&argv, a->given[i].value);
		}
	for (i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		if (cli_value(a, settings[i].letter) != NULL) {
			hr_strv_add(&argv, "-s");
			hr_strv_addf(
			    &argv, "%s=%s", settings[i].key, cli_value(a, settings[i].letter));
		}
	hr_strv_add(&argv, number);
	sp.argv = (const char *const *)argv.v;
	if (argv.failed || hr_spawn(&sp, &e) < 0)
		cli_note(c, argv.failed ? "out of memory" : e.msg);
}

/* Parses the command of --run as an action, before a sandbox is made for it; *ret is NULL if there
 * is none. */
static int
first_command(const struct cli_args *a, char **ret)
{
	const char *line = cli_value(a, RUN);
	double timeout;
	int r = cli_seconds(a, &timeout);

	*ret = NULL;
	if (r != CLI_OK)
		return r;
	if (line == NULL)
		return cli_value(a, 't') == NULL
			   ? CLI_OK
			   : cli_usage(
				 "--timeout needs --run: it limits the wait for that command");
	return cli_action_text("run", cli_run_args(line, timeout), timeout, ret);
}

/* prefixes of the settings that only affect the creation of a sandbox */
static const char *const of_making[] = {"sandbox.limits.", "sandbox.security.", "sandbox.volumes",
    "sandbox.runtime_container_image", "sandbox.payload", "sandbox.docker_runtime_kwargs",
    "sandbox.use_host_network", "sandbox.network", "sandbox.additional_networks",
    "sandbox.runtime_binding_address", "sandbox.runtime_startup_env_vars",
    "sandbox.enable_auto_lint", "sandbox.enable_gpu", "sandbox.cuda_visible_devices",
    "sandbox.remote_runtime_class", "sandbox.remote_runtime_resource_factor", "core.workspace_",
    "core.run_as_openhands", "local.", NULL};

static void
add_name(struct hr_buf *b, const char *before, const char *name, size_t len)
{
	hr_buf_addf(b, "%s%s%.*s", b->len > 0 ? ", " : "", before, (int)len, name);
}

/* Lists the given options that an existing sandbox would ignore. */
static void
for_new(const struct cli_args *a, struct hr_buf *b)
{
	const struct cli_option *o;
	const char *pair;
	size_t at = 0;
	size_t i;

	for (o = up_options; o->name != NULL; o++)
		if (o->letter != RUN && o->letter != 't' && cli_value(a, o->letter) != NULL)
			add_name(b, "--", o->name, strlen(o->name));
	while ((pair = cli_next(a, 's', &at)) != NULL)
		for (i = 0; of_making[i] != NULL; i++)
			if (strncmp(pair, of_making[i], strlen(of_making[i])) == 0)
				add_name(b, "--set ", pair, strcspn(pair, "="));
}

/* Connects. If the back-end can, SIGINT and SIGTERM first remove an unfinished sandbox, and then
 * act as usual. */
static int
connect_or_stop(struct cli *c, struct hr_sandbox *s, struct hr_err *err)
{
	struct signalfd_siginfo info;
	HR_CLOSE int fd = -1;
	sigset_t set, before;
	int r, stopped = 0;

	if ((s->ops->flags & HR_KIND_STOPS) == 0)
		return hr_sandbox_connect(s, err);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)pthread_sigmask(SIG_BLOCK, &set, &before);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	s->host.stop_fd = fd;
	r = hr_sandbox_connect(s, err);
	s->host.stop_fd = -1;
	if (r != 0 && fd >= 0 && read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		stopped = (int)info.ssi_signo;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (stopped != 0) {
		cli_progress_end(c);
		(void)cli_fail(err);
		(void)signal(stopped, SIG_DFL);
		(void)raise(stopped);
	}
	return r;
}

static int
start(
    struct cli *c, const struct cli_args *a, const struct hr_sandbox_options *o, const char *action)
{
	struct hr_err err = {0};
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = hr_sandbox_open(c->config, o, &err);
	int r;

	/* a file's setting may be for other back-ends; an option means this one */
	if (s != NULL && cli_value(a, 'i') != NULL &&
	    (s->ops->flags & (HR_KIND_HERE | HR_KIND_NO_IMAGE)) != 0)
		return cli_usage("--image: the back-end %s runs on this machine and has no images; "
				 "leave --image out",
		    s->ops->name);
	r = s != NULL ? connect_or_stop(c, s, &err) : -1;
	cli_progress_end(c);
	if (r != 0)
		return cli_fail(&err);
	r = action == NULL ? show_up(c, s) : CLI_OK;
	if (r == CLI_OK)
		refill(c, a);
	return action != NULL ? cli_live_run(c, s, action, cli_value(a, 't') != NULL) : r;
}

static int
up(struct cli *c, const struct cli_args *a)
{
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv plugins = {0};
	struct hr_sandbox_options o = cli_sandbox(c, c->name);
	HR_FREE char *action = NULL;
	HR_BUF(names, 1 << 16);
	int r;

	r = cli_choose_kind(c, c->name);
	if (r == CLI_OK)
		r = set_by_options(c, a);
	if (r == CLI_OK)
		r = cli_plugins(a, &plugins);
	if (r == CLI_OK)
		r = cli_environment(a, &env);
	if (r == CLI_OK)
		r = first_command(a, &action);
	if (r != CLI_OK)
		return r;
	o.detach = true;
	o.progress = cli_progress;
	o.progress_arg = c;
	o.env = hr_strv_list(&env);
	o.plugins = hr_strv_list(&plugins);
	for_new(a, &names);
	if (hr_buf_check(&names, NULL) != 0)
		return cli_no_memory();
	o.for_new = names.len > 0 ? hr_buf_str(&names) : NULL;
	return start(c, a, &o, action);
}

const struct cli_command cli_up = {"up", NULL, "[NAME]", "Start a sandbox, or find it running.",
    up_options, 0, 0, CLI_NAME, up, NULL};

/* ---- setup ---- */

static int
setup(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	char text[16];
	struct hr_err err = {0};
	int r, status = 0;

	(void)a;
	if (hr_sandbox_run_setup_script(s, &status, &err) != 0 ||
	    hr_sandbox_install_git_hooks(s, &err) != 0)
		return cli_fail(&err);
	(void)snprintf(text, sizeof(text), "%d", status);
	r = cli_done(c, "sid", c->name, "status", text, NULL);
	return r != CLI_OK ? r : status < 0 ? CLI_COMMAND_TIMEOUT : status;
}

const struct cli_command cli_setup = {"repo setup", NULL, "[NAME]",
    "Run the repository's .openhands/setup.sh and install its hook.", NULL, 0, 0, CLI_NAME, NULL,
    setup};

/* ---- lists ---- */

struct json_object *
cli_recorded(struct cli *c, struct hr_err *err)
{
	struct json_object *list = NULL;
	HR_FREE char *text = hr_sandbox_list(c->state_dir, err);

	if (text != NULL && hr_json_decode(text, strlen(text), &list, NULL) < 0)
		(void)hr_err_set(err, HR_E_INVAL, "the list of sandboxes is not JSON");
	return list;
}

struct json_object *
cli_provided(struct cli *c, struct hr_err *err)
{
	const struct hr_sandbox_options o = {
	    .environ = c->env, .headless = true, .state_dir = c->state_dir};
	struct json_object *list = NULL;
	HR_FREE char *text = NULL;

	if (hr_sandbox_found(c->config, &o, &text, err) == 0)
		(void)hr_json_decode(text, strlen(text), &list, NULL);
	return list;
}

/* ---- pause, resume ---- */

/* Performs one operation on an existing sandbox. */
static int
with_sandbox(
    struct cli *c, struct hr_sandbox *s, int (*what)(struct hr_sandbox *s, struct hr_err *err))
{
	struct hr_err err = {0};

	if (what(s, &err) == 0)
		return cli_done(c, "sid", c->name, "state", hr_sandbox_state(s), NULL);
	if (s->ops->pause == NULL)
		cli_say("a sandbox of the back-end %s cannot be stopped and continued; \"handrail "
			"rm %s\" ends it",
		    s->ops->name, c->name);
	return cli_fail(&err);
}

static int
pause_it(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	(void)a;
	return with_sandbox(c, s, hr_sandbox_pause);
}

const struct cli_command cli_pause = {"pause", NULL, "[NAME]...",
    "Pause a sandbox; \"resume\" continues it.", NULL, 0, -1, CLI_NAMES, NULL, pause_it};

/* Stops a sandbox even if the setting is to freeze it. */
static int
stop(struct cli *c, const struct cli_args *a)
{
	struct hr_err err = {0};

	return hr_config_set(c->config, "sandbox.docker_pause_mode", "stop", &err) == 0
		   ? cli_each(c, &cli_pause, a)
		   : cli_fail(&err);
}

const struct cli_command cli_stop = {"stop", NULL, "[NAME]...",
    "Stop a sandbox; \"start\" continues it.", NULL, 0, -1, CLI_NAMES, stop, NULL};

static int
resume(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	(void)a;
	return with_sandbox(c, s, hr_sandbox_resume);
}

const struct cli_command cli_resume = {"resume", "start", "[NAME]...",
    "Continue a stopped or paused sandbox.", NULL, 0, -1, CLI_NAMES, NULL, resume};

/* ---- down ---- */

static const struct cli_option rm_options[] = {
    {'f', "force", NULL, "accepted; rm never asks"},
    {'a', "all", NULL, "end every sandbox"},
    {0, NULL, NULL, NULL},
};

/* Returns the back-end's own name of a sandbox, owned by the caller, or NULL if there is none. */
static char *
own_name(struct hr_sandbox *s)
{
	static const char *const names[] = {"id", "runtime_id", "name"};
	HR_FREE char *text = s->ops->record != NULL ? s->ops->record(s->self, NULL) : NULL;
	HR_PUT struct json_object *o = NULL;
	const char *found = NULL;
	size_t i;

	if (text == NULL || hr_json_decode(text, strlen(text), &o, NULL) != 0)
		return NULL;
	for (i = 0; found == NULL && i < sizeof(names) / sizeof(*names); i++)
		found = hr_json_text_at(o, names[i]);
	return found != NULL && *found != '\0' ? strdup(found) : NULL;
}

/* Reports which sandbox has ended. */
static int
ended(struct cli *c, const struct hr_sandbox *s, const char *own)
{
	HR_BUF(b, 4096);

	if (own == NULL)
		return cli_done(c, "sid", s->sid, "state", "gone", NULL);
	hr_buf_addf(&b, "ended \"%s\": %s %s", s->sid, s->ops->name, own);
	cli_note(c, hr_buf_str(&b));
	return cli_done(c, "sid", s->sid, "id", own, "state", "gone", NULL);
}

/* Reports why a sandbox was not ended. A record whose sandbox is gone would stay for ever, so its
 * file is named. */
static int
not_ended(const struct cli *c, const char *sid, const struct hr_err *err)
{
	HR_CLEAN(hr_record_done) struct hr_record rec = {0};
	int r = cli_fail(err);

	if (hr_record_load(c->state_dir, sid, &rec, NULL) == 0 && rec.runtime != NULL)
		cli_say("the %s sandbox \"%s\" was not ended and stays recorded; if it is gone, "
			"remove %s/%s.json to drop its record",
		    rec.runtime, sid, c->state_dir, sid);
	return r;
}

/* Ends a sandbox; `all` ignores --runtime. */
static int
down_one(struct cli *c, const char *sid, bool all)
{
	struct hr_sandbox_options o = cli_sandbox(c, sid);
	struct hr_err err = {0};
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = NULL;
	HR_FREE char *own = NULL;

	o.attach = true;
	s = hr_sandbox_open(c->config, &o, &err);
	if (s == NULL)
		return not_ended(c, sid, &err);
	if (!all && !cli_is_of_kind(c, s, &err))
		return cli_fail(&err);
	if (hr_sandbox_connect(s, &err) < 0) {
		if (err.code == HR_E_NO_SANDBOX) {
			cli_say("%s; \"handrail ps\" lists the sandboxes", err.msg);
			return CLI_NOT_FOUND;
		}
		/* a recorded sandbox that has ended already is removed all the same */
		if (!s->recorded)
			return cli_fail(&err);
		if (s->elsewhere)
			return not_ended(c, sid, &err);
	}
	own = own_name(s);
	return hr_sandbox_delete(s, &err) == 0 ? ended(c, s, own) : not_ended(c, sid, &err);
}

static int
down_all(struct cli *c)
{
	struct hr_err err = {0};
	HR_PUT struct json_object *list = cli_recorded(c, &err);
	int r = CLI_OK, one;
	size_t i;

	if (list == NULL)
		return cli_fail(&err);
	for (i = 0; i < hr_json_count(list); i++) {
		one = down_one(c, hr_json_text_or(hr_json_entry(list, i), "sid", "-"), true);
		r = one != CLI_OK ? one : r;
	}
	return r;
}

/* Ends sandboxes that this user made at the configured back-end's provider and that have no
 * record. */
static int
down_strays(struct cli *c)
{
	const struct hr_sandbox_options o = {
	    .environ = c->env, .headless = true, .state_dir = c->state_dir};
	struct hr_err err = {0};
	HR_PUT struct json_object *list = cli_provided(c, &err);
	const char *kind = hr_config_text(c->config, "core.runtime");
	int r = CLI_OK;
	size_t i;

	if (list == NULL) {
		r = cli_fail(&err);
		cli_say(
		    "sandboxes of the back-end %s without a record were not searched for", kind);
		return r;
	}
	for (i = 0; i < hr_json_count(list); i++) {
		struct json_object *s = hr_json_entry(list, i);

		if (hr_json_true_at(s, "recorded") || !hr_json_true_at(s, "ours"))
			continue;
		if (hr_sandbox_end_found(c->config, &o, hr_json_text_or(s, "id", ""), &err) != 0)
			r = cli_fail(&err);
		else
			r = cli_done(c, "sid", hr_json_text_or(s, "sid", "-"), "id",
			    hr_json_text_or(s, "id", "-"), "state", "gone", NULL);
	}
	return r;
}

/* Ends the pool with the last sandbox. */
static int
end_pool(struct cli *c)
{
	const struct hr_sandbox_options o = cli_sandbox(c, NULL);
	struct hr_err err = {0};
	HR_FREE char *text = hr_sandbox_list(c->state_dir, &err);
	unsigned n;

	if (text == NULL ||
	    (strcmp(text, "[]") == 0 && hr_pool_drain(c->config, &o, &n, &err) != 0))
		return cli_fail(&err);
	return CLI_OK;
}

static int
down(struct cli *c, const struct cli_args *a)
{
	const bool all = cli_value(a, 'a') != NULL;
	bool ended = all;
	int r = CLI_OK, one;
	int i;

	if (all && a->argc > 0)
		return cli_usage("down: --all ends every sandbox; leave out \"%s\"", a->argv[0]);
	if (all) {
		r = down_all(c);
		one = down_strays(c);
		r = r != CLI_OK ? r : one;
	} else if (a->argc == 0) {
		r = down_one(c, c->name, false);
		ended = r == CLI_OK;
	}
	for (i = 0; i < a->argc; i++) {
		one = down_one(c, a->argv[i], false);
		ended = ended || one == CLI_OK;
		r = one != CLI_OK ? one : r;
	}
	one = ended ? end_pool(c) : CLI_OK;
	return r != CLI_OK ? r : one;
}

const struct cli_command cli_down = {"down", NULL, "[NAME]...",
    "End a sandbox and remove what belongs to it.", rm_options + 1, 0, -1, CLI_NAMES, down, NULL};

/* Works as docker's command does, also for "rm $(...)" with an empty list. */
static int
rm(struct cli *c, const struct cli_args *a)
{
	if (a->argc == 0 && cli_value(a, 'n') == NULL && cli_value(a, 'a') == NULL)
		return cli_usage("rm: name the sandbox to end, or give --all; \"handrail down\" "
				 "ends \"default\"");
	return down(c, a);
}

const struct cli_command cli_rm = {"rm", NULL, "NAME... | --all",
    "End the named sandboxes, as \"down\" does.", rm_options, 0, -1, CLI_NAMES, rm, NULL};
