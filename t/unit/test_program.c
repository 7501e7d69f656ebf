/* Programs that are back-ends: each way in which a line can be wrong is told with the field's name
 * (src/host/program/answer.h), and what is asked reaches one that runs (src/host/program/child.h).
 */
#include "config.h"

#include <check.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <json-c/json.h>

#include "host/program/child.h"
#include "proto/json.h"

static const struct {
	const char *line, *why;
} bad[] = {
    {"", "not JSON, at character 1: Expecting value"},
    {"{\"id\":garbage}", "not JSON, at character 7: Expecting value"},
    {"5", "not a JSON object"},
    {"[]", "not a JSON object"},
    {"{}", "its answer has no \"id\""},
    {"{\"ok\":{}}", "its answer has no \"id\""},
    {"{\"id\":\"1\",\"ok\":{}}", "\"id\" of its answer is a text, not a whole number"},
    {"{\"id\":1.5,\"ok\":{}}", "\"id\" of its answer is a number, not a whole number"},
    {"{\"id\":null,\"ok\":{}}", "\"id\" of its answer is null"},
    {"{\"id\":1}", "its answer has no \"ok\" or \"error\""},
    {"{\"id\":1,\"ok\":{},\"error\":{}}", "its answer has both \"ok\" and \"error\""},
    {"{\"id\":1,\"out\":\"\",\"err\":\"\"}", "its answer has both \"out\" and \"err\""},
    {"{\"id\":1,\"ok\":[]}", "\"ok\" of its answer is not an object"},
    {"{\"id\":1,\"ok\":null}", "\"ok\" of its answer is not an object"},
    {"{\"id\":1,\"sandbox\":\"x\"}", "\"sandbox\" of its answer is not an object"},
    {"{\"id\":1,\"out\":5}", "\"out\" of its answer is not text"},
    {"{\"id\":1,\"err\":\"!\"}", "\"err\" of its answer is not base64"},
    {"{\"id\":1,\"data\":\"eA=\"}", "\"data\" of its answer is not base64"},
    {"{\"id\":1,\"error\":\"x\"}", "its error is not a JSON object"},
    {"{\"id\":1,\"error\":{\"message\":\"x\"}}", "its error has no \"code\""},
    {"{\"id\":1,\"error\":{\"code\":5,\"message\":\"x\"}}", "\"code\" of its error is a number"},
    {"{\"id\":1,\"error\":{\"code\":\"failed\"}}", "its error has no \"message\""},
    {"{\"id\":1,\"error\":{\"code\":\"failed\",\"message\":[]}}",
	"\"message\" of its error is a list"},
};

static const struct {
	const char *ok, *why;
} bad_hellos[] = {
    {"{\"can\":[]}", "its hello has no \"protocol\""},
    {"{\"protocol\":\"1\",\"can\":[]}", "\"protocol\" of its hello is a text"},
    {"{\"protocol\":2,\"can\":[]}", "speaks version 2 of the protocol, handrail speaks 1"},
    {"{\"protocol\":1}", "its hello has no \"can\""},
    {"{\"protocol\":1,\"can\":{}}", "\"can\" of its hello is an object, not a list"},
    {"{\"protocol\":1,\"can\":[5]}", "an entry of \"can\" of its hello is not text"},
    {"{\"protocol\":1,\"can\":[],\"title\":5}", "\"title\" of its hello is a number"},
    {"{\"protocol\":1,\"can\":[],\"title\":\"\"}",
	"\"title\" of its hello has 0 bytes, not 1 to 40"},
    {"{\"protocol\":1,\"can\":[],\"title\":\"a\\u001bb\"}", "has control characters"},
    {"{\"protocol\":1,\"can\":[],\"title\":\"a\\u0000b\"}", "has control characters"},
    {"{\"protocol\":1,\"can\":[],\"lacks\":{}}", "\"lacks\" of its hello is an object, not a text"},
};

START_TEST(wrong_lines)
{
	struct hr_program_answer a;
	struct hr_err err = {0};

	ck_assert_int_eq(hr_program_read(bad[_i].line, strlen(bad[_i].line), NULL, &a, &err), -1);
	ck_assert_msg(strstr(err.msg, bad[_i].why) != NULL, "%s: %s", bad[_i].line, err.msg);
	hr_program_answer_done(&a);
}
END_TEST

