/* Requests against the whole worker without its FastCGI edge: the recorded conversations, and the
 * rules that they do not show. */
#include "config.h"

#include <ctype.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <json-c/json.h>

#include "actions/action.h"
#include "base/clock.h"
#include "proto/json.h"

#include "handle.h"
#include "lines.h"

#define KEY "s3kr1t"

struct scenario {
	struct handle h;
	const char *name;
	char root[200];
};

/* text with @ROOT@ and the like replaced, appended */
static void
put_substituted(struct hr_buf *b, const struct scenario *s, const char *text, size_t len)
{
	const char *const from[] = {"@ROOT@", "@WORKDIR@", "@NAME@", "@KEY@"};
	const char *const to[] = {s->root, s->h.work_dir, s->name, KEY};
	size_t i, k;

	for (i = 0; i < len;) {
		for (k = 0; k < 4; k++)
			if (len - i >= strlen(from[k]) &&
			    memcmp(text + i, from[k], strlen(from[k])) == 0)
				break;
		if (k < 4) {
			hr_buf_adds(b, to[k]);
			i += strlen(from[k]);
		} else {
			hr_buf_addc(b, text[i++]);
		}
	}
}

static bool
matches(const char *want, const char *got)
{
	const char *p;

	for (; *want != '\0'; want++, got++) {
		if (strncmp(want, "@INT@", 5) == 0 || strncmp(want, "@FLOAT@", 7) == 0) {
			bool is_float = want[1] == 'F';

			for (p = got; *p != '\0' && strchr("+-.e0123456789", *p) != NULL; p++)
				;
			if (p == got)
				return false;
			if ((memchr(got, '.', (size_t)(p - got)) != NULL ||
				memchr(got, 'e', (size_t)(p - got)) != NULL) != is_float)
				return false;
			want += is_float ? 6 : 4;
			got = p - 1;
		} else if (strncmp(want, "@ANY@", 5) == 0) {
			for (p = got;; p++) {
				if (matches(want + 5, p))
					return true;
				if (*p == '\0')
					return false;
			}
		} else if (*want != *got) {
			return false;
		}
	}
	return *got == '\0';
}

static const char *
text_of(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;

	return json_object_object_get_ex(o, key, &v) ? json_object_get_string(v) : NULL;
}

static void
make_file(const char *root, const char *name, struct json_object *content)
{
	struct json_object *v;
	struct hr_err err = {0};
	char path[400], *slash;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	slash = strrchr(path, '/');
	*slash = '\0';
	ck_assert_msg(hr_path_mkdirs(path, 0755, NULL, &err) == 0, "%s", err.msg);
	*slash = '/';
	if (json_object_is_type(content, json_type_object) &&
	    json_object_object_get_ex(content, "dir", &v)) {
		ck_assert_int_eq(mkdir(path, 0755), 0);
	} else if (json_object_is_type(content, json_type_object) &&
		   json_object_object_get_ex(content, "symlink", &v)) {
		ck_assert_int_eq(symlink(json_object_get_string(v), path), 0);
	} else {
		fd = open(path, O_WRONLY | O_CREAT, 0644);
		ck_assert_int_ge(fd, 0);
		(void)close(fd);
	}
}

static void
play_step(struct scenario *s, struct json_object *step)
{
	HR_BUF(uri, 1 << 16);
	HR_BUF(body, 1 << 20);
	HR_BUF(key, 1 << 10);
	HR_BUF(want, 1 << 20);
	const char *t;

	t = text_of(step, "uri");
	put_substituted(&uri, s, t, strlen(t));
	handle_begin(&s->h, text_of(step, "method"), uri.p);
	t = text_of(step, "body");
	if (t != NULL)
		put_substituted(&body, s, t, strlen(t));
	t = text_of(step, "body_hex");
	if (t != NULL)
		lines_unhex(&body, t);
	handle_body(&s->h, hr_buf_str(&body), body.len);
	t = text_of(step, "key");
	if (t != NULL)
		put_substituted(&key, s, t, strlen(t));
	s->h.r.session_key = hr_buf_str(&key);
	t = text_of(step, "type");
	s->h.r.content_type = t != NULL ? t : "";
	(void)handle_perform(&s->h);
	ck_assert_msg(s->h.answer.status == atoi(text_of(step, "status")), "%s %s: %d %s", s->name,
	    uri.p, s->h.answer.status, hr_buf_str(&s->h.answer.body));
	t = text_of(step, "content_type");
	if (t != NULL)
		ck_assert_str_eq(s->h.answer.content_type, t);
	t = text_of(step, "location");
	if (t != NULL)
		ck_assert_msg(matches(t, hr_buf_str(&s->h.answer.location)), "%s",
		    hr_buf_str(&s->h.answer.location));
	t = text_of(step, "answer");
	if (t != NULL) {
		put_substituted(&want, s, t, strlen(t));
		ck_assert_msg(matches(hr_buf_str(&want), hr_buf_str(&s->h.answer.body)),
		    "%s %s:\nwant %s\ngot  %s", s->name, uri.p, want.p,
		    hr_buf_str(&s->h.answer.body));
	}
}

