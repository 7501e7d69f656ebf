/* Serves /api/ and /health: routes, files and git. The handlers of /upload_file and /download_file
 * transfer the files; this file converts their errors for V1 clients. */
#include "config.h"

#include "worker/v1/v1.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <json-c/json.h>

#include "base/fd.h"
#include "base/text/utf8.h"
#include "files/purepath.h"
#include "shell/quote.h"

#define GIT_LIMIT_S 60
/* maximum bytes, because the shell's user may replace git */
#define GIT_OUTPUT_MAX (4u << 20)
#define PATH_MAX_LEN (64u << 10)
#define REF_MAX 4096

/* ---- paths ---- */

/* Takes the path from the query, or from the rest of the URL as in earlier clients, without
 * superfluous slashes. Returns false after sending an error. */
static bool
read_path(struct hr_rex_call *c, struct hr_buf *path)
{
	HR_BUF(text, PATH_MAX_LEN);
	bool given = hr_request_query(c->r, "path", &text);

	if (!given) {
		if (c->rest.len > 0 && c->rest.p[0] != '/')
			hr_buf_addc(&text, '/');
		hr_buf_add(&text, c->rest.p, c->rest.len);
	}
	hr_purepath_put(path, hr_buf_str(&text), text.len);
	if (path->fail != HR_OK || text.fail != HR_OK)
		return hr_answer_generic(c->ret);
	return given || text.len > 0 || hr_v1_missing(c, "query", "path");
}

/* Reads a path that must be absolute. A message calls its file `what`. Returns false after sending
 * an error. */
static bool
path_of(struct hr_rex_call *c, const char *what, struct hr_buf *path)
{
	HR_BUF(text, 64);

	if (!read_path(c, path))
		return false;
	if (hr_buf_str(path)[0] != '/')
		return hr_answer_detail(c->ret, 400, "Path must be absolute");
	if (strlen(path->p) == path->len)
		return true;
	hr_buf_addf(&text, "%s not found", what);
	return hr_answer_detail(c->ret, 404, hr_buf_str(&text));
}

/* Takes the status from an error message like "404: File not found", or "[Errno 21]" of an upload,
 * and the original's text for a body that cannot be read. */
static void
take_status(struct hr_answer *ret)
{
	static const char unreadable[] = "There was an error parsing the body";
	HR_PUT struct json_object *body = NULL;
	const char *detail = NULL;
	char *end;
	long status;
	int sys;

	if (hr_json_decode(hr_buf_str(&ret->body), ret->body.len, &body, NULL) == 0)
		detail = hr_json_text_at(body, "detail");
	if (ret->status == 400 && (detail == NULL || strcmp(detail, unreadable) == 0))
		hr_answer_detail(ret, 400, "Invalid multipart data.");
	if (ret->status != 500)
		return;
	if (detail == NULL)
		return;
	if (sscanf(detail, "[Errno %d]", &sys) == 1) {
		if (sys == EISDIR)
			hr_answer_detail(ret, 400, "Path is a directory");
		else if (sys == ENOTDIR || sys == EEXIST)
			hr_answer_detail(ret, 400, "A parent of the path is not a directory");
		return;
	}
	status = strtol(detail, &end, 10);
	if (end == detail + 3 && strncmp(end, ": ", 2) == 0 && status >= 400 && status < 500)
		hr_answer_detail(ret, (int)status, end + 2);
}

/* ---- files ---- */

/* Reports that the form has no file but perhaps a text. */
static void
refuse_form(struct hr_rex_call *c, const struct hr_buf *field)
{
	static const char error[] = "Expected UploadFile, received: <class 'str'>";
	struct hr_v1_input in = {"body", "file", {field->p, field->len}};
	HR_BUF(msg, 256);
	HR_BUF(ctx, 256);

	hr_buf_addf(&msg, "Value error, %s", error);
	hr_buf_addf(&ctx, "\"error\":\"%s\"", error);
	if (field->len == 0)
		(void)hr_v1_missing(c, "body", "file");
	else
		(void)hr_v1_invalid(c, &in, "value_error", hr_buf_str(&msg), hr_buf_str(&ctx));
}

/* Replaces the error of a path by that of the form, which the original reads first. Both may be
 * missing. */
