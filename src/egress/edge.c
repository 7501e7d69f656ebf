/* Two servers stand for a host whose requests carry secrets: "in" judges a request and puts the
 * secrets in, "mid" takes them out of the answer. They are apart because nginx unpacks an answer
 * only for a request without Accept-Encoding, and because only a second one can refuse an answer
 * for its headers (X-Accel-Redirect). All other hosts have "in" alone.
 *
 * Text of a policy is in the configuration in two forms only: quoted by add_text(), or as a regular
 * expression of add_regex(), which consists of letters, digits, '_' and \xHH. */
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
#include "base/text/quote.h"
#include "egress/policy.h"
#include "proto/json.h"

#define TOKEN_MAX 4000 /* nginx reads no longer word */
#define SLOTS_MAX 64
#define USED_MAX 64

/* headers in which a placeholder is replaced */
static const char *const carriers[] = {"Authorization", "X-Api-Key", "Api-Key", "Private-Token",
    "X-Auth-Token", "X-GitHub-Token", "Cookie"};
#define CARRIERS (sizeof(carriers) / sizeof(*carriers))

/* headers that a server reads in place of the method and the path that were judged, or that were
 * for a proxy */
static const char *const dropped[] = {"Proxy-Authorization", "Proxy-Connection", "X-HTTP-Method",
    "X-HTTP-Method-Override", "X-Method-Override", "X-Original-URL", "X-Rewrite-URL", NULL};
/* Answers in a packed form, or in parts, would hide secrets. */
static const char *const unpacked[] = {"Accept-Encoding", "If-Range", "Range", NULL};
/* headers that handrail or nginx sets */
static const char *const fixed[] = {"Connection", "Content-Length", "Expect", "Host", "Keep-Alive",
    "TE", "Transfer-Encoding", "Upgrade", NULL};

/* headers of an answer that repeat a part of the request */
static const char *const echoes[] = {
    "Content-Disposition", "Content-Location", "Link", "Location", "Refresh", "WWW-Authenticate"};
#define ECHOES (sizeof(echoes) / sizeof(*echoes))

/* A header of the request. */
struct slot {
	char name[64];
	struct hr_buf lines; /* of a map from the rule to the value */
};

struct used {
	const char *value, *shown;
};

struct edge {
	const struct egress_policy *policy;
	struct json_object *secrets, *placeholders;
	struct hr_buf *out;
	struct hr_err *err;
	/* of the current host */
	const struct egress_host *host;
	unsigned rules, credentials;
	bool paths;          /* a rule has paths */
	struct hr_buf lines; /* of the map that finds the rule */
	struct hr_buf names; /* of the map from a rule to its name */
	struct slot slots[SLOTS_MAX];
	size_t nslots;
	struct used used[USED_MAX];
	size_t nused;
};

/* ---- quoting ---- */

/* Appends text for a word in double quotes in which nginx replaces variables. There is no escape
 * for a dollar sign, so a variable has it as its value. */
static void
add_text(struct hr_buf *b, const char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] == '$')
			hr_buf_adds(b, "${eg_dollar}");
		else if (p[i] == '"' || p[i] == '\\')
			hr_buf_addf(b, "\\%c", p[i]);
		else
			hr_buf_addc(b, (unsigned char)p[i] < ' ' || p[i] == 0x7f ? '?' : p[i]);
}

/* Appends a regular expression for these bytes. */
static void
add_regex(struct hr_buf *b, const char *p, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (isalnum((unsigned char)p[i]) || p[i] == '_')
			hr_buf_addc(b, p[i]);
		else
			hr_buf_addf(b, "\\x%02X", (unsigned char)p[i]);
}

/* Appends a regular expression for a pattern with '*'. Each part is taken at its first place, the
 * last one at the end: this finds every match, and the time does not grow with each '*'. */
static void
add_pattern(struct hr_buf *b, const char *p, const char *any)
{
	size_t len = strcspn(p, "*");
	bool last;

	add_regex(b, p, len);
	while (p[len] == '*') {
		p += len + 1;
		len = strcspn(p, "*");
		last = p[len] == '\0';
		hr_buf_addf(b, last ? "%s*" : "(?>%s*?", any);
		add_regex(b, p, len);
		if (!last)
			hr_buf_addc(b, ')');
	}
}

