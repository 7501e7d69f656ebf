/* Implements the tools that fork the sandbox of "handrail mcp". */
#include "config.h"

#include "cli/mcp_branches.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "base/strv.h"
#include "cli/commands.h"
#include "host/handle.h"
#include "host/life/pool.h"
#include "proto/json.h"

#define SANDBOX                                                                                    \
	"{\"type\":\"string\",\"description\":\"A branch that fork has started; without it the "   \
	"call is for the first sandbox. A handle belongs to the sandbox that returned it.\"}"
#define LIMIT "16" /* CLI_BRANCHES_MAX */

static const char sandbox_schema[] = SANDBOX;
static const char *const tools[] = {
    "{\"name\":\"fork\",\"title\":\"Fork the sandbox\",\"description\":\"Starts branches: "
    "sandboxes with the files, settings and shells of this one, to try several ways from one "
    "state. The sandbox itself goes on. All tools take the name of a branch as sandbox. The answer "
    "lists what a branch does not have. At most " LIMIT " branches exist at the same "
    "time.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\","
    "\"description\":\"Name of the branch: letters, digits, _ . and -.\"},\"count\":{\"type\":"
    "\"integer\",\"description\":\"Number of branches, which are then called name-1, name-2 and so "
    "on.\"},\"freeze\":{\"type\":\"boolean\",\"description\":\"Copies although a command runs or a "
    "file is open for writing: the files as they are, without the state of that command's "
    "shell.\"},\"sandbox\":" SANDBOX
    "},\"required\":[\"name\"],\"additionalProperties\":false},\"annotations\":{\"readOnlyHint\":"
    "false,\"destructiveHint\":false,\"idempotentHint\":false,\"openWorldHint\":false}}",
    "{\"name\":\"end_branch\",\"title\":\"End a branch\",\"description\":\"Ends a branch that fork "
    "has started, and removes its files.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"
    "\"sandbox\":{\"type\":\"string\",\"description\":\"Name of the branch.\"}},\"required\":["
    "\"sandbox\"],\"additionalProperties\":false},\"annotations\":{\"readOnlyHint\":false,"
    "\"destructiveHint\":true,\"idempotentHint\":false,\"openWorldHint\":false}}",
};

void
cli_branches_init(
    struct cli_branches *b, struct cli *c, const struct cli_args *args, struct hr_sandbox *parent)
{
	*b = (struct cli_branches){.c = c,
	    .args = args,
	    .parent = parent,
	    .forking = PTHREAD_MUTEX_INITIALIZER,
	    .lock = PTHREAD_MUTEX_INITIALIZER};
}

int
cli_branches_done(struct cli_branches *b, bool ends)
{
	struct hr_err err = {0};
	int r = CLI_OK;
	size_t i;

	for (i = 0; i < b->n; i++) {
		if (ends && !b->v[i].ended && hr_sandbox_delete(b->v[i].s, &err) != 0)
			r = cli_fail(&err);
		hr_sandbox_free(b->v[i].s);
	}
	free(b->v);
	return r;
}

bool
cli_branches_can(const struct cli_branches *b)
{
	return strcmp(b->parent->ops->name, "box") == 0 && b->parent->state_dir != NULL;
}

/* ---- the list of tools ---- */

static struct json_object *
parsed(const char *text)
{
	struct json_object *o = NULL;

	return hr_json_decode(text, strlen(text), &o, NULL) == 0 ? o : NULL;
}

int
cli_branches_list(struct json_object *result)
{
	struct json_object *list = hr_json_typed_at(result, "tools", HR_PY_LIST), *of;
	size_t i, n = hr_json_count(list);

	for (i = 0; i < n; i++) {
		of = hr_json_at(hr_json_at(hr_json_entry(list, i), "inputSchema"), "properties");
		if (hr_json_type(of) == HR_PY_DICT &&
		    hr_json_set(of, "sandbox", parsed(sandbox_schema), NULL) < 0)
			return -1;
	}
	for (i = 0; list != NULL && i < sizeof(tools) / sizeof(*tools); i++)
		if (hr_json_append(list, parsed(tools[i]), NULL) < 0)
			return -1;
	return 0;
}

/* ---- results ---- */

