/* Runs the scenarios of a driver. For each kind of failure: once without one, to count the places,
 * then once for each place, or for FAULT_MAX of them chosen by FAULT_SEED. What must hold:
 *
 *   - no crash, no hang;
 *   - either an error with a code and a text, or the same result as without the failure;
 *   - EINTR and short calls change nothing at all;
 *   - no memory and no descriptor is lost;
 *   - nothing that the scenario calls wrong. */
#include "config.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/path.h"
#include "failcalls.h"
#include "fault.h"

#define TOLD_MAX 65536
#define SECONDS 60 /* for one run: then it hangs */
#define SHOWN 5    /* complaints of one kind */

/* Shared with the process of a run. */
struct outcome {
	bool finished;
	int result;
	struct hr_err err;
	long calls, lost_memory, lost_fds;
	char wrong[200];
	size_t told_len;
	char told[TOLD_MAX];
};

static struct outcome *now;
static struct outcome normal;
static char dir[64];
static unsigned tests, failed_tests;

void
fault_tell_bytes(const void *p, size_t len)
{
	if (len > sizeof(now->told) - now->told_len)
		len = sizeof(now->told) - now->told_len;
	if (len > 0)
		memcpy(now->told + now->told_len, p, len);
	now->told_len += len;
}

void
fault_tell(const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fault_tell_bytes(text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

void
fault_wrong(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(now->wrong, sizeof(now->wrong), fmt, ap);
	va_end(ap);
}

const char *
fault_dir(void)
{
	return dir;
}

static long
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	long n = 0;

	while (d != NULL && readdir(d) != NULL)
		n++;
	if (d != NULL)
		(void)closedir(d);
	return n;
}

static void
make_dir(void)
{
	const char *tmp = getenv("TMPDIR");

	(void)snprintf(dir, sizeof(dir), "%.40s/fault.XXXXXX", tmp != NULL ? tmp : "/tmp");
	if (mkdtemp(dir) == NULL) {
		perror(dir);
		exit(99);
	}
}

/* The kernel ends this process then: a hanging one may have blocked every signal that can be. A
 * child that is forked does not have the timer. */
static timer_t
end_after(time_t seconds)
{
	struct sigevent how = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	const struct itimerspec when = {.it_value = {.tv_sec = seconds}};
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &how, &timer) != 0 ||
	    timer_settime(timer, 0, &when, NULL) != 0) {
		perror("timer");
		exit(99);
	}
	return timer;
}

static void
run(const struct fault_scenario *s, enum failcalls_kind kind, long at)
{
	long memory, fds;

	memset(now, 0, sizeof(*now));
	fds = open_fds();
	memory = failcalls_live();
	failcalls_arm(kind, at);
	now->result = s->run(&now->err);
	now->calls = failcalls_disarm();
	now->lost_memory = failcalls_live() - memory;
	now->lost_fds = open_fds() - fds;
	now->finished = true;
}

/* The wait status. */
static int
run_apart(const struct fault_scenario *s, enum failcalls_kind kind, long at)
{
	pid_t pid;
	int status;

	now->finished = false;
	make_dir();
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		(void)end_after(SECONDS);
		run(s, kind, at);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		perror("engine");
		exit(99);
	}
	(void)hr_path_remove(dir, NULL);
	return status;
}

/* What is wrong with a run; NULL: nothing. */
static const char *
complaint(
    const struct fault_scenario *s, enum failcalls_kind kind, int status, char *text, size_t cap)
{
	bool same = now->result == normal.result && now->told_len == normal.told_len &&
		    memcmp(now->told, normal.told, now->told_len) == 0;

	if (WIFSIGNALED(status))
		(void)snprintf(text, cap, "%s (signal %d)",
		    WTERMSIG(status) == SIGKILL ? "hangs" : "crash", WTERMSIG(status));
	else if (!now->finished)
		(void)snprintf(text, cap, "exit %d in the middle", WEXITSTATUS(status));
	else if (now->wrong[0] != '\0')
		(void)snprintf(text, cap, "%.100s (result %d, \"%.200s\")", now->wrong, now->result,
		    now->err.msg);
	else if (now->lost_memory != 0)
		(void)snprintf(text, cap, "%ld blocks of memory lost (result %d, \"%.200s\")",
		    now->lost_memory, now->result, now->err.msg);
	else if (now->lost_fds != 0)
		(void)snprintf(text, cap, "%ld descriptors lost (result %d, \"%.200s\")",
		    now->lost_fds, now->result, now->err.msg);
	else if (kind >= FAILCALLS_INTR && !same)
		(void)snprintf(
		    text, cap, "another result: %d, \"%.200s\"", now->result, now->err.msg);
	else if (now->result != 0 && (now->err.code == HR_OK || now->err.msg[0] == '\0'))
		(void)snprintf(text, cap, "result %d without an error", now->result);
	else if (now->result == 0 && !same && (s->flags & FAULT_LOSSY) == 0)
		(void)snprintf(text, cap, "said 0, but with another result: \"%.200s\"", now->told);
	else
		return NULL;
	return text;
}

static uint64_t
mixed(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
	return z ^ (z >> 31);
}