static void
check_form(struct hr_rex_call *c)
{
	HR_CLEAN(hr_answer_done) struct hr_answer form;
	HR_BUF(field, HR_ANSWER_MAX);
	uint64_t size;

	hr_answer_init(&form);
	if (hr_upload_to(c->w, c->r, NULL, &size, &field, &form))
		return;
	if (form.status == 422) {
		refuse_form(c, &field);
		return;
	}
	hr_answer_reset(c->ret);
	c->ret->status = form.status;
	hr_buf_add(&c->ret->body, hr_buf_str(&form.body), form.body.len);
	take_status(c->ret);
}

static void
upload(struct hr_rex_call *c)
{
	HR_BUF(path, PATH_MAX_LEN);
	HR_BUF(field, HR_ANSWER_MAX);
	uint64_t size;

	if (!path_of(c, "File", &path)) {
		check_form(c);
	} else if (strcmp(path.p, "/") == 0) {
		hr_answer_detail(c->ret, 400, "Path is a directory");
		check_form(c);
	} else if (hr_upload_to(c->w, c->r, &path, &size, &field, c->ret)) {
		hr_buf_reset(&c->ret->body);
		hr_buf_addf(&c->ret->body, "{\"success\":true,\"file_size\":%llu}",
		    (unsigned long long)size);
	} else if (c->ret->status == 422) {
		hr_answer_reset(c->ret);
		refuse_form(c, &field);
	} else {
		take_status(c->ret);
	}
}

static void
download(struct hr_rex_call *c)
{
	HR_BUF(path, PATH_MAX_LEN);
	HR_CLOSE int fd = -1;
	struct stat st;

	if (!path_of(c, "File", &path))
		return;
	if (hr_download_open(hr_buf_str(&path), &fd, &st, c->ret)) {
		hr_v1_download(c, &fd, &st);
		return;
	}
	take_status(c->ret);
	if (c->ret->status == 400)
		hr_answer_detail(c->ret, 400, "Path is not a file");
}

static void
create_directory(struct hr_rex_call *c)
{
	HR_BUF(path, PATH_MAX_LEN);

	if (path_of(c, "File", &path))
		hr_v1_make_directory(c, &path);
}

static void
search_subdirs(struct hr_rex_call *c)
{
	struct hr_v1_listing listing = {.limit = 100};
	HR_BUF(path, PATH_MAX_LEN);
	bool fine = hr_v1_required(c, "path");

	fine &= hr_v1_limit(c, true, 100, &listing.limit);
	fine &= hr_v1_truth(c, "include_hidden", &listing.hidden);
	if (fine && path_of(c, "Directory", &path))
		hr_v1_subdirectories(c, &path, &listing);
}

static void
archive(struct hr_rex_call *c)
{
	static const char *const formats[] = {"git-delta", "tar.gz", NULL};
	HR_BUF(path, PATH_MAX_LEN);
	bool fine = hr_v1_required(c, "path"), excludes = true;
	size_t format = 0;

	fine &= hr_v1_one_of(c, "format", "literal_error", formats, &format);
	fine &= hr_v1_truth(c, "use_default_excludes", &excludes);
	if (fine && path_of(c, "Directory", &path))
		hr_v1_archive(c, &path, format == 1, excludes);
}

/* ---- git, with the rights of the shell's user instead of the server's ---- */

static const char *
word_of(const char *status)
{
	switch (status != NULL ? status[0] : '\0') {
	case 'A': return "ADDED";
	case 'D': return "DELETED";
	case 'R': return "MOVED";
	default: return "UPDATED";
	}
}

static void
put_changes(struct hr_buf *b, struct json_object *list)
{
	struct json_object *one;
	struct hr_span path;
	size_t i;

	hr_buf_addc(b, '[');
	for (i = 0; hr_json_type(list) == HR_PY_LIST && i < hr_json_count(list); i++) {
		one = hr_json_entry(list, i);
		path = hr_json_span_or(one, "path", "");
		hr_buf_addf(b, "%s{\"status\":\"%s\",\"path\":", i > 0 ? "," : "",
		    word_of(hr_json_text_at(one, "status")));
		(void)hr_json_put_str(b, path.p, path.len, HR_JSON_REPLACE);
		hr_buf_addc(b, '}');
	}
	hr_buf_addc(b, ']');
}

