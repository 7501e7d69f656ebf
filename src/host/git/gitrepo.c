/* Finds repositories at git providers and by URL. */
#include "config.h"

#include "host/git/gitrepo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/text/quote.h"
#include "base/err.h"
#include "base/text/text.h"
#include "host/client/rest.h"
#include "host/life/tokens.h"
#include "proto/json.h"
#include "shell/quote.h"
#include "host/report.h"

#define ASK_TIMEOUT_S 30
#define TEXT_MAX (1u << 20)

static const char none_knows_it[] = "Git provider authentication issue when getting remote URL";

/* A provider that is asked for a repository. */
static const struct hr_git_provider {
	int token;
	const char *host, *host_variable;
	/* URLs, in which "%s" is the host; own_api: for a host of the user's */
	const char *api, *own_api;
	bool escaped;          /* true: escape the whole name as one path component */
	const char *full_name; /* member of the answer that holds the full name */
	const char *user;      /* user name that accompanies the token */
} git_providers[] = {
    {HR_GITHUB, "github.com", "GITHUB_HOST", "https://api.github.com/repos/", "/api/v3/repos/",
	false, "full_name", "x-access-token"},
    {HR_GITLAB, "gitlab.com", "GITLAB_HOST", "https://gitlab.com/api/v4/projects/",
	"/api/v4/projects/", true, "path_with_namespace", "oauth2"},
    {HR_BITBUCKET, "bitbucket.org", "BITBUCKET_HOST", "https://api.bitbucket.org/2.0/repositories/",
	"/2.0/repositories/", false, "full_name", "x-token-auth"},
};
#define N_PROVIDERS (sizeof(git_providers) / sizeof(*git_providers))

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

/* Accepts "scheme://host/path" without a user: a token in the URL would be visible. */
static bool
is_url(const char *text)
{
	const char *rest = strstr(text, "://");
	const char *p;

	if (rest == NULL || *text == '-')
		return false;
	for (p = text; *p != '\0'; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7F)
			return false;
	return memchr(rest + 3, '@', strcspn(rest + 3, "/")) == NULL;
}

int
hr_gitrepo_check(const char *repository, struct hr_err *err)
{
	if (strstr(repository, "://") != NULL ? is_url(repository) : is_name(repository))
		return 0;
	return hr_err_set(err, HR_E_INVAL,
	    "\"%.200s\" is not a repository: write OWNER/NAME, or a URL without user and password",
	    strchr(repository, '@') != NULL ? "..." : repository);
}

int
hr_gitrepo_directory(const char *repository, char *ret, size_t cap, struct hr_err *err)
{
	size_t n = strlen(repository);
	const char *from;

	while (n > 0 && repository[n - 1] == '/')
		n--;
	for (from = repository + n; from > repository && from[-1] != '/';)
		from--;
	n -= (size_t)(from - repository);
	if (strstr(repository, "://") != NULL && n > 4 && strncmp(from + n - 4, ".git", 4) == 0)
		n -= 4;
	if (n == 0 || n >= cap || *from == '-' || strspn(from, ".") >= n)
		return hr_err_set(
		    err, HR_E_INVAL, "\"%.200s\" names no directory to clone to", repository);
	(void)snprintf(ret, cap, "%.*s", (int)n, from);
	return 0;
}

/* ---- providers ---- */

static int
request_headers(const struct hr_git_provider *p, const char *token, struct hr_strv *v)
{
	HR_BUF(b, TEXT_MAX);

	hr_strv_add(v, "User-Agent: handrail/" PACKAGE_VERSION);
	if (p->token == HR_GITHUB)
		hr_strv_add(v, "Accept: application/vnd.github.v3+json");
	if (p->token != HR_BITBUCKET || strchr(token, ':') == NULL) {
		hr_strv_addf(v, "Authorization: Bearer %s", token);
		return v->failed ? -1 : 0;
	}
	/* the token is "user:password" */
	hr_quote_base64(&b, token, strlen(token));
	hr_strv_addf(v, "Authorization: Basic %s", hr_buf_str(&b));
	if (hr_buf_check(&b, NULL) != 0)
		v->failed = true;
	return v->failed ? -1 : 0;
}

static void
put_api(
    struct hr_buf *url, const struct hr_git_provider *p, const char *own, const char *repository)
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

/* Returns 1 if the provider has the repository, with r->base and r->url set, 0 if not, or -1 with
 * *err set. */
static int
ask(struct hr_gitrepo *repo, const struct hr_git_provider *p, const char *repository, bool log,
    struct hr_err *err)
{
	const char *host = hr_env_get(hr_strv_list(&repo->s->environ), p->host_variable);
	HR_FREE char *own = host != NULL ? hr_tokens_base(p->host_variable, host, err) : NULL;
	const struct hr_rest_options o = {
	    .rules = hr_rest_once, .timeout_s = ASK_TIMEOUT_S, .watch_fd = -1};
	HR_CLEAN(hr_rest_clean) struct hr_rest *rest = NULL;
	HR_CLEAN(hr_strv_done) struct hr_strv headers = {0};
	HR_CLEAN(hr_rest_answer_done) struct hr_rest_answer a = {0};
	struct hr_rest_call c = {.method = "GET"};
	const char *name = "";
	struct hr_err e = {0};
	HR_BUF(url, TEXT_MAX);
	int r = 0;

