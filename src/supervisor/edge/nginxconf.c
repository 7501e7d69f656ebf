/* What nginx is configured with. Invariant: the configuration in DIR/nginx/nginx.conf is one that
 * nginx accepted, or the first one of this start. */
#include "config.h"

#include "supervisor/edge/nginxconf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/spawn.h"
#include "base/template.h"
#include "supervisor/edge/barrier.h"
#include "supervisor/edge/edge.h"
#include "supervisor/edge/nginxplugins.h"
#include "supervisor/run/context.h"

/* Of a head, beyond the kilobyte that nginx reads first: what is passed on of it goes into one
 * record of FastCGI, 65535 bytes with the names of its parts. */
#define HEAD_MAX (62 << 10)

struct values {
	char numbers[16][24];
	size_t nnumbers;
	struct hr_place v[48];
	size_t n;
	struct hr_buf user, access_log, http, locations, plugins, site, viewer, www, mcp, swerex,
	    v1;
	struct hr_edge edge;
};

static void
values_add(struct values *v, const char *name, const char *value, bool whole)
{
	hr_assert(v->n < sizeof(v->v) / sizeof(v->v[0]));
	v->v[v->n++] = (struct hr_place){name, value, whole};
}

static void
values_number(struct values *v, const char *name, long long n)
{
	char *text = v->numbers[v->nnumbers];

	hr_assert(v->nnumbers < sizeof(v->numbers) / sizeof(v->numbers[0]));
	(void)snprintf(text, sizeof(v->numbers[0]), "%lld", n);
	v->nnumbers++;
	values_add(v, name, text, false);
}

void
hr_site_init(struct hr_site *s, const struct hr_context *ctx, const struct hr_plugins *plugins)
{
	memset(s, 0, sizeof(*s));
	s->ctx = ctx;
	s->plugins = plugins;
	s->listener = s->viewer.fd = s->viewer.port = -1;
}

/* What the kernel grants; nginx complains about more. */
long long
hr_nginx_connections(const struct hr_site *s, const struct hr_settings *c)
{
	long long want = c->nginx_connections > s->grown ? c->nginx_connections : s->grown;
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY &&
	    want > (long long)lim.rlim_cur)
		return (long long)lim.rlim_cur;
	return want;
}

static void
values_init(struct values *v, const struct hr_site *s, const struct hr_settings *c)
{
	enum hr_log_level level = HR_LOG_INFO;

	memset(v, 0, sizeof(*v));
	hr_buf_init(&v->user, 256);
	hr_buf_init(&v->access_log, 4096);
	hr_buf_init(&v->http, 65536);
	hr_buf_init(&v->locations, 65536);
	hr_buf_init(&v->plugins, 65536);
	hr_buf_init(&v->site, 1 << 18);
	hr_buf_init(&v->viewer, 65536);
	hr_buf_init(&v->www, 65536);
	hr_buf_init(&v->mcp, 65536);
	hr_buf_init(&v->swerex, 65536);
	hr_buf_init(&v->v1, 65536);
	values_add(v, "run_dir", s->ctx->run.path, false);
	values_add(v, "listen", s->listen.text, false);
	values_number(v, "nginx_workers", c->nginx_workers);
	values_number(v, "nginx_connections", hr_nginx_connections(s, c));
	values_number(v, "client_max_body_bytes", c->client_max_body_bytes);
	values_number(v, "client_header_timeout", c->client_header_timeout);
	values_number(v, "client_body_timeout", c->client_body_timeout);
	values_number(v, "keepalive_timeout", c->keepalive_timeout);
	values_number(v, "fastcgi_timeout", c->fastcgi_timeout);
	values_number(v, "client_send_timeout", c->client_send_timeout);
	values_number(v, "client_max_header_bytes",
	    c->client_max_header_bytes < HEAD_MAX ? c->client_max_header_bytes : HEAD_MAX);
	values_number(v, "viewer_limit", HR_VIEWER_PLACES);
	values_number(v, "action_limit", c->action_workers_max);
	values_number(v, "live_limit", c->live_workers_max);
	(void)hr_log_level_parse(c->log_level, &level); /* was checked */
	/* never "info": there it quotes lines of a client's head that it refuses, with the key */
	values_add(v, "error_level", level == HR_LOG_DEBUG ? "notice" : "warn", false);
}

