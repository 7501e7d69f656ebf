/* Composes nginx's configuration. Invariant: DIR/nginx/nginx.conf is a configuration that nginx
 * accepted, or the first one of this start. */
#include "config.h"

#include "supervisor/edge/nginxconf.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "base/text/template.h"
#include "supervisor/edge/barrier.h"
#include "supervisor/edge/edge.h"
#include "supervisor/edge/nginxplugins.h"
#include "supervisor/run/context.h"
#include "supervisor/run/keys.h"
#include "supervisor/settings/origins.h"

/* bytes of a request head beyond the kilobyte that nginx reads first: the part that is passed on
 * must fit one FastCGI record, 65535 bytes with the names of its parts */
#define HEAD_MAX (62 << 10)

/* names by which a browser on this machine or in its network reaches this server. Any owner of a
 * domain can make a public name resolve to it ("DNS rebinding"), and a page of that name would have
 * this server's origin; names without a dot and of these zones are not public. nginx has checked
 * and lower-cased $host */
#define OWN_HOSTS "_|localhost|[^.:]+|.+[.]localhost|127([.][0-9]+){3}|\\[::1\\]"
#define NETWORK_HOSTS "|[0-9.]+|\\[[0-9a-f:.]+\\]|.+[.]internal|.+[.]local"
#define CHECK_HOST                                                                                 \
	"\tset $handrail_host %s;\n"                                                               \
	"\tif ($host ~ \"^(%s%s)$\") {\n\t\tset $handrail_host 1;\n\t}\n"                          \
	"\tif ($handrail_host = \"\") {\n"                                                         \
	"\t\treturn 403 '{\"detail\":\"This server asks for no key and has no such name: use "     \
	"localhost, or add the name in the header Host to allowed_hosts\"}';\n\t}\n"

/* Passes a request to a program of the sandbox. The connection of the client ends with the answer:
 * nginx takes one that is not HTTP for HTTP/0.9, and its rest would answer the next request. */
#define PASS_TO_PORT                                                                               \
	"\tkeepalive_timeout 0;\n"                                                                 \
	"\tproxy_set_header Host $http_host;\n"                                                    \
	"\tproxy_set_header Upgrade $http_upgrade;\n"                                              \
	"\tproxy_set_header Connection $http_connection;\n"                                        \
	"\tproxy_set_header X-Session-API-Key \"\";\n"                                             \
	"\tproxy_set_header X-API-Key \"\";\n"                                                     \
	"\tproxy_set_header X-Handrail-Page \"\";\n"                                               \
	"\tproxy_set_header X-Handrail-Origin \"\";\n"                                             \
	"\tproxy_set_header X-Handrail-Scheme \"\";\n"                                             \
	"\tproxy_ignore_headers X-Accel-Redirect X-Accel-Expires X-Accel-Limit-Rate "              \
	"X-Accel-Buffering X-Accel-Charset;\n"                                                     \
	"\terror_page 404 = @handrail_unknown;\n"                                                  \
	"\terror_page 418 = @handrail_port_own;\n"                                                 \
	"\terror_page 421 = @handrail_port_ask;\n"                                                 \
	"\terror_page 500 = @handrail_failed;\n"                                                   \
	"\terror_page 502 503 504 = @handrail_port_away;\n"                                        \
	"\tproxy_ssl_server_name on;\n"                                                            \
	"\tproxy_ssl_name $http_host;\n"                                                           \
	"\tproxy_pass "                                                                            \
	"$handrail_port_scheme://$handrail_port_host:$handrail_port$handrail_port_path;\n"

/* headers of an answer that a page of another origin may read; nginx leaves out empty ones */
#define V1_HEADERS                                                                                 \
	"\tadd_header Vary $handrail_cors_vary always;\n"                                          \
	"\tadd_header Access-Control-Allow-Origin $handrail_cors_origin always;\n"                 \
	"\tadd_header Access-Control-Allow-Credentials $handrail_cors_credentials always;\n"