START_TEST(wrong_hellos)
{
	HR_PUT struct json_object *o = json_tokener_parse(bad_hellos[_i].ok);
	struct hr_program_about about = {.title = "as it was"};
	struct hr_err err = {0};

	ck_assert_int_eq(hr_program_hello(o, &about, &err), -1);
	ck_assert_str_eq(about.title, "as it was");
	ck_assert_msg(
	    strstr(err.msg, bad_hellos[_i].why) != NULL, "%s: %s", bad_hellos[_i].ok, err.msg);
}
END_TEST

START_TEST(right_ones)
{
	static const char error[] =
	    "{\"id\":3,\"error\":{\"code\":\"gone\",\"message\":\"no \\u001b[31mbox\"}}";
	static const char out[] = "{\"id\":2,\"err\":\"YWI=\",\"more\":1}";
	/* of a program's own words one byte is no UTF-8 */
	static const char latin[] =
	    "{\"id\":3,\"error\":{\"code\":\"gone\",\"message\":\"no \xe9tat\"}}";
	static const char ok[] =
	    "{\"id\":1,\"ok\":{\"protocol\":1,\"can\":[\"shell\",\"later\"],\"title\":\"T\"}}";
	struct hr_program_about about;
	struct hr_program_answer a;
	struct hr_err err = {0};

	ck_assert_int_eq(hr_program_read(ok, strlen(ok), NULL, &a, &err), 0);
	ck_assert_int_eq(a.kind, HR_PROGRAM_OK);
	ck_assert_int_eq(hr_program_hello(a.body, &about, &err), 0);
	ck_assert_uint_eq(about.can, HR_PROGRAM_SHELL);
	ck_assert_str_eq(about.title, "T");
	hr_program_answer_done(&a);
	ck_assert_int_eq(hr_program_read(out, strlen(out), NULL, &a, &err), 0);
	ck_assert(a.id == 2 && a.kind == HR_PROGRAM_DATA && a.stream == 2 && a.data.len == 2);
	hr_program_answer_done(&a);
	ck_assert_int_eq(hr_program_read(error, strlen(error), NULL, &a, &err), 0);
	ck_assert(a.kind == HR_PROGRAM_ERROR && a.error.code == HR_E_NO_SANDBOX);
	ck_assert_str_eq(a.error.msg, "no \\x1b[31mbox");
	hr_program_answer_done(&a);
	ck_assert_int_eq(hr_program_read(latin, strlen(latin), NULL, &a, &err), 0);
	ck_assert_str_eq(a.error.msg, "no \xef\xbf\xbdtat");
	hr_program_answer_done(&a);
}
END_TEST

START_TEST(no_secrets)
{
	static const char *const secrets[] = {"key", "key-longer", "ab", NULL};
	static const char line[] = "{\"id\":3,\"error\":{\"code\":\"failed\",\"message\":"
				   "\"a key, key-longer, ab\"}}";
	struct hr_program_answer a;
	struct hr_err err = {0};
	char longer[600];

	ck_assert_int_eq(hr_program_read(line, strlen(line), secrets, &a, &err), 0);
	ck_assert_str_eq(a.error.msg, "a ******, ******, ab");
	hr_program_answer_done(&a);
	/* where the message is cut there is no half of one */
	(void)snprintf(longer, sizeof(longer),
	    "{\"id\":3,\"error\":{\"code\":\"failed\",\"message\":\"%0397dkey-longer\"}}", 0);
	ck_assert_int_eq(hr_program_read(longer, strlen(longer), secrets, &a, &err), 0);
	ck_assert_ptr_null(strstr(a.error.msg, "k"));
	hr_program_answer_done(&a);
}
END_TEST

START_TEST(too_long)
{
	size_t len = HR_PROGRAM_LINE_MAX + 1;
	struct hr_program_answer a;
	struct hr_err err = {0};
	HR_FREE char *line = malloc(len);

	ck_assert_ptr_nonnull(line);
	memset(line, ' ', len);
	ck_assert_int_eq(hr_program_read(line, len, NULL, &a, &err), -1);
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
	hr_program_answer_done(&a);
}
END_TEST

/* ---- programs that run ---- */

#define ANSWER                                                                                     \
	"id=${x#*'\"id\":'}; id=${id%%[,\\}]*}; echo "                                             \
	"'{\"id\":'$id',\"ok\":{\"protocol\":1,\"can\":[]}}'"

