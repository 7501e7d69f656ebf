/* nginx: its configuration from the templates of the data directory, and its process, which ends
 * with ours. */
#include "config.h"

#include "fleet/edge.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/spawn.h"
#include "base/template.h"

#define TEXT_MAX (1u << 20)
#define MORE_S 30 /* than the service lets anybody wait */

static int
fill(struct hr_buf *out, const struct hr_fleet_edge *e, const char *name,
    const struct hr_place *more, size_t nmore, struct hr_err *err)
{
	struct hr_place places[12] = {{"run_dir", e->run_dir, false}, {"listen", e->listen, false},
	    {"fastcgi_timeout", NULL, false}};
	char *path = NULL, seconds[16];
	struct hr_buf text;
	size_t n = 3;
	int rc;

	(void)snprintf(seconds, sizeof(seconds), "%u", e->patience_s + MORE_S);
	places[2].value = seconds;
	for (size_t i = 0; i < nmore; i++)
		places[n++] = more[i];
	hr_buf_init(&text, TEXT_MAX);
	if (asprintf(&path, "%s/%s", e->data_dir, name) < 0) {
		path = NULL;
		rc = hr_err_nomem(err);
	} else if ((rc = hr_path_read(path, &text, err)) == 0) {
		rc = hr_template_fill(out, hr_buf_str(&text), text.len, places, n, err);
		if (rc != 0)
			hr_err_prefix(err, "%s", name);
	}
	hr_buf_done(&text);
	free(path);
	return rc;
}

static int
compose_server(struct hr_buf *out, const struct hr_fleet_edge *e, struct hr_err *err)
{
	struct hr_place routes = {"routes", NULL, true};
	struct hr_buf b;
	int rc;

	hr_buf_init(&b, TEXT_MAX);
	rc = fill(&b, e, "handrail-fleet-routes.conf.in", NULL, 0, err);
	routes.value = hr_buf_str(&b);
	if (rc == 0)
		rc = fill(out, e, "handrail-fleet-server.conf.in", &routes, 1, err);
	hr_buf_done(&b);
	return rc;
}

/* What belongs into a server { } for the names of sandboxes. */
static int
compose_routes(struct hr_buf *out, const struct hr_fleet_edge *e, struct hr_err *err)
{
	if (fill(out, e, "handrail-fleet-routes.conf.in", NULL, 0, err) != 0)
		return -1;
	/* whatever a sandbox says, its cookies are its own */
	hr_buf_adds(out, "proxy_cookie_domain ~. $host;\n");
	return 0;
}

static int
compose_wildcard(struct hr_buf *out, const struct hr_fleet_edge *e, struct hr_err *err)
{
	if (e->domain == NULL)
		return 0;
	for (const char *p = e->domain; *p != '\0'; p++)
		if (strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789.-") == 0)
			return hr_err_set(err, HR_E_INVAL,
			    "\"%.100s\" is no domain: small letters, digits, '.' and '-'",
			    e->domain);
	hr_buf_addf(out, "server {\nlisten %s;\nserver_name *.%s;\n", e->listen, e->domain);
	if (compose_routes(out, e, err) != 0)
		return -1;
	hr_buf_adds(out, "}\n");
	return 0;
}

static int
compose_all(struct hr_buf *out, const struct hr_fleet_edge *e, struct hr_err *err)
{
	struct hr_buf http, server, wildcard;
	struct hr_place places[4] = {{"http", NULL, true}, {"server", NULL, true},
	    {"wildcard", NULL, true}, {"user", "", true}};
	char user[80] = "";
	int rc;

	hr_buf_init(&http, TEXT_MAX);
	hr_buf_init(&server, TEXT_MAX);
	hr_buf_init(&wildcard, TEXT_MAX);
	if (e->user != NULL) {
		(void)snprintf(user, sizeof(user), "user %s;", e->user);
		places[3].value = user;
	}
	rc = fill(&http, e, "handrail-fleet-http.conf.in", NULL, 0, err);
	if (rc == 0)
		rc = compose_server(&server, e, err);
	if (rc == 0)
		rc = compose_wildcard(&wildcard, e, err);
	places[0].value = hr_buf_str(&http);
	places[1].value = hr_buf_str(&server);
	places[2].value = hr_buf_str(&wildcard);
	if (rc == 0)
		rc = fill(out, e, "handrail-fleet.conf.in", places, 4, err);
	hr_buf_done(&http);
	hr_buf_done(&server);
	hr_buf_done(&wildcard);
	return rc;
}

int
hr_fleet_edge_compose(
    struct hr_buf *out, const char *part, const struct hr_fleet_edge *e, struct hr_err *err)
{
	int rc = -1;

	if (strcmp(part, "http") == 0)
		rc = fill(out, e, "handrail-fleet-http.conf.in", NULL, 0, err);
	else if (strcmp(part, "server") == 0)
		rc = compose_server(out, e, err);
	else if (strcmp(part, "routes") == 0)
		rc = compose_routes(out, e, err);
	else if (strcmp(part, "wildcard") == 0 && e->domain == NULL)
		rc = hr_err_set(err, HR_E_INVAL, "there is no --domain");
	else if (strcmp(part, "wildcard") == 0)
		rc = compose_wildcard(out, e, err);
	else if (strcmp(part, "all") == 0)
		rc = compose_all(out, e, err);
	else
		rc = hr_err_set(err, HR_E_INVAL,
		    "\"%.40s\" is no part: http, server, routes, wildcard or all", part);
	return rc == 0 ? hr_buf_check(out, err) : -1;
}

pid_t
hr_fleet_edge_start(const struct hr_fleet_edge *e, struct hr_err *err)
{
	static const struct hr_spawn_fd fds[] = {{2, 2}};
	struct hr_buf conf;
	char *path = NULL;
	pid_t pid = -1;

	hr_buf_init(&conf, TEXT_MAX);
	if (asprintf(&path, "%s/nginx.conf", e->run_dir) < 0) {
		path = NULL;
		(void)hr_err_nomem(err);
	} else if (hr_fleet_edge_compose(&conf, "all", e, err) == 0 &&
		   hr_path_write(path, conf.p, conf.len, 0600, err) == 0) {
		const char *const argv[] = {
		    "nginx", "-p", e->run_dir, "-e", "stderr", "-c", path, NULL};
		struct hr_spawn sp = {.path = HR_NGINX_PATH,
		    .argv = argv,
		    .fds = fds,
		    .nfds = 1,
		    .pdeathsig = SIGTERM,
		    .setpgid = true,
		    .umask = -1};

		pid = hr_spawn(&sp, err);
	}
	free(path);
	hr_buf_done(&conf);
	return pid;
}
