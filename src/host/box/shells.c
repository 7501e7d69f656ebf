/* Copies the state of shells: variables, functions, options, aliases, directory, umask, traps and
 * arguments. */
#include "config.h"

#include "host/box/shells.h"

#include <stdio.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/random.h"
#include "host/life/action.h"
#include "host/records/record.h"
#include "proto/json.h"
#include "session/prompt/hook.h"

#define SESSIONS_MAX 64
#define PLACE "/var/tmp/.handrail-fork."
#define DEFAULT "default"
#define TIMEOUT_S 60 /* limit for all shells of one box */
#define SCRIPT_MAX (64u << 10)

/* The following commands have the directory of the state as %1$s, and the start of the names of the
 * session's files there as %2$s. The umask of the shell may make files that nobody can read. */
#define OR_READABLE " || \\builtin command -p chmod -R u+rw %1$s; "

/* Walks the names that the builtin before it prints; none if they cannot be listed. It starts no
 * process, since `$!` would keep its number, and splits no fields, since IFS changes that. */
#define FOR_NAMES                                                                                  \
	" >|%2$s.names && { \\builtin test -r %2$s.names" OR_READABLE                              \
	"\\builtin mapfile -t __hr_n <%2$s.names; } || __hr_n=(); "                                \
	"for __hr_v in \"${__hr_n[@]}\"; do "
/* Leaves out bash's own, the hook's, and those that differ from one box to the next; needs
 * `shopt -u nocasematch`. */
#define FOR_VARIABLES                                                                              \
	"\\builtin compgen -v" FOR_NAMES "case $__hr_v in "                                        \
	"BASH|BASHOPTS|BASHPID|BASH_[!E]*|COLUMNS|COMP_WORDBREAKS|COPROC|DIRSTACK|EPOCHREALTIME|"  \
	"EPOCHSECONDS|EUID|FUNCNAME|GROUPS|HISTCMD|HOSTNAME|LINENO|LINES|OLDPWD|PIPESTATUS|PPID|"  \
	"PROMPT_COMMAND|PS[0-2]|PWD|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|TERM|UID|_|__hr_*|"     \
	"APP_PORT_[12]|OPENHANDS_SESSION_ID|SESSION_API_KEY|VSCODE_PORT) ;; *) "

/* `.variables`, `.options` and `.words` are read in this order. Variables come before a function
 * that has the name of a builtin, functions after `shopt -s extglob`, with which they may have been
 * read, and before aliases, which would change them. The last line is the proof that all was
 * listed, written and read. `>|` also replaces a file under `set -C`. A subshell would have no `set
 * -e`. */
#define SAVE                                                                                       \
	"{ \\builtin printf -v __hr_s %%s \"$?\"; "                                                \
	"\\builtin " HR_HOOK_LINE_BUILTIN                                                          \
	" -d %1$s || \\builtin command -p mkdir -p -m 700 %1$s; "                                  \
	"\\builtin shopt -q nocasematch && __hr_c=1; \\builtin shopt -u nocasematch; "             \
	"{ " FOR_VARIABLES "\\builtin declare -p \"$__hr_v\";; esac; done; } "                     \
	">|%2$s.variables; "                                                                       \
	"\\builtin test -z \"${__hr_c-}\" || \\builtin shopt -s nocasematch; "                     \
	"\\builtin unset -v __hr_c; "                                                              \
	"{ \\builtin printf '\\\\builtin cd -- %%q\\n\\\\builtin unset -v OLDPWD\\n' "             \
	"\"${PWD-/}\"; "                                                                           \
	"\\builtin declare -p OLDPWD; \\builtin umask -p; "                                        \
	"\\builtin test \"$#\" = 0 || { \\builtin printf '\\\\builtin set --'; "                   \
	"\\builtin printf ' %%q' \"$@\"; \\builtin printf '\\n'; }; "                              \
	"\\builtin trap -p; \\builtin shopt -p; \\builtin set +o; } >|%2$s.options; "              \
	"{ \\builtin declare -f; \\builtin alias -p; "                                             \
	"\\builtin printf '\\\\builtin printf -v __hr_k %%q\\n' \"${__hr_n:+yes}\"; } "            \
	">|%2$s.words; "                                                                           \
	"\\builtin unset -v __hr_v __hr_n; \\builtin export -n __hr_s; "                           \
	"} >/dev/null 2>&1 || \\builtin :; "                                                       \
	"\\builtin test \"${__hr_s-0}\" = 0 || (\\builtin exit \"$__hr_s\")"

/* A new shell has the variables, functions and aliases of ~/.bashrc, which the other one may have
 * removed. After the line `set -o history` bash would keep the lines that it reads from the files
 * in its history, unless HISTIGNORE says otherwise. */