/* A program of one line of sh, in a directory of its own. */
static void
program_of(char dir[32], char path[64], const char *text)
{
	FILE *f;

	(void)strcpy(dir, "/tmp/test_program.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(path, 64, "%s/program", dir);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_gt(fprintf(f, "#!/bin/sh\n%s\n", text), 0);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(chmod(path, 0700), 0);
}

static void
ask(struct hr_child *c, const char *op, const char *bytes, size_t len)
{
	const struct hr_child_call q = {
	    .op = op, .timeout_ms = 60000, .bytes = bytes, .bytes_len = len};
	struct hr_child_end end;
	struct hr_err err = {0};

	ck_assert_msg(hr_child_ask(c, &q, &end, &err) == 0, "%s: %s", op, err.msg);
	json_object_put(end.ok);
}

/* One that ended after it had answered is started anew: nothing was asked of it that it could have
 * done. */
START_TEST(ended_idle)
{
	static const char *const env[] = {NULL};
	char dir[32], path[64];
	struct hr_child c;
	siginfo_t si;

	program_of(dir, path, "for i in 1 2; do read -r x; " ANSWER "; done");
	hr_child_init(&c, "play", path, env);
	ask(&c, "first", NULL, 0);
	ck_assert_int_eq(waitid(P_PID, (id_t)c.pid, &si, WEXITED | WNOWAIT), 0);
	ask(&c, "second", NULL, 0);
	hr_child_done(&c);
	(void)unlink(path);
	(void)rmdir(dir);
}
END_TEST

/* One that answers before it has read all: the next request is not glued to half a line. */
START_TEST(answered_early)
{
	static const char *const env[] = {NULL};
	static char bytes[3 << 20];
	char dir[32], path[64];
	struct hr_child c;

	program_of(dir, path, "while read -r x; do case $x in *'\"op\"'*) " ANSWER ";; esac; done");
	hr_child_init(&c, "play", path, env);
	ask(&c, "put", bytes, sizeof(bytes));
	ask(&c, "next", NULL, 0);
	hr_child_done(&c);
	(void)unlink(path);
	(void)rmdir(dir);
}
END_TEST

struct listener {
	struct hr_child *c;
	int lines;
};

/* Comes back when there is more, and when there are more lines than one reading takes, not before
 * the program has answered: so it has to be asked between two readings. */
static void
listen_on(void *arg, const char *line)
{
	struct listener *l = arg;
	struct pollfd more = {.fd = l->c->said, .events = POLLIN},
		      answer = {.fd = l->c->from, .events = POLLIN};

	ck_assert_int_eq(line[0], '0');
	ck_assert_int_eq(poll(&more, 1, 60000), 1);
	if (++l->lines > 16)
		ck_assert_int_eq(poll(&answer, 1, 60000), 1);
}

/* One that never stops writing to stderr is asked, and heard, all the same. */
START_TEST(endless_words)
{
	static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	char dir[32], path[64];
	struct listener l = {0};
	struct hr_err err = {0};
	struct hr_child c;

	program_of(dir, path,
	    "read -r x; " ANSWER "; yes $(printf %05000d 0) >&2 & while read -r x; do " ANSWER
	    "; done");
	hr_child_init(&c, "play", path, env);
	ck_assert_msg(hr_child_start(&c, &err) == 0, "%s", err.msg);
	l.c = &c;
	c.say = listen_on;
	c.arg = &l;
	ck_assert_int_eq(poll(&(struct pollfd){.fd = c.said, .events = POLLIN}, 1, 60000), 1);
	ask(&c, "asked", NULL, 0);
	hr_child_done(&c);
	(void)unlink(path);
	(void)rmdir(dir);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("program");
	TCase *t = tcase_create("lines");
	SRunner *r;
	int failed;

	tcase_add_loop_test(t, wrong_lines, 0, (int)(sizeof(bad) / sizeof(*bad)));
	tcase_add_loop_test(t, wrong_hellos, 0, (int)(sizeof(bad_hellos) / sizeof(*bad_hellos)));
	tcase_add_test(t, right_ones);
	tcase_add_test(t, no_secrets);
	tcase_add_test(t, too_long);
	tcase_add_test(t, ended_idle);
	tcase_add_test(t, answered_early);
	tcase_add_test(t, endless_words);
	tcase_set_timeout(t, 120);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
