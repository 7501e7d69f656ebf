/* Serves /api/ and /health: routes, files and git. The handlers of /upload_file and /download_file
 * transfer the files; this file converts their errors for V1 clients. */
#include "config.h"

#include "worker/v1/v1.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "files/purepath.h"
#include "shell/quote.h"

#define GIT_LIMIT_S 60
/* maximum bytes, because the shell's user may replace git */
#define GIT_OUTPUT_MAX (4u << 20)
#define PATH_MAX_LEN (64u << 10)
#define REF_MAX 4096

/* ---- paths ---- */

/* Takes the path from the query, or from the rest of the URL as in earlier clients, without
 * superfluous slashes. A message calls its file `what`. Returns false after sending an error. */
static bool
path_of(struct hr_rex_call *c, struct hr_span rest, const char *what, struct hr_buf *path)
{
	HR_BUF(text, PATH_MAX_LEN);
	bool given = hr_request_query(c->r, "path", &text);

	if (!given) {
		if (rest.len > 0 && rest.p[0] != '/')
			hr_buf_addc(&text, '/');
		hr_buf_add(&text, rest.p, rest.len);
	}
	hr_purepath_put(path, hr_buf_str(&text), text.len);
	if (path->fail != HR_OK || text.fail != HR_OK)
		return hr_answer_generic(c->ret);
	if (text.len == 0 && !given)
		return hr_answer_detail(c->ret, 422, "path: Field required");
	if (hr_buf_str(path)[0] != '/')
		return hr_answer_detail(c->ret, 400, "Path must be absolute");
	if (strlen(path->p) == path->len)
		return true;
	hr_buf_reset(&text);
	hr_buf_addf(&text, "%s not found", what);
	return hr_answer_detail(c->ret, 404, hr_buf_str(&text));
}

static bool
absolute_path(struct hr_rex_call *c, struct hr_span rest, struct hr_buf *path)
{
	return path_of(c, rest, "File", path);
}

/* Takes the status from an error message like "404: File not found", or "[Errno 21]" of an upload,
 * and the original's text for a body that is no form. */
