/* session/prompt/hook: the texts, given to the real bash. It is interactive but has no terminal, so
 * that only the texts are tested: commands come from a file. Where it matters all is done twice, by
 * the script and by the builtin. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "shell/exports.h"
#include "session/prompt/hook.h"
#include "session/prompt/report.h"
#include "scratch.h"

#define MOST 40

static char top[80];
static struct hr_hook hook;
static int report_fd, exports_fd, ack_fd, line_fd;
static const char *module;     /* NULL: bash has none */
static struct hr_buf reported; /* the reports of the last run */

static void put_file(const char *name, const char *text);

static const char *
in_top(const char *name)
{
	static char path[200];

	(void)snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

static int
fifo(const char *path)
{
	int fd;

	ck_assert_int_eq(mkfifo(path, 0600), 0);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static void
setup(void)
{
	struct hr_err err = {0};

	/* a name that needs quoting */
	(void)snprintf(top, sizeof(top), "%s/it's \"$x\"-XXXXXX", scratch);
	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert_int_eq(hr_hook_init(&hook, top, NULL, &err), 0);
	report_fd = fifo(hook.report_path);
	exports_fd = fifo(hook.exports_path);
	ack_fd = fifo(hook.ack_path);
	line_fd = fifo(hook.line_path);
	put_file(strrchr(hook.script_path, '/') + 1, hook.script);
	module = NULL;
	hr_buf_init(&reported, 1u << 20);
}

/* For tests that are done twice. */
static void
use_module(int with)
{
	static char path[4200];
	const char *built = getenv("abs_top_builddir");

	ck_assert_ptr_nonnull(built);
	(void)snprintf(path, sizeof(path), "%s/handrail-line.so", built);
	module = with ? path : NULL;
}

/* That it was the builtin, and not the script. */
static void
check_module(void)
{
	char hello[8];
	ssize_t n = hr_fd_read(line_fd, hello, sizeof(hello));

	if (module == NULL)
		ck_assert_int_lt(n, 0);
	else
		ck_assert_msg(n >= 1 && hello[0] == HR_HOOK_LINE_HELLO[0], "not loaded");
}

static void
teardown(void)
{
	hr_buf_done(&reported);
	hr_fd_close(&report_fd);
	hr_fd_close(&exports_fd);
	hr_fd_close(&ack_fd);
	hr_fd_close(&line_fd);
	hr_hook_done(&hook);
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

static void
put_file(const char *name, const char *text)
{
	ck_assert_int_eq(hr_path_write(in_top(name), text, strlen(text), 0600, NULL), 0);
}

/* What a file holds; valid until the next call. */
static const char *
get_file(const char *name)
{
	static struct hr_buf b;

	hr_buf_done(&b);
	hr_buf_init(&b, 1u << 20);
	ck_assert_int_eq(hr_path_read(in_top(name), &b, NULL), 0);
	return hr_buf_str(&b);
}

static void
put_rcfile(const char *bashrc)
{
	HR_BUF(b, 1u << 20);

	put_file(".bashrc", bashrc);
	hr_hook_rcfile(&hook, bashrc[0] == '\0', module, &b);
	ck_assert_int_eq(b.fail, HR_OK);
	put_file("rc", b.p);
}

/* What is there of reports; each of a shell that waits is answered, the first one by *ack, which is
 * then *rest. */
static void
answer(struct hr_report_reader *reader, const char **ack, const char *rest)
{
	struct hr_report r;
	char bytes[4096];
	ssize_t n;

	while ((n = hr_fd_read(report_fd, bytes, sizeof(bytes))) > 0) {
		hr_buf_add(&reported, bytes, (size_t)n);
		hr_report_feed(reader, bytes, (size_t)n);
		for (hr_report_next(reader, &r); r.nonce != NULL; hr_report_next(reader, &r)) {
			if (r.nonce[0] == '\0')
				continue;
			ck_assert_int_eq(hr_fd_write_full(ack_fd, *ack, strlen(*ack), NULL), 0);
			*ack = rest;
		}
	}
}

static bool
has_ended(pid_t pid)
{
	siginfo_t info = {.si_pid = 0};

	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	return info.si_pid == pid;
}

/* Answers until the process has ended. */
static void
keep(pid_t pid, const char *ack, const char *rest)
{
	struct pollfd fds[2] = {{.events = POLLIN}, {.fd = report_fd, .events = POLLIN}};
	struct hr_report_reader reader;
	struct signalfd_siginfo child;
	sigset_t set, before;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	ck_assert_int_eq(sigprocmask(SIG_BLOCK, &set, &before), 0);
	fds[0].fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	ck_assert_int_ge(fds[0].fd, 0);
	hr_buf_reset(&reported);
	hr_report_reader_init(&reader);
	while (!has_ended(pid)) {
		ck_assert_int_ge(poll(fds, 2, -1), 0);
		(void)hr_fd_read(fds[0].fd, &child, sizeof(child));
		answer(&reader, &ack, rest);
	}
	answer(&reader, &ack, rest);
	hr_report_reader_done(&reader);
	hr_fd_close(&fds[0].fd);
	ck_assert_int_eq(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

/* The exit status of an interactive bash with these lines as its input; its output is in "out". The
 * first prompt gets `ack`, the others `rest`. */
static int
run_acked(const char *script, const char *ack, const char *rest)
{
	const char *const argv[] = {"bash", "--noprofile", "--rcfile", "rc", "-i", NULL};
	char home[100], *const envp[] = {home, (char *)(uintptr_t) "PATH=/usr/bin:/bin",
			    (char *)(uintptr_t) "ODD=a\nb'\"$(false)\001\\e", NULL};
	int status, in, out;
	struct hr_err err = {0};
	pid_t pid;

	put_file("script", script);
	while (hr_fd_read(ack_fd, home, sizeof(home)) > 0)
		; /* what the last one did not need */
	(void)snprintf(home, sizeof(home), "HOME=%s", top);
	in = open(in_top("script"), O_RDONLY | O_CLOEXEC);
	out = open(in_top("out"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_ge(in, 0);
	ck_assert_int_ge(out, 0);
	ck_assert_int_eq(chdir(top), 0);
	pid = hr_spawn(&(const struct hr_spawn){.path = HR_BASH_PATH,
			   .argv = argv,
			   .envp = envp,
			   .fds = (const struct hr_spawn_fd[]){{in, 0}, {out, 1}},
			   .nfds = 2,
			   .setsid = true,
			   .umask = -1},
	    &err);
	ck_assert_msg(pid > 0, "%s", err.msg);
	hr_fd_close(&in);
	hr_fd_close(&out);
	keep(pid, ack, rest);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status), "%x", status);
	return WEXITSTATUS(status);
}

static int
run(const char *script, const char *ack)
{
	return run_acked(script, ack, "\n");
}

/* For each report whether it found the hook as it should be: = or !. */
static const char *
hooks(void)
{
	static char text[MOST + 1];
	struct hr_report_reader reader;
	struct hr_report r;
	size_t n = 0;

	hr_report_reader_init(&reader);
	hr_report_feed(&reader, reported.p, reported.len);
	for (hr_report_next(&reader, &r); r.nonce != NULL && n < MOST; hr_report_next(&reader, &r))
		text[n++] = strcmp(r.hook, hook.expected) == 0 ? '=' : '!';
	text[n] = '\0';
	hr_report_reader_done(&reader);
	return text;
}

/* The exit codes of all reports, as "0 1 0 "; *last is a copy of the last one. */
static const char *
codes(struct hr_report *last)
{
	static char text[400], kept[4000];
	static struct hr_report_reader reader;
	struct hr_report r;

	hr_report_reader_done(&reader);
	hr_report_reader_init(&reader);
	hr_report_feed(&reader, reported.p, reported.len);
	text[0] = '\0';
	for (;;) {
		hr_report_next(&reader, &r);
		if (r.nonce == NULL)
			break;
		(void)snprintf(
		    text + strlen(text), sizeof(text) - strlen(text), "%d ", r.exit_code);
		if (last == NULL)
			continue;
		*last = r;
		(void)snprintf(kept, sizeof(kept), "%s", r.pwd);
		last->pwd = kept;
		ck_assert_int_eq(strcmp(r.nonce, hook.nonce) == 0 || r.nonce[0] == '\0', 1);
	}
	return text;
}

static void
check_syntax(const char *text)
{
	const char *const argv[] = {HR_BASH_PATH, "-n", in_top("syntax"), NULL};
	char told[1000];

	put_file("syntax", text);
	ck_assert_msg(hr_spawn_wait(argv, told, sizeof(told), NULL) == 0, "%s", told);
}

START_TEST(bash_can_parse_all_of_it)
{
	HR_BUF(b, 1u << 20);

	hr_hook_rcfile(&hook, false, "/a b/c'd", &b);
	check_syntax(hr_buf_str(&b));
	hr_buf_reset(&b);
	hr_hook_heal(&hook, &b);
	ck_assert_ptr_null(strchr(b.p, '\n')); /* one line */
	check_syntax(hr_buf_str(&b));
	hr_buf_reset(&b);
	hr_hook_editing(7, &b);
	check_syntax(hr_buf_str(&b));
	check_syntax(hook.prompt_command);
	check_syntax(hook.script);
	ck_assert_ptr_null(strchr(hook.prompt_command, '\n'));
	hr_buf_reset(&b);
	hr_hook_ack_source("/a b/c'd", &b);
	hr_hook_ack_snapshot(&hook, &b);
	hr_hook_ack_readline(&b);
	hr_hook_ack_nonce(&hook, &b);
	ck_assert_ptr_null(strchr(b.p, '\n'));
	check_syntax(hr_buf_str(&b));
}
END_TEST

START_TEST(an_ack_is_one_byte_or_begins_with_a_blank)
{
	HR_BUF(b, 1000);

	hr_hook_ack_begin(&b);
	hr_hook_ack_end(true, &b);
	ck_assert_str_eq(hr_buf_str(&b), "\n");
	hr_buf_reset(&b);
	hr_hook_ack_begin(&b);
	hr_hook_ack_end(false, &b);
	ck_assert_str_eq(hr_buf_str(&b), HR_HOOK_ACK_NOTHING);
	hr_buf_reset(&b);
	hr_hook_ack_begin(&b);
	hr_hook_ack_source("/x", &b);
	hr_hook_ack_end(true, &b);
	ck_assert_str_eq(hr_buf_str(&b), " \\builtin . '/x'; \\builtin __hr_line; \n");
	hr_buf_reset(&b);
	hr_hook_ack_begin(&b);
	hr_hook_ack_source("/x", &b);
	hr_hook_ack_end(false, &b);
	ck_assert_str_eq(hr_buf_str(&b), " \\builtin . '/x'; \n");
}
END_TEST

START_TEST(each_hook_is_another)
{
	struct hr_hook other;

	ck_assert_int_eq(hr_hook_init(&other, top, NULL, NULL), 0);
	ck_assert_uint_eq(strlen(other.nonce), HR_HOOK_NONCE_LEN);
	ck_assert_uint_eq(strspn(other.nonce, "0123456789abcdef"), HR_HOOK_NONCE_LEN);
	ck_assert_str_ne(other.nonce, hook.nonce);
	ck_assert_str_ne(other.report_path, hook.report_path);
	ck_assert_str_ne(other.ack_path, hook.ack_path);
	ck_assert_str_ne(other.exports_path, hook.exports_path);
	/* what child shells are told holds no secret */
	ck_assert_ptr_null(strstr(hook.prompt_command, hook.nonce));
	ck_assert_ptr_null(strstr(hook.script, hook.nonce));
	ck_assert_ptr_null(strstr(hook.report_path, hook.nonce));
	ck_assert_ptr_null(strstr(hook.prompt_command, hook.exports_path));
	ck_assert_ptr_null(strstr(hook.script, hook.exports_path));
	ck_assert_ptr_null(strstr(hook.script, hook.line_path));
	hr_hook_done(&other);
	hr_hook_done(&other);
}
END_TEST

START_TEST(every_prompt_is_reported)
{
	struct hr_report last;

	use_module(_i);
	put_rcfile("");
	ck_assert_int_eq(run("false\n(exit 7)\ncd /\nsh -c 'kill -9 $$'\n:\n", "\n"), 0);
	check_module();
	ck_assert_str_eq(codes(&last), "0 1 7 0 137 0 ");
	ck_assert_str_eq(last.pwd, "/");
	ck_assert_str_eq(last.nonce, hook.nonce);
	ck_assert_int_eq(last.job, -1);
	ck_assert_uint_eq(last.euid, geteuid());
}
END_TEST

START_TEST(the_user_sees_no_hook)
{
	use_module(_i);
	put_rcfile("");
	ck_assert_int_eq(
	    run("true | (exit 3) | true\necho ps=${PIPESTATUS[*]}\necho a b\necho u=$_\n(exit 4)\n"
		"echo s=$?\nset -u\necho $!x 2>/dev/null || :\nset +u; trap 'echo D' DEBUG\n:\n"
		"trap - DEBUG\nset -C\necho c=$-\n",
		"\n"),
	    0);
	ck_assert_str_eq(get_file("out"), "ps=0 3 0\na b\nu=b\ns=4\nD\nD\nc=hiBCs\n");
}
END_TEST

START_TEST(it_works_under_every_option)
{
	static const char *const options[] = {"set -u", "set -C", "set -x", "set -v", "set -a",
	    "set -f", "set -o posix", "set -b", "set -k", "set -E -T", "shopt -s nullglob failglob",
	    "IFS=0123456789abcdef/", "IFS=", "unset PWD OLDPWD TERM", "shopt -u promptvars",
	    "alias builtin=false printf=false test=false read=false :=false eval=false",
	    "shopt -s xpg_echo", "trap 'false' DEBUG", "trap 'echo E' ERR", "PATH=", "exec 2>&-",
	    "PS1='$ '", "readonly PS1", "PS2=x", "__hr_a=1", "LC_ALL=C", "unset __hr_b",
	    "__hr_b=(.)", "readonly __hr_b", "export __hr_b", "trap 'false' RETURN",
	    "PATH=$(head -c 9000 /dev/zero | tr '\\0' x)"};
	char script[300];
	size_t i;

	use_module(_i);
	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		(void)snprintf(script, sizeof(script), "%s\n(exit 3)\n(exit 4)\n", options[i]);
		put_rcfile("");
		(void)run(script, "\n");
		ck_assert_msg(
		    strcmp(codes(NULL), "0 0 3 4 ") == 0, "%s: %s", options[i], codes(NULL));
	}
}
END_TEST

/* What the keeper answers to a shell under set -a whose hook is not what it was. */
static const char *
rest_ack(void)
{
	static char text[1000];
	HR_BUF(b, 1u << 20);

	hr_hook_ack_restore(&b);
	hr_hook_ack_unexport(&b);
	(void)snprintf(text, sizeof(text), "%s\n", hr_buf_str(&b));
	return text;
}

START_TEST(nothing_of_ours_gets_into_the_environment)
{
	use_module(_i);
	put_rcfile("set -a");
	const char *rest = rest_ack();

	ck_assert_int_eq(run_acked("env | grep ^__hr_ | cut -c1-7\nset -a\nx=1\nenv | grep ^__hr_\n"
				   "env | grep -c ^PS0=\nenv | grep -c ^PROMPT_COMMAND=\n",
			     rest, rest),
	    0);
	ck_assert_str_eq(get_file("out"), "0\n1\n");
}
END_TEST

START_TEST(what_was_put_before_it_goes)
{
	static const char script[] =
	    "PROMPT_COMMAND=\"true; $PROMPT_COMMAND\"\nfalse\nfalse\nPS0=x\nfalse\nunset PS0\n"
	    "false\nPROMPT_COMMAND=(\"$PROMPT_COMMAND\" 'echo other')\nfalse\n";

	use_module(_i);
	put_rcfile("");
	ck_assert_int_eq(run_acked(script, "\n", rest_ack()), 1);
	ck_assert_str_eq(codes(NULL), "0 0 1 1 0 1 0 1 0 1 ");
	ck_assert_int_eq(run_acked(script, "\n", rest_ack()), 1);
	ck_assert_str_eq(hooks(), "=!==!=!=!=");
}
END_TEST

START_TEST(it_goes_on_under_set_e)
{
	use_module(_i);
	put_rcfile("");
	ck_assert_int_eq(run_acked("set -e\ntrue\nPS1='$ '\ncd /\n", "\n", rest_ack()), 0);
	ck_assert_str_eq(codes(NULL), "0 0 0 0 0 ");
}
END_TEST

START_TEST(a_changed_hook_is_told)
{
	static const char *const changes[] = {"PROMPT_COMMAND+=' '", "PROMPT_COMMAND[7]=false",
	    "PROMPT_COMMAND=([3]=\"$PROMPT_COMMAND\"); set -u", "PS0=", "unset PS0", "PS0=12345678",
	    "LC_ALL=C; PROMPT_COMMAND=\"x=; $PROMPT_COMMAND\""};
	char script[200];
	size_t i;

	use_module(_i);
	put_rcfile("");
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		(void)snprintf(script, sizeof(script), "set -u\nIFS=0:\n%s\n", changes[i]);
		(void)run(script, "\n");
		ck_assert_msg(strcmp(hooks(), "===!") == 0, "%s: %s", changes[i], hooks());
	}
}
END_TEST

/* However a line ends there is one prompt, with its status. */
START_TEST(errors_and_interrupts)
{
	use_module(_i);
	put_rcfile("");
	(void)run("echo ${x?gone}\nkill -INT $$\n)\n((1/0))\nif true; then kill -INT $$; fi\n"
		  "trap 'kill -INT $$' DEBUG; trap - DEBUG\n(exit 5)\n",
	    "\n");
	ck_assert_str_eq(codes(NULL), "0 1 130 2 1 130 130 5 ");
	check_module();
}
END_TEST

/* What users attach to every command is for theirs alone. */
START_TEST(nothing_of_a_prompt_is_seen)
{
	use_module(_i);
	put_rcfile("");
	(void)run(": a\necho $_\ntrap 'echo \"<$BASH_COMMAND>\"' DEBUG\n: b\ntrap - DEBUG\n"
		  "f() { echo f; }\nfunction read { echo read; }\nf\n",
	    "\n");
	ck_assert_str_eq(get_file("out"), "a\n<: b>\n<trap - DEBUG>\nf\n");
	check_module();
}
END_TEST

START_TEST(a_child_shell_does_not_wait)
{
	struct hr_report last;

	use_module(_i);
	put_rcfile("");
	put_file("inner", "(exit 5)\n");
	ck_assert_int_eq(run("bash --norc -i <inner 2>/dev/null\nfalse\n", "\n"), 1);
	/* the child's two prompts among ours, and no answer of ours was eaten */
	ck_assert_str_eq(codes(&last), "0 0 5 5 1 ");
}
END_TEST

/* The FIFOs are there and nobody has their other end, as after a kill of the keeper. */
START_TEST(a_keeper_that_is_gone_is_not_waited_for)
{
	const char *report = strrchr(hook.report_path, '/') + 1;
	const char *ack = strrchr(hook.ack_path, '/') + 1;
	char script[400];

	use_module(true);
	put_rcfile("");
	(void)snprintf(script, sizeof(script), "rm %s %s\nmkfifo %s %s\n(exit 4)\n", ack,
	    _i == 0 ? report : "", ack, _i == 0 ? report : "");
	ck_assert_int_eq(run(script, "\n"), 4);
	check_module();
}
END_TEST

START_TEST(a_start_up_file_of_the_user)
{
	use_module(_i);
	put_rcfile(
	    "PROMPT_COMMAND=(a b); PS0=x; set -u; alias set=false; MINE=here; TMOUT=1; false");
	ck_assert_int_eq(run("echo $MINE ${TMOUT-no}\n(exit 9)\n", "\n"), 9);
	ck_assert_str_eq(get_file("out"), "here no\n");
	ck_assert_str_eq(codes(NULL), "0 0 9 ");
}
END_TEST

static void
check_heal(const char *broken, const char *want)
{
	HR_BUF(b, 1u << 20);

	put_rcfile("");
	hr_buf_addf(&b, "%s\n", broken);
	hr_hook_heal(&hook, &b);
	hr_buf_adds(&b, "\n(exit 3)\n");
	(void)run(b.p, "\n");
	ck_assert_msg(strcmp(codes(NULL), want) == 0, "%s: %s", broken, codes(NULL));
}

START_TEST(the_builtin_removes_files)
{
	use_module(1);
	put_rcfile("");
	(void)run("mkdir d e; : >d/a; ln -s a d/b; : >d/c; : >e/a; PATH=\n"
		  "__hr_line -r d/a d/b d/c d\n__hr_line -r e/b e\ntest -d e -a ! -e d\n",
	    "\n");
	ck_assert_str_eq(codes(NULL), "0 0 0 1 0 ");
}
END_TEST

START_TEST(the_builtin_makes_a_directory)
{
	use_module(1);
	put_rcfile("");
	(void)run(": >f; PATH=; umask 777\n"
		  "__hr_line -d d\n: >d/a\n__hr_line -d d\n__hr_line -d f\n__hr_line -d n/d\n",
	    "\n");
	ck_assert_str_eq(codes(NULL), "0 0 0 0 0 1 1 ");
}
END_TEST

START_TEST(a_lost_hook_can_be_put_back)
{
	static const char lost[] = "0 6 3 ";
	/* where bash has loaded the builtin, the variable's text is not what is run */
	const char *kept = _i ? "0 6 6 3 " : lost;

	use_module(_i);
	check_heal("unset PROMPT_COMMAND; (exit 6)", lost);
	check_heal("PROMPT_COMMAND=:; PS0=; (exit 6)", kept);
	check_heal("unset __hr_n __hr_p PROMPT_COMMAND; (exit 6)", lost);
	check_heal("set -u; set -C; unset PROMPT_COMMAND; (exit 6)", lost);
	check_heal("unset -f x; builtin() { :; }; printf() { :; }; read() { :; }; eval() { :; };"
		   "export() { :; }; unset() { :; }; set() { :; }; test() { :; }; PROMPT_COMMAND=;"
		   "(exit 6)",
	    kept);
	check_heal("enable -n printf read eval export test; PROMPT_COMMAND=; (exit 6)", kept);
	check_heal("enable -n builtin; (exit 6)", kept);
	check_heal("alias unset=false export=false builtin=false; PROMPT_COMMAND=; (exit 6)", kept);
	check_heal("trap 'echo x' DEBUG; PROMPT_COMMAND=; (exit 6)", kept);
	check_heal("PROMPT_COMMAND=(: :); (exit 6)", lost);
	check_heal("readonly PS1 PS2; PROMPT_COMMAND=; (exit 6)", kept);
	check_heal("__hr_b=x; (exit 6)", kept);
	check_heal("declare -n __hr_b=PWD; PROMPT_COMMAND=; (exit 6)", kept);
	check_heal("enable -n __hr_line; __hr_b=(__hr_line); (exit 6)", kept);
	check_heal("enable -d __hr_line; __hr_b=(__hr_line); (exit 6)", kept);
}
END_TEST

START_TEST(what_cannot_be_put_back_ends_the_shell)
{
	HR_BUF(b, 1u << 20);

	use_module(_i);
	put_rcfile("");
	hr_buf_adds(&b, "PROMPT_COMMAND=; readonly PROMPT_COMMAND; (exit 6)\n");
	hr_hook_heal(&hook, &b);
	hr_buf_adds(&b, "\n(exit 3)\n");
	ck_assert_int_eq(run(b.p, "\n"), 6);
	hr_buf_reset(&b);
	hr_buf_adds(&b, "enable -d __hr_line; __hr_b=x; readonly __hr_b; (exit 7)\n");
	hr_hook_heal(&hook, &b);
	hr_buf_adds(&b, "\n(exit 3)\n");
	ck_assert_int_eq(run(b.p, "\n"), 7);
}
END_TEST

START_TEST(variables_reach_the_next_shell)
{
	HR_BUF(ack, 1u << 20);
	HR_BUF(vars, 1u << 20);
	HR_BUF(kept, 1u << 20);
	char bytes[8192];
	ssize_t n;

	use_module(_i);
	put_rcfile("");
	hr_buf_adds(&ack, "export NEW='x y' EMPTY=; export UNSET; readonly FIXED=1; export FIXED; "
			  "OWN=1; declare -ix NUMBER=7; ");
	hr_hook_ack_snapshot(&hook, &ack);
	hr_buf_adds(&ack, "\n");
	ck_assert_int_eq(run(":\n", ack.p), 0);
	while ((n = hr_fd_read(exports_fd, bytes, sizeof(bytes))) > 0)
		hr_buf_add(&vars, bytes, (size_t)n);
	ck_assert_uint_gt(vars.len, 0);
	ck_assert_ptr_eq(memchr(vars.p, '\0', vars.len), vars.p + vars.len - 1);
	hr_exports_keep(vars.p, vars.len - 1, &kept);
	ck_assert_ptr_null(strstr(hr_buf_str(&kept), "PROMPT_COMMAND"));
	put_file("exports", hr_buf_str(&kept));
	hr_buf_reset(&ack);
	hr_hook_ack_source(in_top("exports"), &ack);
	hr_buf_adds(&ack, "\n");
	ck_assert_int_eq(run("printf '%q\\n' \"$ODD\" \"$NEW\" \"${EMPTY-none}\" ${OWN-none}\n"
			     "NUMBER+=1; FIXED+=2; echo $NUMBER $FIXED\n(exit 2)\n",
			     ack.p),
	    2);
	ck_assert_str_eq(
	    get_file("out"), "$'a\\nb\\'\"$(false)\\001\\\\e'\nx\\ y\n''\nnone\n8 12\n");
	ck_assert_str_eq(codes(NULL), "0 0 0 2 ");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("hook");
	TCase *tc = tcase_create("hook");
	SRunner *sr;
	int failed;

	tcase_add_unchecked_fixture(tc, scratch_make, scratch_remove);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, bash_can_parse_all_of_it);
	tcase_add_test(tc, an_ack_is_one_byte_or_begins_with_a_blank);
	tcase_add_test(tc, each_hook_is_another);
	tcase_add_loop_test(tc, every_prompt_is_reported, 0, 2);
	tcase_add_loop_test(tc, the_user_sees_no_hook, 0, 2);
	tcase_add_loop_test(tc, it_works_under_every_option, 0, 2);
	tcase_add_loop_test(tc, nothing_of_ours_gets_into_the_environment, 0, 2);
	tcase_add_loop_test(tc, what_was_put_before_it_goes, 0, 2);
	tcase_add_loop_test(tc, it_goes_on_under_set_e, 0, 2);
	tcase_add_loop_test(tc, a_changed_hook_is_told, 0, 2);
	tcase_add_loop_test(tc, errors_and_interrupts, 0, 2);
	tcase_add_loop_test(tc, nothing_of_a_prompt_is_seen, 0, 2);
	tcase_add_loop_test(tc, a_child_shell_does_not_wait, 0, 2);
	tcase_add_loop_test(tc, a_keeper_that_is_gone_is_not_waited_for, 0, 2);
	tcase_add_loop_test(tc, a_start_up_file_of_the_user, 0, 2);
	tcase_add_test(tc, the_builtin_removes_files);
	tcase_add_test(tc, the_builtin_makes_a_directory);
	tcase_add_loop_test(tc, a_lost_hook_can_be_put_back, 0, 2);
	tcase_add_loop_test(tc, what_cannot_be_put_back_ends_the_shell, 0, 2);
	tcase_add_loop_test(tc, variables_reach_the_next_shell, 0, 2);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