#define RESTORE                                                                                    \
	"{ \\builtin test -r %2$s.words && \\builtin test -w %2$s.names" OR_READABLE               \
	"\\builtin unalias -a; \\builtin shopt -u nocasematch; "                                   \
	"\\builtin compgen -A function" FOR_NAMES                                                  \
	"\\builtin unset -f \"$__hr_v\"; done; " FOR_VARIABLES                                     \
	"\\builtin unset -v \"$__hr_v\";; esac; done; "                                            \
	"\\builtin . %2$s.variables; "                                                             \
	"__hr_i=${HISTIGNORE+x${HISTIGNORE}}; \\builtin printf -v HISTIGNORE '*'; "                \
	"\\builtin . %2$s.options; \\builtin . %2$s.words; "                                       \
	"case $__hr_i in x*) \\builtin printf -v HISTIGNORE %%s \"${__hr_i#x}\";; "                \
	"*) \\builtin unset -v HISTIGNORE;; esac; "                                                \
	"} >/dev/null 2>&1 || \\builtin :; "                                                       \
	"\\builtin test \"${__hr_k-},${__hr_n:+yes}\" = yes,yes && "                               \
	"\\builtin unset -v __hr_k __hr_v __hr_i __hr_n"
/* The last session also removes the directory. A shell without the builtin starts a process, which
 * takes longer than the builtin; a new shell would take longer than all of the rest. */
#define REMOVE                                                                                     \
	" && { \\builtin " HR_HOOK_LINE_BUILTIN                                                    \
	" -r %2$s.names %2$s.variables %2$s.options %2$s.words "                                   \
	"%3$s 2>/dev/null || %4$s\\builtin :; }"
#define REMOVE_BY_PROCESS "\\builtin command -p rm -rf %s || "

void
hr_shells_done(struct hr_shells *t)
{
	hr_strv_done(&t->names);
	hr_strv_done(&t->busy);
	json_object_put(t->last);
}

/* Returns the seconds that are left until the time `until`, at least 1. */
static int
left_s(int64_t until)
{
	int64_t s = (until - hr_now_ms() + 999) / 1000;

	return s > 1 ? (int)s : 1;
}

static int64_t
limit(void)
{
	return hr_now_ms() + TIMEOUT_S * INT64_C(1000);
}

/* Sends a request with a JSON body, which is taken (NULL: a GET). */
static int
ask(struct hr_sandbox *s, const char *path, struct json_object *take, int64_t until,
    struct json_object **ret, struct hr_err *err)
{
	static const char *const headers[] = {"Content-Type: application/json", NULL};
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	HR_PUT struct json_object *body = take;
	HR_BUF(text, SCRIPT_MAX);
	struct hr_http_request r = {.method = body != NULL ? "POST" : "GET",
	    .url = path,
	    .headers = body != NULL ? headers : NULL,
	    .timeout_s = (unsigned)left_s(until) + 5,
	    .watch_fd = -1};
	struct hr_json_error why = {0};

	if (body != NULL && (hr_json_put(&text, body) < 0 || hr_buf_check(&text, NULL) < 0))
		return hr_err_nomem(err);
	r.body = body != NULL ? text.p : NULL;
	r.body_len = text.len;
	if (hr_client_send(&s->client, &r, &a, err) < 0)
		return -1;
	if (hr_json_decode_foreign(hr_buf_str(&a.body), a.body.len, ret, &why) < 0)
		return hr_json_err(
		    err, HR_E_INVAL, &why, "the server's answer to %s is not JSON", path);
	return 0;
}

/* Runs a hidden command in the shell of a session. Returns its status, or -1 with *err set. */
static int
run_in(struct hr_sandbox *s, const char *session, const char *command, int64_t until,
    struct hr_err *err)
{
	HR_PUT struct json_object *answer = NULL;
	struct json_object *o = hr_json_object(err, "action",
	    hr_json_object(NULL, "action", json_object_new_string("run"), "args",
		hr_json_object(NULL, "command", json_object_new_string(command), "hidden",
		    json_object_new_boolean(true), "blocking", json_object_new_boolean(true), NULL),
		"timeout", json_object_new_int(left_s(until)), NULL),
	    NULL);
	struct json_object *code;
	char path[128];

	(void)snprintf(path, sizeof(path), "/handrail/v1/run?session=%.60s", session);
	if (o == NULL || ask(s, path, o, until, &answer, err) < 0)
		return -1;
	code = hr_json_at(hr_json_at(hr_json_at(answer, "extras"), "metadata"), "exit_code");
	if (json_object_is_type(code, json_type_int) && json_object_get_int(code) >= 0)
		return json_object_get_int(code);
	return hr_err_set(err, HR_E_RUNTIME,
	    "the shell of the session \"%s\" in sandbox \"%s\" does not come to its prompt",
	    session, s->sid);
}

int
hr_shells_find(struct hr_sandbox *s, struct hr_shells *t, struct hr_err *err)
{
	HR_PUT struct json_object *answer = NULL;
	struct json_object *list;
	const char *name;
	size_t i;

	if (ask(s, "/handrail/v1/sessions", NULL, limit(), &answer, err) < 0)
		return -1;
	list = hr_json_at(answer, "sessions");
	if (!json_object_is_type(list, json_type_array) || hr_json_count(list) > SESSIONS_MAX)
		return hr_err_set(
		    err, HR_E_INVAL, "the box has sent no valid list of its sessions");
	for (i = 0; i < hr_json_count(list); i++) {
		struct json_object *o = hr_json_entry(list, i);

		name = hr_json_text_at(o, "name");
		/* the box has sent the name, which becomes part of commands */
		if (name == NULL || !hr_sid_valid(name) || strlen(name) > 60)
			continue;
		hr_strv_add(hr_json_true_at(o, "ready") && !hr_json_true_at(o, "running")
				? &t->names
				: &t->busy,
		    name);
	}
	return t->names.failed || t->busy.failed ? hr_err_nomem(err) : 0;
}