static int
values_edge(struct values *v, const struct hr_site *s, const struct hr_settings *c,
    const struct hr_keys *keys, struct hr_err *err)
{
	if (hr_edge_compose(&v->edge, c, keys, err) < 0)
		return -1;
	hr_nginx_plugins(
	    &v->plugins, s->plugins, s->ctx->run.path, hr_buf_str(&v->edge.live_limits));
	if (hr_buf_check(&v->plugins, err) < 0)
		return -1;
	values_add(v, "plugins", hr_buf_str(&v->plugins), true);
	values_add(v, "gate", hr_buf_str(&v->edge.gate), true);
	values_add(v, "known_key", hr_buf_str(&v->edge.known_key), true);
	values_add(v, "listen_more", hr_buf_str(&v->edge.listen), true);
	values_add(v, "tls", hr_buf_str(&v->edge.tls), true);
	values_add(v, "limit_zones", hr_buf_str(&v->edge.zones), true);
	values_add(v, "limits", hr_buf_str(&v->edge.limits), true);
	values_add(v, "action_limits", hr_buf_str(&v->edge.action_limits), true);
	values_add(v, "live_limits", hr_buf_str(&v->edge.live_limits), true);
	return 0;
}

static int fill(struct hr_buf *out, const struct hr_site *s, const char *file,
    const struct values *v, struct hr_err *err);

/* The door for agents: where it was asked for, or nobody from elsewhere comes to it. */
static int
values_mcp(
    struct values *v, const struct hr_site *s, const struct hr_settings *c, struct hr_err *err)
{
	bool open = !s->listen.public;

	if (c->mcp[0] != '\0')
		(void)hr_settings_parse_bool(c->mcp, &open); /* was checked */
	values_add(v, "mcp_gate", v->edge.gate.len > 0 ? "\tauth_request /-/door;\n" : "", true);
	if (open && fill(&v->mcp, s, "handrail-mcp.conf.in", v, err) != 0)
		return -1;
	if (!open) /* a worker says that there is no such path */
		hr_buf_addf(&v->mcp,
		    "location = /handrail/mcp {\n%s\tfastcgi_pass handrail_control;\n}\n",
		    hr_buf_str(&v->edge.gate));
	if (hr_buf_check(&v->mcp, err) < 0)
		return -1;
	values_add(v, "mcp", hr_buf_str(&v->mcp), true);
	return 0;
}

/* That of SWE-ReX: only where it was asked for. */
static int
values_swerex(
    struct values *v, const struct hr_site *s, const struct hr_settings *c, struct hr_err *err)
{
	values_add(v, "swerex_open", c->swerex ? "1" : "", true);
	values_add(
	    v, "swerex_gate", v->edge.gate.len > 0 ? "\tauth_request /-/swerex;\n" : "", true);
	if (c->swerex && fill(&v->swerex, s, "handrail-swerex.conf.in", v, err) != 0)
		return -1;
	if (hr_buf_check(&v->swerex, err) < 0)
		return -1;
	values_add(v, "swerex", hr_buf_str(&v->swerex), true);
	return 0;
}

/* That of OpenHands V1, as well. */
static int
values_v1(
    struct values *v, const struct hr_site *s, const struct hr_settings *c, struct hr_err *err)
{
	values_add(v, "openhands_open", c->openhands_v1 ? "1" : "", true);
	if (c->openhands_v1 && fill(&v->v1, s, "handrail-v1.conf.in", v, err) != 0)
		return -1;
	if (hr_buf_check(&v->v1, err) < 0)
		return -1;
	values_add(v, "openhands", hr_buf_str(&v->v1), true);
	return 0;
}

static int
fill(struct hr_buf *out, const struct hr_site *s, const char *file, const struct values *v,
    struct hr_err *err)
{
	char *path = hr_path_join(s->ctx->datadir, file);
	struct hr_buf text;
	int r;

	if (path == NULL)
		return hr_err_nomem(err);
	hr_buf_init(&text, 65536);
	r = hr_path_read(path, &text, err);
	if (r == 0) {
		r = hr_template_fill(out, hr_buf_str(&text), text.len, v->v, v->n, err);
		if (r != 0)
			hr_err_prefix(err, "%s", path);
	}
	hr_buf_done(&text);
	free(path);
	return r;
}

static int
values_www(
    struct values *v, const struct hr_site *s, const struct hr_settings *c, struct hr_err *err)
{
	if (s->ctx->www != NULL && strcmp(c->page_rights, "none") != 0) {
		values_add(v, "www_dir", s->ctx->www, false);
		if (fill(&v->www, s, "handrail-www.conf.in", v, err) != 0)
			return -1;
	}
	values_add(v, "www", hr_buf_str(&v->www), true);
	return 0;
}

/* The site holds the other two and the log as whole directives. */
static int
fill_site(struct hr_buf *out, const struct hr_site *s, const struct hr_settings *c,
    struct values *v, struct hr_err *err)
{
	if (strcmp(c->access_log, "off") != 0) {
		const struct hr_place path = {"access_log", c->access_log, false};

		if (hr_template_fill(
			&v->access_log, "access_log @access_log@ handrail;", 33, &path, 1, err) < 0)
			return -1;
	}
	values_add(v, "access_log", hr_buf_str(&v->access_log), true);
	if (s->viewer.fd >= 0) {
		values_number(v, "viewer_port", s->viewer.port);
		if (fill(&v->viewer, s, "handrail-viewer.conf.in", v, err) != 0)
			return -1;
	}
	values_add(v, "viewer", hr_buf_str(&v->viewer), true);
	if (fill(&v->http, s, "handrail-http.conf.in", v, err) != 0 ||
	    fill(&v->locations, s, "handrail-locations.conf.in", v, err) != 0)
		return -1;
	values_add(v, "http", hr_buf_str(&v->http), true);
	values_add(v, "locations", hr_buf_str(&v->locations), true);
	return fill(out, s, "handrail-site.conf.in", v, err);
}