static int
play(struct json_object *o)
{
	struct scenario s = {.name = text_of(o, "name")};
	struct json_object *files, *steps;
	size_t i, n;

	handle_init(&s.h, KEY "\n");
	(void)snprintf(s.root, sizeof(s.root), "%s/%s", s.h.work_dir, s.name);
	ck_assert_int_eq(mkdir(s.root, 0755), 0);
	if (json_object_object_get_ex(o, "files", &files)) {
		json_object_object_foreach(files, name, content)
		{
			make_file(s.root, name, content);
		}
	}
	ck_assert(json_object_object_get_ex(o, "steps", &steps));
	n = json_object_array_length(steps);
	for (i = 0; i < n; i++)
		play_step(&s, json_object_array_get_idx(steps, i));
	handle_done(&s.h);
	return (int)n;
}

START_TEST(corpus)
{
	FILE *f = lines_open("http/requests.jsonl");
	struct json_object *o = NULL;
	struct hr_json_error e;
	HR_FREE char *line = NULL;
	size_t cap = 0;
	int n = 0;

	while (lines_next(f, &line, &cap)) {
		ck_assert_int_eq(hr_json_decode(line, strlen(line), &o, &e), 0);
		n += play(o);
		json_object_put(o);
	}
	(void)fclose(f);
	ck_assert_int_gt(n, 180);
}
END_TEST

static struct handle h;

static void
setup(void)
{
	handle_init(&h, "");
}

static void
setup_keys(void)
{
	handle_init(&h, "\nfirst\n\nsecond key\n");
}

static void
teardown(void)
{
	handle_done(&h);
}

static void
check_detail(int status, const char *detail)
{
	char want[300];

	(void)snprintf(want, sizeof(want), "{\"detail\":\"%s\"}", detail);
	ck_assert_int_eq(h.answer.status, status);
	ck_assert_str_eq(hr_buf_str(&h.answer.body), want);
}

START_TEST(paths)
{
	ck_assert_int_eq(handle_simple(&h, "GET", "/%61live"), 200);
	ck_assert_int_eq(handle_simple(&h, "GET", "/alive?x=%"), 200);
	ck_assert_int_eq(handle_simple(&h, "GET", "//alive"), 404);
	ck_assert_int_eq(handle_simple(&h, "GET", "/alive%00"), 404);
	ck_assert_int_eq(handle_simple(&h, "GET", "/alive%2"), 404);
	ck_assert_int_eq(handle_simple(&h, "GET", "/Alive"), 404);
	ck_assert_int_eq(handle_simple(&h, "GET", ""), 404);
	ck_assert_int_eq(handle_simple(&h, "get", "/alive"), 405);
	ck_assert_int_eq(handle_simple(&h, "DELETE", "/ready"), 405);
	ck_assert_int_eq(handle_simple(&h, "PUT", "/-/auth"), 204);
	ck_assert_ptr_null(h.answer.content_type);
	ck_assert_uint_eq(h.answer.body.len, 0);
	/* an nginx of somebody else's asks so, whether there is a key or not */
	handle_begin(&h, "GET", "/-/auth");
	h.r.asked_uri = "/port/8000/";
	ck_assert_int_eq(handle_perform(&h), 403);
	check_detail(403, "/port/ requires a session key");
}
END_TEST