static void
take_status(struct hr_answer *ret)
{
	HR_PUT struct json_object *body = NULL;
	const char *detail = NULL;
	char *end;
	long status;
	int sys;

	if (ret->status == 400)
		hr_answer_detail(ret, 400, "Invalid multipart data.");
	if (ret->status != 500)
		return;
	if (hr_json_decode(hr_buf_str(&ret->body), ret->body.len, &body, NULL) == 0)
		detail = hr_json_text_at(body, "detail");
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

static void
upload(struct hr_rex_call *c, struct hr_span rest)
{
	HR_BUF(path, PATH_MAX_LEN);
	uint64_t size;

	if (!absolute_path(c, rest, &path))
		return;
	if (strcmp(path.p, "/") == 0) {
		hr_answer_detail(c->ret, 400, "Path is a directory");
	} else if (hr_upload_to(c->w, c->r, &path, &size, c->ret)) {
		hr_buf_reset(&c->ret->body);
		hr_buf_addf(&c->ret->body, "{\"success\":true,\"file_size\":%llu}",
		    (unsigned long long)size);
	} else {
		take_status(c->ret);
	}
}

static void
download(struct hr_rex_call *c, struct hr_span rest)
{
	HR_BUF(path, PATH_MAX_LEN);

	if (absolute_path(c, rest, &path)) {
		hr_download_file(c->w, c->r, hr_buf_str(&path), c->ret);
		take_status(c->ret);
		if (c->ret->status == 400)
			hr_answer_detail(c->ret, 400, "Path is not a file");
	}
}

static void
create_directory(struct hr_rex_call *c, struct hr_span rest)
{
	HR_BUF(path, PATH_MAX_LEN);

	if (absolute_path(c, rest, &path))
		hr_v1_make_directory(c, &path);
}

static void
search_subdirs(struct hr_rex_call *c, struct hr_span rest)
{
	HR_BUF(path, PATH_MAX_LEN);

	if (path_of(c, rest, "Directory", &path))
		hr_v1_subdirectories(c, &path);
}

static void
archive(struct hr_rex_call *c, struct hr_span rest)
{
	HR_BUF(path, PATH_MAX_LEN);

	if (path_of(c, rest, "Directory", &path))
		hr_v1_archive(c, &path);
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

static const char no_sha[] = "commit must be 4 to 64 hexadecimal digits";

static bool
is_sha(const char *p, size_t len)
{
	return len >= 4 && len <= 64 && strspn(p, "0123456789abcdefABCDEF") >= len;
}

/* Appends an option from the query. Returns false after sending an error. */
static bool
put_commit(struct hr_rex_call *c, bool diff, struct hr_buf *text)
{
	HR_BUF(ref, REF_MAX);
	HR_BUF(commit, REF_MAX);
	bool has_ref, has_commit;

	has_ref = hr_request_query(c->r, "ref", &ref);
	has_commit = diff && hr_request_query(c->r, "commit", &commit);
	if (has_ref && has_commit)
		return hr_answer_detail(c->ret, 400, "'ref' and 'commit' are mutually exclusive");
	if (has_commit && (commit.fail != HR_OK || !is_sha(hr_buf_str(&commit), commit.len)))
		return hr_answer_detail(c->ret, 422, no_sha);
	if (has_ref &&
	    (ref.fail != HR_OK || ref.len == 0 || ref.p[0] == '-' || strlen(ref.p) != ref.len))
		return hr_answer_detail(c->ret, 400, "ref must be the name of a commit");
	if (has_ref || has_commit) {
		hr_buf_adds(text, has_ref ? " --ref " : " --commit ");
		hr_shell_quote(text, has_ref ? ref.p : commit.p, has_ref ? ref.len : commit.len);
	}
	return true;
}

/* Runs handrail-git with `arguments` and the path of the request. Returns its result, owned by the
 * caller, or NULL after sending an error. */
static struct json_object *
ask_git(struct hr_rex_call *c, struct hr_span rest, const struct hr_buf *arguments)
{
	struct json_object *said = NULL;
	HR_BUF(path, PATH_MAX_LEN);
	HR_BUF(text, PATH_MAX_LEN * 5);
	HR_BUF(out, GIT_OUTPUT_MAX);
	const struct hr_span none = {NULL, 0};
	int64_t code = -1;

	if (!absolute_path(c, rest, &path))
		return NULL;
	hr_shell_quote(&text, c->w->libexec_dir, strlen(c->w->libexec_dir));
	hr_buf_addf(&text, "/handrail-git v1-%s ", hr_buf_str(arguments));
	hr_shell_quote(&text, path.p, path.len);
	if (hr_buf_check(&text, NULL) < 0 || arguments->fail != HR_OK) {
		hr_answer_generic(c->ret);
	} else if (hr_v1_run(c, hr_span_of_buf(&text), none, GIT_LIMIT_S, &out, &code) &&
		   (code != 0 || hr_json_decode(hr_buf_str(&out), out.len, &said, NULL) < 0)) {
		hr_answer_detail(c->ret, 400,
		    "git gave no answer: its repository is broken or has no such commit, or the "
		    "file is not there or too large");
	}
	return said;
}

/* Lists the changes; a directory outside a repository has none. */
static void
changes(struct hr_rex_call *c, struct hr_span rest)
{
	HR_PUT struct json_object *said = NULL;
	HR_BUF(arguments, PATH_MAX_LEN);

	hr_buf_adds(&arguments, "changes");
	if (put_commit(c, false, &arguments))
		said = ask_git(c, rest, &arguments);
	if (said != NULL)
		put_changes(&c->ret->body, said);
}

static void
diff(struct hr_rex_call *c, struct hr_span rest)
{
	HR_PUT struct json_object *said = NULL;
	HR_BUF(arguments, PATH_MAX_LEN);

	hr_buf_adds(&arguments, "diff");
	if (put_commit(c, true, &arguments))
		said = ask_git(c, rest, &arguments);
	if (said != NULL && hr_json_put(&c->ret->body, said) < 0)
		hr_answer_generic(c->ret);
}

/* Lists the latest commits or, for .../COMMIT/changes, what that commit changed. */
static void
commits(struct hr_rex_call *c, struct hr_span rest)
{
	static const char last[] = "/changes";
	size_t n = rest.len > sizeof(last) - 1 ? rest.len - (sizeof(last) - 1) : 0;
	bool one = n > 0 && memcmp(rest.p + n, last, sizeof(last) - 1) == 0;
	HR_PUT struct json_object *said = NULL;
	HR_BUF(arguments, 256);
	long long limit = 50;

	if (rest.len > 0 && !one) {
		hr_answer_detail(c->ret, 404, "Not Found");
	} else if (one && !is_sha(rest.p, n)) {
		hr_answer_detail(c->ret, 422, no_sha);
	} else if (one) {
		hr_buf_addf(&arguments, "commit-changes %.*s", (int)n, rest.p);
	} else if (hr_v1_number(c, "limit", 1, 200, &limit)) {
		hr_buf_addf(&arguments, "commits %lld", limit);
	}
	if (arguments.len > 0)
		said = ask_git(c, (struct hr_span){"", 0}, &arguments);
	if (said != NULL && one)
		put_changes(&c->ret->body, said);
	else if (said != NULL && hr_json_put(&c->ret->body, said) < 0)
		hr_answer_generic(c->ret);
}

/* Answers without an agent server, which keeps the tokens of the services: there is none. */
static void
repositories(struct hr_rex_call *c, struct hr_span rest)
{
	static const char *const others[] = {"gitlab", "bitbucket", "azure_devops", NULL};
	HR_BUF(provider, 256);
	HR_BUF(text, 256);
	long long limit = 100;

	if (!hr_span_equal(rest, hr_span_of("search"))) {
		hr_answer_detail(c->ret, 404, "Not Found");
	} else if (!hr_v1_number(c, "limit", 1, 100, &limit)) {
		return;
	} else if (!hr_request_query(c->r, "provider", &provider) ||
		   (strcmp(hr_buf_str(&provider), "github") != 0 &&
		       !hr_is_one_of(hr_buf_str(&provider), others))) {
		hr_answer_detail(
		    c->ret, 422, "provider must be github, gitlab, bitbucket or azure_devops");
	} else if (hr_is_one_of(provider.p, others)) {
		hr_buf_addf(
		    &text, "Repository discovery is not supported for provider '%s'", provider.p);
		hr_answer_detail(c->ret, 400, hr_buf_str(&text));
	} else {
		hr_buf_adds(
		    &c->ret->body, "{\"items\":[],\"next_page_id\":null,\"missing_token\":true}");
	}
}

/* ---- routes ---- */

static void
start(struct hr_rex_call *c, struct hr_span rest)
{
	(void)rest;
	if (hr_rex_take_body(c, &hr_v1_bash_model))
		hr_v1_start(c);
}

static void
execute(struct hr_rex_call *c, struct hr_span rest)
{
	(void)rest;
	if (hr_rex_take_body(c, &hr_v1_bash_model))
		hr_v1_execute(c);
}

static void
search(struct hr_rex_call *c, struct hr_span rest)
{
	(void)rest;
	hr_v1_search(c);
}

static void
get_event(struct hr_rex_call *c, struct hr_span rest)
{
	if (rest.len > 0)
		hr_v1_get_event(c, rest);
	else
		hr_v1_get_events(c);
}

static void
clear(struct hr_rex_call *c, struct hr_span rest)
{
	(void)rest;
	hr_v1_clear(c);
}

/* Handles .../ID/stop. */
static void
stop(struct hr_rex_call *c, struct hr_span rest)
{
	static const char last[] = "/stop";
	size_t n = sizeof(last) - 1;

	if (rest.len > n && memcmp(rest.p + rest.len - n, last, n) == 0)
		hr_v1_stop(c, (struct hr_span){rest.p, rest.len - n});
	else
		hr_answer_detail(c->ret, 404, "Not Found");
}

static void
home(struct hr_rex_call *c, struct hr_span rest)
{
	(void)rest;
	hr_v1_home(c);
}

static void
health(struct hr_rex_call *c, struct hr_span rest)
{
	struct hr_request r = *c->r;

	(void)rest;
	hr_handle_alive(c->w, &r, c->ret);
}

static const struct {
	const char *path, *method;
	bool more; /* the path may continue after a slash */
	bool open; /* the route needs no key */
	void (*handle)(struct hr_rex_call *c, struct hr_span rest);
} routes[] = {
    {"/health", "GET", false, true, health},
    {"/api/bash/start_bash_command", "POST", false, false, start},
    {"/api/bash/execute_bash_command", "POST", false, false, execute},
    {"/api/bash/bash_events/search", "GET", false, false, search},
    {"/api/bash/bash_events", "DELETE", false, false, clear},
    {"/api/bash/bash_events", "GET", true, false, get_event},
    {"/api/bash/bash_commands", "POST", true, false, stop},
    {"/api/file/upload", "POST", true, false, upload},
    {"/api/file/download", "GET", true, false, download},
    {"/api/file/create_directory", "POST", false, false, create_directory},
    {"/api/file/search_subdirs", "GET", false, false, search_subdirs},
    {"/api/file/archive", "GET", false, false, archive},
    {"/api/file/download-trajectory", "GET", true, false, hr_v1_trajectory},
    {"/api/file/home", "GET", false, false, home},
    {"/api/git/changes", "GET", true, false, changes},
    {"/api/git/commits", "GET", true, false, commits},
    {"/api/git/diff", "GET", true, false, diff},
    {"/api/git/repositories", "GET", true, false, repositories},
};

bool
hr_v1_is(const struct hr_request *r)
{
	static const char prefix[] = "/api/", open[] = "/health";

	return r->v1 && ((r->path->len >= sizeof(prefix) - 1 &&
			     memcmp(r->path->p, prefix, sizeof(prefix) - 1) == 0) ||
			    (r->path->len == sizeof(open) - 1 &&
				memcmp(r->path->p, open, sizeof(open) - 1) == 0));
}

/* Returns the route whose path has only slashes after it, or NULL. */
static const char *
without_slashes(const struct hr_buf *path)
{
	/* the first is a route of its own, the others are none without their rest */
	static const char *const kept[] = {"/api/bash/bash_events/", "/api/bash/bash_commands/",
	    "/api/file/download-trajectory/", "/api/git/repositories/", NULL};
	size_t i, len = path->len;

	while (len > 1 && path->p[len - 1] == '/')
		len--;
	if (len == path->len || hr_is_one_of(path->p, kept))
		return NULL;
	for (i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		if (strlen(routes[i].path) == len && memcmp(routes[i].path, path->p, len) == 0)
			return routes[i].path;
	return NULL;
}

static void
refuse_method(struct hr_answer *ret, const char *allowed)
{
	hr_answer_detail(ret, 405, "Method Not Allowed");
	hr_answer_header(ret, "Allow", allowed);
}

void
hr_handle_v1(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	struct hr_rex_call c = {.w = w, .r = r, .ret = ret};
	const char *path = hr_buf_str(r->path), *allowed = NULL;
	const char *other = without_slashes(r->path);
	size_t i, len = 0, n = sizeof(routes) / sizeof(routes[0]);

	for (i = 0; i < n; i++) {
		len = strlen(routes[i].path);
		if (r->path->len < len || memcmp(path, routes[i].path, len) != 0 ||
		    (r->path->len > len && (!routes[i].more || path[len] != '/')))
			continue;
		if (strcmp(routes[i].method, r->method) == 0)
			break;
		allowed = allowed != NULL ? allowed : routes[i].method;
	}
	if ((i == n || !routes[i].open) && !hr_auth_passes(&w->auth, r->session_key))
		hr_answer_detail(ret, 401, "Unauthorized");
	else if (!hr_request_from_here(r))
		hr_answer_detail(ret, 403, "This origin is not allowed");
	else if (other != NULL)
		hr_request_redirect(r, other, ret);
	else if (i == n && allowed == NULL)
		hr_answer_detail(ret, 404, "Not Found");
	else if (i == n)
		refuse_method(ret, allowed);
	else
		routes[i].handle(&c, r->path->len > len
					 ? (struct hr_span){path + len + 1, r->path->len - len - 1}
					 : (struct hr_span){"", 0});
	json_object_put(c.body);
}
