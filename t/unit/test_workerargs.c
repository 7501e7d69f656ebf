/* proto/workerargs: what handraild writes is what the worker reads. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proto/workerargs.h"

static const struct hr_worker_option *
find(const char *name)
{
	size_t i;

	for (i = 0; i < hr_worker_options_n; i++) {
		if (strcmp(hr_worker_options[i].name, name) == 0)
			return &hr_worker_options[i];
	}
	ck_abort_msg("no option %s", name);
	return NULL;
}

static void
read_back(const struct hr_worker_argv *v, struct hr_worker_args *ret)
{
	const struct hr_worker_option *o;
	struct hr_err err = {0};
	size_t i;

	*ret = (struct hr_worker_args)HR_WORKER_ARGS_NONE;
	ck_assert_str_eq(v->v[0], "handrail-worker");
	for (i = 1; v->v[i] != NULL; i++) {
		o = find(v->v[i]);
		if (o->value != NULL)
			i++;
		ck_assert_ptr_nonnull(v->v[i]);
		ck_assert_int_eq(hr_worker_args_set(ret, o, v->v[i], &err), 0);
	}
	ck_assert_uint_eq(i, v->n);
	ck_assert_int_eq(hr_worker_args_check(ret, &err), 0);
}

START_TEST(all_of_them)
{
	const struct hr_worker_args a = {.pool = "p",
	    .run_dir = "r",
	    .work_dir = "w",
	    .libexec_dir = "l",
	    .office_converter = "o",
	    .network_log = "n",
	    .journal = "j",
	    .hidden = {"h1", "h2", "h3", "h4"},
	    .slot = 1,
	    .max_requests = 2,
	    .unpack_bytes = 3,
	    .unpack_entries = 4,
	    .user_id = 5,
	    .edge_uid = 6,
	    .edge_gid = 7,
	    .shell_uid = 8,
	    .journal_entries = 9,
	    .journal_bytes = 10,
	    .journal_age = 11,
	    .page_rights = "look",
	    .page_lifetime = 12,
	    .journal_sync = true,
	    .journal_required = true};
	struct hr_worker_args b;
	struct hr_worker_argv v;

	hr_worker_args_write(&a, &v);
	/* all that the table has; a flag has no value */
	ck_assert_uint_eq(v.n, 1 + 2 * (hr_worker_options_n - 2) + 2 * (HR_WORKER_HIDDEN - 1) + 2);
	read_back(&v, &b);
	ck_assert_str_eq(b.pool, "p");
	ck_assert_str_eq(b.run_dir, "r");
	ck_assert_str_eq(b.work_dir, "w");
	ck_assert_str_eq(b.libexec_dir, "l");
	ck_assert_str_eq(b.office_converter, "o");
	ck_assert_str_eq(b.journal, "j");
	ck_assert_str_eq(b.page_rights, "look");
	ck_assert_uint_eq(b.page_lifetime, 12);
	ck_assert_str_eq(b.hidden[0], "h1");
	ck_assert_str_eq(b.hidden[3], "h4");
	ck_assert(memcmp(&a.slot, &b.slot,
		      offsetof(struct hr_worker_args, journal_age) -
			  offsetof(struct hr_worker_args, slot) + sizeof(a.journal_age)) == 0);
	ck_assert(b.journal_sync && b.journal_required);
}
END_TEST

/* What is not given stays as it was, and 0 is a number. */
START_TEST(as_few_as_may_be)
{
	const struct hr_worker_args a = {.pool = "p",
	    .run_dir = "r",
	    .work_dir = "w",
	    .libexec_dir = "l",
	    .office_converter = "",
	    .hidden = {"", "h"},
	    .edge_uid = HR_WORKER_UNKNOWN,
	    .edge_gid = 0};
	struct hr_worker_args b;
	struct hr_worker_argv v;

	hr_worker_args_write(&a, &v);
	read_back(&v, &b);
	ck_assert_ptr_null(b.office_converter);
	ck_assert_ptr_null(b.journal);
	ck_assert_str_eq(b.hidden[0], "h");
	ck_assert_ptr_null(b.hidden[1]);
	ck_assert_uint_eq(b.edge_uid, HR_WORKER_UNKNOWN);
	ck_assert_uint_eq(b.edge_gid, 0);
	ck_assert_uint_eq(b.shell_uid, 0);
	ck_assert(!b.journal_sync && !b.journal_required);
}
END_TEST

START_TEST(wrong_ones)
{
	static const struct {
		const char *name, *text;
	} rows[] = {{"--slot", "100000"}, {"--slot", ""}, {"--slot", "-1"}, {"--slot", "1x"},
	    {"--user-id", "4294967295"}, {"--max-requests", "99999999999999999999999"}};
	struct hr_worker_args a = HR_WORKER_ARGS_NONE;
	struct hr_err err = {0};
	int i;

	ck_assert_int_eq(hr_worker_args_check(&a, &err), -1);
	ck_assert_str_eq(err.msg, "--pool is needed");
	ck_assert_int_eq(hr_worker_args_set(&a, find(rows[_i].name), rows[_i].text, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "is not a number up to"));
	for (i = 0; i < HR_WORKER_HIDDEN; i++)
		ck_assert_int_eq(hr_worker_args_set(&a, find("--hide"), "f", &err), 0);
	ck_assert_int_eq(hr_worker_args_set(&a, find("--hide"), "f", &err), -1);
	ck_assert_str_eq(err.msg, "at most 4 files can be hidden");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("workerargs");
	TCase *tc = tcase_create("workerargs");
	SRunner *sr;
	int failed;

	tcase_add_test(tc, all_of_them);
	tcase_add_test(tc, as_few_as_may_be);
	tcase_add_loop_test(tc, wrong_ones, 0, 6);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