START_TEST(redirects)
{
	ck_assert_int_eq(handle_simple(&h, "POST", "/%61live//?a=b c&d=\xC3\xA9"), 307);
	ck_assert_str_eq(hr_buf_str(&h.answer.location), "http://box:8000/alive?a=b%20c&d=%C3%A9");
	ck_assert_ptr_null(h.answer.content_type);
	ck_assert_uint_eq(h.answer.body.len, 0);
	handle_begin(&h, "GET", "/list_files/");
	h.r.scheme = "https";
	h.r.host = "x\r\ny";
	ck_assert_int_eq(handle_perform(&h), 307);
	ck_assert_str_eq(hr_buf_str(&h.answer.location), "https://x%0D%0Ay/list_files");
	ck_assert_int_eq(handle_simple(&h, "GET", "/"), 404);
	ck_assert_int_eq(handle_simple(&h, "GET", "///"), 404);
	ck_assert_int_eq(handle_simple(&h, "GET", "/nope/"), 404);
	ck_assert_int_eq(handle_simple(&h, "GET", "/-/auth/"), 404);
}
END_TEST

START_TEST(keys)
{
	static const struct {
		const char *value;
		int status;
	} t[] = {{"first", 204}, {"second key", 204}, {" \tfirst\t ", 204}, {"", 403},
	    {"second", 403}, {"firs", 403}, {"firstt", 403}, {"First", 403},
	    {"first\nsecond key", 403}, {"firstfirst", 403}, {"\n", 403}};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		handle_begin(&h, "GET", "/-/auth");
		h.r.session_key = t[i].value;
		ck_assert_msg(handle_perform(&h) == t[i].status, "\"%s\"", t[i].value);
	}
	ck_assert_int_eq(handle_simple(&h, "GET", "/alive/"), 403);
	check_detail(403, "Invalid API Key");
	ck_assert_int_eq(handle_simple(&h, "OPTIONS", "/nonexist"), 403);
	ck_assert_int_eq(handle_simple(&h, "POST", "/%61live"), 405);
	ck_assert_int_eq(handle_simple(&h, "GET", "/server_info"), 200);
}
END_TEST

/* No other path answers a client without the key, whatever its method is. */
START_TEST(paths_that_need_a_key)
{
	static const char *const others[] = {"/execute_action", "/list_files", "/upload_file",
	    "/download_files", "/download_file", "/update_mcp_server", "/vscode/connection_token",
	    "/ready", "/metrics", "/-/auth", "/-/bearer", "/-/port"};
	static const char *const own[] = {"alerts", "sessions", "create", "run", "kill", "session",
	    "commands", "cells", "network", "output", "browser/", "input", "keys", "resize",
	    "signal", "signin", "signout", "events", "me", "ready", "metrics", "usage", "upload",
	    "download", "stat", "pack", "unpack", "log", "files", "rename", "remove"};
	static const char *const methods[] = {"GET", "POST"};
	char path[64];
	size_t i, m;

	for (m = 0; m < 2; m++) {
		for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
			ck_assert_msg(
			    handle_simple(&h, methods[m], others[i]) == 403, "%s", others[i]);
		for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
			(void)snprintf(path, sizeof(path), "/handrail/v1/%s", own[i]);
			ck_assert_msg(handle_simple(&h, methods[m], path) == 403, "%s", path);
		}
	}
}
END_TEST

/* What the supervisor says, in as many answers as it takes. */
START_TEST(keys_from_the_supervisor)
{
	struct hr_auth a = {.sums = NULL};
	struct hr_err err = {0};
	struct {
		struct hr_keysum_head head;
		unsigned char sums[2][HR_KEYSUM];
	} told = {.head = {.salt = "salt", .count = 3, .longest = 3}};
	const char *p = (const char *)&told;

	ck_assert_int_eq(keysums_set(&a, "", &err), 0);
	ck_assert(hr_auth_passes(&a, ""));
	ck_assert(hr_auth_passes(&a, "x"));
	hr_auth_done(&a);
	hr_keysum(told.head.salt, "one", 3, told.sums[0]);
	hr_keysum(told.head.salt, "two", 3, told.sums[1]);
	ck_assert_int_eq(hr_auth_take(&a, p, sizeof(told), &err), 0);
	ck_assert_uint_eq(a.have, 2);
	hr_keysum(told.head.salt, "abc", 3, told.sums[0]);
	ck_assert_int_eq(hr_auth_take(&a, p, sizeof(told) - HR_KEYSUM, &err), 1);
	ck_assert(hr_auth_passes(&a, "one") && hr_auth_passes(&a, " two\t"));
	ck_assert(hr_auth_passes(&a, "abc"));
	ck_assert(!hr_auth_passes(&a, "") && !hr_auth_passes(&a, "ab"));
	ck_assert(!hr_auth_passes(&a, "abcd") && !hr_auth_passes(&a, "abd"));
	hr_auth_done(&a);
}
END_TEST