/* Composes a result: a text, and the object (NULL: none). */
static void
put(struct hr_buf *b, const struct hr_buf *text, const char *object, bool failed)
{
	hr_buf_adds(b, "\"content\":[{\"type\":\"text\",\"text\":");
	(void)hr_json_put_str(b, hr_buf_str(text), text->len, HR_JSON_REPLACE);
	hr_buf_adds(b, "}]");
	if (object != NULL)
		hr_buf_addf(b, ",\"structuredContent\":%s", object);
	hr_buf_addf(b, ",\"isError\":%s", failed ? "true" : "false");
}

static void
fail(struct hr_buf *b, const char *why)
{
	HR_BUF(text, 1 << 16);

	hr_buf_adds(&text, why);
	put(b, &text, NULL, true);
}

/* ---- branches ---- */

static struct cli_branch *
named(const struct cli_branches *b, const char *name)
{
	size_t i;

	for (i = 0; i < b->n; i++)
		if (!b->v[i].ended && strcmp(b->v[i].s->sid, name) == 0)
			return &b->v[i];
	return NULL;
}

static size_t
present(struct cli_branches *b)
{
	size_t i, n = 0;

	(void)pthread_mutex_lock(&b->lock);
	for (i = 0; i < b->n; i++)
		n += !b->v[i].ended;
	(void)pthread_mutex_unlock(&b->lock);
	return n;
}

/* Finds the sandbox that an argument names; NULL: the first one. Returns NULL after it has composed
 * the result. */
static struct hr_sandbox *
find(struct cli_branches *b, struct json_object *value, struct hr_buf *ret_result)
{
	const char *name = hr_json_text(value), *comma = ": ";
	const struct cli_branch *at = NULL;
	struct hr_sandbox *s = NULL;
	HR_BUF(text, 1 << 16);
	size_t i;

	if (value == NULL || (name != NULL && strcmp(name, b->parent->sid) == 0))
		return b->parent;
	(void)pthread_mutex_lock(&b->lock);
	if (name != NULL && (at = named(b, name)) != NULL)
		s = at->s;
	if (s == NULL)
		hr_buf_adds(&text, "sandbox must be the name of a branch that fork has started");
	for (i = 0; s == NULL && i < b->n; i++)
		if (!b->v[i].ended) {
			hr_buf_addf(&text, "%s%s", comma, b->v[i].s->sid);
			comma = ", ";
		}
	(void)pthread_mutex_unlock(&b->lock);
	if (s == NULL) {
		hr_buf_adds(&text, *comma == ':' ? "; there is none now." : ".");
		put(ret_result, &text, NULL, true);
	}
	return s;
}

const struct hr_client *
cli_branches_choose(struct cli_branches *b, struct json_object *params, struct hr_buf *ret_result)
{
	struct json_object *args = hr_json_typed_at(params, "arguments", HR_PY_DICT);
	const struct hr_sandbox *s = find(b, hr_json_at(args, "sandbox"), ret_result);

	if (args != NULL)
		json_object_object_del(args, "sandbox");
	return s != NULL ? &s->client : NULL;
}

/* Adds a handle of a new branch, through which requests reach it. */
static int
attach(struct cli_branches *b, const char *name, struct hr_err *err)
{
	struct hr_sandbox_options o = cli_sandbox(b->c, name);
	struct cli_branch *v;
	struct hr_sandbox *s;

	o.attach = true;
	s = hr_sandbox_open(b->c->config, &o, err);
	if (s == NULL || hr_sandbox_connect(s, err) != 0) {
		hr_sandbox_free(s);
		return -1;
	}
	(void)pthread_mutex_lock(&b->lock);
	v = reallocarray(b->v, b->n + 1, sizeof(*v));
	if (v != NULL) {
		b->v = v;
		b->v[b->n++] = (struct cli_branch){.s = s};
	}
	(void)pthread_mutex_unlock(&b->lock);
	if (v == NULL)
		hr_sandbox_free(s);
	return v != NULL ? 0 : hr_err_nomem(err);
}

/* Ends all branches of a fork of which one cannot be reached. Composes the result. */
static void
end_all(struct cli_branches *b, struct json_object *names, const struct hr_err *why,
    struct hr_buf *ret_result)
{
	HR_BUF(text, 1 << 16);
	struct cli_branch *at;
	struct hr_err err = {0};
	const char *name;
	size_t i;