/* length of the longest DNS name; nginx.conf.in makes room for it in a map */
#define HOST_MAX 253

struct values {
	char numbers[16][24];
	size_t nnumbers;
	struct hr_place v[64];
	size_t n;
	struct hr_buf parts[20];
	size_t nparts;
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

/* Caps the number at the kernel's limit, about which nginx would complain. */
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
	values_add(v, "run_dir", s->ctx->run.path, false);
	values_add(v, "listen", s->listen.nginx, false);
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
	(void)hr_log_level_parse(c->log_level, &level); /* the value was checked before */
	/* the level is never "info": there nginx quotes lines of a refused request head, with the
	 * key */
	values_add(v, "error_level", level == HR_LOG_DEBUG ? "notice" : "warn", false);
}

static int
fill(struct hr_buf *out, const struct hr_site *s, const char *file, const struct values *v,
    struct hr_err *err)
{
	HR_BUF(text, 65536);
	HR_FREE char *path = hr_path_join(s->ctx->datadir, file);
	int r;

	if (path == NULL)
		return hr_err_nomem(err);
	r = hr_path_read(path, &text, err);
	if (r == 0) {
		r = hr_template_fill(out, hr_buf_str(&text), text.len, v->v, v->n, err);
		if (r != 0)
			hr_err_prefix(err, "%s", path);
	}
	return r;
}

/* Returns an empty buffer for a value; it lives as long as v. */
static struct hr_buf *
part_new(struct values *v)
{
	hr_assert(v->nparts < sizeof(v->parts) / sizeof(v->parts[0]));
	hr_buf_init(&v->parts[v->nparts], 1 << 18);
	return &v->parts[v->nparts++];
}

/* Adds the value `name`: the content of part, followed by the filled file unless NULL. */
static int
part_add(struct values *v, const char *name, struct hr_buf *part, const struct hr_site *s,
    const char *file, struct hr_err *err)
{
	if ((file != NULL && fill(part, s, file, v, err) != 0) || hr_buf_check(part, err) < 0)
		return -1;
	values_add(v, name, hr_buf_str(part), true);
	return 0;
}

static bool
has_page(const struct hr_site *s, const struct hr_settings *c)
{
	return s->ctx->www != NULL && strcmp(c->page_rights, "none") != 0;
}

/* Appends a key of the map, in lower case: nginx refuses duplicates. Names without a dot are in
 * OWN_HOSTS already, and some of them have another meaning in a map. */
static void
put_key(struct hr_buf *b, const char *before, const char *name, size_t len)
{
	char line[HOST_MAX + 16], *p;

	if (memchr(name, '.', len) == NULL && memchr(name, ':', len) == NULL &&
	    memchr(name, '*', len) == NULL)
		return;
	(void)snprintf(line, sizeof(line), "\n\t%s%.*s 1;\n", before, (int)len, name);
	for (p = line; *p != '\0'; p++)
		*p = (char)tolower((unsigned char)*p);
	if (strstr(hr_buf_str(b), line) == NULL)
		hr_buf_adds(b, line + 1);
}