/* Appends a line of a map: both words are without their quotes, and too long ones spoil `to`. */
static void
add_line(struct hr_buf *to, const struct hr_buf *key, const struct hr_buf *value)
{
	hr_buf_addf(to, "\t\"%s\" \"%s\";\n", hr_buf_str(key), hr_buf_str(value));
	if (to->fail == 0)
		to->fail = key->fail != 0 ? key->fail : value->fail;
}

static void
add_base64(struct hr_buf *b, const char *before, const char *text, const char *after)
{
	HR_BUF(plain, TOKEN_MAX);

	hr_buf_addf(&plain, "%s%s%s", before, text, after);
	hr_quote_base64(b, hr_buf_str(&plain), plain.len);
}

/* Returns a member that is a string without control characters, or NULL with *err set. */
static const char *
get_secret(struct edge *e, const char *name)
{
	struct json_object *v;
	const char *text;
	size_t len, i;

	if (!json_object_object_get_ex(e->secrets, name, &v) ||
	    !json_object_is_type(v, json_type_string)) {
		(void)hr_err_set(e->err, HR_E_NOTFOUND, "the secret \"%.80s\" is not set", name);
		return NULL;
	}
	text = hr_json_str(v, &len);
	for (i = 0; i < len && (unsigned char)text[i] >= ' ' && text[i] != 0x7f; i++)
		;
	if (i == len && len >= EGRESS_SECRET_MIN)
		return text;
	(void)hr_err_set(e->err, HR_E_INVAL,
	    "the secret \"%.80s\" must have at least %d bytes and no control characters", name,
	    EGRESS_SECRET_MIN);
	return NULL;
}

static int
use_secret(struct edge *e, const char *value, const char *placeholder)
{
	size_t i = 0;

	while (i < e->nused && e->used[i].value != value)
		i++;
	if (i == USED_MAX)
		return hr_err_set(
		    e->err, HR_E_TOOLARGE, "%s uses too many secrets", e->host->name);
	if (i == e->nused)
		e->used[e->nused++] = (struct used){value, "(a secret)"};
	if (placeholder != NULL)
		e->used[i].shown = placeholder;
	return 0;
}

/* ---- rules ---- */

/* Returns the slot of a header, which is made if it is missing; NULL with *err set. */
static struct slot *
get_slot(struct edge *e, const char *name, size_t len)
{
	struct slot *s = e->slots;

	while (s < e->slots + e->nslots &&
	    (strncasecmp(s->name, name, len) != 0 || s->name[len] != '\0'))
		s++;
	if (s < e->slots + e->nslots)
		return s;
	if (e->nslots == SLOTS_MAX || len == 0 || len >= sizeof(s->name)) {
		(void)hr_err_set(e->err, HR_E_INVAL,
		    "%s: too many headers, or a header with too long a name", e->host->name);
		return NULL;
	}
	e->nslots++;
	memcpy(s->name, name, len);
	s->name[len] = '\0';
	hr_buf_init(&s->lines, e->out->cap);
	return s;
}

/* Appends the value of a header, with secrets. */
static int
add_value(struct edge *e, struct hr_buf *b, const char *p)
{
	static const char start[] = "${secrets.";
	char name[256];
	const char *at, *end, *value;

	while ((at = strstr(p, start)) != NULL && (end = strchr(at, '}')) != NULL) {
		add_text(b, p, (size_t)(at - p));
		at += sizeof(start) - 1;
		if ((size_t)(end - at) >= sizeof(name))
			return hr_err_set(e->err, HR_E_INVAL, "too long a name of a secret");
		memcpy(name, at, (size_t)(end - at));
		name[end - at] = '\0';
		value = get_secret(e, name);
		if (value == NULL || use_secret(e, value, NULL) < 0)
			return -1;
		add_text(b, value, strlen(value));
		p = end + 1;
	}
	add_text(b, p, strlen(p));
	return 0;
}