/* Appends an option from the query. Returns false after sending an error. */
static bool
put_commit(struct hr_rex_call *c, bool diff, struct hr_buf *text)
{
	HR_BUF(ref, REF_MAX);
	HR_BUF(commit, HR_V1_TEXT_MAX);
	struct hr_v1_input in = {"query", "commit", {NULL, 0}};
	bool has_ref, has_commit, fine = c->rest.len > 0 || hr_v1_required(c, "path");

	has_ref = hr_request_query(c->r, "ref", &ref);
	has_commit = diff && hr_request_query(c->r, "commit", &commit);
	in.text = (struct hr_span){hr_buf_str(&commit), commit.len};
	fine &= !has_commit || hr_v1_sha(c, &in);
	if (!fine)
		return false;
	if (has_ref && has_commit)
		return hr_answer_detail(c->ret, 400, "'ref' and 'commit' are mutually exclusive");
	if (has_ref &&
	    (ref.fail != HR_OK || ref.len == 0 || ref.p[0] == '-' || strlen(ref.p) != ref.len))
		return hr_answer_detail(c->ret, 400, "ref must be the name of a commit");
	if (has_ref || has_commit) {
		hr_buf_adds(text, has_ref ? " --ref " : " --commit ");
		hr_shell_quote(text, has_ref ? ref.p : commit.p, has_ref ? ref.len : commit.len);
	}
	return true;
}

/* Runs handrail-git with `arguments` and the path of the request, which a relative one continues
 * from the directory in which commands start. Sends its result, as a list of changes or as it is,
 * or an error. */
static void
ask_git(struct hr_rex_call *c, const struct hr_buf *arguments, bool changes)
{
	HR_PUT struct json_object *said = NULL;
	HR_BUF(path, PATH_MAX_LEN);
	HR_BUF(text, PATH_MAX_LEN * 5);
	HR_BUF(out, GIT_OUTPUT_MAX);
	int64_t code = -1;

	if (!read_path(c, &path))
		return;
	if (strlen(hr_buf_str(&path)) != path.len) {
		hr_answer_detail(c->ret, 404, "File not found");
		return;
	}
	hr_shell_quote(&text, c->w->libexec_dir, strlen(c->w->libexec_dir));
	hr_buf_addf(&text, "/handrail-git v1-%s %s", hr_buf_str(arguments),
	    hr_buf_str(&path)[0] == '/' ? "" : "./");
	hr_shell_quote(&text, path.p, path.len);
	if (hr_buf_check(&text, NULL) < 0 || arguments->fail != HR_OK) {
		hr_answer_generic(c->ret);
		return;
	}
	if (!hr_v1_run(c, hr_span_of_buf(&text), GIT_LIMIT_S, &out, &code))
		return;
	if (code != 0 || hr_json_decode(hr_buf_str(&out), out.len, &said, NULL) < 0)
		hr_answer_detail(c->ret, 400,
		    "git gave no answer: its repository is broken or has no such commit, or the "
		    "file is not there or too large");
	else if (changes)
		put_changes(&c->ret->body, said);
	else if (hr_json_put(&c->ret->body, said) < 0)
		hr_answer_generic(c->ret);
}

/* Lists the changes; a directory outside a repository has none. */
static void
changes(struct hr_rex_call *c)
{
	HR_BUF(arguments, PATH_MAX_LEN);

	hr_buf_adds(&arguments, "changes");
	if (put_commit(c, false, &arguments))
		ask_git(c, &arguments, true);
}

static void
diff(struct hr_rex_call *c)
{
	HR_BUF(arguments, PATH_MAX_LEN);

	hr_buf_adds(&arguments, "diff");
	if (put_commit(c, true, &arguments))
		ask_git(c, &arguments, false);
}

/* Lists the latest commits. */
static void
commits(struct hr_rex_call *c)
{
	HR_BUF(arguments, 256);
	long long limit = 50;
	bool fine = hr_v1_required(c, "path");

	fine &= hr_v1_limit(c, false, 200, &limit);
	hr_buf_addf(&arguments, "commits %lld", limit);
	if (fine)
		ask_git(c, &arguments, false);
}

/* Lists what the commit of the path changed. */
static void
commit_changes(struct hr_rex_call *c)
{
	const struct hr_v1_input sha = {"path", "sha", c->rest};
	HR_BUF(arguments, 256);
	bool fine = hr_v1_sha(c, &sha);

	fine &= hr_v1_required(c, "path");
	hr_buf_addf(&arguments, "commit-changes %.*s", (int)c->rest.len, c->rest.p);
	if (fine)
		ask_git(c, &arguments, true);
}

