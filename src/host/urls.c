/* Addresses for a person's browser (doc/host.md, "Addresses for people"). */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "host/common/error.h"
#include "host/sandbox.h"
#include "http/http.h"
#include "proto/json.h"

#define URL_MAX 65536
#define TOKEN_TIMEOUT_S 10

/* How the sandbox is reached from elsewhere; empty: on this machine. */
static void
public_url(struct hr_buf *b, const struct hr_sandbox *s)
{
	static const char place[] = "{runtime_id}";
	const char *const *e = s->host.environ;
	const char *given = hr_env_get(e, "RUNTIME_URL"), *id = hr_env_get(e, "RUNTIME_ID"), *at;
	const char *pattern = hr_env_get(e, "RUNTIME_URL_PATTERN");

	if (strcmp(s->ops->name, "local") != 0)
		return;
	if (given != NULL) {
		hr_buf_adds(b, given);
	} else if (pattern != NULL && id != NULL) {
		for (; (at = strstr(pattern, place)) != NULL; pattern = at + sizeof(place) - 1) {
			hr_buf_add(b, pattern, (size_t)(at - pattern));
			hr_buf_adds(b, id);
		}
		hr_buf_adds(b, pattern);
	}
}

/* "http://localhost:PORT", "https://PREFIX-HOST" or "https://HOST/ID/PREFIX" */
static void
put_address(struct hr_buf *b, const struct hr_sandbox *s, const char *prefix, int port)
{
	const char *id = hr_env_get(s->host.environ, "RUNTIME_ID"), *url, *host, *path;
	const char *docker = hr_env_get(s->host.environ, "DOCKER_HOST_ADDR");
	const char *local = hr_config_text(s->config, "sandbox.local_runtime_url");
	size_t n = id != NULL ? strlen(id) : 0;
	struct hr_buf given;

	hr_buf_init(&given, URL_MAX);
	public_url(&given, s);
	url = hr_buf_str(&given);
	host = strstr(url, "://");
	if (host == NULL || strstr(url, "localhost") != NULL) {
		if (given.len > 0)
			hr_buf_addf(b, "%s:%d", url, port);
		else if (strcmp(s->ops->name, "local") == 0 && local != NULL)
			hr_buf_addf(b, "%s:%d", local, port);
		else if (docker != NULL && strcmp(prefix, "vscode") != 0)
			hr_buf_addf(b, "http://%s:%d", docker, port);
		else
			hr_buf_addf(b, "http://localhost:%d", port);
	} else {
		host += 3;
		path = host + strcspn(host, "/");
		if (n > 0 && *path == '/' && strncmp(path + 1, id, n) == 0)
			hr_buf_addf(b, "%.*s/%s/%s", (int)(path - url), url, id, prefix);
		else
			hr_buf_addf(b, "%.*s%s-%.*s", (int)(host - url), url, prefix,
			    (int)(path - host), host);
	}
	hr_buf_done(&given);
}

/* *ret: the caller's; NULL: there is none. */
static int
connection_token(struct hr_sandbox *s, char **ret, struct hr_error *err)
{
	struct hr_http_request r = {.method = "GET",
	    .url = "/vscode/connection_token",
	    .timeout_s = TOKEN_TIMEOUT_S,
	    .watch_fd = -1};
	struct json_object *o = NULL;
	struct hr_json_error why;
	struct hr_http_answer a;
	const char *token;
	int rc = hr_client_send(&s->client, &r, &a, err);

	if (rc == 0 && (hr_json_decode(hr_buf_str(&a.body), a.body.len, &o, &why) != 0 ||
			   !json_object_is_type(o, json_type_object) ||
			   !json_object_object_get_ex(o, "token", NULL)))
		rc = hr_error_set(err, HR_ERROR_VALUE, "the server's answer is no token");
	token = hr_json_text_or(o, "token", "");
	if (rc == 0 && *token != '\0' && (*ret = strdup(token)) == NULL)
		rc = hr_error_nomem(err);
	json_object_put(o);
	hr_http_answer_done(&a);
	return rc;
}

/* A path with everything but its slashes as hr_http_escape() has it. */
static void
put_path(struct hr_buf *b, const char *path)
{
	char one[2] = "";

	for (; *path != '\0'; path++) {
		one[0] = *path;
		if (*path == '/')
			hr_buf_addc(b, '/');
		else
			hr_http_escape(b, one);
	}
}

int
hr_sandbox_vscode_url(struct hr_sandbox *s, char **ret_url, struct hr_error *err)
{
	const char *folder = s->endpoint.workspace;
	char *token = NULL, *url = NULL;
	struct hr_buf b;
	int rc = 0;

	if (!s->connected)
		return hr_error_set(err, HR_ERROR_RUNTIME, "the sandbox is not connected");
	if (folder == NULL)
		folder = hr_config_text(s->config, "core.workspace_mount_path_in_sandbox");
	if (s->endpoint.url != NULL && s->endpoint.vscode_port > 0)
		rc = connection_token(s, &token, err);
	if (rc == 0 && token != NULL) {
		hr_buf_init(&b, URL_MAX);
		put_address(&b, s, "vscode", s->endpoint.vscode_port);
		hr_buf_adds(&b, "/?tkn=");
		hr_http_escape(&b, token);
		hr_buf_adds(&b, "&folder=");
		put_path(&b, folder != NULL ? folder : "/workspace");
		url = hr_buf_take(&b);
		hr_buf_done(&b);
		rc = url != NULL ? 0 : hr_error_nomem(err);
	}
	free(token);
	if (rc == 0)
		*ret_url = url;
	return rc;
}

int
hr_sandbox_web_hosts(struct hr_sandbox *s, char **ret_json, struct hr_error *err)
{
	struct json_object *o = json_object_new_object(), *port;
	const char *const prefixes[] = {"work-1", "work-2"};
	struct hr_buf b;
	int bad = o == NULL;

	hr_buf_init(&b, URL_MAX);
	for (int i = 0; i < 2 && bad == 0; i++) {
		if (s->endpoint.app_ports[i] <= 0)
			continue;
		hr_buf_reset(&b);
		put_address(&b, s, prefixes[i], s->endpoint.app_ports[i]);
		port = json_object_new_int(s->endpoint.app_ports[i]);
		bad |= hr_buf_check(&b, NULL) != 0 || port == NULL ||
		       json_object_object_add(o, hr_buf_str(&b), port) != 0;
	}
	hr_buf_reset(&b);
	if (bad == 0 && hr_json_put(&b, o) == 0)
		*ret_json = hr_buf_take(&b);
	else
		bad = 1;
	json_object_put(o);
	hr_buf_done(&b);
	return bad == 0 && *ret_json != NULL ? 0 : hr_error_nomem(err);
}