/* Half of the old keys and half of the new, too few, too many: never "no key is needed". */
START_TEST(half_told_keys_are_refused)
{
	struct hr_auth a = {.sums = NULL};
	struct hr_err err = {0};
	struct {
		struct hr_keysum_head head;
		unsigned char sums[3][HR_KEYSUM];
	} told = {.head = {.salt = "salt", .count = 2, .longest = 3}};
	const char *p = (const char *)&told;

	ck_assert_int_eq(hr_auth_take(&a, p, sizeof(told.head) - 1, &err), -1);
	ck_assert_int_eq(hr_auth_take(&a, p, 0, &err), -1);
	ck_assert_int_eq(hr_auth_take(&a, p, sizeof(told.head), &err), -1);
	hr_auth_done(&a);
	ck_assert_int_eq(hr_auth_take(&a, p, sizeof(told), &err), -1);
	hr_auth_done(&a);
	ck_assert_int_eq(hr_auth_take(&a, p, sizeof(told.head) + HR_KEYSUM, &err), 0);
	ck_assert(!hr_auth_passes(&a, ""));
	told.head.salt[0] ^= 1;
	ck_assert_int_eq(hr_auth_take(&a, p, sizeof(told.head) + HR_KEYSUM, &err), -1);
	ck_assert(!hr_auth_passes(&a, ""));
	hr_auth_done(&a);
}
END_TEST

START_TEST(alive_before_ready)
{
	atomic_store(&h.board->ready, 0);
	ck_assert_int_eq(handle_simple(&h, "GET", "/alive"), 503);
	ck_assert_int_gt(h.answer.retry_after_s, 0);
	atomic_store(&h.board->ready, 1);
	ck_assert_int_eq(handle_simple(&h, "GET", "/alive"), 200);
	/* a shell that is being replaced does not make the server dead */
	atomic_store(&h.board->ready, 0);
	ck_assert_int_eq(handle_simple(&h, "GET", "/alive"), 200);
}
END_TEST

START_TEST(content_types)
{
	static const struct {
		const char *type;
		int status; /* 500: parsed, 422: not */
	} t[] = {{"", 500}, {"application/json", 500}, {" Application/JSON ; charset=x", 500},
	    {"application/vnd.x+json", 500}, {"application/+json", 500}, {"application/json5", 422},
	    {"application/x-json", 422}, {"text/json", 422}, {"application/a/b+json", 422},
	    {"application/", 422}, {"json", 422}, {";", 422}, {"application/jsonx+json;a", 500}};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		handle_begin(&h, "POST", "/execute_action");
		h.r.content_type = t[i].type;
		handle_body(&h, "{\"action\":{}}", 13);
		ck_assert_msg(handle_perform(&h) == t[i].status, "\"%s\"", t[i].type);
	}
}
END_TEST

START_TEST(body_limits)
{
	size_t len = HR_JSON_BODY_MAX + 1;
	HR_FREE char *p = malloc(len);

	ck_assert_ptr_nonnull(p);
	memset(p, ' ', len);
	handle_begin(&h, "POST", "/execute_action");
	handle_body(&h, p, len);
	ck_assert_int_eq(handle_perform(&h), 413);
	handle_begin(&h, "POST", "/execute_action");
	h.r.content_type = "text/plain";
	handle_body(&h, p, (1u << 20) + 1);
	ck_assert_int_eq(handle_perform(&h), 413);
	handle_begin(&h, "POST", "/execute_action");
	h.r.content_type = "text/plain";
	handle_body(&h, p, 1u << 20);
	ck_assert_int_eq(handle_perform(&h), 422);
	memset(p, '[', len);
	handle_begin(&h, "POST", "/execute_action");
	handle_body(&h, p, 1u << 20);
	ck_assert_int_eq(handle_perform(&h), 400);
	check_detail(400, "There was an error parsing the body");
	handle_begin(&h, "POST", "/execute_action");
	handle_body(&h, p, 10);
	h.body.broken = true;
	ck_assert_int_eq(handle_perform(&h), 400);
}
END_TEST

