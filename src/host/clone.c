/* A repository for a sandbox (runtimes.md 2.12). Its URL has no token: git asks a helper for it,
 * which is in the repository's configuration and reads the shell's variable. So it is on no command
 * line and in no file of the repository, and a new one is used as soon as the variable has it. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <json-c/json.h>

#include "base/quote.h"
#include "host/error.h"
#include "host/sandbox.h"
#include "host/tokens.h"
#include "http/http.h"
#include "proto/json.h"
#include "shell/quote.h"

#define ASK_TIMEOUT_S 30
#define CLONE_TIMEOUT_S 600
#define STEP_TIMEOUT_S 120
#define TEXT_MAX (1u << 20)
#define BRANCH_LETTERS 8

static const char none_knows_it[] = "Git provider authentication issue when getting remote URL";

/* One whose repositories are asked for. */
static const struct git_provider {
	int token;
	const char *host, *host_variable;
	const char *api, *own_api; /* "%s": the host's address; with a host of the user's */
	bool escaped;              /* the name is one part of the path */
	const char *full_name;     /* in the answer */
	const char *user;          /* that git gives with the token */
} git_providers[] = {
    {HR_GITHUB, "github.com", "GITHUB_HOST", "https://api.github.com/repos/", "/api/v3/repos/",
	false, "full_name", "x-access-token"},
    {HR_GITLAB, "gitlab.com", "GITLAB_HOST", "https://gitlab.com/api/v4/projects/",
	"/api/v4/projects/", true, "path_with_namespace", "oauth2"},
    {HR_BITBUCKET, "bitbucket.org", "BITBUCKET_HOST", "https://api.bitbucket.org/2.0/repositories/",
	"/2.0/repositories/", false, "full_name", "x-token-auth"},
};

struct clone {
	struct hr_sandbox *s;
	const struct git_provider *provider; /* NULL: a URL was given */
	char *base;                          /* "https://github.com" */
	char *url;
	char directory[256]; /* its last part */
	struct hr_buf path;  /* where it goes */
};

/* ---- names ---- */

static bool
is_name(const char *text)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t parts = 0, n;

	for (;; text++) {
		n = strspn(text, letters);
		if (n == 0 || *text == '-' || strspn(text, ".") == n)
			return false;
		parts++;
		text += n;
		if (*text != '/')
			return *text == '\0' && parts > 1;
	}
}

/* "scheme://host/path", without a user: a token there would be seen. */
static bool
is_url(const char *text)
{
	const char *rest = strstr(text, "://");

	if (rest == NULL || *text == '-')
		return false;
	for (const char *p = text; *p != '\0'; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7F)
			return false;
	return memchr(rest + 3, '@', strcspn(rest + 3, "/")) == NULL;
}

/* A directory's name: the last part of the repository's. */
static int
name_directory(struct clone *c, const char *repository, struct hr_error *err)
{
	size_t n = strlen(repository);
	const char *from;

	while (n > 0 && repository[n - 1] == '/')
		n--;
	for (from = repository + n; from > repository && from[-1] != '/';)
		from--;
	n -= (size_t)(from - repository);
	if (c->provider == NULL && n > 4 && strncmp(from + n - 4, ".git", 4) == 0)
		n -= 4;
	if (n == 0 || n >= sizeof(c->directory) || *from == '-' || strspn(from, ".") >= n)
		return hr_error_set(
		    err, HR_ERROR_VALUE, "\"%.200s\" names no directory to clone to", repository);
	(void)snprintf(c->directory, sizeof(c->directory), "%.*s", (int)n, from);
	return 0;
}

/* ---- who has it ---- */