	hr_buf_addf(&text, "A branch cannot be reached, and all were ended: %s", why->msg);
	for (i = 0; i < hr_json_count(names); i++) {
		name = json_object_get_string(hr_json_entry(names, i));
		if (hr_pool_end(b->parent, b->parent->state_dir, name, &err) != 0) {
			hr_buf_addf(&text, "\nThe branch %s stays: %s", name, err.msg);
			continue;
		}
		(void)pthread_mutex_lock(&b->lock);
		at = named(b, name);
		if (at != NULL)
			at->ended = true;
		(void)pthread_mutex_unlock(&b->lock);
	}
	put(ret_result, &text, NULL, true);
}

static void
describe(struct hr_buf *b, struct json_object *o)
{
	struct json_object *list = hr_json_at(o, "branches");
	size_t i;

	hr_buf_adds(b, hr_json_count(list) > 1 ? "Started the branches" : "Started the branch");
	for (i = 0; i < hr_json_count(list); i++)
		hr_buf_addf(b, "%s %s", i > 0 ? "," : "", hr_json_text(hr_json_entry(list, i)));
	hr_buf_addf(b,
	    ". Pass a name as sandbox to the other tools; a person attaches with \"handrail sh -n "
	    "%s\". end_branch ends a branch.",
	    hr_json_text(hr_json_entry(list, 0)));
	if (!hr_json_true_at(o, "still"))
		hr_buf_adds(b, " The sandbox ran during the copy: files that were written then may "
			       "be half old and half new.");
	list = hr_json_at(o, "not_copied");
	hr_buf_adds(b, "\nNot copied:\n");
	for (i = 0; i < hr_json_count(list); i++) {
		hr_buf_adds(b, "- ");
		cli_put_not_copied(b, hr_json_entry(list, i));
		hr_buf_addc(b, '\n');
	}
}

/* Returns the error text for arguments that fork does not take, or NULL. */
static const char *
wrong(struct cli_branches *b, struct json_object *args)
{
	struct json_object *count = hr_json_at(args, "count"), *freeze = hr_json_at(args, "freeze");
	int64_t n = count != NULL ? hr_json_int(count) : 1;

	if (hr_json_text_at(args, "name") == NULL)
		return "name is missing: fork takes name (a string), count (an integer), freeze "
		       "(true or false) and sandbox (a string).";
	if ((count != NULL && hr_json_type(count) != HR_PY_INT) || n < 1 || n > CLI_BRANCHES_MAX)
		return "count must be an integer from 1 to " LIMIT ".";
	if (freeze != NULL && hr_json_type(freeze) != HR_PY_BOOL)
		return "freeze must be true or false.";
	if (present(b) + (size_t)n > CLI_BRANCHES_MAX)
		return "There can be " LIMIT " branches at the same time: end some with "
		       "end_branch.";
	return NULL;
}

/* Runs "handrail fork": in this process, which has threads, one branch would start after the other.
 * Returns 0 with the answer in *out, or -1 with *err set. */
static int
run_fork(const struct cli_branches *b, const char *sid, struct json_object *args,
    struct hr_buf *out, struct hr_err *err)
{
	HR_CLEAN(hr_strv_done) struct hr_strv v = {0};
	struct hr_spawn_fd fds[2];
	struct hr_spawn sp = {
	    .path = "/proc/self/exe", .umask = -1, .fds = fds, .nfds = 2, .pdeathsig = SIGKILL};
	int to[2] = {-1, -1}, said[2] = {-1, -1}, status = -1;
	HR_BUF(why, 1 << 16);
	const char *text;
	pid_t pid = -1;
	size_t i;