	if (host != NULL && own == NULL)
		return -1;
	put_api(&url, p, own, repository);
	c.path = hr_buf_str(&url);
	if (request_headers(p, hr_token(repo->s, p->token), &headers) != 0 ||
	    hr_buf_check(&url, NULL) != 0 || (rest = hr_rest_new(&o, &e)) == NULL)
		return hr_err_nomem(err);
	c.headers = hr_strv_list(&headers);
	if (hr_rest_call(rest, &c, &a, &e) == 0)
		name = hr_json_text_or(a.json, p->full_name, "");
	if (log && a.status == 0)
		hr_sandbox_log(repo->s, "could not ask %s for %s: %s", own != NULL ? own : p->host,
		    repository, e.msg);
	else if (log && !is_name(name))
		hr_sandbox_log(repo->s, "%s does not give %s: status %ld",
		    own != NULL ? own : p->host, repository, a.status);
	if (is_name(name)) {
		r = 1;
		if (own != NULL)
			(void)hr_text_set(&repo->base, own, NULL);
		else
			(void)hr_text_setf(&repo->base, NULL, "https://%s", p->host);
		if (repo->base == NULL)
			r = hr_err_nomem(err);
		else if (hr_text_setf(&repo->url, err, "%s/%s.git", repo->base, name) != 0)
			r = -1;
	}
	return r;
}

int
hr_gitrepo_find(struct hr_gitrepo *repo, struct hr_sandbox *s, const char *repository, bool log,
    struct hr_err *err)
{
	int r;
	size_t i;

	*repo = (struct hr_gitrepo){.s = s};
	if (strstr(repository, "://") != NULL)
		return (repo->url = strdup(repository)) != NULL ? 0 : hr_err_nomem(err);
	for (i = 0; i < N_PROVIDERS; i++) {
		if (hr_token(s, git_providers[i].token) == NULL)
			continue;
		r = ask(repo, &git_providers[i], repository, log, err);
		if (r < 0)
			return -1;
		if (r == 1) {
			repo->provider = &git_providers[i];
			return 0;
		}
	}
	return hr_err_set(err, HR_E_RUNTIME, "%s", none_knows_it);
}

void
hr_gitrepo_done(struct hr_gitrepo *repo)
{
	free(repo->base);
	free(repo->url);
	repo->base = repo->url = NULL;
}

/* Decides by the provider or by the host of the URL. */
bool
hr_gitrepo_is_gitlab(const struct hr_gitrepo *repo)
{
	const char *own = hr_env_get(hr_strv_list(&repo->s->environ), "GITLAB_HOST"), *host, *rest;
	size_t n;

	if (repo->provider != NULL)
		return repo->provider->token == HR_GITLAB;
	if (repo->url == NULL)
		return false;
	host = strstr(repo->url, "://") + 3;
	n = strcspn(host, "/");
	if (own != NULL && (rest = strstr(own, "://")) != NULL)
		own = rest + 3;
	return (n == 10 && strncmp(host, "gitlab.com", n) == 0) ||
	       (own != NULL && strlen(own) == n && strncmp(host, own, n) == 0);
}

/* ---- git ---- */

/* Appends git's credential helper. It names the variable, not its value. */
static void
put_helper(struct hr_buf *b, const struct hr_gitrepo *repo)
{
	const char *variable = hr_token_names[repo->provider->token];
	HR_BUF(h, TEXT_MAX);

	/* the machine's other helpers are neither asked nor given the token */
	hr_buf_addf(&h, "credential.%s.helper=", repo->base);
	hr_buf_adds(b, " -c ");
	hr_shell_quote(b, hr_buf_str(&h), h.len);
	hr_buf_adds(&h, "!f() { test \"$1\" = get && ");
	if (repo->provider->token == HR_BITBUCKET &&
	    strchr(hr_token(repo->s, HR_BITBUCKET), ':') != NULL)
		hr_buf_addf(&h, "echo \"username=${%s%%%%:*}\" && echo \"password=${%s#*:}\"",
		    variable, variable);
	else
		hr_buf_addf(&h, "echo username=%s && echo \"password=$%s\"", repo->provider->user,
		    variable);
	hr_buf_adds(&h, "; }; f");
	hr_buf_adds(b, " -c ");
	hr_shell_quote(b, hr_buf_str(&h), h.len);
}

void
hr_gitrepo_put_clone(struct hr_buf *b, const struct hr_gitrepo *repo, const char *options)
{
	/* no person can answer a prompt */
	hr_buf_adds(b, "GIT_TERMINAL_PROMPT=0 git clone");
	if (repo->provider != NULL)
		put_helper(b, repo);
	hr_buf_addf(b, "%s -- ", options);
	hr_shell_quote(b, repo->url, strlen(repo->url));
	hr_buf_addc(b, ' ');
}

int
hr_gitrepo_give_token(struct hr_gitrepo *repo, struct hr_err *err)
{
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};

	if (repo->provider == NULL || repo->s->tokens_stay)
		return 0;
	hr_strv_addf(&env, "%s=%s", hr_token_names[repo->provider->token],
	    hr_token(repo->s, repo->provider->token));
	return env.failed ? hr_err_nomem(err)
			  : hr_sandbox_add_env(repo->s, hr_strv_list(&env), err);
}