static bool
is_in(const char *name, size_t len, const char *const *list)
{
	while (*list != NULL && (strncasecmp(*list, name, len) != 0 || (*list)[len] != '\0'))
		list++;
	return *list != NULL;
}

static int
set_header(struct edge *e, const char *header)
{
	HR_BUF(key, TOKEN_MAX);
	HR_BUF(value, TOKEN_MAX);
	size_t len = strcspn(header, ":");
	struct slot *s;

	if (header[len] == '\0' || is_in(header, len, fixed) || is_in(header, len, unpacked) ||
	    is_in(header, len, dropped) ||
	    strspn(header,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != len)
		return hr_err_set(e->err, HR_E_INVAL, "a rule for %s must not set the header %.*s",
		    e->host->name, (int)(len < 80 ? len : 80), header);
	s = get_slot(e, header, len);
	header += len + 1;
	header += strspn(header, " ");
	if (s == NULL || add_value(e, &value, header) < 0)
		return -1;
	hr_buf_addf(&key, "a%u", e->rules);
	add_line(&s->lines, &key, &value);
	return 0;
}

/* Appends the line by which the map finds the current rule, for one pattern or all paths. */
static void
add_rule(struct edge *e, const struct egress_http_rule *r, const char *path)
{
	HR_BUF(key, TOKEN_MAX);
	HR_BUF(value, 32);
	HR_BUF(plain, TOKEN_MAX);
	const char *const *m;

	hr_buf_adds(&key, "~(?s)^/(?:");
	for (m = r->methods; m != NULL && *m != NULL; m++) {
		hr_buf_adds(&key, m != r->methods ? "|" : "");
		add_regex(&key, *m, strlen(*m));
	}
	hr_buf_adds(&key, r->methods == NULL ? "[^ ]+) " : ") ");
	if (path != NULL && r->deny) {
		/* A refusal must not be escaped by a way to spell the path: the one that nginx
		 * decoded is compared, too. */
		hr_percent_decode(&plain, path, strlen(path), false);
		hr_buf_adds(&key, "(?:");
		add_pattern(&key, path, "[^ ]");
		hr_buf_adds(&key, " |[^ ]+ ");
		add_pattern(&key, hr_buf_str(&plain), ".");
		hr_buf_adds(&key, "\\z)");
	} else if (path != NULL) {
		add_pattern(&key, path, "[^ ]");
		hr_buf_addc(&key, ' ');
	}
	hr_buf_addf(&value, "%c%u", r->deny ? 'd' : 'a', e->rules);
	add_line(&e->lines, &key, &value);
}

static int
on_rule(void *arg, const struct egress_http_rule *r)
{
	struct edge *e = arg;
	HR_BUF(key, TOKEN_MAX);
	HR_BUF(value, TOKEN_MAX);
	const char *const *p;

	for (p = r->paths; p != NULL && *p != NULL; p++)
		add_rule(e, r, *p);
	e->paths |= r->paths != NULL;
	if (r->paths == NULL)
		add_rule(e, r, NULL);
	hr_buf_addf(&key, "%c%u", r->deny ? 'd' : 'a', e->rules);
	add_text(&value, r->spelled, strlen(r->spelled));
	add_line(&e->names, &key, &value);
	for (p = r->headers; p != NULL && *p != NULL; p++)
		if (set_header(e, *p) < 0)
			return -1;
	e->rules++;
	return 0;
}

/* ---- credentials ---- */

#define TARGET SLOTS_MAX /* stands for the slot of the request's target */

/* Appends the variable with the client's value of a slot after the first k credentials. */
static void
add_base(struct edge *e, struct hr_buf *b, size_t slot, unsigned k)
{
	const char *p;

	if (k > 0 && (slot < CARRIERS || slot == TARGET))
		hr_buf_addf(b, "$eg_c%u_%u_%zu", e->host->id, k - 1, slot);
	else if (slot == TARGET)
		hr_buf_adds(b, "$request_uri");
	else
		for (hr_buf_adds(b, "$http_"), p = e->slots[slot].name; *p != '\0'; p++)
			hr_buf_addc(b, *p == '-' ? '_' : (char)tolower((unsigned char)*p));
}

/* Appends lines for "Basic", which put `value` in place of `mark` as the password of any user, or
 * as the user without a password. */
static void
add_basic(struct edge *e, const char *mark, const char *value)
{
	/* A digit in base64 has 6 bits. The first `skip` digits belong to bytes before the ':', at
	 * least in part; the ':' and all that follows is known. */
	static const struct {
		const char *digits, *before, *after;
		size_t skip;
	} forms[] = {{"(?:[A-Za-z0-9+/]{4})*", "", "", 0}, {"(?:[A-Za-z0-9+/]{4})*", ":", "", 0},
	    {"(?:[A-Za-z0-9+/]{4})*[A-Za-z0-9+/]{2}", "_:", "", 2}, {"", "", ":", 0},
	    {"", "", ":x-oauth-basic", 0}};
	size_t i;

	for (i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		HR_BUF(key, TOKEN_MAX);
		HR_BUF(to, TOKEN_MAX);
		HR_BUF(digits, TOKEN_MAX);

		hr_buf_addf(&key, "~^(?<eg_a>(?i:Basic) +%s)", forms[i].digits);
		add_base64(&digits, forms[i].before, mark, forms[i].after);
		add_regex(&key, hr_buf_str(&digits) + forms[i].skip, digits.len - forms[i].skip);
		hr_buf_adds(&key, " *\\z");
		hr_buf_reset(&digits);
		hr_buf_adds(&to, "${eg_a}");
		add_base64(&digits, forms[i].before, value, forms[i].after);
		add_text(&to, hr_buf_str(&digits) + forms[i].skip, digits.len - forms[i].skip);
		add_line(e->out, &key, &to);
	}
}

/* Appends a line that puts `value` in place of the last `mark` in a text after `before`. */
static void
add_replace(struct hr_buf *b, const char *before, const char *mark, const char *value)
{
	HR_BUF(key, TOKEN_MAX);
	HR_BUF(to, TOKEN_MAX);

	hr_buf_addf(&key, "~*(?s)^(?<eg_a>%s.*)", before);
	add_regex(&key, mark, strlen(mark));
	hr_buf_adds(&key, "(?<eg_b>.*)\\z");
	hr_buf_adds(&to, "${eg_a}");
	add_text(&to, value, strlen(value));
	hr_buf_adds(&to, "${eg_b}");
	add_line(b, &key, &to);
}

static int
on_credential(void *arg, const struct egress_credential *c)
{
	struct edge *e = arg;
	struct json_object *mark;
	const char *value;
	size_t slot;
	HR_BUF(escaped, TOKEN_MAX);

	if (!json_object_object_get_ex(e->placeholders, c->variable, &mark) ||
	    !json_object_is_type(mark, json_type_string))
		return 0;
	value = get_secret(e, c->secret);
	if (value == NULL || use_secret(e, value, json_object_get_string(mark)) < 0)
		return -1;
	hr_percent_encode(&escaped, value, "-_.~");
	for (slot = 0; slot <= CARRIERS; slot++) {
		size_t at = slot < CARRIERS ? slot : TARGET;
		HR_BUF(base, 256);

		add_base(e, &base, at, e->credentials);
		hr_buf_addf(e->out, "map %s $eg_c%u_%u_%zu {\n\tdefault %s;\n", hr_buf_str(&base),
		    e->host->id, e->credentials, at, hr_buf_str(&base));
		add_replace(e->out, at == TARGET ? "[^?]*\\?" : "", json_object_get_string(mark),
		    at == TARGET ? hr_buf_str(&escaped) : value);
		if (slot == 0)
			add_basic(e, json_object_get_string(mark), value);
		hr_buf_adds(e->out, "}\n");
	}
	e->credentials++;
	return 0;
}

/* ---- answers ---- */

static void
add_form(struct hr_strv *forms, const char *p, size_t len)
{
	HR_BUF(form, TOKEN_MAX);

	hr_buf_add(&form, p, len);
	if (!hr_is_one_of(hr_buf_str(&form), hr_strv_list(forms)))
		hr_strv_add(forms, hr_buf_str(&form));
}

/* Lists the forms of a secret that are looked for in an answer. */
static void
list_forms(struct hr_strv *forms, const char *value)
{
	static const char *const before[] = {"", "_", "__"};
	HR_BUF(text, TOKEN_MAX);
	size_t i, n, skip;
	char *p;

	add_form(forms, value, strlen(value));
	hr_percent_encode(&text, value, "-_.~");
	add_form(forms, hr_buf_str(&text), text.len);
	hr_buf_reset(&text);
	hr_quote_json(&text, value, strlen(value));
	add_form(forms, hr_buf_str(&text) + 1, text.len - 2);
	for (i = 0; i < 3; i++) {
		/* only digits in which all bits are the secret's */
		n = (i + strlen(value)) * 8 / 6;
		skip = (i * 8 + 5) / 6;
		hr_buf_reset(&text);
		add_base64(&text, before[i], value, "");
		add_form(forms, hr_buf_str(&text) + skip, n - skip);
		for (p = text.p; *p != '\0'; p++)
			*p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
		add_form(forms, hr_buf_str(&text) + skip, n - skip);
	}
}

/* Appends for each header that may repeat a secret the maps to its value without secrets: the first
 * one replaces one place, the second one is empty if the value has another. */
static void
add_echoes(struct edge *e, const struct hr_strv *forms, const char *const *shown)
{
	size_t i, f;
	char name[64];

	for (i = 0; i < ECHOES; i++) {
		for (f = 0; echoes[i][f] != '\0'; f++)
			name[f] = echoes[i][f] == '-' ? '_' : (char)tolower(echoes[i][f]);
		name[f] = '\0';
		hr_buf_addf(e->out,
		    "map $upstream_http_%s $eg_g%u_%zu {\n\tdefault $upstream_http_%s;\n", name,
		    e->host->id, i, name);
		for (f = 0; f < forms->n; f++)
			add_replace(e->out, "", forms->v[f], shown[f]);
		hr_buf_addf(e->out, "}\nmap $eg_g%u_%zu $eg_h%u_%zu {\n\tdefault $eg_g%u_%zu;\n",
		    e->host->id, i, e->host->id, i, e->host->id, i);
		for (f = 0; f < forms->n; f++) {
			HR_BUF(key, TOKEN_MAX);
			HR_BUF(none, 1);

			hr_buf_adds(&key, "~*");
			add_regex(&key, forms->v[f], strlen(forms->v[f]));
			add_line(e->out, &key, &none);
		}
		hr_buf_adds(e->out, "}\n");
	}
}

/* ---- servers ---- */

static const char head[] =
    "daemon off;\nworker_processes 1;\nworker_shutdown_timeout 1h;\n"
    /* Lines of the error log have the target of a request with its secrets. */
    "error_log stderr emerg;\n"
    "events {\n\tworker_connections 2048;\n}\n"
    "http {\n"
    "geo $eg_dollar {\n\tdefault \"$\";\n}\n"
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
    "map $request_uri $eg_path {\n"
    "\t\"~^(?<eg_p>/[^?\\x00-\\x20\\x7f]*)(?:\\?|\\z)\" $eg_p;\n}\n"
    /* Servers disagree about these paths. */
    "map $eg_path $eg_bad {\n\t\"~*[\\\\#]|%(?:5c|[01]|7f|(?![0-9a-f]{2}))\" 400;\n"
    "\t\"~*(?:^|/|%2f)(?:\\.|%2e)(?:\\.|%2e)?(?:/|%2f|;|%3b|\\z)\" 400;\n}\n"
    "map $eg_path $eg_logged {\n\t\"~^(?<eg_p>[!-~]{1,1000})\" $eg_p;\n}\n"
    "map $status $eg_status {\n\tdefault $status;\n\t\"~^0\" 0;\n}\n"
    /* Only websocket: by another protocol requests would pass that nobody judges. */
    "map $http_upgrade $eg_upgrade {\n\t\"~*^websocket\\z\" websocket;\n}\n"
    "map $eg_upgrade $eg_connection {\n\twebsocket upgrade;\n}\n"
    "map $upstream_http_content_encoding $eg_packed {\n\tdefault @eg_packed;\n\t\"\" \"\";\n"
    "\tidentity \"\";\n\tgzip \"\";\n}\n";

/* Fields that nginx would obey; "mid" alone may redirect "in". */
#define OBEYED "X-Accel-Buffering X-Accel-Charset X-Accel-Expires X-Accel-Limit-Rate"

static void
add_judgement(struct edge *e)
{
	const struct egress_host *h = e->host;
	struct egress_decision d;
	HR_BUF(name, 1100);
	HR_BUF(spelled, TOKEN_MAX);

	add_regex(&name, h->name, strlen(h->name));
	/* '/' is in no host that nginx accepts. */
	hr_buf_addf(e->out,
	    "map \"$host/$http_host/$ssl_server_name\" $eg_o%u {\n\tdefault 421;\n"
	    "\t\"~^/\" 400;\n\t\"~*^%s/%s\\.?(?::%d)?/(?:%s)?\\z\" \"\";\n}\n",
	    h->id, hr_buf_str(&name), hr_buf_str(&name), h->port, hr_buf_str(&name));
	hr_buf_addf(e->out,
	    "map \"$eg_o%u%s/$request_method $eg_path $uri\" $eg_r%u {\n\tdefault %s;\n"
	    "\t\"~^421\" host;\n\t\"~^400|^/[^ ]*  \" path;\n%s}\n",
	    h->id, e->paths ? "$eg_bad" : "", h->id, e->rules > 0 ? "none" : "a",
	    hr_buf_str(&e->lines));
	egress_policy_name(e->policy, h->name, h->port, &d);
	add_text(&spelled, d.rule, strlen(d.rule));
	hr_buf_addf(e->out,
	    "map $eg_r%u $eg_t%u {\n\tdefault \"no rule\";\n\thost \"not a request to %s\";\n"
	    "\tpath \"an ambiguous or malformed request\";\n\ta \"%s\";\n%s}\n"
	    "map $eg_r%u $eg_d%u {\n\tdefault true;\n\t\"~^a\" false;\n}\n"
	    "log_format eg%u escape=json '{\"id\":%u,\"method\":\"$request_method\","
	    "\"path\":\"$eg_logged\",\"status\":$eg_status,\"rule\":\"$eg_t%u\",\"deny\":$eg_d%u}';"
	    "\n",
	    h->id, h->id, h->name, hr_buf_str(&spelled), hr_buf_str(&e->names), h->id, h->id, h->id,
	    h->id, h->id, h->id);
}

/* Appends where a request goes: to "out" with verification, or to "mid". */
static void
add_way(struct edge *e, bool mid, const char *target)
{
	const struct egress_host *h = e->host;
	const char *const *p;
	char port[16] = "";

	if (mid)
		hr_buf_addf(e->out,
		    "\t\tproxy_pass http://eg_mid%u%s;\n\t\tproxy_ignore_headers " OBEYED ";\n",
		    h->id, target);
	else
		hr_buf_addf(e->out,
		    "\t\tproxy_pass %s://eg_out%u%s;\n"
		    "\t\tproxy_ignore_headers " OBEYED " X-Accel-Redirect;\n"
		    "\t\tproxy_ssl_name %s;\n",
		    h->tls ? "https" : "http", h->id, target, h->name);
	if (h->port != (h->tls ? 443 : 80))
		(void)snprintf(port, sizeof(port), ":%d", h->port);
	hr_buf_addf(e->out,
	    "\t\tproxy_set_header Host %s%s;\n\t\tproxy_set_header Upgrade $eg_upgrade;\n"
	    "\t\tproxy_set_header Connection $eg_connection;\n",
	    h->name, port);
	for (p = dropped; *p != NULL; p++)
		hr_buf_addf(e->out, "\t\tproxy_set_header %s \"\";\n", *p);
	for (p = unpacked; mid && *p != NULL; p++)
		hr_buf_addf(e->out, "\t\tproxy_set_header %s \"\";\n", *p);
}

/* Appends the server that judges requests. */
static void
add_in(struct edge *e, const struct hr_buf *dir)
{
	const struct egress_host *h = e->host;
	HR_BUF(target, 256);
	size_t i;

	hr_buf_addf(e->out, "server {\n\tlisten unix:in-%u%s;\n\tserver_name %s;\n", h->id,
	    h->tls ? " ssl http2" : "", h->name);
	if (h->tls)
		hr_buf_addf(e->out,
		    "\tssl_certificate \"%s/certs/%s.crt\";\n"
		    "\tssl_certificate_key \"%s/certs/%s.key\";\n",
		    hr_buf_str(dir), h->name, hr_buf_str(dir), h->name);
	hr_buf_addf(e->out,
	    "\taccess_log syslog:server=unix:log,nohostname,tag=egress eg%u;\n"
	    "\tif ($eg_r%u = host) {\n\t\treturn 421 \"network: $eg_t%u\\n\";\n\t}\n"
	    "\tif ($eg_r%u = path) {\n\t\treturn 400 \"network: $request_method %s$eg_logged was "
	    "refused: $eg_t%u\\n\";\n\t}\n"
	    "\tif ($eg_r%u ~ \"^[nd]\") {\n\t\treturn 403 \"network: $request_method %s$eg_logged "
	    "was refused: $eg_t%u\\n\";\n\t}\n",
	    h->id, h->id, h->id, h->id, h->name, h->id, h->id, h->name, h->id);
	hr_buf_adds(e->out, "\tlocation / {\n");
	if (e->credentials > 0)
		add_base(e, &target, TARGET, e->credentials);
	add_way(e, e->nused > 0, hr_buf_str(&target));
	for (i = 0; i < e->nslots; i++) {
		if (e->slots[i].lines.len == 0 && (i >= CARRIERS || e->credentials == 0))
			continue;
		hr_buf_addf(e->out, "\t\tproxy_set_header %s ", e->slots[i].name);
		if (e->slots[i].lines.len > 0)
			hr_buf_addf(e->out, "$eg_x%u_%zu", h->id, i);
		else
			add_base(e, e->out, i, e->credentials);
		hr_buf_adds(e->out, ";\n");
	}
	hr_buf_adds(e->out, "\t}\n");
}

/* Appends the server that takes secrets out of answers, and before it the maps that it uses. */
static int
add_mid(struct edge *e)
{
	HR_CLEAN(hr_strv_done) struct hr_strv forms = {.v = NULL};
	HR_CLEAN(hr_strv_done) struct hr_strv shown = {.v = NULL};
	size_t i;

	for (i = 0; i < e->nused; i++) {
		list_forms(&forms, e->used[i].value);
		while (shown.n < forms.n && !shown.failed)
			hr_strv_add(&shown, e->used[i].shown);
	}
	if (forms.failed || shown.failed)
		return hr_err_nomem(e->err);
	add_echoes(e, &forms, hr_strv_list(&shown));
	hr_buf_addf(e->out, "server {\n\tlisten unix:mid-%u;\n\tgunzip on;\n\tlocation / {\n",
	    e->host->id);
	add_way(e, false, "");
	hr_buf_adds(e->out,
	    "\t\tadd_header X-Accel-Redirect $eg_packed always;\n"
	    "\t\tproxy_hide_header Set-Cookie;\n"
	    "\t\tsub_filter_once off;\n\t\tsub_filter_types *;\n");
	for (i = 0; i < ECHOES; i++)
		hr_buf_addf(e->out,
		    "\t\tproxy_hide_header %s;\n\t\tadd_header %s $eg_h%u_%zu always;\n", echoes[i],
		    echoes[i], e->host->id, i);
	for (i = 0; i < forms.n; i++) {
		HR_BUF(from, TOKEN_MAX);
		HR_BUF(to, TOKEN_MAX);

		add_text(&from, forms.v[i], strlen(forms.v[i]));
		add_text(&to, shown.v[i], strlen(shown.v[i]));
		hr_buf_adds(e->out, "\t\tsub_filter");
		add_line(e->out, &from, &to);
	}
	hr_buf_adds(e->out, "\t}\n");
	return 0;
}

static void
end_server(struct edge *e)
{
	hr_buf_addf(e->out,
	    "\terror_page 502 504 @eg_failed;\n"
	    "\tlocation @eg_failed {\n\t\treturn 502 \"network: %s could not be reached, or its "
	    "certificate is not valid\\n\";\n\t}\n"
	    "\tlocation @eg_packed {\n\t\treturn 502 \"network: the answer of %s was refused: it "
	    "is in a packed form, which could hide a secret\\n\";\n\t}\n}\n",
	    e->host->name, e->host->name);
}

static int
add_host(struct edge *e, const struct hr_buf *dir)
{
	const struct egress_host *h = e->host;
	char same[EGRESS_NAME_MAX + 1];
	size_t i;
	HR_BUF(base, 256);

	if (!egress_name(h->name, strlen(h->name), same) || strcmp(same, h->name) != 0)
		return hr_err_set(e->err, HR_E_INVAL, "\"%.80s\" is no host name", h->name);
	for (i = 0; i < CARRIERS; i++)
		if (get_slot(e, carriers[i], strlen(carriers[i])) == NULL)
			return -1;
	if (egress_policy_http(e->policy, h->name, h->port, on_rule, on_credential, e) < 0)
		return -1;
	add_judgement(e);
	for (i = 0; i < e->nslots; i++) {
		if (e->slots[i].lines.len == 0)
			continue;
		hr_buf_reset(&base);
		add_base(e, &base, i, e->credentials);
		hr_buf_addf(e->out, "map $eg_r%u $eg_x%u_%zu {\n\tdefault %s;\n%s}\n", h->id, h->id,
		    i, hr_buf_str(&base), hr_buf_str(&e->slots[i].lines));
	}
	hr_buf_addf(e->out, "upstream eg_out%u {\n\tserver unix:out-%u;\n\tkeepalive 8;\n}\n",
	    h->id, h->id);
	if (e->nused > 0) {
		hr_buf_addf(e->out,
		    "upstream eg_mid%u {\n\tserver unix:mid-%u;\n\tkeepalive 8;\n}\n", h->id,
		    h->id);
		if (add_mid(e) < 0)
			return -1;
		end_server(e);
	}
	add_in(e, dir);
	end_server(e);
	return 0;
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
	HR_BUF(place, TOKEN_MAX);
	size_t i;
	int r = 0;

	/* nginx would take a dollar sign in these names for a variable. */
	if (strpbrk(dir, "$\n") != NULL)
		return hr_err_set(err, HR_E_INVAL, "%s: nginx cannot use this directory", dir);
	add_text(&place, dir, strlen(dir));
	hr_buf_adds(ret, head);
	hr_buf_addf(ret, "proxy_ssl_trusted_certificate \"%s/trust.pem\";\n", hr_buf_str(&place));
	for (i = 0; i < sizeof(temporary) / sizeof(*temporary); i++)
		hr_buf_addf(ret, "%s_temp_path \"%s/temp\";\n", temporary[i], hr_buf_str(&place));
	for (i = 0; i < n && r == 0; i++) {
		HR_CLEAN(edge_done)
		struct edge e = {.policy = p, .secrets = secrets, .placeholders = placeholders,
		    .out = ret, .err = err, .host = &hosts[i]};

		hr_buf_init(&e.lines, ret->cap);
		hr_buf_init(&e.names, ret->cap);
		r = add_host(&e, &place);
		if (r == 0 && (e.lines.fail != 0 || e.names.fail != 0))
			r = hr_buf_check(e.lines.fail != 0 ? &e.lines : &e.names, err);
	}
	hr_buf_adds(ret, "}\n");
	hr_buf_addf(ret, "pid \"%s/nginx.pid\";\n", hr_buf_str(&place));
	return r == 0 ? hr_buf_check(ret, err) : -1;
}

int
egress_placeholder(char ret[EGRESS_PLACEHOLDER_TEXT], struct hr_err *err)
{
	memcpy(ret, "ph_", 3);
	return hr_random_hex(ret + 3, EGRESS_PLACEHOLDER_TEXT - 4, err);
}