	hr_strv_add(&v, "handrail");
	hr_strv_add(&v, "fork");
	hr_strv_add(&v, "--json");
	hr_strv_add(&v, "--quiet");
	hr_strv_add(&v, "--runtime=box");
	hr_strv_addf(&v, "--name=%s", sid);
	for (i = 0; i < b->args->n; i++)
		if (b->args->given[i].letter == 'c')
			hr_strv_addf(&v, "--config-file=%s", b->args->given[i].value);
		else if (b->args->given[i].letter == 's')
			hr_strv_addf(&v, "--set=%s", b->args->given[i].value);
	if (b->c->any_owner)
		hr_strv_add(&v, "--any-owner");
	if (hr_json_at(args, "count") != NULL)
		hr_strv_addf(&v, "--count=%d", (int)hr_json_int_at(args, "count"));
	if (hr_json_true_at(args, "freeze"))
		hr_strv_add(&v, "--freeze");
	hr_strv_add(&v, "--");
	hr_strv_add(&v, hr_json_text_at(args, "name"));
	if (v.failed)
		return hr_err_nomem(err);
	sp.argv = hr_strv_list(&v);
	if (pipe2(to, O_CLOEXEC) == 0 && pipe2(said, O_CLOEXEC) == 0) {
		fds[0] = (struct hr_spawn_fd){to[1], 1};
		fds[1] = (struct hr_spawn_fd){said[1], 2};
		pid = hr_spawn(&sp, err);
	} else {
		(void)hr_err_sys(err, errno, "a pipe");
	}
	hr_fd_close(&to[1]);
	hr_fd_close(&said[1]);
	if (pid > 0) {
		(void)hr_path_read_fd(to[0], "the answer of handrail fork", out, NULL);
		(void)hr_path_read_fd(said[0], "the errors of handrail fork", &why, NULL);
	}
	hr_fd_close(&to[0]);
	hr_fd_close(&said[0]);
	if (pid < 0)
		return -1;
	if (hr_spawn_end(pid, &status) < 0)
		return hr_err_sys(err, errno, "wait for handrail fork");
	if (out->len > 0) /* a line feed would end the client's message */
		out->p[--out->len] = '\0';
	/* shown if a killed one has printed nothing */
	hr_buf_addf(&why, "handrail fork: %s", hr_exit_words(status));
	text = hr_buf_str(&why);
	if (strncmp(text, "handrail: ", 10) == 0)
		text += 10;
	return status == 0 ? 0
			   : hr_err_set(err, HR_E_RUNTIME, "%.*s", (int)strcspn(text, "\n"), text);
}

static void
do_fork(struct cli_branches *b, struct json_object *args, struct hr_buf *ret_result)
{
	struct hr_sandbox *s = find(b, hr_json_at(args, "sandbox"), ret_result);
	const char *why = s != NULL ? wrong(b, args) : NULL;
	HR_PUT struct json_object *o = NULL;
	HR_BUF(json, 1 << 20);
	struct json_object *names;
	struct hr_err err = {0};
	HR_BUF(text, 1 << 20);
	int r = 0;
	size_t i;

	if (s == NULL)
		return;
	if (why != NULL) {
		fail(ret_result, why);
		return;
	}
	if (run_fork(b, s->sid, args, &json, &err) < 0) {
		fail(ret_result, err.msg);
		return;
	}
	if (hr_json_decode(hr_buf_str(&json), json.len, &o, NULL) < 0)
		r = hr_err_nomem(&err);
	names = hr_json_at(o, "branches");
	for (i = 0; i < hr_json_count(names) && r == 0; i++)
		r = attach(b, json_object_get_string(hr_json_entry(names, i)), &err);
	if (r < 0) {
		end_all(b, names, &err, ret_result);
		return;
	}
	describe(&text, o);
	put(ret_result, &text, hr_buf_str(&json), false);
}

static void
do_end(struct cli_branches *b, struct json_object *args, struct hr_buf *ret_result)
{
	struct json_object *value = hr_json_at(args, "sandbox");
	struct hr_sandbox *s;
	struct hr_err err = {0};
	HR_BUF(text, 1 << 16);

	if (hr_json_text(value) == NULL) {
		fail(ret_result, "sandbox is missing: end_branch takes the name of a branch.");
		return;
	}
	s = find(b, value, ret_result);
	if (s == NULL)
		return;
	if (s == b->parent) {
		fail(ret_result, "This is the first sandbox, not a branch: only branches can be "
				 "ended here.");
	} else if (hr_sandbox_delete(s, &err) != 0) {
		fail(ret_result, err.msg);
	} else {
		(void)pthread_mutex_lock(&b->lock);
		named(b, s->sid)->ended = true;
		(void)pthread_mutex_unlock(&b->lock);
		hr_buf_addf(&text, "The branch %s has ended.", s->sid);
		put(ret_result, &text, NULL, false);
	}
}

bool
cli_branches_call(struct cli_branches *b, struct json_object *params, struct hr_buf *ret_result)
{
	const char *name = hr_json_text_or(params, "name", "");
	void (*tool)(struct cli_branches * of, struct json_object * args, struct hr_buf * result) =
	    strcmp(name, "fork") == 0         ? do_fork
	    : strcmp(name, "end_branch") == 0 ? do_end
					      : NULL;

	if (tool == NULL)
		return false;
	(void)pthread_mutex_lock(&b->forking);
	tool(b, hr_json_at(params, "arguments"), ret_result);
	(void)pthread_mutex_unlock(&b->forking);
	return true;
}