START_TEST(surrogates_in_texts)
{
	/* as text of a repr it can be sent, as itself it cannot */
	ck_assert_int_eq(handle_action(&h, "{\"action\":{\"action\":\"\\ud800\"}}"), 500);
	ck_assert_ptr_nonnull(strstr(h.answer.body.p, "=\'\\\\ud800\'\' is not"));
	ck_assert_int_eq(
	    handle_action(&h, "{\"action\":{\"action\":\"run\",\"args\":{\"\\ud800\":1}}}"), 500);
	check_detail(500, "An unexpected error occurred. Please try again later.");
	ck_assert_int_eq(handle_action(&h, "{\"x\":\"\\ud800\"}"), 422);
}
END_TEST

START_TEST(last_execution)
{
	int64_t before;

	(void)handle_action(&h, "{\"action\":{\"action\":\"bogus\"}}");
	(void)handle_action(&h, "{\"action\":{\"observation\":\"null\"}}");
	ck_assert_int_eq(atomic_load(&h.board->last_execution_ns), 0);
	before = hr_wall_ns();
	(void)handle_action(&h, "{\"action\":{\"action\":\"think\"}}");
	ck_assert(atomic_load(&h.board->last_execution_ns) >= before);
}
END_TEST

START_TEST(dispatch_is_not_redirected)
{
	static const char fmt[] = "{\"action\":{\"action\":\"%s\",\"args\":{\"action\":%s}}}";
	char json[200];

	(void)snprintf(json, sizeof(json), fmt, "think", "\"run_action\"");
	(void)handle_action(&h, json);
	check_detail(
	    500, "Internal server error: 'ActionExecutor' object has no attribute 'run_action'");
	(void)snprintf(json, sizeof(json), fmt, "think", "null");
	(void)handle_action(&h, json);
	check_detail(500, "Internal server error: attribute name must be string, not 'NoneType'");
	(void)snprintf(json, sizeof(json), fmt, "finish", "\"run\"");
	ck_assert_int_eq(handle_action(&h, json), 200);
	ck_assert_ptr_nonnull(
	    strstr(h.answer.body.p, "'AgentFinishAction' object has no attribute 'is_static'"));
	(void)snprintf(json, sizeof(json), fmt, "think", "\"think\"");
	(void)handle_action(&h, json);
	check_detail(
	    500, "Internal server error: 'ActionExecutor' object has no attribute 'think'");
}
END_TEST

START_TEST(not_in_this_build)
{
	static const char server[] = "[{\"name\":\" a \",\"command\":\"cat\",\"args\":null}]";

	handle_begin(&h, "POST", "/update_mcp_server");
	handle_body(&h, server, strlen(server));
	(void)handle_perform(&h);
	check_detail(501, "update_mcp_server is not available in this build");
}
END_TEST

START_TEST(mcp_violations)
{
	static const char *const bad[] = {"[{\"name\":\"\",\"command\":\"c\"}]",
	    "[{\"name\":\"a b\",\"command\":\"c\"}]", "[{\"name\":\"a\",\"command\":\" \"}]",
	    "[{\"name\":\"a\",\"command\":\"c d\"}]", "[{\"name\":1,\"command\":\"c\"}]",
	    "[{\"name\":\"a\",\"command\":\"c\",\"args\":[1]}]",
	    "[{\"name\":\"a\",\"command\":\"c\",\"args\":{}}]",
	    "[{\"name\":\"a\",\"command\":\"c\",\"env\":{\"k\":1}}]", "[[]]", "[null]"};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		handle_begin(&h, "POST", "/update_mcp_server");
		handle_body(&h, bad[i], strlen(bad[i]));
		(void)handle_perform(&h);
		check_detail(500, "An unexpected error occurred. Please try again later.");
	}
}
END_TEST

