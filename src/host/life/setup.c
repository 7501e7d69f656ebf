/* Sets up a fresh sandbox: variables and git's identity (doc/host.md, "Variables and
 * identity of a new sandbox"). */
#include "config.h"

#include "host/life/setup.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/err.h"
#include "base/path.h"
#include "host/life/action.h"
#include "host/mask.h"
#include "host/report.h"
#include "host/life/tokens.h"
#include "host/common/envquote.h"
#include "shell/quote.h"

#define COMMAND_MAX (16u << 20)
#define AT_ONCE 64
/* exit status if the variables were set in the session, but not in ~/.bashrc */
#define NOT_KEPT 97
#define SET_UP_TIMEOUT_S 120

/* Checks [A-Z_][A-Z0-9_]* after upper-casing; writes the name to out (NULL: checks only). */
static int
put_name(struct hr_buf *out, const char *entry, struct hr_err *err)
{
	const char *eq = strchr(entry, '=');
	size_t n = hr_env_name(entry);
	size_t i;

	if (n == 0)
		return hr_err_set(err, HR_E_INVAL, "Invalid environment variable name: %.*s",
		    eq != NULL ? (int)(eq - entry) : 200, entry);
	for (i = 0; i < n && out != NULL; i++)
		hr_buf_addc(out, (char)toupper((unsigned char)entry[i]));
	return 0;
}

static bool
is_token(const char *entry)
{
	size_t i;

	for (i = 0; i < HR_PROVIDERS; i++) {
		size_t len = strlen(hr_token_names[i]);

		if (strncasecmp(entry, hr_token_names[i], len) == 0 && entry[len] == '=')
			return true;
	}
	return false;
}

/* Exports up to AT_ONCE variables by one command; `keep` adds them to ~/.bashrc, which becomes
 * private because of tokens. */
static int
env_command(struct hr_buf *b, const char *const *env, size_t n, bool keep, struct hr_buf *names,
    struct hr_err *err)
{
	bool secret = false;
	HR_BUF(name, COMMAND_MAX);
	HR_BUF(line, COMMAND_MAX);
	HR_BUF(removals, COMMAND_MAX);
	HR_BUF(lines, COMMAND_MAX);
	int r = 0;
	size_t i;

	for (i = 0; i < n && r == 0; i++) {
		hr_buf_reset(&name);
		hr_buf_reset(&line);
		r = put_name(&name, env[i], err);
		secret = secret || is_token(env[i]);
		hr_buf_addf(&line, "export %s=", hr_buf_str(&name));
		hr_env_quote(&line, r == 0 ? strchr(env[i], '=') + 1 : "");
		hr_buf_addf(b, "%s%s", i > 0 ? " && " : "", hr_buf_str(&line));
		hr_buf_addf(&removals, " -e '/^export %s=/d'", hr_buf_str(&name));
		hr_buf_addc(&lines, ' ');
		hr_shell_quote(&lines, hr_buf_str(&line), line.len);
		hr_buf_addf(names, "%s'%s'", names->len > 0 ? ", " : "", hr_buf_str(&name));
	}
	if (keep)
		hr_buf_addf(b,
		    " && { (umask 077; touch ~/.bashrc) && %ssed -i%s ~/.bashrc && printf "
		    "'%%s\\n'%s "
		    ">>~/.bashrc || (exit %d); }",
		    secret ? "chmod go-rwx ~/.bashrc && " : "", hr_buf_str(&removals),
		    hr_buf_str(&lines), NOT_KEPT);
	if (r == 0 && hr_buf_check(b, NULL) != 0)
		r = hr_err_nomem(err);
	return r;
}

static int
add_some(struct hr_sandbox *s, const char *const *env, size_t n, struct hr_err *err)
{
	HR_BUF(command, COMMAND_MAX);
	HR_BUF(names, COMMAND_MAX);
	HR_BUF(out, COMMAND_MAX);
	/* a user's own account must not be changed */
	bool keep = (s->ops->flags & HR_KIND_HERE) == 0;
	int status = 0;

	if (env_command(&command, env, n, keep, &names, err) != 0 ||
	    hr_sandbox_run(s, command.p, SET_UP_TIMEOUT_S, &status, &out, err) != 0)
		return -1;
	if (status != 0)
		return hr_mask_err_set(s, err, HR_E_RUNTIME,
		    "Failed to add env vars [%.300s] to %s: %s", hr_buf_str(&names),
		    status == NOT_KEPT ? ".bashrc" : "environment", hr_buf_str(&out));
	return 0;
}

int
hr_sandbox_add_env(struct hr_sandbox *s, const char *const *env, struct hr_err *err)
{
	size_t n = 0, some;

	if (s->ops->add_env != NULL && !s->endpoint.serves)
		return s->ops->add_env(s->self, env, err);
	while (env[n] != NULL)
		n++;
	for (; n > 0; env += some, n -= some) {
		some = n < AT_ONCE ? n : AT_ONCE;
		if (add_some(s, env, some, err) != 0)
			return -1;
	}
	return 0;
}

static const char *const identity[2][2] = {
    {"user.name", "core.git_user_name"}, {"user.email", "core.git_user_email"}};

static const char *
identity_text(const struct hr_sandbox *s, size_t i)
{
	const char *value = hr_config_text(s->config, identity[i][1]);

	return value != NULL ? value : "";
}

