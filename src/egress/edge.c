/* Two servers stand for a host whose requests get secrets: "in" judges a request and puts the
 * secrets in, "mid" takes them out of the answer. They are apart because nginx unpacks an answer
 * only for a request without Accept-Encoding, and because only a second one can refuse an answer
 * for its headers (X-Accel-Redirect). All other hosts have "in" alone.
 *
 * All text of a policy goes through edge_text.h. */
#include "config.h"

#include "egress/edge.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <json-c/json_object.h>

#include "base/random.h"
#include "base/strv.h"
#include "base/text/percent.h"
#include "egress/edge_text.h"
#include "egress/policy.h"
#include "proto/json.h"

#define SLOTS_MAX 64
#define USED_MAX 64

/* Headers of requests. A placeholder is replaced in the first ones; the others are dropped, because
 * a server could read them in place of the method and the path that were judged. */
static const char *const known[] = {"Authorization", "X-Api-Key", "Api-Key", "Private-Token",
    "X-Auth-Token", "X-GitHub-Token", "Cookie", "X-HTTP-Method", "X-HTTP-Method-Override",
    "X-Method-Override", "X-Original-URL", "X-Rewrite-URL", "Proxy-Authorization",
    "Proxy-Connection"};
#define KNOWN (sizeof(known) / sizeof(*known))
#define CARRIERS 7
#define TARGET SLOTS_MAX /* stands for the slot of the request's target */

/* Packed answers, or parts of one, would hide secrets. */
static const char *const unpacked[] = {"Accept-Encoding", "If-Range", "Range"};
#define UNPACKED (sizeof(unpacked) / sizeof(*unpacked))

/* Headers of answers that repeat a part of the request, with the names of their variables. Stores
 * of objects take some of them from the query, as response-content-type. */
static const char *const echoes[][2] = {{"Cache-Control", "cache_control"},
    {"Content-Disposition", "content_disposition"}, {"Content-Language", "content_language"},
    {"Content-Location", "content_location"}, {"Content-Type", "content_type"},
    {"Expires", "expires"}, {"Link", "link"}, {"Location", "location"}, {"Refresh", "refresh"},
    {"WWW-Authenticate", "www_authenticate"}};
#define ECHOES (sizeof(echoes) / sizeof(*echoes))

struct slot {
	char name[65];
	struct hr_buf lines; /* rows of the map from a rule to the header's value */
};

struct edge {
	struct json_object *secrets, *placeholders;
	struct hr_buf *out;
	struct hr_err *err;
	/* state of the current host */
	const struct egress_host *host;
	unsigned rules, credentials;
	bool paths, denies;  /* a rule has paths; one denies them */
	struct hr_buf lines; /* rows of the map that finds the rule */
	struct hr_buf names; /* rows of the map from a rule to its name */
	struct slot slots[SLOTS_MAX];
	size_t nslots;
	struct {
		const char *value, *shown;
	} used[USED_MAX];
	size_t nused;
};

/* ---- secrets ---- */

/* Returns a secret, whose answers will be searched for it and show `shown` instead (NULL: as
 * before), or NULL with *err set. */
static const char *
use_secret(struct edge *e, const char *name, const char *shown)
{
	struct json_object *v;
	const char *text, *p;
	size_t len, i = 0;

	if (!json_object_object_get_ex(e->secrets, name, &v) ||
	    !json_object_is_type(v, json_type_string)) {
		(void)hr_err_set(e->err, HR_E_NOTFOUND, "the secret \"%.80s\" is not set", name);
		return NULL;
	}
	p = text = hr_json_str(v, &len);
	while (p < text + len && (unsigned char)*p >= ' ' && *p != 0x7f)
		p++;
	if (p < text + len || len < EGRESS_SECRET_MIN || len > EGRESS_SECRET_MAX) {
		(void)hr_err_set(e->err, HR_E_INVAL,
		    "the secret \"%.80s\" must have %d to %d bytes and no control characters", name,
		    EGRESS_SECRET_MIN, EGRESS_SECRET_MAX);
		return NULL;
	}
	while (i < e->nused && e->used[i].value != text)
		i++;
	if (i == USED_MAX) {
		(void)hr_err_set(e->err, HR_E_TOOLARGE, "%s has too many secrets", e->host->name);
		return NULL;
	}
	if (i == e->nused) {
		e->used[e->nused++].value = text;
		e->used[i].shown = "(a secret)";
	}
	if (shown != NULL)
		e->used[i].shown = shown;
	return text;
}

