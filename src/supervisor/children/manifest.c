/* Parses manifests. Invariant: every name, path and ${name} of a parsed manifest has been
 * checked. */
#include "config.h"

#include "supervisor/children/manifest.h"

#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/path.h"
#include "base/text/text.h"
#include "base/trust.h"
#include "proto/json.h"

#define MANIFEST_MAX (256u << 10)
#define MANIFEST_DEPTH 8
#define WORDS_MAX 64
#define NAME_MAX_LEN 64
#define READY_TIMEOUT_S 60
#define READY_TIMEOUT_MAX_S 86400
#define BODY_MAX (1LL << 40)

static bool
made_of(const char *text, const char *others)
{
	const char *p;

	for (p = text; *p != '\0'; p++)
		if (!((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') ||
			(*p >= 'A' && *p <= 'Z') || strchr(others, *p) != NULL))
			return false;
	return p > text;
}

bool
hr_manifest_name_ok(const char *name)
{
	return strlen(name) <= NAME_MAX_LEN && made_of(name, "_-");
}

/* Accepts a name of a variable, or a beginning of names that ends with an asterisk. */
static bool
variable_ok(const char *name)
{
	size_t n = strcspn(name, "*");

	return n <= NAME_MAX_LEN && made_of(name, name[n] != '\0' ? "_-*" : "_-") &&
	       (name[n] == '\0' || (n > 0 && name[n + 1] == '\0'));
}

/* Checks a prefix, which becomes part of nginx's configuration. */
static bool
prefix_ok(const char *prefix)
{
	return prefix[0] == '/' && prefix[1] != '\0' && prefix[1] != '-' &&
	       made_of(prefix, "/._-") && strstr(prefix, "//") == NULL &&
	       strstr(prefix, "..") == NULL;
}

static const char *
var_find(const struct hr_manifest_vars *vars, const char *name, size_t len)
{
	const struct {
		const char *name, *value;
	} all[] = {{"plugin_dir", vars->plugin_dir}, {"state_dir", vars->state_dir},
	    {"workspace", vars->workspace}, {"username", vars->username},
	    {"user_id", vars->user_id}, {"runtime_id", vars->runtime_id},
	    {"libexecdir", vars->libexecdir}, {"datadir", vars->datadir},
	    {"vscode_port", vars->vscode_port}, {"session_username", vars->session_username},
	    {"runtime_username", vars->runtime_username}};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strlen(all[i].name) == len && memcmp(all[i].name, name, len) == 0)
			return all[i].value;
	return NULL;
}

int
hr_manifest_expand(
    struct hr_buf *b, const char *text, const struct hr_manifest_vars *vars, struct hr_err *err)
{
	const char *open, *close, *value;

	for (;;) {
		open = strstr(text, "${");
		if (open == NULL) {
			hr_buf_adds(b, text);
			return hr_buf_check(b, err);
		}
		hr_buf_add(b, text, (size_t)(open - text));
		close = strchr(open, '}');
		value = close != NULL ? var_find(vars, open + 2, (size_t)(close - open - 2)) : NULL;
		if (value == NULL)
			return hr_err_set(err, HR_E_INVAL, "unknown variable in \"%.64s\"", open);
		hr_buf_adds(b, value);
		text = close + 1;
	}
}

static int
check_text(const char *key, const char *text, struct hr_err *err)
{
	static const struct hr_manifest_vars none = {"", "", "", "", "", "", "", "", "", "", ""};
	HR_BUF(b, MANIFEST_MAX);
	int r;

	r = hr_manifest_expand(&b, text, &none, err);
	if (r != 0)
		hr_err_prefix(err, "%s", key);
	return r;
}

/* Returns a string without nulls, borrowed; NULL with *err set. */
static const char *
text_of(const char *key, struct json_object *v, struct hr_err *err)
{
	const char *text;

	if (!json_object_is_type(v, json_type_string)) {
		(void)hr_err_set(err, HR_E_INVAL, "%s: must be a string", key);
		return NULL;
	}
	text = json_object_get_string(v);
	if (strlen(text) != (size_t)json_object_get_string_len(v)) {
		(void)hr_err_set(err, HR_E_INVAL, "%s: must not contain a NUL byte", key);
		return NULL;
	}
	return check_text(key, text, err) == 0 ? text : NULL;
}