static long
number(const char *name, long fallback)
{
	const char *text = getenv(name);

	return text != NULL && text[0] != '\0' ? strtol(text, NULL, 10) : fallback;
}

static void
report(bool ok, const char *fmt, ...)
{
	va_list ap;

	tests++;
	failed_tests += !ok;
	printf("%sok %u - ", ok ? "" : "not ", tests);
	va_start(ap, fmt);
	(void)vprintf(fmt, ap);
	va_end(ap);
	(void)putchar('\n');
}

static void
fail_each(const struct fault_scenario *s, enum failcalls_kind kind, long max, long seed)
{
	static const char *const names[] = {"memory", "system calls", "EINTR", "short calls"};
	char text[512], why[256] = "";
	unsigned bad = 0;
	long i, at, places = normal.calls, tried = places < max ? places : max;
	int status;

	for (i = 0; i < tried; i++) {
		/* one from each of `tried` equal parts */
		long from = places * i / tried, to = places * (i + 1) / tried;

		at = 1 + from +
		     (long)(mixed((uint64_t)seed * 1000003U + (uint64_t)i) % (uint64_t)(to - from));
		status = run_apart(s, kind, at);
		if (complaint(s, kind, status, text, sizeof(text)) == NULL)
			continue;
		if (bad++ < SHOWN)
			printf("# %s, %s, call %ld: %s\n", s->name, names[kind], at, text);
	}
	if (tried < places)
		(void)snprintf(why, sizeof(why), " (FAULT_SEED=%ld)", seed);
	report(bad == 0, "%s: %s: %ld of %ld places%s, %u wrong", s->name, names[kind], tried,
	    places, why, bad);
}

static void
play(const struct fault_scenario *s, long max, long seed)
{
	static char text[512];
	enum failcalls_kind kind;
	timer_t timer;
	int status;

	/* what libc and the libraries keep for good is made here; should it hang, this is the last
	 * that is told */
	printf("# %s\n", s->name);
	(void)fflush(stdout);
	make_dir();
	timer = end_after(SECONDS);
	run(s, FAILCALLS_ALLOC, 0);
	(void)timer_delete(timer);
	(void)hr_path_remove(dir, NULL);
	if (now->result != 0) {
		report(false, "%s: fails by itself: %s", s->name, now->err.msg);
		printf("# told: %.*s\n", (int)now->told_len, now->told);
		return;
	}
	for (kind = 0; kind < FAILCALLS_KINDS; kind++) {
		if (kind != FAILCALLS_ALLOC && (s->flags & FAULT_MEMORY_ONLY) != 0)
			continue;
		status = run_apart(s, kind, 0);
		normal = *now;
		if (complaint(s, kind, status, text, sizeof(text)) != NULL)
			report(false, "%s without a failure: %s", s->name, text);
		else if (normal.calls > 0)
			fail_each(s, kind, max, seed);
	}
}

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Puts `text` before what the variable has. */
static int
put_before(const char *variable, const char *text)
{
	const char *old = getenv(variable);
	char all[2 * PATH_MAX];
	int n = snprintf(all, sizeof(all), "%s%s%s", text, old != NULL && old[0] != '\0' ? ":" : "",
	    old != NULL ? old : "");

	return n < (int)sizeof(all) ? setenv(variable, all, 1) : -1;
}

/* Again, with the library before libc. */
static int
preload(char **argv)
{
	const char *top = getenv("abs_top_builddir");
	char path[PATH_MAX];
	ssize_t n;

	(void)snprintf(
	    path, sizeof(path), "%s/t/fault/.libs/failcalls.so", top != NULL ? top : ".");
	if (access(path, R_OK) != 0) {
		printf("Bail out! %s is missing\n", path);
		return 99;
	}
	/* valgrind is there already, and wants to stay */
	if (put_before("LD_PRELOAD", path) != 0)
		return 99;
	/* freed memory is spoilt; the sanitizer knows it anyway, but wants to be the first one */
	if (SANITIZED ? put_before("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0") != 0
		      : setenv("GLIBC_TUNABLES", "glibc.malloc.perturb=165", 1) != 0)
		return 99;
	/* by its name: under valgrind the link itself leads to valgrind */
	n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	(void)execv(path, argv);
	perror(path);
	return 99;
}

int
main(int argc, char **argv)
{
	const struct fault_scenario *s;
	long max = number("FAULT_MAX", 60), seed = number("FAULT_SEED", 1);

	if (failcalls_arm == NULL) {
		const char *loaded = getenv("LD_PRELOAD");

		if (loaded == NULL || strstr(loaded, "failcalls.so") == NULL)
			return preload(argv);
		printf("Bail out! failcalls.so was not loaded\n");
		return 99;
	}
	(void)unsetenv("LD_PRELOAD");
	(void)signal(SIGPIPE, SIG_IGN);
	now = mmap(NULL, sizeof(*now), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (now == MAP_FAILED)
		return 99;
	for (s = fault_scenarios; s->name != NULL; s++) {
		if (argc < 2 || strcmp(argv[1], s->name) == 0)
			play(s, max, seed);
	}
	if (tests == 0)
		report(
		    false, "no call was seen: failcalls.so stands behind another one's malloc()?");
	printf("1..%u\n", tests);
	return failed_tests == 0 ? 0 : 1;
}
