/* Handles tokens of git's providers. */
#include "config.h"

#include "host/life/tokens.h"

#include <string.h>

#include "base/err.h"
#include "base/text/text.h"
#include "host/client/rest.h"
#include "host/mask.h"
#include "host/report.h"
#include "proto/json.h"

#define REFRESH_TIMEOUT_S 30
#define URL_MAX 8192

const char *const hr_token_names[HR_PROVIDERS] = {
    "GITHUB_TOKEN", "GITLAB_TOKEN", "BITBUCKET_TOKEN", "ENTERPRISE_SSO_TOKEN"};

/* the names that the refreshing service uses */
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

void
hr_tokens_place(struct hr_sandbox *s)
{
	HR_FREE char *rules = NULL;
	HR_PUT struct json_object *o = NULL;
	size_t i;

	if (s->tokens.n == 0)
		return;
	s->tokens_stay = hr_sandbox_network(s, &rules, NULL) < 0 || rules != NULL;
	if (s->tokens_stay && rules != NULL)
		(void)hr_json_decode(rules, strlen(rules), &o, NULL);
	for (i = 0; s->tokens_stay && i < HR_PROVIDERS; i++)
		if (hr_token(s, (int)i) != NULL &&
		    hr_json_at(hr_json_at(o, "credentials"), hr_token_names[i]) == NULL)
			hr_sandbox_log(s,
			    "%s stays outside: the rules of the network have no credential of this "
			    "name, and allow no host that it is for",
			    hr_token_names[i]);
}

int
hr_tokens_give(struct hr_sandbox *s, struct hr_err *err)
{
	return s->tokens_stay ? 0 : hr_sandbox_add_env(s, hr_strv_list(&s->tokens), err);
}

char *
hr_tokens_base(const char *name, const char *host, struct hr_err *err)
{
	const char *rest = strstr(host, "://");
	bool plain = strncmp(host, "http://", 7) == 0;
	char *base = NULL;

	rest = rest != NULL ? rest + 3 : host;
	if (plain && !hr_text_is_here(rest)) {
		(void)hr_err_set(err, HR_E_INVAL,
		    "%s: must be https; http is allowed for this machine only", name);
	} else if (*rest == '\0' || strspn(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
						 "WXYZ0123456789.-:_") != strlen(rest)) {
		(void)hr_err_set(err, HR_E_INVAL, "%s is not a host name: %.200s", name, host);
	} else {
		(void)hr_text_setf(&base, err, "%s%s", plain ? "http://" : "https://", rest);
	}
	return base;
}

/* Requests {"token": "..."} and sets NAME=... from it; the caller owns *ret. */
static int
ask(struct hr_sandbox *s, const char *web_host, int provider, char **ret, struct hr_err *err)
{
	HR_FREE char *base = hr_tokens_base("WEB_HOST", web_host, err);
	const struct hr_rest_options o = {
	    .url = base, .rules = hr_rest_once, .timeout_s = REFRESH_TIMEOUT_S, .watch_fd = -1};
	HR_CLEAN(hr_rest_clean) struct hr_rest *rest = base != NULL ? hr_rest_new(&o, err) : NULL;
	HR_PUT struct json_object *answer = NULL;
	HR_BUF(path, URL_MAX);

	if (rest == NULL)
		return -1;
	hr_buf_addf(&path, "/api/refresh-tokens?provider=%s&sid=", providers[provider]);
	hr_http_escape(&path, s->sid);
	if (hr_rest_header(rest, "X-Session-API-Key", hr_sandbox_session_api_key(s), true, err) !=
		0 ||
	    hr_rest_get(rest, hr_buf_str(&path), &answer, err) != 0)
		return -1;
	if (hr_json_text_at(answer, "token") == NULL)
		return hr_err_set(err, HR_E_INVAL, "the answer has no token");
	return hr_text_setf(
	    ret, err, "%s=%s", hr_token_names[provider], hr_json_text_at(answer, "token"));
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
		    s, "WEB_HOST sent no new token for %s: %s", providers[provider], e.msg);
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

	for (i = 0; i < HR_PROVIDERS && !s->tokens_stay; i++)
		if (hr_token(s, i) != NULL && strcasestr(command, hr_token_names[i]) != NULL)
			refresh_one(s, i, &env);
	if (env.failed)
		hr_sandbox_log(s, "out of memory");
	else if (env.n > 0 && hr_sandbox_add_env(s, hr_strv_list(&env), &e) != 0)
		hr_sandbox_log(s, "the tokens could not be passed to the sandbox: %s", e.msg);
}