/* Answers without an agent server, which keeps the tokens of the services: there is none. */
static void
repositories(struct hr_rex_call *c)
{
	static const char *const providers[] = {
	    "github", "gitlab", "bitbucket", "azure_devops", NULL};
	HR_BUF(text, 256);
	long long limit = 100;
	size_t provider = 0;
	bool fine;

	fine = hr_v1_required(c, "provider");
	fine &= hr_v1_one_of(c, "provider", "enum", providers, &provider);
	fine &= hr_v1_limit(c, false, 100, &limit);
	hr_buf_addf(
	    &text, "Repository discovery is not supported for provider '%s'", providers[provider]);
	if (fine && provider > 0)
		hr_answer_detail(c->ret, 400, hr_buf_str(&text));
	else if (fine)
		hr_buf_adds(
		    &c->ret->body, "{\"items\":[],\"next_page_id\":null,\"missing_token\":true}");
}

/* ---- routes ---- */

static void
refuse_method(struct hr_answer *ret, const char *allowed)
{
	hr_answer_detail(ret, 405, "Method Not Allowed");
	hr_answer_header(ret, "Allow", allowed);
}

/* Reads and checks the body. A null is no object here; SWE-ReX's older FastAPI calls it missing.
 * Returns false after sending an error. */
static bool
take_command(struct hr_rex_call *c)
{
	struct hr_span text;

	if (hr_rex_take_body(c, &hr_v1_bash_model))
		return true;
	text = hr_span_of_buf(&c->w->body);
	hr_utf8_strip(&text.p, &text.len);
	if (c->ret->status == 422 && c->body == NULL && hr_span_equal(text, hr_span_of("null")))
		(void)hr_rex_refuse(c->ret, "model_attributes_type", "",
		    "Input should be a valid dictionary or object to extract fields from", "null",
		    NULL);
	return false;
}

static void
start(struct hr_rex_call *c)
{
	if (take_command(c))
		hr_v1_start(c);
}

static void
execute(struct hr_rex_call *c)
{
	if (take_command(c))
		hr_v1_execute(c);
}

static void
get_event(struct hr_rex_call *c)
{
	static const char list[] = "/api/bash/bash_events/";

	if (c->rest.len > 0)
		hr_v1_get_event(c, c->rest);
	else if (c->r->path->len < sizeof(list) - 1)
		refuse_method(c->ret, "DELETE"); /* the slash belongs to this route */
	else
		hr_v1_get_events(c);
}

static void
stop(struct hr_rex_call *c)
{
	hr_v1_stop(c, c->rest);
}

static void
health(struct hr_rex_call *c)
{
	struct hr_request r = *c->r;

	hr_handle_alive(c->w, &r, c->ret);
}

static const struct route {
	const char *path, *method;
	const char *tail; /* NULL: nothing follows; "": anything; otherwise one part and this */
	void (*handle)(struct hr_rex_call *c);
} routes[] = {
    {"/health", "GET", NULL, health},
    {"/api/bash/start_bash_command", "POST", NULL, start},
    {"/api/bash/execute_bash_command", "POST", NULL, execute},
    {"/api/bash/bash_events/search", "GET", NULL, hr_v1_search},
    {"/api/bash/bash_events", "DELETE", NULL, hr_v1_clear},
    {"/api/bash/bash_events", "GET", "", get_event},
    {"/api/bash/bash_commands", "POST", "/stop", stop},
    {"/api/file/upload", "POST", "", upload},
    {"/api/file/download", "GET", "", download},
    {"/api/file/create_directory", "POST", NULL, create_directory},
    {"/api/file/search_subdirs", "GET", NULL, search_subdirs},
    {"/api/file/archive", "GET", NULL, archive},
    {"/api/file/download-trajectory", "GET", "", hr_v1_trajectory},
    {"/api/file/home", "GET", NULL, hr_v1_home},
    {"/api/git/changes", "GET", "", changes},
    {"/api/git/commits", "GET", NULL, commits},
    {"/api/git/commits", "GET", "/changes", commit_changes},
    {"/api/git/diff", "GET", "", diff},
    {"/api/git/repositories/search", "GET", NULL, repositories},
};