static int
take_text(char **ret, const char *key, struct json_object *v, struct hr_err *err)
{
	const char *text = text_of(key, v, err);

	if (text == NULL)
		return -1;
	return hr_text_set(ret, text, err);
}

static int
list_begin(struct hr_strv *l, const char *key, size_t n, struct hr_err *err)
{
	hr_strv_done(l);
	if (n > WORDS_MAX)
		return hr_err_set(err, HR_E_TOOLARGE, "%s: more than %d entries", key, WORDS_MAX);
	return 0;
}

static int
take_list(struct hr_strv *l, const char *key, bool (*ok)(const char *name), struct json_object *v,
    struct hr_err *err)
{
	const char *text;
	size_t i, n;

	if (!json_object_is_type(v, json_type_array))
		return hr_err_set(err, HR_E_INVAL, "%s: must be a list", key);
	n = json_object_array_length(v);
	if (list_begin(l, key, n, err) < 0)
		return -1;
	for (i = 0; i < n; i++) {
		text = text_of(key, json_object_array_get_idx(v, i), err);
		if (text == NULL)
			return -1;
		if (ok != NULL && !ok(text))
			return hr_err_set(
			    err, HR_E_INVAL, "%s: \"%.64s\" is not a valid name", key, text);
		hr_strv_add(l, text);
	}
	return l->failed ? hr_err_nomem(err) : 0;
}

static int
take_variables(struct hr_strv *l, const char *key, struct json_object *v, struct hr_err *err)
{
	if (!json_object_is_type(v, json_type_object))
		return hr_err_set(err, HR_E_INVAL, "%s: must be an object", key);
	if (list_begin(l, key, (size_t)json_object_object_length(v), err) < 0)
		return -1;
	json_object_object_foreach(v, name, value)
	{
		const char *text = text_of(key, value, err);

		if (text == NULL)
			return -1;
		if (!made_of(name, "_"))
			return hr_err_set(err, HR_E_INVAL,
			    "%s: \"%.64s\" is not the name of a variable", key, name);
		hr_strv_addf(l, "%s=%s", name, text);
	}
	return l->failed ? hr_err_nomem(err) : 0;
}

/* Parses one of several keywords. Returns its index, or -1 with *err set. */
static int
take_word(
    const char *key, const char *const *words, size_t n, struct json_object *v, struct hr_err *err)
{
	const char *text = text_of(key, v, err);
	HR_BUF(b, 256);
	size_t i;

	if (text == NULL)
		return -1;
	for (i = 0; i < n; i++)
		if (strcmp(text, words[i]) == 0)
			return (int)i;
	for (i = 0; i < n; i++)
		hr_buf_addf(&b, "%s%s", i > 0 ? ", " : "", words[i]);
	return hr_err_set(
	    err, HR_E_INVAL, "%s: must be one of %s, not \"%.64s\"", key, hr_buf_str(&b), text);
}

static int
take_choice(bool *ret, const char *key, const char *no, const char *yes, struct json_object *v,
    struct hr_err *err)
{
	const char *const words[] = {no, yes};
	int i = take_word(key, words, 2, v, err);

	if (i < 0)
		return -1;
	*ret = i == 1;
	return 0;
}

static int
take_start(enum hr_manifest_start *ret, const char *key, struct json_object *v, struct hr_err *err)
{
	static const char *const words[] = {"first-use", "at-start", "background"};
	int i = take_word(key, words, 3, v, err);

	if (i < 0)
		return -1;
	*ret = (enum hr_manifest_start)i;
	return 0;
}

static int
take_bool(bool *ret, const char *key, struct json_object *v, struct hr_err *err)
{
	if (!json_object_is_type(v, json_type_boolean))
		return hr_err_set(err, HR_E_INVAL, "%s: must be true or false", key);
	*ret = json_object_get_boolean(v);
	return 0;
}

static int
take_integer(
    long long *ret, const char *key, struct json_object *v, long long max, struct hr_err *err)
{
	if (!json_object_is_type(v, json_type_int) || json_object_get_int64(v) < 1 ||
	    json_object_get_int64(v) > max)
		return hr_err_set(
		    err, HR_E_INVAL, "%s: must be an integer from 1 to %lld", key, max);
	*ret = json_object_get_int64(v);
	return 0;
}