/* ---- rules ---- */

/* Returns the slot of a header, which is made if it is missing; NULL with *err set. */
static struct slot *
get_slot(struct edge *e, const char *name, size_t len)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	struct slot *s = e->slots;
	bool good = e->nslots < SLOTS_MAX && len > 0 && len < sizeof(s->name) &&
		    strspn(name, letters) >= len;

	while (s < e->slots + e->nslots &&
	       (strncasecmp(s->name, name, len) != 0 || s->name[len] != '\0'))
		s++;
	if (good && s == e->slots + e->nslots) {
		e->nslots++;
		(void)snprintf(s->name, sizeof(s->name), "%.*s", (int)len, name);
		hr_buf_init(&s->lines, e->out->cap);
	}
	if (good)
		return s;
	(void)hr_err_set(e->err, HR_E_INVAL, "rules for %s cannot set the header %.*s",
	    e->host->name, (int)(len < 80 ? len : 80), name);
	return NULL;
}

/* Appends the value of a header, with its secrets. */
static int
add_value(struct edge *e, struct hr_buf *b, const char *p)
{
	static const char start[] = "${secrets.";
	const char *at, *end, *value;
	HR_BUF(name, 256);

	while ((at = strstr(p, start)) != NULL && (end = strchr(at, '}')) != NULL) {
		edge_add_text(b, p, (size_t)(at - p));
		at += sizeof(start) - 1;
		hr_buf_reset(&name);
		hr_buf_add(&name, at, (size_t)(end - at));
		value = use_secret(e, hr_buf_str(&name), NULL);
		if (value == NULL)
			return -1;
		edge_add_text(b, value, strlen(value));
		p = end + 1;
	}
	edge_add_text(b, p, strlen(p));
	return 0;
}

/* Appends the line by which the map finds a rule, for one pattern or all paths. */
static void
add_rule(
    struct edge *e, const struct egress_http_rule *r, const char *path, const struct hr_buf *value)
{
	HR_BUF(key, EDGE_WORD_MAX);
	HR_BUF(plain, EDGE_WORD_MAX);
	const char *const *m;

	hr_buf_adds(&key, "~(?s)^/(?:");
	for (m = r->methods; m != NULL && *m != NULL; m++) {
		hr_buf_adds(&key, m != r->methods ? "|" : "");
		edge_add_regex(&key, *m, strlen(*m));
	}
	hr_buf_adds(&key, r->methods == NULL ? "[^ ]+) (?:" : ") (?:");
	edge_add_pattern(&key, path, "[^ ]");
	hr_buf_addc(&key, ' ');
	if (r->deny) {
		/* No spelling of a path may escape a refusal: the path that nginx decoded is
		 * compared, too. */
		hr_percent_decode(&plain, path, strlen(path), false);
		hr_buf_adds(&key, "|[^ ]+ ");
		edge_add_pattern(&key, hr_buf_str(&plain), ".");
		hr_buf_adds(&key, "\\z");
	}
	hr_buf_addc(&key, ')');
	edge_add_line(&e->lines, &key, value);
}

static int
on_rule(void *arg, const struct egress_http_rule *r)
{
	static const char *const all[] = {"*", NULL};
	struct edge *e = arg;
	HR_BUF(rule, 32);
	HR_BUF(name, EDGE_WORD_MAX);
	const char *const *p;
	struct slot *s;
	size_t len;

	hr_buf_addf(&rule, "%c%u", r->deny ? 'd' : 'a', e->rules++);
	edge_add_text(&name, r->spelled, strlen(r->spelled));
	edge_add_line(&e->names, &rule, &name);
	for (p = r->paths != NULL ? r->paths : all; *p != NULL; p++)
		add_rule(e, r, *p, &rule);
	e->paths |= r->paths != NULL;
	e->denies |= r->paths != NULL && r->deny;
	for (p = r->headers; p != NULL && *p != NULL; p++) {
		HR_BUF(value, EDGE_WORD_MAX);

		len = strcspn(*p, ":");
		s = get_slot(e, *p, len);
		if (s == NULL || add_value(e, &value, *p + len + strspn(*p + len, ": ")) < 0)
			return -1;
		edge_add_line(&s->lines, &rule, &value);
	}
	return 0;
}

/* ---- credentials ---- */

