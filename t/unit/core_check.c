/* Shared by the tests of the core. */
#include "config.h"

#include "core_check.h"

#include <check.h>
#include <stdio.h>

struct fake f;

void
core_setup(void)
{
	fake_init(&f);
	fake_start(&f);
	fake_forget(&f);
}

void
core_teardown(void)
{
	fake_done(&f);
}

void
check_result(unsigned n, const char *content, const char *prefix, const char *suffix)
{
	ck_assert_uint_eq(f.results, n);
	ck_assert_str_eq(f.last.content, content);
	ck_assert_str_eq(f.last.prefix, prefix);
	ck_assert_str_eq(f.last.suffix, suffix);
	ck_assert(!f.last.is_error);
}

void
check_no_metadata(void)
{
	ck_assert(!f.last.has_metadata);
	ck_assert_int_eq(f.last.exit_code, -1);
	ck_assert_int_eq(f.last.job, -1);
	ck_assert_str_eq(f.last.working_dir, "");
}

void
check_completed(unsigned n, const char *content, int exit_code)
{
	char suffix[100];

	(void)snprintf(
	    suffix, sizeof(suffix), "\n[The command completed with exit code %d.]", exit_code);
	check_result(n, content, "", suffix);
	ck_assert(f.last.has_metadata);
	ck_assert_int_eq(f.last.exit_code, exit_code);
	ck_assert_str_eq(f.last.username, "me");
	ck_assert_str_eq(f.last.hostname, "box");
	ck_assert_str_eq(f.last.working_dir, "/w");
	ck_assert_str_eq(f.last.py_path, "/usr/bin/python");
}

void
leave_running(const char *shown)
{
	ASK(&f, "long");
	fake_begin(&f);
	fake_out(&f, shown);
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	ck_assert_uint_eq(f.results, f.requests);
	ck_assert(!f.last.has_metadata);
	ck_assert(hr_core_running(f.core));
}

void
check_nothing_typed(void)
{
	ck_assert_msg(f.typed.len == 0, "typed: %s", hr_buf_str(&f.typed));
}