/* nginx.conf holds the site and the account. */
static int
fill_all(struct hr_buf *out, const struct hr_site *s, const struct hr_settings *c, struct values *v,
    struct hr_err *err)
{
	if (s->ctx->id.nginx_user != NULL)
		hr_buf_addf(&v->user, "user %s %s;", s->ctx->id.nginx_user, s->ctx->id.nginx_group);
	if (hr_buf_check(&v->user, err) < 0 || fill_site(&v->site, s, c, v, err) != 0)
		return -1;
	values_add(v, "user", hr_buf_str(&v->user), true);
	values_add(v, "site", hr_buf_str(&v->site), true);
	return fill(out, s, "nginx.conf.in", v, err);
}

int
hr_nginx_compose(struct hr_buf *out, const char *part, const struct hr_site *s,
    const struct hr_settings *c, const struct hr_keys *keys, struct hr_err *err)
{
	struct values v;
	int r;

	values_init(&v, s, c);
	if (values_edge(&v, s, c, keys, err) < 0 || values_www(&v, s, c, err) < 0)
		r = -1;
	else if (values_mcp(&v, s, c, err) < 0 || values_swerex(&v, s, c, err) < 0 ||
		 values_v1(&v, s, c, err) < 0)
		r = -1;
	else if (strcmp(part, "http") == 0)
		r = fill(out, s, "handrail-http.conf.in", &v, err);
	else if (strcmp(part, "server") == 0)
		r = fill(out, s, "handrail-locations.conf.in", &v, err);
	else if (strcmp(part, "site") == 0)
		r = fill_site(out, s, c, &v, err);
	else
		r = fill_all(out, s, c, &v, err);
	hr_edge_done(&v.edge);
	hr_buf_done(&v.user);
	hr_buf_done(&v.access_log);
	hr_buf_done(&v.http);
	hr_buf_done(&v.locations);
	hr_buf_done(&v.plugins);
	hr_buf_done(&v.site);
	hr_buf_done(&v.viewer);
	hr_buf_done(&v.www);
	hr_buf_done(&v.mcp);
	hr_buf_done(&v.swerex);
	hr_buf_done(&v.v1);
	return r;
}

static int
test_file(const struct hr_settings *c, const char *dir, const char *file, struct hr_err *err)
{
	const char *argv[] = {c->nginx, "-t", "-q", "-e", "stderr", "-p", dir, "-c", file, NULL};
	char said[sizeof(err->msg)];
	int status = hr_spawn_wait(argv, said, sizeof(said), err);

	if (status < 0)
		return -1;
	said[strcspn(said, "\n")] = '\0';
	return status == 0
		   ? 0
		   : hr_err_set(err, HR_E_INVAL, "nginx refuses its configuration: %s", said);
}

static int
compose_file(struct hr_buf *out, const struct hr_site *s, const struct hr_settings *c,
    const struct hr_keys *keys, struct hr_err *err)
{
	if (hr_nginx_compose(out, "all", s, c, keys, err) != 0)
		return -1;
	hr_buf_adds(out, HR_BARRIER_LINE);
	return hr_buf_check(out, err);
}

int
hr_nginx_configure(const struct hr_site *s, const struct hr_settings *c, const struct hr_keys *keys,
    bool test, struct hr_err *err)
{
	char *dir = hr_rundir_file(&s->ctx->run, "nginx"), *file = NULL, *fresh = NULL;
	struct hr_buf text;
	int r = -1;

	hr_buf_init(&text, 1 << 18);
	if (dir != NULL) {
		file = hr_path_join(dir, "nginx.conf");
		fresh = hr_path_join(dir, "nginx.conf.new");
	}
	if (file == NULL || fresh == NULL)
		(void)hr_err_nomem(err);
	else if (compose_file(&text, s, c, keys, err) == 0 &&
		 hr_path_write(fresh, hr_buf_str(&text), text.len, 0600, err) == 0 &&
		 (!test || test_file(c, dir, fresh, err) == 0))
		r = rename(fresh, file) == 0 ? 0 : hr_err_sys(err, errno, "%s", file);
	if (r != 0 && fresh != NULL)
		(void)unlink(fresh);
	hr_buf_done(&text);
	free(dir);
	free(file);
	free(fresh);
	return r;
}