/* Appends what a request has in a slot after the first k credentials. */
static void
add_base(struct edge *e, struct hr_buf *b, size_t slot, unsigned k)
{
	const char *p;

	if (k > 0 && (slot < CARRIERS || slot == TARGET)) {
		hr_buf_addf(b, "$eg_c%u_%u_%zu", e->host->id, k - 1, slot);
	} else if (slot == TARGET || (slot >= CARRIERS && slot < KNOWN)) {
		hr_buf_adds(b, slot == TARGET ? "$request_uri" : "\"\"");
	} else {
		hr_buf_adds(b, "$http_");
		for (p = e->slots[slot].name; *p != '\0'; p++)
			hr_buf_addc(b, *p == '-' ? '_' : (char)tolower((unsigned char)*p));
	}
}

static int
on_credential(void *arg, const struct egress_credential *c)
{
	struct edge *e = arg;
	struct json_object *v;
	const char *shown, *value;
	size_t slot, i;
	HR_BUF(escaped, EDGE_WORD_MAX);

	if (!json_object_object_get_ex(e->placeholders, c->variable, &v) ||
	    !json_object_is_type(v, json_type_string))
		return 0;
	shown = json_object_get_string(v);
	value = use_secret(e, c->secret, shown);
	if (value == NULL)
		return -1;
	hr_percent_encode(&escaped, value, EDGE_UNRESERVED);
	for (i = 0; i <= CARRIERS; i++) {
		HR_BUF(base, 128);

		slot = i < CARRIERS ? i : TARGET;
		add_base(e, &base, slot, e->credentials);
		hr_buf_addf(e->out, "map %s $eg_c%u_%u_%zu {\ndefault %s;\n", hr_buf_str(&base),
		    e->host->id, e->credentials, slot, hr_buf_str(&base));
		if (slot == TARGET)
			edge_add_replacement(e->out, "[^?]*\\?", shown, hr_buf_str(&escaped));
		else
			edge_add_replacement(e->out, "", shown, value);
		if (slot == 0)
			edge_add_basic(e->out, shown, value);
		hr_buf_adds(e->out, "}\n");
	}
	e->credentials++;
	return 0;
}

/* ---- answers ---- */

/* Appends the maps to a header's value without secrets: the first one replaces one place, the
 * second one is empty if the value has another. */
static void
add_echo(struct edge *e, size_t i, const struct hr_strv *forms, const struct hr_strv *shown)
{
	unsigned id = e->host->id;
	HR_BUF(none, 1);
	size_t f;

	hr_buf_addf(e->out, "map $upstream_http_%s $eg_g%u_%zu {\ndefault $upstream_http_%s;\n",
	    echoes[i][1], id, i, echoes[i][1]);
	for (f = 0; f < forms->n; f++)
		edge_add_replacement(e->out, "", forms->v[f], shown->v[f]);
	hr_buf_addf(e->out, "}\nmap $eg_g%u_%zu $eg_h%u_%zu {\ndefault $eg_g%u_%zu;\n", id, i, id,
	    i, id, i);
	for (f = 0; f < forms->n; f++) {
		HR_BUF(key, EDGE_WORD_MAX);

		hr_buf_adds(&key, "~*");
		edge_add_regex(&key, forms->v[f], strlen(forms->v[f]));
		edge_add_line(e->out, &key, &none);
	}
	hr_buf_adds(e->out, "}\n");
}

/* ---- servers ---- */

