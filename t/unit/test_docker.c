/* The back-end "docker" at an Engine that gives the answers of a list (t/fuzz/fake_http.h): the
 * ports of a container that exists, the progress of a pull, the limits of a new container. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../fuzz/fake_http.h"
#include "host/backends.h"
#include "host/config/settings.h"
#include "host/docker/docker_int.h"
#include "host/docker/spec.h"
#include "proto/json.h"
#include "lines.h"
#include "scratch.h"

#define OK "\x82"   /* the status 200, as fake_http.h encodes it */
#define NEXT "\x1e" /* ends an answer */
#define PING OK "1.41" NEXT

static const char *const env[] = {"DOCKER_HOST=unix:///nonexistent", NULL}, *const none[] = {NULL};

static struct hr_config *
config(void)
{
	struct hr_config *c = hr_config_new(NULL);

	ck_assert_ptr_nonnull(c);
	return c;
}

START_TEST(ports_of_a_container)
{
	static const char answers[] =
	    PING OK "{\"Id\":\"0123abcd\",\"State\":{\"Status\":\"running\"},\"Config\":{\"Env\":["
		    "\"support=9\",\"port=30001\",\"VSCODE_PORT=40001\",\"APP_PORT_1=50001\","
		    "\"APP_PORT_2=50002\",\"SESSION_API_KEY=k\",\"PATH=/bin\"]}}";
	struct hr_config *c = config();
	struct hr_backend_host host = {.config = c,
	    .sid = "x",
	    .plugins = none,
	    .env = none,
	    .environ = env,
	    .stop_fd = -1,
	    .attach = true,
	    .any_owner = true};
	struct hr_endpoint at = {0};
	HR_FREE char *editor = NULL;
	enum hr_connected how;
	struct hr_err err = {0};
	void *self;

	fake_http_answers(answers, sizeof(answers) - 1, false);
	ck_assert_int_eq(hr_backend_docker.open(&host, &self, &err), 0);
	ck_assert_msg(hr_backend_docker.connect(self, &how, &err) == 0, "%s", err.msg);
	ck_assert_int_eq(how, HR_SANDBOX_FOUND);
	hr_backend_docker.endpoint(self, &at);
	ck_assert_str_eq(at.url, "http://127.0.0.1:30001");
	ck_assert_str_eq(at.key, "k");
	ck_assert_int_eq(at.vscode_port, 40001);
	ck_assert_int_eq(hr_docker_vscode_url(self, &editor, &err), 0);
	ck_assert_str_eq(editor, "http://localhost:40001/");
	ck_assert_int_eq(at.app_ports[0], 50001);
	ck_assert_int_eq(at.app_ports[1], 50002);
	hr_backend_docker.free(self);
	hr_config_free(c);
}
END_TEST

/* ---- pulls ---- */

struct told {
	unsigned n;
	unsigned long long done[8], total[8];
};

static void
on_progress(void *arg, const char *what, unsigned long long done, unsigned long long total)
{
	struct told *t = arg;

	ck_assert_str_eq(what, "pull");
	ck_assert_uint_lt(t->n, 8);
	t->done[t->n] = done;
	t->total[t->n++] = total;
}

START_TEST(progress_of_a_pull)
{
	static const char answers[] =
	    PING OK "{\"status\":\"Pulling fs layer\",\"id\":\"a\",\"progressDetail\":{}}\n"
		    "{\"status\":\"Downloading\",\"id\":\"a\",\"progressDetail\":{\"current\":1,"
		    "\"total\":4}}\n"
		    "{\"status\":\"Downloading\",\"id\":\"b\",\"progressDetail\":{\"current\":2,"
		    "\"total\":6}}\n"
		    "{\"status\":\"Extracting\",\"id\":\"a\",\"progressDetail\":{\"current\":9,"
		    "\"total\":9}}\n";
	struct told told = {0};
	struct hr_engine e;
	struct hr_err err = {0};
	int i;

	for (i = 0; i < 2; i++) { /* the second time without a watcher */
		fake_http_answers(answers, sizeof(answers) - 1, false);
		ck_assert_int_eq(hr_engine_init(&e, env, &err), 0);
		ck_assert_msg(
		    hr_docker_pull(&e, "i:1", i == 0 ? on_progress : NULL, &told, &err) == 0, "%s",
		    err.msg);
		hr_engine_done(&e);
	}
	ck_assert_uint_eq(told.n, 3); /* none before the first download */
	ck_assert_uint_eq(told.done[0], 1);
	ck_assert_uint_eq(told.total[0], 4);
	ck_assert_uint_eq(told.done[2], 3);
	ck_assert_uint_eq(told.total[2], 10);
}
END_TEST

