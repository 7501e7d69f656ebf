/* Makes nginx locations of the plugins' paths. */
#include "config.h"

#include "supervisor/edge/nginxplugins.h"

#include <string.h>

#include "supervisor/children/pluginproc.h"
#include "supervisor/settings/settings.h"

/* Passes other headers than other locations do; setting one header replaces the inherited ones. An
 * agent server gets the key where it checks the key itself, and otherwise the news that nginx did.
 */
static void
set_headers(struct hr_buf *b, const struct hr_plugin *p, const struct hr_manifest_http *h)
{
	bool checks = p->m.v1 && h->auth == HR_MANIFEST_NONE;

	hr_buf_addf(b,
	    "\tproxy_set_header Host $http_host;\n"
	    "\tproxy_set_header Upgrade $http_upgrade;\n"
	    "\tproxy_set_header Connection $http_connection;\n"
	    "\tproxy_set_header X-Request-ID $request_id;\n"
	    "\tproxy_set_header X-Session-API-Key %s;\n"
	    "\tproxy_set_header X-Handrail-Checked \"%s\";\n"
	    "\tproxy_set_header X-API-Key \"\";\n"
	    "\tproxy_set_header Authorization %s;\n"
	    "\tproxy_set_header X-Forwarded-Proto $scheme;\n",
	    checks ? "$http_x_session_api_key" : "\"\"", p->m.v1 && !checks ? "1" : "",
	    h->user ? "$handrail_user" : "\"\"");
	/* nginx decides which pages may read an agent server's answers, too */
	if (p->m.v1)
		hr_buf_adds(b, "\tproxy_set_header X-Handrail-Cors $handrail_cors_origin;\n"
			       "\tproxy_hide_header Access-Control-Allow-Origin;\n"
			       "\tproxy_hide_header Access-Control-Allow-Credentials;\n");
	if (h->strip)
		hr_buf_addf(b,
		    "\tproxy_set_header X-Forwarded-Prefix $http_x_forwarded_prefix%.*s;\n",
		    (int)strlen(h->prefix) - 1, h->prefix);
	if (h->stream_body)
		hr_buf_adds(b, "\tproxy_set_header X-HTTP-Method-Override $request_method;\n"
			       "\tproxy_method TRACE;\n\tclient_body_timeout 7d;\n");
	/* nginx keeps the buffer until the stream that follows the body ends */
	else if (h->user)
		hr_buf_adds(b, "\tclient_body_buffer_size 1k;\n");
}

static void
pass_to(struct hr_buf *b, const struct hr_plugin *p, const struct hr_manifest_http *h,
    const char *run_dir)
{
	const char *rest = h->strip ? "/" : "";
	int port;

	if (h->strip || h->user || h->stream_body || p->m.v1)
		set_headers(b, p, h);
	if (h->port == NULL) {
		hr_buf_addf(b, "\tproxy_pass http://unix:%s/plugin/%s.http:%s;\n", run_dir,
		    p->m.name, rest);
		return;
	}
	port = hr_plugin_port(p, h);
	if (port > 0)
		hr_buf_addf(b, "\tproxy_pass http://127.0.0.1:%d%s;\n", port, rest);
	else
		hr_buf_adds(b, "\treturn 503;\n");
}

/* Separates a plugin from the page's origin. The sandbox's commands can replace a plugin, and a
 * path without a key is opened in a browser that has signed in to the page: a script of that origin
 * has its token. The editor's page is shown on its own port, which clients reach as well and which
 * is another origin; every other response here gets an opaque origin. */
static void
keep_from_page(struct hr_buf *b, const struct hr_plugin *p, const struct hr_manifest_http *h)
{
	int port = p->m.token && h->strip && h->port != NULL ? hr_plugin_port(p, h) : 0;

	if (port > 0)
		hr_buf_addf(b,
		    "\tset $handrail_shown "
		    "\"$request_method:$http_upgrade:$http_x_forwarded_prefix:$http_accept\";\n"
		    "\tif ($handrail_shown ~ \"^GET:::.*text/html\") {\n"
		    "\t\tset $handrail_shown $request_uri;\n\t}\n"
		    "\tif ($handrail_shown ~ \"^\\Q%s\\E(.*)$\") {\n"
		    "\t\treturn 302 http://$host:%d/$1;\n\t}\n",
		    h->prefix, port);
	hr_buf_adds(b,
	    "\tadd_header Content-Security-Policy \"sandbox allow-scripts allow-forms allow-popups "
	    "allow-modals allow-downloads\" always;\n"
	    "\tproxy_hide_header Service-Worker-Allowed;\n\tproxy_hide_header Clear-Site-Data;\n");
}