static const char head[] =
    "daemon off;\nworker_processes 1;\nworker_shutdown_timeout 30s;\nworker_rlimit_nofile 4200;\n"
    /* An error has the target of its request, with secrets. */
    "error_log stderr emerg;\nevents {\nworker_connections 2048;\n}\nhttp {\n"
    "geo $eg_dollar {\ndefault \"$\";\n}\n"
    "server_tokens off;\ndefault_type text/plain;\naccess_log off;\n"
    "variables_hash_max_size 16384;\nvariables_hash_bucket_size 128;\n"
    "server_names_hash_bucket_size 512;\nmap_hash_bucket_size 512;\n"
    "proxy_headers_hash_max_size 4096;\nproxy_headers_hash_bucket_size 512;\n"
    "large_client_header_buffers 8 32k;\nclient_max_body_size 0;\nclient_body_buffer_size 64k;\n"
    "client_body_timeout 1h;\nsend_timeout 1h;\nkeepalive_requests 100000;\n"
    "ssl_protocols TLSv1.2 TLSv1.3;\n"
    "proxy_http_version 1.1;\nproxy_request_buffering off;\nproxy_buffering off;\n"
    "proxy_buffer_size 64k;\nproxy_buffers 4 64k;\nproxy_max_temp_file_size 0;\n"
    "proxy_next_upstream off;\nproxy_redirect off;\n"
    "proxy_connect_timeout 75s;\nproxy_send_timeout 1d;\nproxy_read_timeout 1d;\n"
    "proxy_ssl_protocols TLSv1.2 TLSv1.3;\nproxy_ssl_verify on;\nproxy_ssl_verify_depth 8;\n"
    "proxy_ssl_server_name on;\n"
    "map $request_uri $eg_path {\n\"~^(?<eg_p>/[^?\\x00-\\x20\\x7f]*)(?:\\?|\\z)\" $eg_p;\n}\n"
    /* Servers disagree about these paths. */
    "map $eg_path $eg_bad {\n\"~*[\\x5c#]|%(?:5c|[01]|7f|(?![0-9a-f]{2}))\" 400;\n"
    "\"~*(?:^|/|%2f)(?:\\.|%2e)(?:\\.|%2e)?(?:/|%2f|;|%3b|\\z)\" 400;\n}\n"
    /* Some drop a ";" and the rest of its part of the path. */
    "map $eg_path $eg_params {\n\"~*;|%3b\" 400;\n}\n"
    "map $eg_path $eg_logged {\n\"~^(?<eg_p>[!-~]{1,1000})\" $eg_p;\n}\n"
    "map $status $eg_status {\ndefault $status;\n\"~^0\" 0;\n}\n"
    /* After a change to another protocol, such as h2c, nobody judges requests. */
    "map $http_upgrade $eg_upgrade {\n\"~*^websocket\\z\" websocket;\n}\n"
    "map $eg_upgrade $eg_connection {\nwebsocket upgrade;\n}\n"
    "map $upstream_http_content_encoding $eg_packed {\ndefault @eg_packed;\n\"\" \"\";\n"
    "identity \"\";\ngzip \"\";\n}\n";

/* Appends the maps that judge a request. */
static void
add_judgement(struct edge *e)
{
	const struct egress_host *h = e->host;
	HR_BUF(name, 1100);

	edge_add_regex(&name, h->name, strlen(h->name));
	/* nginx accepts no host with a '/'. */
	hr_buf_addf(e->out,
	    "map \"$host/$http_host/$ssl_server_name\" $eg_o%u {\ndefault 421;\n"
	    "\"~*^%s/%s\\.?(?::%d)?/(?:%s)?\\z\" \"\";\n}\n"
	    "map \"$eg_o%u%s/$request_method $eg_path $uri\" $eg_r%u {\ndefault none;\n"
	    "\"~^421\" host;\n\"~^400|^/[^ ]*  \" path;\n%s}\n",
	    h->id, hr_buf_str(&name), hr_buf_str(&name), h->port, hr_buf_str(&name), h->id,
	    e->denies  ? "$eg_bad$eg_params"
	    : e->paths ? "$eg_bad"
		       : "",
	    h->id, hr_buf_str(&e->lines));
	hr_buf_addf(e->out,
	    "map $eg_r%u $eg_t%u {\ndefault \"no rule\";\nhost \"not a request to %s\";\n"
	    "path \"an ambiguous or malformed request\";\n%s}\n"
	    "map $eg_r%u $eg_d%u {\ndefault true;\n\"~^a\" false;\n}\n"
	    "log_format eg%u escape=json '{\"id\":%u,\"method\":\"$request_method\","
	    "\"path\":\"$eg_logged\",\"status\":$eg_status,\"rule\":\"$eg_t%u\",\"deny\":$eg_d%u}'"
	    ";\n",
	    h->id, h->id, h->name, hr_buf_str(&e->names), h->id, h->id, h->id, h->id, h->id, h->id);
}

/* Appends the start of a location from which requests go to "out", or to "mid". nginx obeys fields
 * X-Accel of "mid" alone. */
static void
add_way(struct edge *e, bool mid, const char *target)
{
	const struct egress_host *h = e->host;
	char port[16] = "";

	if (h->port != (h->tls ? 443 : 80))
		(void)snprintf(port, sizeof(port), ":%d", h->port);
	hr_buf_addf(e->out,
	    "location / {\nproxy_pass %s://eg_%s%u%s;\nproxy_ssl_name %s;\n"
	    "proxy_ignore_headers X-Accel-Buffering X-Accel-Charset X-Accel-Expires "
	    "X-Accel-Limit-Rate%s;\nproxy_set_header Host %s%s;\n"
	    "proxy_set_header Upgrade $eg_upgrade;\nproxy_set_header Connection $eg_connection;\n",
	    h->tls && !mid ? "https" : "http", mid ? "mid" : "out", h->id, target, h->name,
	    mid ? "" : " X-Accel-Redirect", h->name, port);
	/* nginx would read the machine's bundle in vain where there is no TLS, 20 ms for each host
	 */
	if (mid || !h->tls)
		hr_buf_adds(e->out, "proxy_ssl_verify off;\n");
}