static int
take_http_entry(struct hr_manifest_http *h, struct json_object *entry, struct hr_err *err)
{
	static const char *const words[] = {"session", "bearer", "none"};
	struct json_object *v = NULL;
	int i = HR_MANIFEST_SESSION;

	(void)json_object_object_get_ex(entry, "prefix", &v);
	if (take_text(&h->prefix, "prefix", v, err) < 0)
		return -1;
	if (!prefix_ok(h->prefix))
		return hr_err_set(
		    err, HR_E_INVAL, "prefix: \"%.64s\" is not a plain path", h->prefix);
	if (json_object_object_get_ex(entry, "auth", &v) &&
	    (i = take_word("auth", words, 3, v, err)) < 0)
		return -1;
	h->auth = (enum hr_manifest_auth)i;
	if (json_object_object_get_ex(entry, "port", &v) && take_text(&h->port, "port", v, err) < 0)
		return -1;
	if (json_object_object_get_ex(entry, "strip", &v) &&
	    take_bool(&h->strip, "strip", v, err) < 0)
		return -1;
	if (json_object_object_get_ex(entry, "user", &v) && take_bool(&h->user, "user", v, err) < 0)
		return -1;
	if (json_object_object_get_ex(entry, "stream_body", &v) &&
	    take_bool(&h->stream_body, "stream_body", v, err) < 0)
		return -1;
	if (json_object_object_get_ex(entry, "body_max", &v) &&
	    take_integer(&h->body_max, "body_max", v, BODY_MAX, err) < 0)
		return -1;
	if (h->strip && h->prefix[strlen(h->prefix) - 1] != '/')
		return hr_err_set(
		    err, HR_E_INVAL, "strip: \"%.64s\" has nothing below it", h->prefix);
	return 0;
}

static int
take_http(struct hr_manifest *m, struct json_object *v, struct hr_err *err)
{
	struct json_object *entry;
	size_t i, n;

	if (!json_object_is_type(v, json_type_array) ||
	    (n = json_object_array_length(v)) > WORDS_MAX)
		return hr_err_set(err, HR_E_INVAL, "http: must be a list of at most %d", WORDS_MAX);
	m->http = calloc(n + 1, sizeof(*m->http));
	if (m->http == NULL)
		return hr_err_nomem(err);
	for (i = 0; i < n; i++) {
		entry = json_object_array_get_idx(v, i);
		m->nhttp++;
		if (!json_object_is_type(entry, json_type_object) ||
		    !json_object_object_get_ex(entry, "prefix", NULL))
			return hr_err_set(err, HR_E_INVAL,
			    "http: entry %zu must be an object with a prefix", i + 1);
		if (take_http_entry(&m->http[i], entry, err) < 0)
			return -1;
	}
	return 0;
}

static int
take_member(struct hr_manifest *m, const char *key, struct json_object *v, struct hr_err *err)
{
	const struct {
		const char *key;
		struct hr_strv *list;
		bool (*ok)(const char *name); /* NULL: any string */
	} lists[] = {{"exec", &m->exec, NULL}, {"needs", &m->needs, NULL},
	    {"requires", &m->requires, hr_manifest_name_ok},
	    {"after", &m->after, hr_manifest_name_ok}, {"pass_env", &m->pass_env, variable_ok},
	    {"actions", &m->actions, hr_manifest_name_ok}};
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (strcmp(key, lists[i].key) == 0)
			return take_list(lists[i].list, key, lists[i].ok, v, err);
	if (strcmp(key, "name") == 0)
		return take_text(&m->name, key, v, err);
	if (strcmp(key, "version") == 0)
		return take_text(&m->version, key, v, err);
	if (strcmp(key, "unavailable") == 0)
		return take_text(&m->unavailable, key, v, err);
	if (strcmp(key, "env") == 0)
		return take_variables(&m->env, key, v, err);
	if (strcmp(key, "provides") == 0)
		return take_variables(&m->provides, key, v, err);
	if (strcmp(key, "http") == 0)
		return take_http(m, v, err);
	if (strcmp(key, "run_as") == 0)
		return take_choice(&m->as_server, key, "user", "server", v, err);
	if (strcmp(key, "start") == 0)
		return take_start(&m->start, key, v, err);
	if (strcmp(key, "on_failure") == 0)
		return take_choice(&m->disables, key, "abort", "disable", v, err);
	if (strcmp(key, "ready_timeout") == 0)
		return take_integer(&m->ready_timeout_s, key, v, READY_TIMEOUT_MAX_S, err);
	if (strcmp(key, "connection_token") == 0)
		return take_bool(&m->token, key, v, err);
	if (strcmp(key, "outlives") == 0)
		return take_bool(&m->outlives, key, v, err);
	if (strcmp(key, "openhands_v1") == 0)
		return take_bool(&m->v1, key, v, err);
	if (strcmp(key, "direct") == 0)
		return take_bool(&m->direct, key, v, err);
	return strcmp(key, "implied") == 0 ? take_bool(&m->implied, key, v, err) : 0;
}