/* ---- the create call ---- */

START_TEST(pull_with_a_long_message)
{
	static const char first[] = PING OK "{\"error\":\"";
	static const char rest[] = "\"}\n{\"status\":\"x\"}\n";
	HR_BUF(answers, 2u << 20);
	struct hr_engine e;
	struct hr_err err = {0};
	unsigned i;

	hr_buf_add(&answers, first, sizeof(first) - 1);
	for (i = 0; i < 1u << 20; i++)
		hr_buf_addc(&answers, 'x');
	hr_buf_add(&answers, rest, sizeof(rest) - 1);
	ck_assert_int_eq(hr_buf_check(&answers, &err), 0);
	fake_http_answers(answers.p, answers.len, false);
	ck_assert_int_eq(hr_engine_init(&e, env, &err), 0);
	ck_assert_int_eq(hr_docker_pull(&e, "i:1", NULL, NULL, &err), -1);
	ck_assert_str_eq(err.msg, "a message of the Engine is longer than 1048576 bytes");
	hr_engine_done(&e);
}
END_TEST

/* ---- events ---- */

#define EVENT                                                                                      \
	"{\"status\":\"die\",\"Actor\":{\"Attributes\":{\"name\":\"openhands-runtime-one\","       \
	"\"exitCode\":\"3\"}}}\n"

static int
stop_at(void *arg, const char *sid, const char *what, const char *detail)
{
	unsigned *left = arg;

	ck_assert_str_eq(sid, "one");
	ck_assert_str_eq(what, "die");
	ck_assert_str_eq(detail, "exit status 3");
	return --*left == 0 ? -1 : 0;
}

/* A caller that has seen enough gets no error, unlike one whose stream the Engine ends. */
START_TEST(events_end)
{
	static const char answers[] = PING OK EVENT EVENT EVENT;
	struct hr_config *c = config();
	struct hr_backend_host host = {.config = c, .sid = "x", .environ = env, .stop_fd = -1};
	unsigned left;

	for (left = 2; left <= 4; left += 2) {
		struct hr_docker d = {.h = &host};
		struct hr_err err = {0};
		unsigned n = left;

		fake_http_answers(answers, sizeof(answers) - 1, false);
		ck_assert_int_eq(hr_docker_events(&d, stop_at, &n, &err), (left == 2 ? 0 : -1));
		ck_assert_uint_eq(n, (left == 2 ? 0 : 1));
		ck_assert(left == 2 || err.code == HR_E_DISCONNECTED);
		hr_engine_done(&d.engine);
	}
	hr_config_free(c);
}
END_TEST

/* ---- the wait for a server ---- */

static bool time_flies; /* each look at a clock takes a second */

int64_t __real_hr_now_ms(void);
int64_t __wrap_hr_now_ms(void);

int64_t
__wrap_hr_now_ms(void)
{
	static int64_t later_ms;

	later_ms += time_flies ? 1000 : 0;
	return __real_hr_now_ms() + later_ms;
}

/* A server that prints something all the time, and reports after `n` lines that it is ready. */
static int
wait_for(unsigned n, struct hr_err *err)
{
	static const char line[] = "\1\0\0\0\0\0\0\5wait\n";
	static const char ready[] = "\1\0\0\0\0\0\0\21ready: listening\n";
	static const char state[] = NEXT OK "{\"State\":{\"Running\":true}}";
	struct hr_config *c = config();
	struct hr_backend_host host = {.config = c, .sid = "x", .environ = env, .stop_fd = -1};
	struct hr_docker d = {.h = &host, .name = strdup("n")};
	HR_BUF(answers, 1u << 16);
	int r;

	hr_buf_adds(&answers, PING OK);
	for (; n > 0; n--)
		hr_buf_add(&answers, line, sizeof(line) - 1);
	hr_buf_add(&answers, ready, sizeof(ready) - 1);
	hr_buf_add(&answers, state, sizeof(state) - 1);
	fake_http_answers(answers.p, answers.len, false);
	ck_assert_int_eq(hr_docker_engine(&d, err), 0);
	time_flies = true;
	r = hr_docker_wait_ready(&d, "0", err);
	time_flies = false;
	hr_engine_done(&d.engine);
	free(d.name);
	hr_config_free(c);
	return r;
}

