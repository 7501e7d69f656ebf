/* The parts of the dialect of E2B that read foreign bytes, with each of their allocations failing
 * in turn: they report it and (under a sanitizer or valgrind) lose nothing, and no request is made
 * for another user than the one it names. */
#include "config.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/fd.h"
#include "e2b/connect.h"
#include "e2b/entry.h"
#include "e2b/gzip.h"
#include "e2b/path.h"
#include "e2b/setup.h"
#include "e2b/who.h"
#include "fuse.h"
#include "lines.h"
#include "plugins/envd/calls.h"
#include "plugins/envd/record.h"
#include "proto/json.h"
#include "scratch.h"

/* Check's own assertions allocate memory. */
#define must(x)                                                                                    \
	do {                                                                                       \
		if (!(x))                                                                          \
			abort();                                                                   \
	} while (0)

/* Calls `attempt` until no allocation of it fails; it returns false after a failure that it
 * reports. */
static void
with_each_failure(const char *name, bool (*attempt)(void), long least)
{
	bool done = false;
	long n;

	for (n = 0; !done; n++) {
		fuse = n;
		done = attempt();
		ck_assert_msg(done == (fuse >= 0), "%s, allocation %ld: %s", name, n,
		    done ? "its failure was ignored" : "it did not fail");
		fuse = -1;
	}
	ck_assert_int_ge(n, least);
}

static bool
read_message(void)
{
	static const char text[] = "{\"process\":{\"pid\":7},\"input\":{\"stdin\":\"aGk=\"}}";
	struct hr_connect_error e = {.code = HR_CONNECT_OK};
	struct json_object *o;
	struct hr_span bytes;

	if (hr_message_read(&envd_send_request, hr_span_of(text), &o, &e) != 0) {
		must(o == NULL && e.code != HR_CONNECT_OK);
		return false;
	}
	bytes = hr_json_span_or(hr_json_at(o, "input"), "stdin", NULL);
	must(hr_span_equal(bytes, hr_span_of("hi")));
	json_object_put(o);
	return true;
}

static int
on_frame(void *arg, unsigned flags, const char *p, size_t len)
{
	must(flags == 0 && len == 2 && memcmp(p, "{}", 2) == 0);
	++*(int *)arg;
	return 0;
}

static bool
read_frames(void)
{
	static const char bytes[] = "\0\0\0\0\2{}\0\0\0\0\2{}";
	struct hr_connect c;
	struct hr_err err = {0};
	int seen = 0, r;

	hr_connect_init(&c, on_frame, &seen);
	r = hr_connect_feed(&c, bytes, sizeof(bytes) - 1, &err);
	hr_connect_done(&c);
	must(r == 0 ? seen == 2 : err.code == HR_E_NOMEM);
	return r == 0;
}

static bool
pack(void)
{
	static const char text[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	HR_BUF(packed, 1u << 20);
	HR_BUF(plain, 1u << 20);

	if (hr_gzip(&packed, hr_span_of(text)) != 0 ||
	    hr_gunzip(&plain, hr_span_of_buf(&packed)) != 0)
		return false;
	must(strcmp(hr_buf_str(&plain), text) == 0);
	return true;
}

static bool
keep_record(void)
{
	static char program[] = "/bin/sh", variable[] = "A=b";
	char *const argv[] = {program, NULL}, *const env[] = {variable, NULL};
	const struct envd_record given = {
	    .argv = argv, .env = env, .config = hr_span_of("{}"), .tag = hr_span_of("t")};
	HR_BUF(b, 4096);
	struct envd_record r;
	void *store;

	envd_record_put(&b, &given);
	if (b.fail != HR_OK)
		return false;
	if (envd_record_get(&r, hr_span_of_buf(&b), &store) != 0) {
		must(store == NULL);
		return false;
	}
	must(strcmp(r.argv[0], program) == 0);
	free(store);
	return true;
}

static bool
find_user(void)
{
	const struct hr_e2b_setup setup = {.user = "root"};
	const struct passwd *pw = getpwnam("nobody");
	uid_t nobody = pw != NULL ? pw->pw_uid : 0;
	struct hr_e2b_who who;
	HR_BUF(name, 100);
	bool found;

	must(hr_e2b_who_named("Basic bm9ib2R5Og==", &name)); /* "nobody:" */
	found = hr_e2b_who_find(&who, hr_buf_str(&name), &setup, 0);
	if (found) {
		must(who.uid == nobody);
		must(strcmp(who.name, "nobody") == 0);
	}
	hr_e2b_who_done(&who);
	return found;
}

static bool
clean_path(void)
{
	struct hr_e2b_who who = {.name = (char[]){"u"}, .home = (char[]){"/home/u"}};
	HR_BUF(path, 4096);
	HR_BUF(why, 4096);

	if (hr_e2b_path(&path, hr_span_of("~/a/../b"), &who, NULL, &why) != 0 || path.fail != HR_OK)
		return false;
	must(strcmp(hr_buf_str(&path), "/home/u/b") == 0);
	return true;
}

static bool
read_setup(void)
{
	HR_CLEAN(hr_e2b_setup_done) struct hr_e2b_setup s = {0};
	HR_PUT struct json_object *variables = NULL;
	struct hr_err err = {0};

	if (hr_e2b_setup_read(&s, scratch, &err) != 0) {
		must(s.doc == NULL && s.user == NULL && err.code != HR_OK);
		return false;
	}
	must(strcmp(s.user, "u") == 0);
	variables = hr_e2b_setup_variables(&s, &err);
	if (variables == NULL)
		return false;
	must(strcmp(hr_json_text_at(variables, "A"), "b") == 0);
	return true;
}

static bool
put_entry(void)
{
	HR_CLOSE int fd = open("/etc", O_PATH | O_CLOEXEC);
	HR_BUF(b, 65536);

	if (hr_e2b_entry_put(&b, "/etc", fd, -1) != 0 || b.fail != HR_OK)
		return false;
	must(strstr(hr_buf_str(&b), "FILE_TYPE_DIRECTORY") != NULL);
	return true;
}

START_TEST(foreign_bytes)
{
	with_each_failure("read_message", read_message, 1);
	with_each_failure("read_frames", read_frames, 2);
	with_each_failure("pack", pack, 3);
	with_each_failure("keep_record", keep_record, 4);
	with_each_failure("find_user", find_user, 4);
	with_each_failure("clean_path", clean_path, 2);
	with_each_failure("put_entry", put_entry, 2);
}
END_TEST

START_TEST(setup)
{
	HR_PUT struct json_object *doc =
	    json_tokener_parse("{\"defaultUser\":\"u\",\"envVars\":{\"A\":\"b\"}}");
	struct hr_err err = {0};

	scratch_make();
	ck_assert_int_eq(hr_e2b_setup_write(scratch, doc, geteuid(), &err), 0);
	with_each_failure("read_setup", read_setup, 3);
	scratch_remove();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("e2b_nomem");
	TCase *t = tcase_create("nomem");

	tcase_add_test(t, foreign_bytes);
	tcase_add_test(t, setup);
	suite_add_tcase(s, t);
	return lines_run(s);
}