/* Returns the number of the session's last command, or -1 with *err set. */
static int64_t
last_command(struct hr_sandbox *s, const char *session, int64_t until, struct hr_err *err)
{
	HR_PUT struct json_object *answer = NULL;
	struct json_object *list;
	char path[128];
	int64_t id;

	(void)snprintf(path, sizeof(path), "/handrail/v1/commands?session=%.60s", session);
	if (ask(s, path, NULL, until, &answer, err) < 0)
		return -1;
	list = hr_json_at(answer, "commands");
	id = hr_json_count(list) == 0
		 ? 0
		 : hr_json_int_at(hr_json_entry(list, hr_json_count(list) - 1), "id");
	if (!json_object_is_type(list, json_type_array) || id < 0)
		return hr_err_set(err, HR_E_INVAL, "the box has sent no valid list of commands");
	return id;
}

int
hr_shells_save(struct hr_sandbox *s, struct hr_shells *t, struct hr_err *err)
{
	const int64_t until = limit();
	char path[160], digits[17];
	HR_BUF(command, SCRIPT_MAX);
	int64_t last;
	size_t i;

	t->last = json_object_new_object();
	if (hr_random_hex(digits, sizeof(digits) - 1, err) < 0)
		return -1;
	(void)snprintf(t->place, sizeof(t->place), PLACE "%s", digits);
	for (i = 0; i < t->names.n; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", t->place, t->names.v[i]);
		hr_buf_reset(&command);
		hr_buf_addf(&command, SAVE, t->place, path);
		if (hr_buf_check(&command, err) < 0 ||
		    run_in(s, t->names.v[i], hr_buf_str(&command), until, err) < 0 ||
		    (last = last_command(s, t->names.v[i], until, err)) < 0 ||
		    hr_json_set(t->last, t->names.v[i], json_object_new_int64(last), err) < 0)
			return -1;
	}
	return 0;
}

int
hr_shells_check(struct hr_sandbox *s, const struct hr_shells *t, struct hr_err *err)
{
	const int64_t until = limit();
	int64_t last;
	size_t i;

	for (i = 0; i < t->names.n; i++) {
		last = last_command(s, t->names.v[i], until, err);
		if (last < 0)
			return -1;
		if (last != hr_json_int_at(t->last, t->names.v[i]))
			return hr_err_set(err, HR_E_RUNTIME,
			    "a command was run in the session \"%s\" of sandbox \"%s\" meanwhile: "
			    "fork it again",
			    t->names.v[i], s->sid);
	}
	return 0;
}

static int
restore_one(struct hr_sandbox *b, const struct hr_shells *t, const char *session, int64_t until,
    bool last, struct hr_err *err)
{
	HR_PUT struct json_object *answer = NULL;
	char path[160], process[160];
	HR_BUF(command, SCRIPT_MAX);
	int status;

	if (strcmp(session, DEFAULT) != 0 &&
	    ask(b, "/handrail/v1/create", hr_json_texts(err, "name", session, NULL), until, &answer,
		err) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/%s", t->place, session);
	(void)snprintf(process, sizeof(process), REMOVE_BY_PROCESS, t->place);
	hr_buf_addf(
	    &command, RESTORE REMOVE, t->place, path, last ? t->place : "", last ? process : "");
	if (hr_buf_check(&command, err) < 0)
		return -1;
	status = run_in(b, session, hr_buf_str(&command), until, err);
	if (status <= 0)
		return status;
	return hr_err_set(err, HR_E_RUNTIME,
	    "the state of the session \"%s\" is incomplete: the disk of the box may be full, or "
	    "its shell redefines words of bash, such as \"builtin\" and \"for\"",
	    session);
}

int
hr_shells_restore(struct hr_sandbox *branch, const struct hr_shells *t, struct hr_err *err)
{
	const int64_t until = limit();
	size_t i;
	int r = 0;

	for (i = 0; i < t->names.n && r == 0; i++)
		r = restore_one(branch, t, t->names.v[i], until, i + 1 == t->names.n, err);
	return r;
}

void
hr_shells_remove(struct hr_sandbox *s, const struct hr_shells *t)
{
	HR_PUT struct json_object *answer = NULL;
	struct json_object *o = NULL;
	int status;

	/* a shell for the command would take the processor from the branches that start meanwhile
	 */
	if (t != NULL && t->place[0] != '\0')
		o = hr_json_texts(NULL, "path", t->place, NULL);
	if (o == NULL || ask(s, "/handrail/v1/remove", o, limit(), &answer, NULL) < 0)
		(void)hr_sandbox_run_static(s, "rm -rf " PLACE "*", TIMEOUT_S, &status, NULL, NULL);
}