static int
request_headers(const struct git_provider *p, const char *token, struct hr_strv *v)
{
	struct hr_buf b;

	hr_strv_add(v, "User-Agent: handrail/" PACKAGE_VERSION);
	if (p->token == HR_GITHUB)
		hr_strv_add(v, "Accept: application/vnd.github.v3+json");
	if (p->token != HR_BITBUCKET || strchr(token, ':') == NULL) {
		hr_strv_addf(v, "Authorization: Bearer %s", token);
		return v->failed ? -1 : 0;
	}
	/* a user and a password of theirs */
	hr_buf_init(&b, TEXT_MAX);
	hr_quote_base64(&b, token, strlen(token));
	hr_strv_addf(v, "Authorization: Basic %s", hr_buf_str(&b));
	if (hr_buf_check(&b, NULL) != 0)
		v->failed = true;
	hr_buf_done(&b);
	return v->failed ? -1 : 0;
}

/* The name that the provider has for it: the caller's; NULL: it does not know it. */
static char *
name_in(const struct hr_buf *body, const char *member)
{
	struct json_object *o = NULL, *v = NULL;
	struct hr_json_error why;
	char *name = NULL;

	if (hr_json_decode(body->len > 0 ? body->p : "", body->len, &o, &why) == 0 &&
	    json_object_is_type(o, json_type_object) && json_object_object_get_ex(o, member, &v) &&
	    json_object_is_type(v, json_type_string) && is_name(json_object_get_string(v)))
		name = strdup(json_object_get_string(v));
	json_object_put(o);
	return name;
}

static void
put_api(struct hr_buf *url, const struct git_provider *p, const char *own, const char *repository)
{
	if (own != NULL)
		hr_buf_addf(url, "%s%s", own, p->own_api);
	else
		hr_buf_adds(url, p->api);
	if (p->escaped)
		hr_http_escape(url, repository);
	else
		hr_buf_adds(url, repository);
}

/* 1 it has it: c->base and c->url are set; 0 it does not, which is logged; -1 *err. */
static int
ask(struct clone *c, const struct git_provider *p, const char *repository, struct hr_error *err)
{
	const char *host = hr_env_get(hr_strv_list(&c->s->environ), p->host_variable);
	char *own = host != NULL ? hr_tokens_base(p->host_variable, host, err) : NULL, *name = NULL;
	struct hr_strv headers = {0};
	struct hr_http_request r = {.method = "GET", .timeout_s = ASK_TIMEOUT_S, .watch_fd = -1};
	struct hr_http_answer a = {0};
	struct hr_http *http = NULL;
	struct hr_err e = {0};
	struct hr_buf url;
	int rc = 0;

	if (host != NULL && own == NULL)
		return -1;
	hr_buf_init(&url, TEXT_MAX);
	put_api(&url, p, own, repository);
	r.url = hr_buf_str(&url);
	if (request_headers(p, hr_token(c->s, p->token), &headers) != 0 ||
	    hr_buf_check(&url, NULL) != 0 || (http = hr_http_new(&e)) == NULL) {
		rc = hr_error_nomem(err);
	} else {
		r.headers = hr_strv_list(&headers);
		if (hr_http_do(http, &r, &a, &e) != 0)
			hr_sandbox_log(c->s, "%s was not asked for %s: %s",
			    own != NULL ? own : p->host, repository, e.msg);
		else if (a.status < 200 || a.status > 299 ||
			 (name = name_in(&a.body, p->full_name)) == NULL)
			hr_sandbox_log(c->s, "%s does not give %s: status %ld",
			    own != NULL ? own : p->host, repository, a.status);
	}
	if (name != NULL) {
		rc = 1;
		if (own != NULL)
			c->base = strdup(own);
		else if (asprintf(&c->base, "https://%s", p->host) < 0)
			c->base = NULL;
		if (c->base == NULL || asprintf(&c->url, "%s/%s.git", c->base, name) < 0) {
			c->url = NULL;
			rc = hr_error_nomem(err);
		}
	}
	hr_http_answer_done(&a);
	hr_http_free(http);
	hr_strv_done(&headers);
	hr_buf_done(&url);
	free(name);
	free(own);
	return rc;
}