START_TEST(query_parameters)
{
	HR_BUF(b, 1000);

	handle_begin(&h, "GET", "/x?a=1&b=+%41%c3%a9&a=2&&c&%61b=z&d=%ff&e=%ed%a0%80&=5");
	h.r.path = &h.w.path;
	ck_assert_int_eq(hr_request_split(&h.r), 0);
	ck_assert(hr_request_query(&h.r, "a", &b));
	ck_assert_str_eq(hr_buf_str(&b), "2");
	ck_assert(hr_request_query(&h.r, "b", &b));
	ck_assert_str_eq(hr_buf_str(&b), " A\xC3\xA9");
	ck_assert(hr_request_query(&h.r, "c", &b));
	ck_assert_str_eq(hr_buf_str(&b), "");
	ck_assert(hr_request_query(&h.r, "ab", &b));
	ck_assert_str_eq(hr_buf_str(&b), "z");
	ck_assert(hr_request_query(&h.r, "d", &b));
	ck_assert_str_eq(hr_buf_str(&b), "\xEF\xBF\xBD");
	ck_assert(hr_request_query(&h.r, "e", &b));
	ck_assert_str_eq(hr_buf_str(&b), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
	ck_assert(!hr_request_query(&h.r, "f", &b));
}
END_TEST

static void
check_list(const char *json, const char *want)
{
	handle_begin(&h, "POST", "/list_files");
	handle_body(&h, json, strlen(json));
	ck_assert_int_eq(handle_perform(&h), 200);
	ck_assert_str_eq(hr_buf_str(&h.answer.body), want);
}

START_TEST(list_order_and_links)
{
	char path[200];

	make_file(h.work_dir, "a/x", NULL);
	make_file(h.work_dir, "a-b/x", NULL);
	make_file(h.work_dir, "A.b/x", NULL);
	make_file(h.work_dir, "\xC4\xB0", NULL); /* U+0130 */
	make_file(h.work_dir, "i", NULL);
	make_file(h.work_dir, "j", NULL);
	(void)snprintf(path, sizeof(path), "%s/broken", h.work_dir);
	ck_assert_int_eq(symlink("nowhere", path), 0);
	(void)snprintf(path, sizeof(path), "%s/up", h.work_dir);
	ck_assert_int_eq(symlink(".", path), 0);
	(void)snprintf(path, sizeof(path), "%s/pipe", h.work_dir);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	/* directories sort with their slash: '-' and '.' come before it */
	check_list("{}", "[\"a-b/\",\"A.b/\",\"a/\",\"up/\",\"i\",\"\xC4\xB0\",\"j\",\"pipe\"]");
	check_list("{\"path\":\"a/..//a\"}", "[\"x\"]");
	check_list("{\"path\":\"\\udc80\"}", "[]");
	check_list("{\"path\":\"\\ud800\"}", "[]");
}
END_TEST

START_TEST(list_names_that_are_no_text)
{
	make_file(h.work_dir, "ok", NULL);
	make_file(h.work_dir, "d\x80/\xff", NULL);
	check_list("{}", "[]");
	check_list("{\"path\":\"d\\udc80\"}", "[]");
	make_file(h.work_dir, "e\x80/fine", NULL);
	check_list("{\"path\":\"e\\udc80\"}", "[\"fine\"]");
}
END_TEST

/* Until now. */
static double
seconds_from(int64_t wall_ns)
{
	return (double)(hr_wall_ns() - wall_ns) / 1e9;
}

START_TEST(info_is_about_processes)
{
	double first, second;
	int64_t since;
	char *p;

	atomic_store(&h.board->supervisor_pid, (int32_t)getpid());
	ck_assert_int_eq(handle_simple(&h, "GET", "/server_info"), 200);
	ck_assert(matches("{\"uptime\":@FLOAT@,\"idle_time\":@FLOAT@,\"resources\":{"
			  "\"cpu_percent\":@FLOAT@,\"memory\":{\"rss\":@INT@,\"vms\":@INT@,"
			  "\"percent\":@FLOAT@},\"disk\":{\"total\":@INT@,\"used\":@INT@,"
			  "\"free\":@INT@,\"percent\":@FLOAT@},\"io\":{\"read_bytes\":@INT@,"
			  "\"write_bytes\":@INT@}}}",
	    h.answer.body.p));
	first = strtod(strstr(h.answer.body.p, "uptime\":") + 8, NULL);
	since = atomic_load(&h.board->started_ns);
	ck_assert(first >= 5.0 && first < seconds_from(since) + 0.01);
	p = strstr(h.answer.body.p, "\"rss\":") + 6;
	ck_assert(strtoull(p, NULL, 10) > 500000);
	since = hr_wall_ns() - 2000000000;
	atomic_store(&h.board->last_execution_ns, since);
	ck_assert_int_eq(handle_simple(&h, "GET", "/server_info"), 200);
	second = strtod(strstr(h.answer.body.p, "idle_time\":") + 11, NULL);
	ck_assert(second >= 2.0 && second < seconds_from(since) + 0.01);
}
END_TEST

START_TEST(no_process_no_figures)
{
	struct hr_stats s = {0};
	struct hr_stats_now now;

	hr_stats_sample(&s, h.board, &now);
	ck_assert_uint_eq(now.rss, 0);
	ck_assert(now.cpu_percent == 0);
	ck_assert(now.disk_total >= now.disk_used && now.disk_total > 0);
	ck_assert(now.disk_percent >= 0 && now.disk_percent <= 100);
}
END_TEST

START_TEST(figures_are_kept_for_a_moment)
{
	struct hr_stats s = {0};
	struct hr_stats_now now;

	hr_stats_sample(&s, h.board, &now);
	atomic_store(&h.board->session_pid, getpid());
	s.wall_ns += 60000000000; /* as if it had just been looked at */
	hr_stats_sample(&s, h.board, &now);
	ck_assert_uint_eq(now.rss, 0);
	s.wall_ns -= 61000000000;
	hr_stats_sample(&s, h.board, &now);
	ck_assert_uint_gt(now.rss, 500000);
}
END_TEST

/* A child counts with its memory while it lives, and with its time for ever. */
START_TEST(figures_of_a_tree)
{
	enum { MEMORY = 64 << 20, BURNT_NS = 50000000 };
	struct hr_stats_tree before, with, after;
	int up[2], down[2];
	char c;
	pid_t pid;

	hr_stats_tree(getpid(), &before);
	ck_assert_uint_eq(before.processes, 1);
	ck_assert_int_eq(pipe(up), 0);
	ck_assert_int_eq(pipe(down), 0);
	pid = fork();
	if (pid == 0) {
		char *p = malloc(MEMORY);
		struct timespec t;

		memset(p, 1, MEMORY);
		do
			(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
		while (t.tv_sec == 0 && t.tv_nsec < BURNT_NS);
		_exit(write(up[1], p, 1) != 1 || read(down[0], p, 1) != 1);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(read(up[0], &c, 1), 1);
	hr_stats_tree(getpid(), &with);
	ck_assert_uint_eq(with.processes, 2);
	ck_assert_uint_ge(with.anonymous, before.anonymous + MEMORY);
	ck_assert_uint_ge(with.resident, with.anonymous);
	ck_assert_int_eq(write(down[1], "", 1), 1);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	hr_stats_tree(getpid(), &after);
	ck_assert_uint_eq(after.processes, 1);
	ck_assert_uint_lt(after.anonymous, with.anonymous);
	ck_assert_int_ge(after.cpu_ns, before.cpu_ns + BURNT_NS * 3 / 5); /* in steps of 10 ms */
	hr_stats_tree(-1, &after);
	ck_assert_uint_eq(after.processes, 0);
	close(up[0]);
	close(up[1]);
	close(down[0]);
	close(down[1]);
}
END_TEST

/* Whether an action marked its entry of the journal. */
static bool
marks(const char *type, const char *args, bool ret_error)
{
	struct hr_action_env env = {.run_dir = h.dir,
	    .work_dir = h.work_dir,
	    .channel = -1,
	    .key = {"k", 1},
	    .user_id = geteuid(),
	    .journal = &h.w.journal,
	    .entry = &h.w.once};
	enum hr_journal_found found;
	HR_BUF(text, 4096);
	HR_BUF(why, 4096);
	HR_PUT struct json_object *action = NULL;
	struct hr_event ev;
	uint32_t tag;
	bool begun;

	hr_buf_addf(&text, "{\"action\":\"%s\",\"args\":{%s}}", type, args);
	action = json_tokener_parse(hr_buf_str(&text));
	ck_assert_ptr_nonnull(action);
	ck_assert_msg(hr_event_decode(action, &ev, &why) == 0, "%s", hr_buf_str(&why));
	ck_assert_int_eq(
	    hr_journal_enter(&h.w.journal, "k", 1, &h.w.once, &found, &tag, &why, NULL), 0);
	ck_assert_int_eq(found, HR_JOURNAL_NEW);
	ck_assert_int_eq(hr_action_repeat(&ev), HR_REPEAT_MARK);
	hr_action_perform(&env, &ev, &h.answer);
	ck_assert_int_eq(h.answer.status, 200);
	ck_assert_int_eq(strstr(hr_buf_str(&h.answer.body), "RROR") != NULL ||
			     strstr(hr_buf_str(&h.answer.body), "directory") != NULL,
	    ret_error);
	begun = hr_journal_begun(&h.w.once);
	hr_journal_leave(&h.w.journal, &h.w.once, true);
	return begun;
}

/* What changes a file says so to the journal; what is refused does not. */
START_TEST(changes_are_marked)
{
	char dir[100], args[1024];
	struct hr_err err;

	(void)snprintf(dir, sizeof(dir), "%s/journal", h.dir);
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	ck_assert_int_eq(hr_journal_open(&h.w.journal, dir, &err), 0);
	(void)snprintf(args, sizeof(args), "\"path\":\"%s/f\",\"content\":\"a\\nb\"", h.work_dir);
	ck_assert(marks("write", args, false));
	(void)snprintf(args, sizeof(args), "\"path\":\"%s\",\"content\":\"a\"", h.work_dir);
	ck_assert(!marks("write", args, true));
	(void)snprintf(args, sizeof(args),
	    "\"path\":\"%s/f\",\"impl_source\":\"oh_aci\",\"command\":\"insert\","
	    "\"insert_line\":1,\"new_str\":\"x\"",
	    h.work_dir);
	ck_assert(marks("edit", args, false));
	(void)snprintf(args, sizeof(args),
	    "\"path\":\"%s/f\",\"impl_source\":\"oh_aci\",\"command\":\"undo_edit\"", h.work_dir);
	ck_assert(marks("edit", args, false));
	ck_assert(!marks("edit", args, true)); /* there is no more to undo */
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("handle");
	TCase *c = tcase_create("corpus"), *open = tcase_create("open"),
	      *keyed = tcase_create("keyed");

	tcase_set_timeout(c, 60);
	tcase_add_test(c, corpus);
	tcase_add_test(c, keys_from_the_supervisor);
	tcase_add_test(c, half_told_keys_are_refused);
	suite_add_tcase(s, c);
	tcase_add_checked_fixture(open, setup, teardown);
	tcase_set_timeout(open, 60);
	tcase_add_test(open, paths);
	tcase_add_test(open, redirects);
	tcase_add_test(open, alive_before_ready);
	tcase_add_test(open, content_types);
	tcase_add_test(open, body_limits);
	tcase_add_test(open, surrogates_in_texts);
	tcase_add_test(open, last_execution);
	tcase_add_test(open, dispatch_is_not_redirected);
	tcase_add_test(open, not_in_this_build);
	tcase_add_test(open, mcp_violations);
	tcase_add_test(open, query_parameters);
	tcase_add_test(open, list_order_and_links);
	tcase_add_test(open, list_names_that_are_no_text);
	tcase_add_test(open, info_is_about_processes);
	tcase_add_test(open, no_process_no_figures);
	tcase_add_test(open, figures_are_kept_for_a_moment);
	tcase_add_test(open, figures_of_a_tree);
	tcase_add_test(open, changes_are_marked);
	suite_add_tcase(s, open);
	tcase_add_checked_fixture(keyed, setup_keys, teardown);
	tcase_add_test(keyed, keys);
	tcase_add_test(keyed, paths_that_need_a_key);
	suite_add_tcase(s, keyed);
	return lines_run(s);
}
