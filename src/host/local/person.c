/* Implements the parts of the back-end "local" without a sandbox: its requirements, and addresses
 * for browsers here and elsewhere (doc/host.md, "Addresses for people"). */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/way.h"
#include "host/common/exam.h"
#include "host/local/local_int.h"
#include "host/life/urls.h"

#define URL_MAX 65536
#define RUN_BASE_MAX 62 /* bytes; longer paths do not fit the addresses of the sockets */

const char *
hr_local_run_base(const char *const *env)
{
	const char *tmp = hr_env_get(env, "TMPDIR");
	/* nginx's account cannot enter a checkout in /root */
	const char *roots[] = {HR_RUNSTATEDIR, "/run", tmp, "/tmp"};
	const char *users[] = {hr_env_get(env, "XDG_RUNTIME_DIR"), tmp, "/tmp"};

	return geteuid() == 0 ? hr_way_base(roots, 4, true, RUN_BASE_MAX)
			      : hr_way_base(users, 3, false, RUN_BASE_MAX);
}

/* Makes the address for access from elsewhere, or "" for access from this machine only. */
static void
public_url(struct hr_buf *b, const struct hr_local *l)
{
	static const char place[] = "{runtime_id}";
	const char *const *e = l->h->environ;
	const char *given = hr_env_get(e, "RUNTIME_URL"), *id = hr_env_get(e, "RUNTIME_ID"), *at;
	const char *pattern = hr_env_get(e, "RUNTIME_URL_PATTERN");

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

/* Makes "http://localhost:PORT", "https://PREFIX-HOST" or "https://HOST/ID/PREFIX", which the
 * caller frees. Returns NULL if memory runs out. */
static char *
address(const struct hr_local *l, const char *prefix, int port, const char *end)
{
	const char *id = hr_env_get(l->h->environ, "RUNTIME_ID"), *url, *host, *path;
	const char *base = hr_config_text(l->h->config, "sandbox.local_runtime_url");
	size_t n = id != NULL ? strlen(id) : 0;
	HR_BUF(given, URL_MAX);
	HR_BUF(b, URL_MAX);

	public_url(&given, l);
	url = hr_buf_str(&given);
	host = strstr(url, "://");
	if (host == NULL || strstr(url, "localhost") != NULL) {
		if (given.len == 0)
			url = base != NULL ? base : "http://localhost";
		hr_buf_addf(&b, "%s:%d%s", url, port, end);
	} else {
		host += 3;
		path = host + strcspn(host, "/");
		if (n > 0 && *path == '/' && strncmp(path + 1, id, n) == 0)
			hr_buf_addf(&b, "%.*s/%s/%s%s", (int)(path - url), url, id, prefix, end);
		else
			hr_buf_addf(&b, "%.*s%s-%.*s%s", (int)(host - url), url, prefix,
			    (int)(path - host), host, end);
	}
	return hr_buf_check(&given, NULL) == 0 ? hr_buf_take(&b) : NULL;
}

int
hr_local_vscode_url(void *self, char **ret, struct hr_err *err)
{
	struct hr_local *l = self;

	if (l->vscode_port <= 0)
		return 0;
	*ret = address(l, "vscode", l->vscode_port, "/");
	return *ret != NULL ? 0 : hr_err_nomem(err);
}

int
hr_local_web_hosts(void *self, char **ret_json, struct hr_err *err)
{
	static const char *const prefixes[] = {"work-1", "work-2"};
	struct hr_local *l = self;
	char *urls[2] = {NULL, NULL};
	int r = 0;
	size_t i;

	for (i = 0; i < 2 && r == 0; i++)
		if (l->app_ports[i] > 0 &&
		    (urls[i] = address(l, prefixes[i], l->app_ports[i], "")) == NULL)
			r = hr_err_nomem(err);
	if (r == 0)
		r = hr_web_hosts_json(urls, l->app_ports, ret_json, err);
	free(urls[0]);
	free(urls[1]);
	return r;
}

int
hr_local_doctor(void *self, hr_finding_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_local *l = self;
	const char *const *env = l->h->environ;
	const char *given = hr_env_get(env, "HANDRAIL_SERVER"), *base;
	char dir[PATH_MAX];

	(void)err;
	hr_exam_file(fn, arg, "handraild", given != NULL ? given : HR_SBINDIR "/handraild",
	    "Debian: apt-get install handrail-runtime; or name it in HANDRAIL_SERVER.");
	hr_exam_program(fn, arg, env, "bash", "Debian: apt-get install bash");
	hr_exam_program(fn, arg, env, "git", "Debian: apt-get install git");
	/* the server searches administrators' directories, too */
	if (access("/usr/sbin/nginx", X_OK) == 0)
		fn(arg, true, "nginx", "/usr/sbin/nginx");
	else
		hr_exam_program(fn, arg, env, "nginx", "Debian: apt-get install nginx-light");
	if (hr_config_bool(l->h->config, "core.enable_browser"))
		hr_exam_chromium(fn, arg, hr_env_get(env, "HANDRAIL_BROWSER_CHROMIUM"));
	hr_portlock_examine("127.0.0.1", fn, arg);
	base = hr_local_run_base(env);
	if (access(base, F_OK) == 0 && access(base, W_OK | X_OK) != 0)
		hr_exam_say(
		    fn, arg, false, "run directory", "%s: %s; set TMPDIR", base, strerror(errno));
	else if (geteuid() == 0 && hr_way_barred(base, NULL, dir))
		hr_exam_say(fn, arg, false, "run directory",
		    "%s: nginx's account cannot enter it; chmod o+x %s", base, dir);
	else
		hr_exam_say(fn, arg, true, "run directory", "in %s", base);
	return 0;
}
