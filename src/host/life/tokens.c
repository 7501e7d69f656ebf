/* Tokens of git's providers. */
#include "config.h"

#include "host/life/tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/err.h"
#include "base/text/text.h"
#include "host/mask.h"
#include "host/report.h"
#include "http/http.h"
#include "proto/json.h"

#define REFRESH_TIMEOUT_S 30
#define URL_MAX 8192

const char *const hr_token_names[HR_PROVIDERS] = {
    "GITHUB_TOKEN", "GITLAB_TOKEN", "BITBUCKET_TOKEN", "ENTERPRISE_SSO_TOKEN"};

/* As the refreshing service calls them. */
static const char *const providers[HR_PROVIDERS] = {
    "github", "gitlab", "bitbucket", "enterprise_sso"};

const char *
hr_token(const struct hr_sandbox *s, int provider)
{
	return hr_env_get(hr_strv_list(&s->tokens), hr_token_names[provider]);
}

void
hr_tokens_init(struct hr_sandbox *s)
{
	size_t i;

	for (i = 0; i < HR_PROVIDERS; i++) {
		const char *token = hr_env_get(hr_strv_list(&s->environ), hr_token_names[i]);

		if (token != NULL)
			hr_strv_addf(&s->tokens, "%s=%s", hr_token_names[i], token);
	}
}

static bool
is_this_machine(const char *host)
{
	size_t n = strcspn(host, ":/");

	return (
	    n == 9 && (strncmp(host, "127.0.0.1", n) == 0 || strncmp(host, "localhost", n) == 0));
}

char *
hr_tokens_base(const char *name, const char *host, struct hr_err *err)
{
	const char *rest = strstr(host, "://");
	bool plain = strncmp(host, "http://", 7) == 0;
	char *base = NULL;

	rest = rest != NULL ? rest + 3 : host;
	if (plain && !is_this_machine(rest)) {
		(void)hr_err_set(err, HR_E_INVAL,
		    "%s: http:// is for this machine only; a token needs https", name);
	} else if (*rest == '\0' || strspn(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
						 "WXYZ0123456789.-:_") != strlen(rest)) {
		(void)hr_err_set(err, HR_E_INVAL, "%s is no name of a host: %.200s", name, host);
	} else {
		(void)hr_text_setf(&base, err, "%s%s", plain ? "http://" : "https://", rest);
	}
	return base;
}

/* {"token": "..."} becomes NAME=...; *ret is the caller's. */
static int
read_token(const struct hr_buf *body, const char *name, char **ret, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	int r = 0;

	if (hr_json_decode_foreign(body->len > 0 ? body->p : "", body->len, &o, NULL) < 0 ||
	    hr_json_text_at(o, "token") == NULL)
		r = hr_err_set(err, HR_E_INVAL, "the answer has no token");
	else if (asprintf(ret, "%s=%s", name, hr_json_text_at(o, "token")) < 0)
		r = hr_err_nomem(err);
	return r;
}

static int
ask(struct hr_sandbox *s, const char *web_host, int provider, char **ret, struct hr_err *err)
{
	const char *key_value = hr_sandbox_session_api_key(s);
	HR_FREE char *base = hr_tokens_base("WEB_HOST", web_host, err);
	HR_FREE char *key = NULL;
	const char *headers[2] = {NULL, NULL};
	struct hr_http_request req = {
	    .method = "GET", .headers = headers, .timeout_s = REFRESH_TIMEOUT_S, .watch_fd = -1};
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	struct hr_http *http = NULL;
	struct hr_err e = {0};
	HR_BUF(url, URL_MAX);
	int r = -1;

	if (base == NULL)
		return -1;
	hr_buf_addf(&url, "%s/api/refresh-tokens?provider=%s&sid=", base, providers[provider]);
	hr_http_escape(&url, s->sid);
	if (key_value != NULL && asprintf(&key, "X-Session-API-Key: %s", key_value) < 0)
		key = NULL;
	headers[0] = key;
	req.url = hr_buf_str(&url);
	if ((key_value != NULL && key == NULL) || hr_buf_check(&url, &e) < 0)
		(void)hr_err_nomem(err);
	else if ((http = hr_http_new(&e)) == NULL || hr_http_do(http, &req, &a, &e) != 0)
		(void)hr_err_from(err, HR_E_RUNTIME, &e);
	else if (a.status < 200 || a.status > 299)
		(void)hr_err_set(err, HR_E_RUNTIME, "status %ld", a.status);
	else
		r = read_token(&a.body, hr_token_names[provider], ret, err);
	hr_http_free(http);
	return r;
}

static void
refresh_one(struct hr_sandbox *s, int provider, struct hr_strv *out)
{
	const char *web_host = hr_env_get(hr_strv_list(&s->environ), "WEB_HOST");
	struct hr_err e = {0};
	HR_FREE char *entry = NULL;

	if (web_host == NULL) {
		hr_strv_addf(out, "%s=%s", hr_token_names[provider], hr_token(s, provider));
	} else if (ask(s, web_host, provider, &entry, &e) != 0) {
		hr_sandbox_log(
		    s, "no new token of %s came from WEB_HOST: %s", providers[provider], e.msg);
	} else {
		hr_mask_token(s, entry);
		hr_strv_add(out, entry);
	}
}

void
hr_tokens_refresh(struct hr_sandbox *s, const char *command)
{
	struct hr_err e = {0};
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	int i;

	for (i = 0; i < HR_PROVIDERS; i++)
		if (hr_token(s, i) != NULL && strcasestr(command, hr_token_names[i]) != NULL)
			refresh_one(s, i, &env);
	if (env.failed)
		hr_sandbox_log(s, "out of memory");
	else if (env.n > 0 && hr_sandbox_add_env(s, hr_strv_list(&env), &e) != 0)
		hr_sandbox_log(s, "tokens were not given to the sandbox: %s", e.msg);
}