static int
put_host(struct hr_buf *b, const char *name, size_t len, struct hr_err *err)
{
	static const char good[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.*:[]";

	if (len > HOST_MAX || strspn(name, good) < len ||
	    (name[0] != '[' && memchr(name, ':', len) != NULL))
		return hr_err_set(err, HR_E_INVAL,
		    "allowed_hosts: \"%.*s\" must be a host name without a port, an address or "
		    "\"*\"",
		    (int)len, name);
	/* nginx reads ".x" as "x" and "*.x" */
	if (*name == '.') {
		put_key(b, "*", name, len);
		name++;
		len--;
	}
	put_key(b, "", name, len);
	return 0;
}

/* Adds the check of host names, which only a server without keys needs: a rebound page can show
 * neither a key nor a client certificate. */
static int
values_hosts(struct values *v, const struct hr_site *s, const struct hr_settings *c,
    const struct hr_keys *keys, struct hr_err *err)
{
	struct hr_buf *map = part_new(v), *check = part_new(v), *viewer = part_new(v);
	const char *at = c->allowed_hosts, *allowed = "\"\"";
	bool any = false;
	size_t len;

	for (at += strspn(at, ", \t"); *at != '\0'; at += len, at += strspn(at, ", \t")) {
		len = strcspn(at, ", \t");
		if (len == 1 && *at == '*') {
			any = true;
			continue;
		}
		if (map->len == 0)
			hr_buf_adds(map, "map $host $handrail_allowed_host {\n\thostnames;\n");
		if (put_host(map, at, len, err) < 0)
			return -1;
	}
	/* nginx needs a millisecond for each map when it starts */
	if (any) {
		hr_buf_reset(map);
		allowed = "1";
	} else if (map->len > 0) {
		hr_buf_adds(map, "\tdefault \"\";\n}\n");
		allowed = "$handrail_allowed_host";
	}
	hr_buf_addf(viewer, CHECK_HOST, allowed, OWN_HOSTS, s->listen.public ? NETWORK_HOSTS : "");
	if (keys != NULL && keys->count == 0 && c->tls_certificate[0] == '\0')
		hr_buf_adds(check, hr_buf_str(viewer));
	if (part_add(v, "host_check", check, s, NULL, err) < 0 ||
	    part_add(v, "viewer_host_check", viewer, s, NULL, err) < 0)
		return -1;
	return part_add(v, "hosts", map, s, NULL, err);
}

static int
values_edge(struct values *v, const struct hr_site *s, const struct hr_settings *c,
    const struct hr_keys *keys, struct hr_err *err)
{
	struct hr_buf *plugins = part_new(v);

	if (hr_edge_compose(&v->edge, c, keys, err) < 0)
		return -1;
	hr_nginx_plugins(plugins, s->plugins, s->ctx->run.path, hr_buf_str(&v->edge.live_limits), c,
	    has_page(s, c), hr_nginx_connections(s, c));
	if (part_add(v, "plugins", plugins, s, NULL, err) < 0)
		return -1;
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

/* Adds the MCP endpoint: if it is enabled, or by default if the server is not public. */
static int
values_mcp(
    struct values *v, const struct hr_site *s, const struct hr_settings *c, struct hr_err *err)
{
	struct hr_buf *part = part_new(v);
	bool open = c->mcp[0] != '\0' ? hr_settings_truth(c->mcp) == 1 : !s->listen.public;

	values_add(v, "mcp_gate", v->edge.gate.len > 0 ? "\tauth_request /-/door;\n" : "", true);
	if (!open) /* a worker replies that the path does not exist */
		hr_buf_addf(part,
		    "location = /handrail/mcp {\n%s\tfastcgi_pass handrail_control;\n}\n",
		    hr_buf_str(&v->edge.gate));
	return part_add(v, "mcp", part, s, open ? "handrail-mcp.conf.in" : NULL, err);
}

/* Adds the SWE-ReX endpoint, only if it is enabled. */
static int
values_swerex(
    struct values *v, const struct hr_site *s, const struct hr_settings *c, struct hr_err *err)
{
	values_add(v, "swerex_open", c->swerex ? "1" : "", true);
	values_add(
	    v, "swerex_gate", v->edge.gate.len > 0 ? "\tauth_request /-/swerex;\n" : "", true);
	return part_add(
	    v, "swerex", part_new(v), s, c->swerex ? "handrail-swerex.conf.in" : NULL, err);
}

static int
put_origin(struct hr_buf *b, const char *word, size_t len, struct hr_err *err)
{
	bool bare = *word != '[' && memchr(word, ':', len) != NULL; /* an address of IPv6 */

	hr_buf_adds(b, "if ($handrail_cors_asked ");
	switch (hr_origins_type(word, len)) {
	case HR_ORIGINS_ANY: hr_buf_adds(b, "~ \"^Origin .\""); break;
	case HR_ORIGINS_ORIGIN: hr_buf_addf(b, "= \"Origin %.*s\"", (int)len, word); break;
	case HR_ORIGINS_HOST:
		hr_buf_addf(b, "~* \"^Origin [a-z][a-z0-9+.-]*://%s\\Q%.*s\\E%s(:[0-9]*)?$\"",
		    bare ? "\\[" : "", (int)len, word, bare ? "\\]" : "");
		break;
	default:
		return hr_err_set(err, HR_E_INVAL,
		    "cors_origins: \"%.*s\" must be an origin such as https://app.example.org, a "
		    "host, or \"*\"",
		    (int)len, word);
	}
	hr_buf_adds(b, ") {\n\tset $handrail_cors_origin $http_origin;\n}\n");
	return 0;
}

/* Appends content of server { } that sets $handrail_cors_origin for the pages of `origins`, the
 * setting cors_origins. Fails for a word that the setting cannot have. */
static int
put_origins(struct hr_buf *b, const char *origins, struct hr_err *err)
{
	const char *at = origins + strspn(origins, HR_ORIGINS_SEPARATORS);
	size_t len;

	for (; *at != '\0'; at += len, at += strspn(at, HR_ORIGINS_SEPARATORS)) {
		len = strcspn(at, HR_ORIGINS_SEPARATORS);
		if (put_origin(b, at, len, err) < 0)
			return -1;
	}
	return 0;
}

/* Adds the OpenHands V1 endpoint, only if it is enabled. */
static int
values_v1(
    struct values *v, const struct hr_site *s, const struct hr_settings *c, struct hr_err *err)
{
	struct hr_buf *origins = part_new(v);

	if (put_origins(origins, c->cors_origins, err) < 0 ||
	    part_add(v, "cors_origins", origins, s, NULL, err) < 0)
		return -1;
	values_add(v, "openhands_open", c->openhands_v1 ? "1" : "", true);
	values_add(v, "openhands_headers", c->openhands_v1 ? V1_HEADERS : "", true);
	values_add(v, "openhands_origin",
	    c->openhands_v1 ? "fastcgi_param HANDRAIL_CORS $handrail_cors_origin if_not_empty;\n"
			    : "",
	    true);
	return part_add(
	    v, "openhands", part_new(v), s, c->openhands_v1 ? "handrail-v1.conf.in" : NULL, err);
}

/* Adds the paths to programs of the sandbox: only if enabled, and with a key. Without one, a page
 * of any origin could send them requests, since no worker checks its origin. The server's own ports
 * stay out of reach. */
static int
values_ports(struct values *v, const struct hr_site *s, const struct hr_settings *c,
    const struct hr_keys *keys, struct hr_err *err)
{
	bool open = c->port_paths && (keys == NULL || keys->count > 0);
	struct hr_buf *own = part_new(v);

	if (s->listen.addr.ss_family != AF_UNIX)
		hr_buf_addf(own, "|%lld", c->port);
	hr_buf_addf(own, "|%d", s->viewer.port);
	hr_nginx_plugin_ports(own, s->plugins);
	if (part_add(v, "own_ports", own, s, NULL, err) < 0)
		return -1;
	values_add(v, "pass_to_port", PASS_TO_PORT, true);
	return part_add(v, "ports", part_new(v), s, open ? "handrail-ports.conf.in" : NULL, err);
}

/* Returns true for a name of a sandbox that has its own meaning in no syntax. */
static bool
is_plain(const char *name)
{
	static const char plain[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	return name[strspn(name, plain)] == '\0';
}

static int
values_www(
    struct values *v, const struct hr_site *s, const struct hr_settings *c, struct hr_err *err)
{
	const char *name = getenv("OPENHANDS_SESSION_ID");
	bool shown = has_page(s, c);

	if (shown) {
		values_add(v, "www_dir", s->ctx->www, false);
		values_add(v, "sandbox_name", name != NULL && is_plain(name) ? name : "", false);
	}
	return part_add(v, "www", part_new(v), s, shown ? "handrail-www.conf.in" : NULL, err);
}

/* Fills the site, which includes the other two files and the log as whole directives. */
static int
fill_site(struct hr_buf *out, const struct hr_site *s, const struct hr_settings *c,
    struct values *v, struct hr_err *err)
{
	const struct hr_place path = {"access_log", c->access_log, false};
	static const char whole[] = "access_log @access_log@ handrail;",
			  some[] = "access_log @access_log@ handrail if=$handrail_viewer_logged;";
	struct hr_buf *log = part_new(v), *viewer_log = part_new(v), *logged = part_new(v);
	bool viewer = s->viewer.fd >= 0;

	if (strcmp(c->access_log, "off") != 0 &&
	    (hr_template_fill(log, whole, strlen(whole), &path, 1, err) < 0 ||
		hr_template_fill(viewer_log, some, strlen(some), &path, 1, err) < 0))
		return -1;
	if (viewer) {
		values_number(v, "viewer_port", s->viewer.port);
		values_add(v, "viewer_secret", s->viewer.secret, false);
	}
	if (viewer && viewer_log->len > 0)
		hr_buf_addf(logged,
		    "map $uri $handrail_viewer_logged {\n\tdefault 1;\n\t~%s 0;\n}\n",
		    s->viewer.secret);
	if (part_add(v, "access_log", log, s, NULL, err) < 0 ||
	    part_add(v, "viewer_log", viewer_log, s, NULL, err) < 0 ||
	    part_add(v, "viewer_logged", logged, s, NULL, err) < 0 ||
	    part_add(v, "viewer", part_new(v), s, viewer ? "handrail-viewer.conf.in" : NULL, err) <
		0 ||
	    part_add(v, "http", part_new(v), s, "handrail-http.conf.in", err) < 0 ||
	    part_add(v, "locations", part_new(v), s, "handrail-locations.conf.in", err) < 0)
		return -1;
	return fill(out, s, "handrail-site.conf.in", v, err);
}

/* Fills nginx.conf, which includes the site and the account. */
static int
fill_all(struct hr_buf *out, const struct hr_site *s, const struct hr_settings *c, struct values *v,
    struct hr_err *err)
{
	struct hr_buf *user = part_new(v), *site = part_new(v);

	if (s->ctx->id.nginx_user != NULL)
		hr_buf_addf(user, "user %s %s;", s->ctx->id.nginx_user, s->ctx->id.nginx_group);
	if (part_add(v, "user", user, s, NULL, err) < 0 || fill_site(site, s, c, v, err) != 0 ||
	    part_add(v, "site", site, s, NULL, err) < 0)
		return -1;
	return fill(out, s, "nginx.conf.in", v, err);
}

int
hr_nginx_compose(struct hr_buf *out, const char *part, const struct hr_site *s,
    const struct hr_settings *c, const struct hr_keys *keys, struct hr_err *err)
{
	struct values v;
	size_t i;
	int r;

	values_init(&v, s, c);
	if (values_edge(&v, s, c, keys, err) < 0 || values_hosts(&v, s, c, keys, err) < 0 ||
	    values_www(&v, s, c, err) < 0)
		r = -1;
	else if (values_mcp(&v, s, c, err) < 0 || values_swerex(&v, s, c, err) < 0 ||
		 values_v1(&v, s, c, err) < 0 || values_ports(&v, s, c, keys, err) < 0)
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
	for (i = 0; i < v.nparts; i++)
		hr_buf_done(&v.parts[i]);
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
	HR_BUF(text, 1 << 18);
	HR_FREE char *dir = hr_rundir_file(&s->ctx->run, "nginx");
	HR_FREE char *file = NULL;
	HR_FREE char *fresh = NULL;
	int r = -1;

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
	return r;
}