static int
take_members(struct hr_manifest *m, struct json_object *top, struct hr_err *err)
{
	const char *slash = strrchr(m->dir, '/');
	struct json_object *api = NULL;

	if (!json_object_is_type(top, json_type_object))
		return hr_err_set(err, HR_E_INVAL, "must be a JSON object");
	if (!json_object_object_get_ex(top, "api", &api) ||
	    !json_object_is_type(api, json_type_int) ||
	    json_object_get_int64(api) != HR_MANIFEST_API)
		return hr_err_set(err, HR_E_UNSUPPORTED,
		    "api: must be %d, the only version of this handraild", HR_MANIFEST_API);
	json_object_object_foreach(top, key, value)
	{
		if (take_member(m, key, value, err) < 0)
			return -1;
	}
	if (m->name == NULL || !hr_manifest_name_ok(m->name))
		return hr_err_set(err, HR_E_INVAL, "name: is missing or not valid");
	if (slash == NULL || strcmp(slash + 1, m->name) != 0)
		return hr_err_set(
		    err, HR_E_INVAL, "name: must be the directory's name, not \"%s\"", m->name);
	if (m->exec.n == 0 && (m->actions.n > 0 || m->nhttp > 0) && m->unavailable == NULL)
		return hr_err_set(
		    err, HR_E_INVAL, "exec: is missing: actions and http need a program");
	if (m->direct && !m->as_server)
		return hr_err_set(err, HR_E_INVAL,
		    "direct: needs run_as \"server\": requests have the session key");
	return 0;
}

int
hr_manifest_parse(
    struct hr_manifest *m, const char *dir, const char *text, size_t len, struct hr_err *err)
{
	struct json_tokener *tok = json_tokener_new_ex(MANIFEST_DEPTH);
	HR_PUT struct json_object *top = NULL;
	int r = -1;

	memset(m, 0, sizeof(*m));
	m->ready_timeout_s = READY_TIMEOUT_S;
	m->dir = strdup(dir);
	if (tok == NULL || m->dir == NULL) {
		(void)hr_err_nomem(err);
	} else if (len > MANIFEST_MAX) {
		(void)hr_err_set(err, HR_E_TOOLARGE, "exceeds %u bytes", MANIFEST_MAX);
	} else {
		/* the length includes the NUL: otherwise a final number would count as
		 * incomplete */
		top = json_tokener_parse_ex(tok, text, (int)len + 1);
		if (json_tokener_get_error(tok) != json_tokener_success)
			(void)hr_err_set(err, HR_E_INVAL, "%s",
			    json_tokener_error_desc(json_tokener_get_error(tok)));
		else
			r = take_members(m, top, err);
	}
	if (tok != NULL)
		json_tokener_free(tok);
	if (r != 0)
		hr_manifest_done(m);
	return r;
}

int
hr_manifest_read(struct hr_manifest *m, const char *dir, struct hr_err *err)
{
	HR_BUF(b, MANIFEST_MAX);
	HR_FREE char *path = hr_path_join(dir, "plugin.json");
	int r;

	if (path == NULL)
		return hr_err_nomem(err);
	/* files installed with handraild may belong to the user who installed it */
	r = hr_trust_read(path, hr_trust_program_owner(), &b, err);
	if (r == 0) {
		r = hr_manifest_parse(m, dir, hr_buf_str(&b), b.len, err);
		if (r != 0)
			hr_err_prefix(err, "%s", path);
	}
	return r;
}

void
hr_manifest_done(struct hr_manifest *m)
{
	struct hr_strv *const lists[] = {&m->exec, &m->needs, &m->requires, &m->after, &m->pass_env,
	    &m->actions, &m->env, &m->provides};
	size_t i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		hr_strv_done(lists[i]);
	for (i = 0; i < m->nhttp; i++) {
		free(m->http[i].prefix);
		free(m->http[i].port);
	}
	free(m->http);
	free(m->name);
	free(m->version);
	free(m->dir);
	free(m->unavailable);
	memset(m, 0, sizeof(*m));
}