/* Returns true for a value that needs no quoting in git's file and between single quotes. */
static bool
is_plain(const char *s)
{
	static const char plain[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@.+-_ ";
	size_t n = strlen(s);

	return n > 0 && strspn(s, plain) == n && s[0] != ' ' && s[n - 1] != ' ';
}

/* Appends the identity for a fresh sandbox. Setting a value costs a process of git each. If there
 * is no file of settings yet, the shell writes the one that git would; the command for git follows
 * as the alternative. */
static void
put_fresh_identity(struct hr_buf *b, const struct hr_sandbox *s)
{
	if (!is_plain(identity_text(s, 0)) || !is_plain(identity_text(s, 1)))
		return;
	hr_buf_addf(b,
	    "if command -v git >/dev/null && [ -n \"${HOME-}\" ] && "
	    "[ -z \"${GIT_CONFIG_GLOBAL+x}\" ] && [ ! -e \"$HOME/.gitconfig\" ] && "
	    "[ ! -e \"${XDG_CONFIG_HOME:-$HOME/.config}/git/config\" ] && "
	    "{ printf '[user]\\n\\tname = %%s\\n\\temail = %%s\\n' '%s' '%s' "
	    ">>\"$HOME/.gitconfig\"; } 2>/dev/null; then :; else ",
	    identity_text(s, 0), identity_text(s, 1));
}

/* Returns true if the caller's account has a git identity. git itself finds files elsewhere. */
static bool
caller_has_git(const char *home)
{
	static const char *const files[] = {".gitconfig", ".config/git/config"};
	bool has = false;
	size_t i;

	for (i = 0; home != NULL && i < sizeof(files) / sizeof(*files); i++) {
		HR_FREE char *path = hr_path_join(home, files[i]);

		has = has || path == NULL || access(path, F_OK) == 0;
	}
	return has;
}

/* Logs a failure as a warning. A sandbox in the caller's account gets the caller's identity, if
 * there is one, in a home directory of its own; the caller's files stay unchanged. */
static void
git_identity(struct hr_sandbox *s)
{
	const char *home = hr_env_get(s->host.environ, "HOME");
	bool here = (s->ops->flags & HR_KIND_HERE) != 0, own = here && caller_has_git(home), fresh;
	HR_BUF(b, COMMAND_MAX);
	HR_BUF(out, COMMAND_MAX);
	struct hr_err e = {0};
	int status = 0;
	size_t i;

	if ((s->ops->flags & HR_KIND_AS_IT_IS) != 0 || (here && s->endpoint.home == NULL))
		return;
	if (!own)
		put_fresh_identity(&b, s);
	fresh = b.len > 0;
	for (i = 0; i < 2; i++) {
		hr_buf_adds(&b, i > 0 ? " && " : "");
		hr_buf_addf(&b, "git config --global %s ", identity[i][0]);
		if (own) {
			hr_buf_adds(&b, "\"$(HOME=");
			hr_shell_quote(&b, home, strlen(home));
			hr_buf_addf(&b, " git config --global --includes --get %s || printf %%s ",
			    identity[i][0]);
		}
		hr_env_quote(&b, identity_text(s, i));
		if (own)
			hr_buf_adds(&b, ")\"");
	}
	if (fresh)
		hr_buf_adds(&b, "; fi");
	if (hr_sandbox_run(s, hr_buf_str(&b), SET_UP_TIMEOUT_S, &status, &out, &e) != 0)
		hr_sandbox_log(s, "Git config command failed: %s", e.msg);
	else if (status != 0)
		hr_sandbox_log(s, "Git config command failed: %s", hr_buf_str(&out));
}

static void
startup_env(struct hr_sandbox *s, struct hr_strv *v)
{
	struct json_object *map = hr_config_value(s->config, "sandbox.runtime_startup_env_vars");

	if (!json_object_is_type(map, json_type_object))
		return;
	json_object_object_foreach(map, name, value)
	{
		hr_strv_addf(v, "%s=%s", name, value != NULL ? json_object_get_string(value) : "");
	}
}

/* Checks the variables before creating a sandbox that could not accept them. */
int
hr_sandbox_check_env(struct hr_sandbox *s, struct hr_err *err)
{
	const char *const *given = s->host.env;
	HR_CLEAN(hr_strv_done) struct hr_strv v = {0};
	int r;
	size_t i;

	/* a back-end that sets them itself checks them itself */
	if (s->attach || s->ops->add_env != NULL)
		return 0;
	startup_env(s, &v);
	r = v.failed ? hr_err_nomem(err) : 0;
	for (i = 0; r == 0 && given[i] != NULL; i++)
		r = put_name(NULL, given[i], err);
	for (i = 0; r == 0 && i < v.n; i++)
		r = put_name(NULL, v.v[i], err);
	return r;
}

int
hr_sandbox_set_up(struct hr_sandbox *s, bool taken, struct hr_err *err)
{
	HR_CLEAN(hr_strv_done) struct hr_strv v = {0};
	struct hr_err e = {0};

	if (s->attach)
		return 0;
	if (taken)
		return hr_sandbox_add_env(s, s->host.env, err) == 0 ? hr_tokens_give(s, err) : -1;
	startup_env(s, &v);
	if ((v.failed ? hr_err_nomem(err) : hr_sandbox_add_env(s, s->host.env, err)) != 0)
		return -1;
	/* the tokens are separate from the other variables, which are also the container's: an
	 * inspection shows those */
	if (hr_tokens_give(s, err) != 0 || hr_sandbox_add_env(s, hr_strv_list(&v), err) != 0)
		return -1;
	git_identity(s);
	/* a sandbox without tools is better than none */
	if (s->endpoint.url != NULL && hr_sandbox_add_mcp(s, NULL, &e) != 0)
		hr_sandbox_log(s, "MCP servers were not added: %s", e.msg);
	return 0;
}