/* Appends the server that judges requests. */
static void
add_in(struct edge *e, const struct hr_buf *dir)
{
	static const char *const refusals[][2] = {
	    {"= host", "421"}, {"= path", "400"}, {"~ \"^[nd]\"", "403"}};
	const struct egress_host *h = e->host;
	HR_BUF(target, 128);
	size_t i;

	hr_buf_addf(e->out,
	    "server {\nlisten unix:in-%u%s;\nserver_name %s;\n"
	    "access_log syslog:server=unix:log,nohostname,tag=egress eg%u;\n",
	    h->id, h->tls ? " ssl http2" : "", h->name, h->id);
	if (h->tls)
		hr_buf_addf(e->out,
		    "ssl_certificate \"%s/certs/%s.crt\";\nssl_certificate_key "
		    "\"%s/certs/%s.key\";\n",
		    hr_buf_str(dir), h->name, hr_buf_str(dir), h->name);
	for (i = 0; i < sizeof(refusals) / sizeof(*refusals); i++)
		hr_buf_addf(e->out,
		    "if ($eg_r%u %s) {\nreturn %s \"network: $request_method %s$eg_logged was "
		    "refused: $eg_t%u\\n\";\n}\n",
		    h->id, refusals[i][0], refusals[i][1], h->name, h->id);
	if (e->credentials > 0)
		add_base(e, &target, TARGET, e->credentials);
	add_way(e, e->nused > 0, hr_buf_str(&target));
	for (i = 0; i < UNPACKED && e->nused > 0; i++)
		hr_buf_addf(e->out, "proxy_set_header %s \"\";\n", unpacked[i]);
	for (i = 0; i < e->nslots; i++) {
		if (e->slots[i].lines.len == 0 && i < CARRIERS && e->credentials == 0)
			continue;
		hr_buf_addf(e->out, "proxy_set_header %s ", e->slots[i].name);
		if (e->slots[i].lines.len > 0)
			hr_buf_addf(e->out, "$eg_x%u_%zu", h->id, i);
		else
			add_base(e, e->out, i, e->credentials);
		hr_buf_adds(e->out, ";\n");
	}
}

/* Appends the server that takes secrets out of answers, up to the end of its location. */
static int
add_mid(struct edge *e)
{
	HR_CLEAN(hr_strv_done) struct hr_strv forms = {.v = NULL};
	HR_CLEAN(hr_strv_done) struct hr_strv shown = {.v = NULL};
	unsigned id = e->host->id;
	size_t i;

	for (i = 0; i < e->nused; i++) {
		edge_list_forms(&forms, e->used[i].value);
		while (shown.n < forms.n && !shown.failed)
			hr_strv_add(&shown, e->used[i].shown);
	}
	if (forms.failed || shown.failed)
		return hr_err_nomem(e->err);
	for (i = 0; i < ECHOES; i++)
		add_echo(e, i, &forms, &shown);
	hr_buf_addf(e->out,
	    "upstream eg_mid%u {\nserver unix:mid-%u;\nkeepalive 8;\n}\n"
	    "server {\nlisten unix:mid-%u;\ngunzip on;\n",
	    id, id, id);
	add_way(e, false, "");
	hr_buf_adds(e->out,
	    "add_header X-Accel-Redirect $eg_packed always;\nproxy_hide_header Set-Cookie;\n"
	    "sub_filter_once off;\nsub_filter_types *;\n");
	for (i = 0; i < ECHOES; i++)
		hr_buf_addf(e->out, "proxy_hide_header %s;\nadd_header %s $eg_h%u_%zu always;\n",
		    echoes[i][0], echoes[i][0], id, i);
	for (i = 0; i < forms.n; i++) {
		HR_BUF(from, EDGE_WORD_MAX);
		HR_BUF(to, EDGE_WORD_MAX);

		edge_add_text(&from, forms.v[i], strlen(forms.v[i]));
		edge_add_text(&to, shown.v[i], strlen(shown.v[i]));
		hr_buf_adds(e->out, "sub_filter ");
		edge_add_line(e->out, &from, &to);
	}
	return 0;
}