#define KEYLESS_MAX 256 /* maximum concurrent requests to all plugins without a key */
#define LIMIT_MAX 65535 /* the most that nginx takes */
#define ROOM 768        /* requests that fit while another nginx takes over */

/* Returns the number of requests to plugins, two connections each, at which nginx gets more. */
static long long
requests_before_more(long long connections)
{
	long long fit = connections / 2, most = fit - ROOM > fit / 4 ? fit - ROOM : fit / 4;

	return most < LIMIT_MAX ? most : LIMIT_MAX;
}

static void
one_location(struct hr_buf *b, const struct hr_plugin *p, const struct hr_manifest_http *h,
    const char *run_dir, const char *limits, long long body_max, bool page, long long connections)
{
	static const char *const uris[] = {"/-/auth", "/-/bearer"};
	const char *last = strrchr(h->prefix, '/');

	/* the address is relative: a proxy in front may use another prefix */
	if (h->strip) {
		while (last > h->prefix && last[-1] != '/')
			last--;
		hr_buf_addf(b, "location = %.*s {\n\treturn 301 %s$is_args$args;\n}\n",
		    (int)strlen(h->prefix) - 1, h->prefix, last);
	}
	hr_buf_addf(b, "# plugin %s\nlocation %s%s {\n", p->m.name,
	    h->prefix[strlen(h->prefix) - 1] == '/' ? "" : "= ", h->prefix);
	hr_buf_addf(b, "\tauth_request %s;\n\terror_page 401 = @handrail_%s;\n",
	    h->auth != HR_MANIFEST_NONE ? uris[h->auth] : "off",
	    h->auth == HR_MANIFEST_BEARER ? "unauthorized" : "unavailable");
	/* clients without a key may hold streams open for ever, two connections each */
	if (h->auth == HR_MANIFEST_NONE)
		hr_buf_addf(b, "\tlimit_conn handrail_open %d;\n%s", KEYLESS_MAX, limits);
	else if (*limits == '\0') /* refuses nothing: nginx gets more connections in time */
		hr_buf_addf(b,
		    "\tlimit_conn handrail_many_%lld %lld;\n"
		    "\tlimit_conn_dry_run on;\n\tlimit_conn_log_level warn;\n",
		    connections, requests_before_more(connections));
	hr_buf_addf(
	    b, "\terror_page 403 = @handrail_%s;\n", p->m.v1 ? "v1_unauthorized" : "forbidden");
	hr_buf_adds(b, "\terror_page 413 = @handrail_too_large;\n"
		       "\terror_page 429 = @handrail_too_many;\n"
		       "\terror_page 500 = @handrail_failed;\n"
		       "\terror_page 502 503 504 = @handrail_unavailable;\n");
	if (h->body_max > 0 && (body_max == 0 || h->body_max < body_max))
		hr_buf_addf(b, "\tclient_max_body_size %lld;\n", h->body_max);
	if (page && h->auth == HR_MANIFEST_NONE)
		keep_from_page(b, p, h);
	pass_to(b, p, h, run_dir);
	hr_buf_adds(b, "}\n");
}

void
hr_nginx_plugins(struct hr_buf *b, const struct hr_plugins *ps, const char *run_dir,
    const char *limits, const struct hr_settings *c, bool page, long long connections)
{
	const struct hr_plugin *p;
	size_t i;

	TAILQ_FOREACH(p, &ps->list, entry)
	{
		for (i = 0; i < p->m.nhttp && (c->openhands_v1 || !p->m.v1); i++)
			one_location(b, p, &p->m.http[i], run_dir, limits, c->client_max_body_bytes,
			    page, connections);
	}
}

void
hr_nginx_plugin_ports(struct hr_buf *b, const struct hr_plugins *ps)
{
	const struct hr_plugin *p;
	size_t i;

	TAILQ_FOREACH(p, &ps->list, entry)
	{
		for (i = 0; i < p->m.nhttp; i++)
			if (p->m.http[i].port != NULL)
				hr_buf_addf(b, "|%d", hr_plugin_port(p, &p->m.http[i]));
	}
}
