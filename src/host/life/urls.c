/* Makes addresses for a browser (doc/host.md, "Addresses for people"). */
#include "config.h"

#include "host/life/urls.h"

#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/err.h"
#include "base/text/text.h"
#include "host/life/action.h"
#include "host/mask.h"
#include "http/http.h"
#include "proto/json.h"

#define URL_MAX 65536
#define TOKEN_TIMEOUT_S 10
#define PAGE_TIMEOUT_S 10
#define PAGE_MAX 65536

/* Makes the editor's address, which the caller owns; *ret is NULL if there is no editor. */
static int
editor_address(struct hr_sandbox *s, char **ret, struct hr_err *err)
{
	*ret = NULL;
	if (s->endpoint.url == NULL)
		return 0;
	if (s->ops->vscode_url != NULL)
		return s->ops->vscode_url(s->self, ret, err);
	return s->endpoint.vscode_port > 0
		   ? hr_text_setf(ret, err, "http://localhost:%d/", s->endpoint.vscode_port)
		   : 0;
}

/* Fetches the editor's token, which the caller owns; *ret is NULL if there is none. */
static int
connection_token(struct hr_sandbox *s, char **ret, struct hr_err *err)
{
	struct hr_http_request req = {.method = "GET",
	    .url = "/vscode/connection_token",
	    .timeout_s = TOKEN_TIMEOUT_S,
	    .watch_fd = -1};
	HR_PUT struct json_object *o = NULL;
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	struct hr_json_error why = {0};
	const char *token;
	int r = hr_client_send(&s->client, &req, &a, err);

	if (r == 0 && (hr_json_decode_foreign(hr_buf_str(&a.body), a.body.len, &o, &why) < 0 ||
			  !json_object_is_type(o, json_type_object) ||
			  !json_object_object_get_ex(o, "token", NULL)))
		r = hr_json_err(err, HR_E_INVAL, &why, "the server's answer is not a token");
	token = hr_json_text_or(o, "token", "");
	if (r == 0 && *token != '\0' && (*ret = strdup(token)) == NULL)
		r = hr_err_nomem(err);
	return r;
}

int
hr_sandbox_vscode_url(struct hr_sandbox *s, char **ret_url, struct hr_err *err)
{
	HR_FREE char *token = NULL;
	HR_FREE char *address = NULL;
	HR_BUF(b, URL_MAX);

	if (!s->connected)
		return hr_err_set(err, HR_E_RUNTIME, "the sandbox is not connected");
	if (s->ops->web_url != NULL && s->endpoint.url != NULL) {
		/* an address is a process there, which only an editor is worth */
		if (connection_token(s, &token, err) != 0 ||
		    (token != NULL && editor_address(s, &address, err) != 0))
			return -1;
	} else if (editor_address(s, &address, err) != 0 ||
		   (address != NULL && connection_token(s, &token, err) != 0)) {
		return -1;
	}
	*ret_url = NULL;
	if (token == NULL)
		return 0;
	hr_buf_addf(&b, "%s?tkn=", address);
	hr_http_escape(&b, token);
	hr_buf_adds(&b, "&folder=");
	/* this is a path, so its slashes stay */
	hr_percent_encode(&b, hr_sandbox_workspace(s), "-_.~/");
	*ret_url = hr_buf_take(&b);
	return *ret_url != NULL ? 0 : hr_err_nomem(err);
}

int
hr_sandbox_web_url(struct hr_sandbox *s, char **ret, struct hr_err *err)
{
	*ret = NULL;
	if (s->endpoint.url == NULL)
		return 0;
	return s->ops->web_url != NULL ? s->ops->web_url(s->self, ret, err)
				       : hr_text_set(ret, s->endpoint.url, err);
}

int
hr_sandbox_page(struct hr_sandbox *s, char **ret_url, struct hr_err *err)
{
	struct hr_http_request req = {.method = "GET",
	    .url = "/handrail/",
	    .timeout_s = PAGE_TIMEOUT_S,
	    .total_s = PAGE_TIMEOUT_S,
	    .answer_max = PAGE_MAX,
	    .watch_fd = -1};
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	HR_FREE char *base = NULL;
	struct hr_err why = {0};
	const char *at;

	*ret_url = NULL;
	if (s->endpoint.url == NULL || (s->client.unix_socket != NULL && s->ops->web_url == NULL))
		return 0;
	/* below a path, as at a fleet, nothing is a page */
	at = strstr(s->endpoint.url, "://");
	if (at != NULL && strchr(at + strlen("://"), '/') != NULL)
		return 0;
	/* asks once: a page is worth no long wait, and no restart of a sandbox */
	if (hr_client_send_once(&s->client, &req, &a, &why) != 0) {
		hr_mask_error(s, &why);
		return why.code == HR_E_HTTP_STATUS && why.status / 100 == 4 /* no such path */
			   ? 0
			   : hr_err_pass(err, &why);
	}
	/* another server may answer at any path */
	if (memmem(hr_buf_str(&a.body), a.body.len, "<title>handrail", strlen("<title>handrail")) ==
	    NULL)
		return 0;
	if (s->ops->web_url != NULL && s->ops->web_url(s->self, &base, err) < 0)
		return -1;
	return hr_text_setf(ret_url, err, "%s/handrail/", base != NULL ? base : s->client.url);
}

int
hr_web_hosts_json(char *const urls[2], const int ports[2], char **ret, struct hr_err *err)
{
	HR_PUT struct json_object *o = json_object_new_object();
	int r = 0;
	size_t i;

	for (i = 0; r == 0 && i < 2; i++)
		if (urls[i] != NULL)
			r = hr_json_set(o, urls[i], json_object_new_int(ports[i]), err);
	*ret = r == 0 ? hr_json_string(o, URL_MAX, err) : NULL;
	return *ret != NULL ? 0 : -1;
}

int
hr_web_hosts_at(const char *host, const int ports[2], char **ret, struct hr_err *err)
{
	char *urls[2] = {NULL, NULL};
	int r = 0;
	size_t i;

	for (i = 0; i < 2; i++)
		if (ports[i] > 0)
			r |= hr_text_setf(&urls[i], err, "http://%s:%d", host, ports[i]);
	if (r == 0)
		r = hr_web_hosts_json(urls, ports, ret, err);
	free(urls[0]);
	free(urls[1]);
	return r;
}

int
hr_sandbox_web_hosts(struct hr_sandbox *s, char **ret_json, struct hr_err *err)
{
	return s->ops->web_hosts != NULL
		   ? s->ops->web_hosts(s->self, ret_json, err)
		   : hr_web_hosts_at("localhost", s->endpoint.app_ports, ret_json, err);
}