static void
end_server(struct edge *e)
{
	hr_buf_addf(e->out,
	    "}\nerror_page 502 504 @eg_failed;\nlocation @eg_failed {\nreturn 502 \"network: %s "
	    "could not be reached, or its certificate is not valid\\n\";\n}\n"
	    "location @eg_packed {\nreturn 502 \"network: the answer of %s was refused: it is in "
	    "a packed form, which could hide a secret\\n\";\n}\n}\n",
	    e->host->name, e->host->name);
}

static int
add_host(struct edge *e, const struct egress_policy *p, const struct hr_buf *dir)
{
	const struct egress_host *h = e->host;
	char same[EGRESS_NAME_MAX + 1];
	size_t i;

	if (!egress_name(h->name, strlen(h->name), same) || strcmp(same, h->name) != 0)
		return hr_err_set(e->err, HR_E_INVAL, "\"%.80s\" is not a host name", h->name);
	for (i = 0; i < KNOWN; i++)
		if (get_slot(e, known[i], strlen(known[i])) == NULL)
			return -1;
	if (egress_policy_http(p, h->name, h->port, on_rule, on_credential, e) < 0)
		return -1;
	add_judgement(e);
	for (i = 0; i < e->nslots; i++) {
		if (e->slots[i].lines.len == 0)
			continue;
		hr_buf_addf(e->out, "map $eg_r%u $eg_x%u_%zu {\ndefault ", h->id, h->id, i);
		add_base(e, e->out, i, e->credentials);
		hr_buf_addf(e->out, ";\n%s}\n", hr_buf_str(&e->slots[i].lines));
		if (hr_buf_check(&e->slots[i].lines, e->err) < 0)
			return -1;
	}
	/* Servers close an idle connection after 5 s or more; no request is sent twice. */
	hr_buf_addf(e->out,
	    "upstream eg_out%u {\nserver unix:out-%u;\nkeepalive 8;\nkeepalive_timeout 4s;\n}\n",
	    h->id, h->id);
	if (e->nused > 0) {
		if (add_mid(e) < 0)
			return -1;
		end_server(e);
	}
	add_in(e, dir);
	end_server(e);
	return hr_buf_check(&e->lines, e->err) < 0 ? -1 : hr_buf_check(&e->names, e->err);
}

static void
edge_done(struct edge *e)
{
	size_t i;

	for (i = 0; i < e->nslots; i++)
		hr_buf_done(&e->slots[i].lines);
	hr_buf_done(&e->lines);
	hr_buf_done(&e->names);
}

int
egress_edge_config(const struct egress_policy *p, const char *dir, const struct egress_host *hosts,
    size_t n, struct json_object *secrets, struct json_object *placeholders, struct hr_buf *ret,
    struct hr_err *err)
{
	static const char *const temporary[] = {"client_body", "fastcgi", "proxy", "scgi", "uwsgi"};
	HR_BUF(place, EDGE_WORD_MAX);
	size_t i;

	/* nginx would take a dollar sign in these names for a variable. */
	if (strpbrk(dir, "$\n") != NULL)
		return hr_err_set(err, HR_E_INVAL, "%s: nginx cannot use this directory", dir);
	edge_add_text(&place, dir, strlen(dir));
	hr_buf_addf(ret, "pid \"%s/nginx.pid\";\n%s", hr_buf_str(&place), head);
	hr_buf_addf(ret, "proxy_ssl_trusted_certificate \"%s/trust.pem\";\n", hr_buf_str(&place));
	for (i = 0; i < sizeof(temporary) / sizeof(*temporary); i++)
		hr_buf_addf(ret, "%s_temp_path \"%s/temp\";\n", temporary[i], hr_buf_str(&place));
	for (i = 0; i < n; i++) {
		HR_CLEAN(edge_done)
		struct edge e = {.secrets = secrets,
		    .placeholders = placeholders,
		    .out = ret,
		    .err = err,
		    .host = &hosts[i],
		    .lines = {.cap = ret->cap},
		    .names = {.cap = ret->cap}};

		if (add_host(&e, p, &place) < 0)
			return -1;
	}
	hr_buf_adds(ret, "}\n");
	return hr_buf_check(ret, err);
}

int
egress_placeholder(char ret[EGRESS_PLACEHOLDER_TEXT], struct hr_err *err)
{
	memcpy(ret, "ph_", 3);
	return hr_random_hex(ret + 3, EGRESS_PLACEHOLDER_TEXT - 4, err);
}