START_TEST(server_that_prints_for_ever)
{
	struct hr_err err = {0};

	ck_assert_msg(wait_for(100, &err) == 0, "%s", err.msg);
	ck_assert_int_eq(wait_for(200, &err), -1);
	ck_assert_int_eq(err.code, HR_E_RUNTIME_TIMEOUT);
	ck_assert_int_eq(strncmp(err.msg, "n was not ready within 120 seconds\nwait\n", 40), 0);
}
END_TEST

START_TEST(standard_limits)
{
	static const char *const command[] = {"true", NULL};
	struct hr_config *c = config();
	struct hr_backend_host host = {
	    .config = c, .sid = "x", .plugins = none, .env = none, .environ = env, .stop_fd = -1};
	struct hr_dockerspec spec = {
	    .host = &host, .image = "i:1", .command = command, .port = 1, .vscode_port = 2};
	HR_PUT struct json_object *body = NULL;
	struct json_object *limits, *files;
	struct hr_err err = {0};

	ck_assert_int_eq(hr_config_set(c, "sandbox.limits.profile", "standard", &err), 0);
	body = hr_dockerspec_build(&spec, &err);
	ck_assert_msg(body != NULL, "%s", err.msg);
	limits = hr_json_at(body, "HostConfig");
	ck_assert_int_eq(hr_json_int_at(limits, "CpuPeriod"), 100000);
	ck_assert_int_eq(hr_json_int_at(limits, "CpuQuota"), 100000);
	ck_assert_int_eq(hr_json_int_at(limits, "PidsLimit"), 4096);
	files = hr_json_entry(hr_json_at(limits, "Ulimits"), 0);
	ck_assert_str_eq(hr_json_text_or(files, "Name", ""), "nofile");
	ck_assert_int_eq(hr_json_int_at(files, "Soft"), 65536);
	ck_assert_int_eq(hr_json_int_at(files, "Hard"), 65536);
	hr_config_free(c);
}
END_TEST

/* The container publishes the server's port, the editor's if there is one, and the two of workers.
 */
START_TEST(ports_to_publish)
{
	static const char *const command[] = {"true", NULL};
	static const char *const editor[] = {"vscode", NULL};
	static const char *const keys[] = {"1/tcp", "7001/tcp", "7002/tcp", "2/tcp"};
	struct hr_config *c = config();
	struct hr_backend_host host = {.config = c,
	    .sid = "x",
	    .plugins = _i == 0 ? none : editor,
	    .env = none,
	    .environ = env,
	    .stop_fd = -1};
	struct hr_dockerspec spec = {.host = &host,
	    .image = "i:1",
	    .command = command,
	    .port = 1,
	    .vscode_port = 2,
	    .app_ports = {7001, 7002}};
	HR_PUT struct json_object *body = NULL;
	struct json_object *exposed, *bound, *one;
	struct hr_err err = {0};
	int i;

	body = hr_dockerspec_build(&spec, &err);
	ck_assert_msg(body != NULL, "%s", err.msg);
	exposed = hr_json_at(body, "ExposedPorts");
	bound = hr_json_at(hr_json_at(body, "HostConfig"), "PortBindings");
	ck_assert_int_eq(json_object_object_length(exposed), 3 + _i);
	ck_assert_int_eq(json_object_object_length(bound), 3 + _i);
	for (i = 0; i < 3 + _i; i++) {
		ck_assert_msg(hr_json_at(exposed, keys[i]) != NULL, "%s", keys[i]);
		one = hr_json_entry(hr_json_at(bound, keys[i]), 0);
		ck_assert_int_eq(atoi(hr_json_text_or(one, "HostPort", "")), atoi(keys[i]));
		ck_assert_str_eq(hr_json_text_or(one, "HostIp", ""), "0.0.0.0");
	}
	hr_config_free(c);
}
END_TEST