static int
find_provider(struct clone *c, const char *repository, struct hr_error *err)
{
	int rc;

	for (size_t i = 0; i < sizeof(git_providers) / sizeof(*git_providers); i++) {
		if (hr_token(c->s, git_providers[i].token) == NULL)
			continue;
		rc = ask(c, &git_providers[i], repository, err);
		if (rc < 0)
			return -1;
		if (rc == 1) {
			c->provider = &git_providers[i];
			return 0;
		}
	}
	if (c->s->status != NULL)
		c->s->status(
		    c->s->status_arg, "error", "STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR", "");
	return hr_error_set(err, HR_ERROR_RUNTIME, "%s", none_knows_it);
}

/* ---- commands ---- */

/* What git runs to be told user and password: it names the variable, not its value. */
static void
put_helper(struct hr_buf *b, const struct clone *c)
{
	const char *variable = hr_token_names[c->provider->token];
	struct hr_buf h;

	hr_buf_init(&h, TEXT_MAX);
	/* whatever else the machine has is not asked, and does not keep it */
	hr_buf_addf(&h, "credential.%s.helper=", c->base);
	hr_buf_adds(b, " -c ");
	hr_shell_quote(b, hr_buf_str(&h), h.len);
	hr_buf_adds(&h, "!f() { test \"$1\" = get && ");
	if (c->provider->token == HR_BITBUCKET && strchr(hr_token(c->s, HR_BITBUCKET), ':') != NULL)
		hr_buf_addf(&h, "echo \"username=${%s%%%%:*}\" && echo \"password=${%s#*:}\"",
		    variable, variable);
	else
		hr_buf_addf(
		    &h, "echo username=%s && echo \"password=$%s\"", c->provider->user, variable);
	hr_buf_adds(&h, "; }; f");
	hr_buf_adds(b, " -c ");
	hr_shell_quote(b, hr_buf_str(&h), h.len);
	hr_buf_done(&h);
}

/* 0 done or, unless strict, failed and logged. */
static int
step(struct clone *c, const struct hr_buf *command, double timeout_s, const char *what, bool strict,
    struct hr_error *err)
{
	struct hr_buf out;
	int status = 0, rc;

	if (hr_buf_check(command, NULL) != 0)
		return hr_error_nomem(err);
	hr_buf_init(&out, TEXT_MAX * 16);
	rc = hr_sandbox_run(c->s, command->p, timeout_s, &status, &out, err);
	if (rc == 0 && status != 0 && strict)
		rc = hr_error_set(
		    err, HR_ERROR_RUNTIME, "%s failed: %.800s", what, hr_buf_str(&out));
	else if (rc == 0 && status != 0)
		hr_sandbox_log(c->s, "%s failed: %.800s", what, hr_buf_str(&out));
	hr_buf_done(&out);
	return rc;
}

static int
clone_it(struct clone *c, bool strict, struct hr_error *err)
{
	struct hr_buf b;
	int rc;

	hr_buf_init(&b, TEXT_MAX);
	/* nobody is there to answer a question */
	hr_buf_adds(&b, "GIT_TERMINAL_PROMPT=0 git clone");
	if (c->provider != NULL)
		put_helper(&b, c);
	hr_buf_adds(&b, " -- ");
	hr_shell_quote(&b, c->url, strlen(c->url));
	hr_buf_addc(&b, ' ');
	hr_buf_adds(&b, c->path.p);
	rc = step(c, &b, CLONE_TIMEOUT_S, "git clone", strict, err);
	hr_buf_done(&b);
	return rc;
}

static int
check_out(struct clone *c, const char *branch, bool strict, struct hr_error *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
	unsigned char r[BRANCH_LETTERS];
	struct hr_buf b;
	int rc;

	if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return hr_error_set(err, HR_ERROR_SYSTEM, "getrandom failed");
	hr_buf_init(&b, TEXT_MAX);
	hr_buf_addf(&b, "cd %s && git checkout ", c->path.p);
	if (branch != NULL) {
		hr_shell_quote(&b, branch, strlen(branch));
	} else {
		hr_buf_adds(&b, "-b openhands-workspace-");
		for (size_t i = 0; i < sizeof(r); i++)
			hr_buf_addc(&b, letters[r[i] % 32]);
	}
	rc = step(c, &b, STEP_TIMEOUT_S, "git checkout", strict, err);
	hr_buf_done(&b);
	return rc;
}

