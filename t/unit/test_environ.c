/* session/environ: what a shell starts with is what `su USER -` would leave, less what is ours. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/environ.h"
#include "session/shellproc.h"

static char name[] = "someone", home[] = "/home/someone";

/* The value of a variable that must be there once; NULL: it is not there. */
static const char *
value(char *const *list, const char *var)
{
	const char *found = NULL;
	size_t n = strlen(var);

	for (; *list != NULL; list++) {
		if (strncmp(*list, var, n) != 0 || (*list)[n] != '=')
			continue;
		ck_assert_msg(found == NULL, "%s twice", var);
		found = *list + n + 1;
	}
	return found;
}

static size_t
count(char *const *list)
{
	size_t n = 0;

	while (list[n] != NULL)
		n++;
	return n;
}

/* Ends with the next one, or with the program. */
static char **
for_user(const char *const *ours, bool login, uid_t uid)
{
	const struct hr_shell_user u = {
	    .name = name, .home = home, .uid = uid, .change = login && uid != 0, .login = login};
	static struct hr_strv list;
	struct hr_err err = {0};

	hr_strv_done(&list);
	ck_assert_int_eq(
	    hr_environ_for_shell(&list, (char *const *)ours, &u, "/bin/bash", &err), 0);
	return list.v;
}

START_TEST(another_user)
{
	const char *ours[] = {
	    "PATH=/bin", "HOME=/root", "SHELL=/bin/sh", "USER=root", "LANG=C", NULL};
	char **list = for_user(ours, true, 1000);

	ck_assert_str_eq(value(list, "HOME"), home);
	ck_assert_str_eq(value(list, "SHELL"), "/bin/bash");
	ck_assert_str_eq(value(list, "USER"), name);
	ck_assert_str_eq(value(list, "LOGNAME"), name);
	ck_assert_str_eq(value(list, "PATH"), "/bin");
	ck_assert_str_eq(value(list, "LANG"), "C");
	ck_assert_uint_eq(count(list), 7); /* TERM and no more */
}
END_TEST

START_TEST(root_has_no_user_set)
{
	const char *ours[] = {"USER=x", "HOME=/", NULL}, *none[] = {NULL};
	char **list = for_user(ours, true, 0);

	ck_assert_str_eq(value(list, "USER"), "x");
	ck_assert_ptr_null(value(list, "LOGNAME"));
	ck_assert_str_eq(value(list, "HOME"), home);
	list = for_user(none, true, 0);
	ck_assert_str_eq(value(list, "HOME"), home);
	ck_assert_ptr_null(value(list, "USER"));
}
END_TEST

START_TEST(who_stays_keeps_everything)
{
	const char *ours[] = {"HOME=/elsewhere", "SHELL=/bin/sh", NULL};
	char **list = for_user(ours, false, 1000);

	ck_assert_str_eq(value(list, "HOME"), "/elsewhere");
	ck_assert_str_eq(value(list, "SHELL"), "/bin/sh");
	ck_assert_uint_eq(count(list), 3);
	/* root, too */
	list = for_user(ours, false, 0);
	ck_assert_str_eq(value(list, "HOME"), "/elsewhere");
	ck_assert_str_eq(value(list, "SHELL"), "/bin/sh");
}
END_TEST

START_TEST(ours_is_not_theirs)
{
	const char *ours[] = {"SESSION_API_KEY=s", "HANDRAIL_X=1", "NOTIFY_SOCKET=/n",
	    "LISTEN_FDS=1", "LISTEN_PID=2", "LISTEN_FDNAMES=x", "WATCHDOG_USEC=1", "WATCHDOG_PID=1",
	    "TMUX=a,b", "TMUX_PANE=%1", "TERM=dumb", "TERM_PROGRAM=tmux", "TERM_PROGRAM_VERSION=3",
	    "COLUMNS=80", "LINES=24", "PROMPT_COMMAND=x", "PS0=x", "PS1=x", "PS2=x", "BASH_ENV=/x",
	    "POSIXLY_CORRECT=", "SHELLOPTS=posix", "BASHOPTS=extdebug", "BASH_XTRACEFD=2", "PWD=/x",
	    "OLDPWD=/y", "SHLVL=3", "_=/bin/x", "__hr_n=0", "__hr_b=x", "__hr_p=x", NULL};
	char **list = for_user(ours, false, 1000);

	ck_assert_uint_eq(count(list), 1);
	ck_assert_ptr_nonnull(value(list, "TERM"));
	ck_assert_str_ne(value(list, "TERM"), "dumb");
}
END_TEST

START_TEST(names_that_only_begin_alike_stay)
{
	const char *ours[] = {"LISTEN_ADDR=0.0.0.0", "LISTEN_PORT=80", "WATCHDOG_INTERVAL=3",
	    "TMUXP=1", "TERMINFO=/x", "PS10=x", "PWDX=1", "LINES_MAX=3", "SESSION_API_KEYS=x",
	    "MAINPIDS=1", "BASH_FUNC_f%%=() { :; }", "strange", "=", NULL};
	char **list = for_user(ours, false, 1000);
	size_t i;

	ck_assert_uint_eq(count(list), sizeof(ours) / sizeof(ours[0]));
	for (i = 0; ours[i] != NULL; i++)
		ck_assert_str_eq(list[i], ours[i]);
}
END_TEST

START_TEST(the_terminal_is_described_where_programs_look)
{
	static const char *const dirs[] = {
	    "/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo", "/usr/lib/terminfo"};
	const char *none[] = {NULL};
	char **list = for_user(none, false, 1000);
	const char *term = value(list, "TERM");
	char path[200];
	bool found = strcmp(term, "vt100") == 0; /* the last resort */
	size_t i;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%c/%s", dirs[i], term[0], term);
		found = found || access(path, R_OK) == 0;
	}
	ck_assert_msg(found, "%s", term);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("environ");
	TCase *tc = tcase_create("environ");
	SRunner *sr;
	int failed;

	tcase_add_test(tc, another_user);
	tcase_add_test(tc, root_has_no_user_set);
	tcase_add_test(tc, who_stays_keeps_everything);
	tcase_add_test(tc, ours_is_not_theirs);
	tcase_add_test(tc, names_that_only_begin_alike_stay);
	tcase_add_test(tc, the_terminal_is_described_where_programs_look);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