/* Returns true for the only path that needs no key, also with slashes after it. */
static bool
is_health(const struct hr_buf *path)
{
	static const char open[] = "/health";
	const char *p = hr_buf_str(path);
	size_t n = sizeof(open) - 1;

	return strncmp(p, open, n) == 0 && n + strspn(p + n, "/") == path->len;
}

bool
hr_v1_is(const struct hr_request *r)
{
	static const char prefix[] = "/api/";
	const char *path = hr_buf_str(r->path);

	return r->v1 && (strncmp(path, prefix, sizeof(prefix) - 1) == 0 || is_health(r->path));
}

/* Returns true for the path of a route with a free part, such as .../ID/stop, that needs no
 * encoding. */
static bool
is_deep(const char *path, size_t len)
{
	static const char plain[] =
	    "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz.~";
	static const struct {
		const char *head, *tail;
	} deep[] = {{"/api/bash/bash_events/", ""}, {"/api/bash/bash_commands/", "/stop"},
	    {"/api/file/download-trajectory/", ""}, {"/api/git/commits/", "/changes"}};
	size_t i, head, tail;

	for (i = 0; i < sizeof(deep) / sizeof(deep[0]); i++) {
		head = strlen(deep[i].head);
		tail = strlen(deep[i].tail);
		if (len > head + tail && memcmp(path, deep[i].head, head) == 0 &&
		    memcmp(path + len - tail, deep[i].tail, tail) == 0 &&
		    strspn(path + head, plain) >= len - head - tail)
			return true;
	}
	return false;
}

/* Takes the slashes off the end of a path. Returns false if that leads to no route. */
static bool
without_slashes(const struct hr_buf *path, struct hr_buf *ret)
{
	/* the first is a route of its own, the others are none without their rest */
	static const char *const kept[] = {"/api/bash/bash_events/", "/api/bash/bash_commands/",
	    "/api/file/download-trajectory/", NULL};
	size_t i, len = path->len;

	while (len > 1 && path->p[len - 1] == '/')
		len--;
	if (len == path->len || hr_is_one_of(path->p, kept))
		return false;
	hr_buf_add(ret, path->p, len);
	for (i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		if (strcmp(routes[i].path, hr_buf_str(ret)) == 0)
			return true;
	return is_deep(path->p, len);
}

/* Returns true if the route has that path, with the free part of it in *ret_rest. */
static bool
matches(const struct route *t, const struct hr_buf *path, struct hr_span *ret_rest)
{
	const char *tail = t->tail, *p = hr_buf_str(path);
	size_t len = strlen(t->path), n = tail != NULL ? strlen(tail) : 0;
	struct hr_span rest = {"", 0};

	if (path->len < len || memcmp(p, t->path, len) != 0)
		return false;
	if (path->len == len) {
		*ret_rest = rest;
		return n == 0;
	}
	rest = (struct hr_span){p + len + 1, path->len - len - 1};
	if (tail == NULL || p[len] != '/')
		return false;
	if (n > 0 && (rest.len <= n || memcmp(rest.p + rest.len - n, tail, n) != 0 ||
			 memchr(rest.p, '/', rest.len - n) != NULL))
		return false;
	rest.len -= n;
	*ret_rest = rest;
	return true;
}

void
hr_handle_v1(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_rex_call c = {.w = w, .r = r, .ret = ret, .rest = {"", 0}};
	const char *allowed = NULL;
	HR_BUF(plain, PATH_MAX_LEN);
	bool redirects = without_slashes(r->path, &plain);
	size_t i, n = sizeof(routes) / sizeof(routes[0]);

	for (i = 0; i < n; i++) {
		if (!matches(&routes[i], r->path, &c.rest))
			continue;
		if (strcmp(routes[i].method, r->method) == 0)
			break;
		allowed = allowed != NULL ? allowed : routes[i].method;
	}
	if (!is_health(r->path) && !hr_auth_passes(&w->auth, r->session_key))
		hr_answer_detail(ret, 401, "Unauthorized");
	else if (!hr_request_from_here(r))
		hr_answer_detail(ret, 403, "This origin is not allowed");
	else if (redirects)
		hr_request_redirect(r, hr_buf_str(&plain), ret);
	else if (i == n && allowed == NULL)
		hr_answer_detail(ret, 404, "Not Found");
	else if (i == n)
		refuse_method(ret, allowed);
	else
		routes[i].handle(&c);
	json_object_put(c.body);
}