/* ---- the whole ---- */

static const char *
workspace(const struct hr_sandbox *s)
{
	const char *given = s->endpoint.workspace;

	if (given == NULL)
		given = hr_config_text(s->config, "core.workspace_mount_path_in_sandbox");
	return given != NULL ? given : "/workspace";
}

static int
init_empty(struct clone *c, bool strict, struct hr_error *err)
{
	const char *root = workspace(c->s);
	struct hr_buf b;
	int rc = 0;

	hr_buf_init(&b, TEXT_MAX);
	hr_buf_adds(&b, "git init && git config --global --add safe.directory ");
	hr_shell_quote(&b, root, strlen(root));
	if (hr_config_bool(c->s->config, "core.init_git_in_empty_workspace"))
		rc = step(c, &b, STEP_TIMEOUT_S, "git init", strict, err);
	hr_buf_done(&b);
	return rc;
}

/* Looked at before anything is asked or done. */
static int
check(const char *repository, const char *branch, struct hr_error *err)
{
	if (strstr(repository, "://") != NULL ? !is_url(repository) : !is_name(repository))
		return hr_error_set(err, HR_ERROR_VALUE,
		    "\"%.200s\" is no repository: OWNER/NAME, or a URL without user and password",
		    strchr(repository, '@') != NULL ? "..." : repository);
	if (branch != NULL && (*branch == '\0' || *branch == '-'))
		return hr_error_set(err, HR_ERROR_VALUE, "\"%.200s\" is no branch", branch);
	return 0;
}

static int
find_url(struct clone *c, const char *repository, struct hr_error *err)
{
	const char *root = workspace(c->s);
	struct hr_buf b;
	int rc;

	if (strstr(repository, "://") != NULL)
		rc = (c->url = strdup(repository)) != NULL ? 0 : hr_error_nomem(err);
	else
		rc = find_provider(c, repository, err);
	if (rc == 0)
		rc = name_directory(c, repository, err);
	hr_buf_init(&b, TEXT_MAX);
	hr_buf_addf(&b, "%s/%s", root, c->directory);
	hr_shell_quote(&c->path, hr_buf_str(&b), b.len);
	hr_buf_done(&b);
	return rc == 0 && hr_buf_check(&c->path, NULL) != 0 ? hr_error_nomem(err) : rc;
}

/* The variable that the helper reads. */
static int
give_token(struct clone *c, struct hr_error *err)
{
	struct hr_strv env = {0};
	int rc;

	if (c->provider == NULL)
		return 0;
	hr_strv_addf(
	    &env, "%s=%s", hr_token_names[c->provider->token], hr_token(c->s, c->provider->token));
	rc = env.failed ? hr_error_nomem(err) : hr_sandbox_add_env(c->s, hr_strv_list(&env), err);
	hr_strv_done(&env);
	return rc;
}

int
hr_sandbox_clone(struct hr_sandbox *s, const char *repository, const char *branch, bool strict,
    char **ret_directory, struct hr_error *err)
{
	struct clone c = {.s = s};
	int rc;

	if (repository == NULL)
		repository = hr_config_text(s->config, "sandbox.selected_repo");
	hr_buf_init(&c.path, TEXT_MAX);
	if (repository == NULL) {
		rc = init_empty(&c, strict, err);
	} else {
		rc = check(repository, branch, err);
		if (rc == 0)
			rc = find_url(&c, repository, err);
		if (rc == 0 && s->status != NULL)
			s->status(s->status_arg, "info", "STATUS$SETTING_UP_WORKSPACE",
			    "Setting up workspace...");
		if (rc == 0)
			rc = give_token(&c, err);
		if (rc == 0)
			rc = clone_it(&c, strict, err);
		if (rc == 0)
			rc = check_out(&c, branch, strict, err);
	}
	if (rc == 0 && (*ret_directory = strdup(c.directory)) == NULL)
		rc = hr_error_nomem(err);
	if (rc != 0)
		hr_tokens_mask_error(s, err);
	hr_buf_done(&c.path);
	free(c.base);
	free(c.url);
	return rc;
}