/* A "~" is the home directory of handrail's user, not of the Engine's. */
START_TEST(volumes)
{
	static const char *const command[] = {"true", NULL};
	static const char *const home[] = {"HOME=/h", NULL};
	static const char *const want[] = {"/h/x:/a:ro", "/h:/b:rw", "cache:/c:rw", "/h/~/y:/d:rw"};
	struct hr_config *c = config();
	struct hr_backend_host host = {
	    .config = c, .sid = "x", .plugins = none, .env = none, .environ = home, .stop_fd = -1};
	struct hr_dockerspec spec = {
	    .host = &host, .image = "i:1", .command = command, .port = 1, .vscode_port = 2};
	HR_PUT struct json_object *body = NULL;
	struct json_object *binds;
	struct hr_err err = {0};
	size_t i;

	ck_assert_int_eq(
	    hr_config_set(c, "sandbox.volumes", "~/x:/a:ro,/h:/b,volume:cache:/c,/h/~/y:/d", &err),
	    0);
	body = hr_dockerspec_build(&spec, &err);
	ck_assert_msg(body != NULL, "%s", err.msg);
	binds = hr_json_at(hr_json_at(body, "HostConfig"), "Binds");
	ck_assert_uint_eq(hr_json_count(binds), 4);
	for (i = 0; i < 4; i++)
		ck_assert_str_eq(json_object_get_string(hr_json_entry(binds, i)), want[i]);
	hr_config_free(c);
}
END_TEST

/* The Engine wants the slashes of a name as they are, and the rest escaped. */
START_TEST(paths_of_images)
{
	static const char *const rows[][2] = {{"one", "/images/one"},
	    {"host:5000/a/b:1", "/images/host%3A5000/a/b%3A1"}, {"a b/?c", "/images/a%20b/%3Fc"}};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		HR_BUF(b, 200);

		hr_docker_image_path(&b, rows[i][0]);
		ck_assert_str_eq(hr_buf_str(&b), rows[i][1]);
	}
}
END_TEST

/* The label of this user's containers names the state directory itself: it is the same after a
 * move, and another one for another directory. */
START_TEST(owners)
{
	struct hr_backend_host host = {.environ = env, .stop_fd = -1};
	struct hr_err err = {0};
	char *text[4] = {NULL};
	char dirs[2][200];
	size_t i;

	for (i = 0; i < 2; i++)
		(void)snprintf(dirs[i], sizeof(dirs[i]), "%s/%zu", scratch, i);
	host.state_dir = dirs[0];
	ck_assert_int_eq(hr_docker_owner(&host, &text[0], &err), 0);
	ck_assert_ptr_nonnull(text[0]);
	ck_assert_int_eq(rename(dirs[0], dirs[1]), 0);
	ck_assert_int_eq(hr_docker_owner(&host, &text[1], &err), 0);
	host.state_dir = dirs[1];
	ck_assert_int_eq(hr_docker_owner(&host, &text[2], &err), 0);
	ck_assert_str_ne(text[0], text[1]);
	ck_assert_str_eq(text[0], text[2]);
	host.state_dir = "/dev/null/none";
	ck_assert_int_eq(hr_docker_owner(&host, &text[3], &err), -1);
	ck_assert_ptr_null(text[3]);
	for (i = 0; i < 4; i++)
		free(text[i]);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("docker");
	TCase *tc = tcase_create("docker");

	tcase_add_test(tc, ports_of_a_container);
	tcase_add_test(tc, progress_of_a_pull);
	tcase_add_test(tc, pull_with_a_long_message);
	tcase_add_test(tc, events_end);
	tcase_add_test(tc, server_that_prints_for_ever);
	tcase_add_test(tc, standard_limits);
	tcase_add_loop_test(tc, ports_to_publish, 0, 2);
	tcase_add_test(tc, volumes);
	tcase_add_test(tc, paths_of_images);
	tcase_add_unchecked_fixture(tc, scratch_make, scratch_remove);
	tcase_add_test(tc, owners);
	suite_add_tcase(s, tc);
	return lines_run(s);
}
