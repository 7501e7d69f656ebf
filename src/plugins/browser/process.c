/* Manages Chromium's process, and the bytes to and from it. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "plugins/browser/browser.h"
#include "plugins/browser/browser_int.h"

#define START_MS 60000
#define READ_STEP (256u << 10)
#define READS_A_TURN 16
#define OUT_MAX (64u << 20)
#define ARGS_MAX 64
#define MIB (1u << 20)

extern char **environ;

/* Options that make a page behave as in a window with a user, and prevent network traffic that no
 * page asked for. */
static const char *const usual[] = {
    "--headless",
    "--remote-debugging-pipe",
    "--no-startup-window",
    "--window-size=1280,720",
    "--hide-scrollbars",
    "--mute-audio",
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,"
    "availablePointerTypes=4",
    "--force-color-profile=srgb",
    "--lang=en-US",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-field-trial-config",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-back-forward-cache",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-hang-monitor",
    "--disable-ipc-flooding-protection",
    "--disable-popup-blocking",
    "--disable-prompt-on-repost",
    "--disable-sync",
    "--disable-search-engine-choice-screen",
    "--disable-features=AcceptCHFrame,AvoidUnnecessaryBeforeUnloadCheckSync,"
    "DestroyProfileOnBrowserClose,DialMediaRouteProvider,GlobalMediaControls,HttpsUpgrades,"
    "LensOverlay,MediaRouter,PaintHolding,ThirdPartyStoragePartitioning,Translate,"
    "OptimizationHints",
    "--allow-pre-commit-input",
    "--enable-automation",
    "--export-tagged-pdf",
    "--metrics-recording-only",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-service-autorun",
    "--password-store=basic",
    "--use-mock-keychain",
};

static void
fail(struct browser *b, const char *why)
{
	if (b->gone)
		return;
	b->gone = true;
	(void)snprintf(b->why, sizeof(b->why), "%s", why);
	hr_log(HR_LOG_WARNING, "%s", why);
	hr_watch_drop(&b->reading);
	hr_watch_drop(&b->writing);
	br_cast_follow(b);
	hr_loop_stop(b->loop);
}

static void
on_readable(void *arg)
{
	struct browser *b = arg;
	int i;

	hr_loop_stop(b->loop);
	for (i = 0; i < READS_A_TURN && !b->gone; i++) {
		char *p = hr_buf_reserve(&b->in, READ_STEP);
		ssize_t n;

		if (p == NULL) {
			fail(b, "out of memory for Chromium's messages");
			return;
		}
		n = hr_fd_read(b->from, p, READ_STEP);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			fail(b, "Chromium has ended");
			return;
		}
		hr_buf_grew(&b->in, (size_t)n);
		br_take(b);
	}
}

static void
on_writable(void *arg)
{
	struct browser *b = arg;
	ssize_t n = write(b->to, b->out.p + b->sent, b->out.len - b->sent);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		fail(b, "Chromium has ended");
		return;
	}
	b->sent += (size_t)n;
	if (b->sent < b->out.len)
		return;
	hr_buf_reset(&b->out);
	b->sent = 0;
	hr_watch_drop(&b->writing);
}

void
br_flush(struct browser *b)
{
	if (b->gone || b->out.len == 0)
		return;
	if (b->out.fail != HR_OK) {
		fail(b, "out of memory for messages to Chromium");
		return;
	}
	if (b->writing == NULL)
		on_writable(b);
	if (b->gone || b->out.len == 0 || b->writing != NULL)
		return;
	b->writing = hr_loop_writable(b->loop, b->to, on_writable, b, &b->err);
	if (b->writing == NULL)
		fail(b, "no watch for Chromium's pipe");
}

static void
on_ended(void *arg)
{
	struct browser *b = arg;

	hr_watch_drop(&b->ended);
	fail(b, "Chromium has ended");
}

static void
on_timer(void *arg)
{
	struct browser *b = arg;

	hr_loop_stop(b->loop);
}

void
br_init(struct browser *b)
{
	memset(b, 0, sizeof(*b));
	b->pidfd = b->to = b->from = -1;
	hr_buf_init(&b->in, BR_TAPE_TEXT_MAX + READ_STEP);
	hr_buf_init(&b->out, OUT_MAX);
	TAILQ_INIT(&b->tabs);
	TAILQ_INIT(&b->asking);
	br_cast_init(&b->cast);
}

/* Returns true if a process of this account can make a user namespace, which Chromium's sandbox
 * requires. */
static bool
sandbox_works(void)
{
	pid_t pid;
	int status = 0;

	if (geteuid() == 0)
		return false; /* Chromium has no sandbox for root */
	pid = fork();
	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
	return pid > 0 && hr_spawn_end(pid, &status) == 0 && hr_exit_code(status) == 0;
}

/* Makes Chromium's environment: home and temporary files are in the profile, which is removed. */
static char **
its_environment(const struct browser *b, struct hr_buf *text)
{
	static const char *const not_ours[] = {
	    "HOME=", "TMPDIR=", "XDG_", "HANDRAIL_", "DBUS_SESSION_BUS_ADDRESS=", "DISPLAY="};
	size_t n = 0, i, k, at;
	char **env;

	hr_buf_addf(text, "HOME=%s%cTMPDIR=%s%cDBUS_SESSION_BUS_ADDRESS=disabled:%c", b->profile, 0,
	    b->profile, 0, 0);
	while (environ[n] != NULL)
		n++;
	env = calloc(n + 4, sizeof(*env));
	if (env == NULL || text->fail != HR_OK)
		return env;
	for (i = n = 0; environ[i] != NULL; i++) {
		for (k = 0; k < sizeof(not_ours) / sizeof(not_ours[0]); k++)
			if (strncmp(environ[i], not_ours[k], strlen(not_ours[k])) == 0)
				break;
		if (k == sizeof(not_ours) / sizeof(not_ours[0]))
			env[n++] = environ[i];
	}
	for (at = 0; at < text->len; at += strlen(text->p + at) + 1)
		env[n++] = text->p + at;
	return env;
}

static int
spawn(struct browser *b, int command, int answer, struct hr_err *err)
{
	const struct hr_spawn_fd fds[] = {{command, 3}, {answer, 4}};
	/* a page's script above the limit gets an error, or its process ends; Chromium opens no
	 * page unless the limit is a whole number of MiB */
	const rlim_t most = (rlim_t)ceil(b->memory_max / MIB) * MIB;
	const struct rlimit memory = {most, most};
	struct rlimit ours = {0, 0};
	const char *argv[ARGS_MAX], *sandbox = NULL;
	HR_BUF(profile, 8192);
	HR_BUF(env_text, 16384);
	size_t n = 0, i;
	HR_FREE char **env = NULL;

	hr_buf_addf(&profile, "--user-data-dir=%s", b->profile);
	if (!sandbox_works()) {
		sandbox = "--no-sandbox";
		hr_log(HR_LOG_WARNING, "Chromium runs without a sandbox of its own: %s",
		    geteuid() == 0 ? "it has none for root"
				   : "no user namespaces can be made here");
	}
	argv[n++] = b->program;
	for (i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		argv[n++] = usual[i];
	argv[n++] = hr_buf_str(&profile);
	if (sandbox != NULL)
		argv[n++] = sandbox;
	hr_assert(n < ARGS_MAX);
	argv[n] = NULL;
	env = its_environment(b, &env_text);
	b->pid = -1;
	(void)getrlimit(RLIMIT_DATA, &ours); /* keeps a lower limit, which cannot be raised */
	if (env == NULL || profile.fail != HR_OK || env_text.fail != HR_OK)
		(void)hr_err_nomem(err);
	else
		b->pid = hr_spawn(&(const struct hr_spawn){.path = b->program,
				      .argv = argv,
				      .envp = env,
				      .fds = fds,
				      .nfds = 2,
				      .setsid = true,
				      .pdeathsig = SIGKILL,
				      .umask = -1,
				      .data = most > 0 && most < ours.rlim_max ? &memory : NULL},
		    err);
	if (b->pid < 0) {
		b->pid = 0;
		return -1;
	}
	b->pidfd = hr_pidfd_open(b->pid);
	return b->pidfd >= 0 || errno == ENOSYS ? 0 : hr_err_sys(err, errno, "pidfd_open");
}

static int
open_pipes(struct browser *b, struct hr_err *err)
{
	int command[2] = {-1, -1}, answer[2] = {-1, -1}, r = -1;

	if (pipe2(command, O_CLOEXEC) != 0 || pipe2(answer, O_CLOEXEC) != 0) {
		(void)hr_err_sys(err, errno, "pipe2");
	} else {
		b->to = command[1];
		b->from = answer[0];
		command[1] = answer[0] = -1;
		if (hr_fd_nonblock(b->to, true, err) == 0 &&
		    hr_fd_nonblock(b->from, true, err) == 0)
			r = spawn(b, command[0], answer[1], err);
	}
	hr_fd_close(&command[0]);
	hr_fd_close(&command[1]);
	hr_fd_close(&answer[0]);
	hr_fd_close(&answer[1]);
	return r;
}

static int
watch(struct browser *b, struct hr_err *err)
{
	b->reading = hr_loop_readable(b->loop, b->from, on_readable, b, err);
	/* the pipe shows the process's end if there is no pidfd */
	if (b->pidfd >= 0)
		b->ended = hr_loop_readable(b->loop, b->pidfd, on_ended, b, err);
	if (b->timer == NULL)
		b->timer = hr_loop_timer(b->loop, on_timer, b, err);
	return b->reading != NULL && (b->ended != NULL || b->pidfd < 0) && b->timer != NULL ? 0
											    : -1;
}

/* Makes a browser context besides the profile's own, a window without history. */
static int
set_up(struct browser *b)
{
	HR_CLEAN(br_answer_clean) struct br_answer *a = NULL;

	if (br_do(b, "", "Target.setDiscoverTargets", "{\"discover\":true}") != 0)
		return -1;
	a = br_ask(b, "", "Target.createBrowserContext", "{\"disposeOnDetach\":true}");
	if (a == NULL)
		return -1;
	br_text_at(a, "browserContextId", b->context, sizeof(b->context));
	if (br_do(b, "", "Browser.setDownloadBehavior",
		"{\"behavior\":\"allowAndName\",\"browserContextId\":$s,\"downloadPath\":$s,"
		"\"eventsEnabled\":true}",
		b->context, b->downloads) != 0)
		return -1;
	return br_do(b, "", "Target.setAutoAttach",
	    "{\"autoAttach\":true,\"waitForDebuggerOnStart\":true,\"flatten\":true,"
	    "\"filter\":[{\"type\":\"page\"},{\"exclude\":true}]}");
}

/* Moves away the profile of a killed plugin: its Chromium may still run, and its writes would keep
 * the directory from being removed. */
static int
clear_profile(struct browser *b, struct hr_err *err)
{
	struct hr_err left = {0};
	HR_BUF(old, 8192);

	hr_buf_addf(&old, "%s.%ld", b->profile, (long)getpid());
	if (old.fail != HR_OK)
		return hr_err_nomem(err);
	if (rename(b->profile, hr_buf_str(&old)) != 0 && errno != ENOENT)
		return hr_err_sys(err, errno, "%s", b->profile);
	if (hr_path_remove(hr_buf_str(&old), &left) < 0)
		hr_log(HR_LOG_WARNING, "%s", left.msg);
	return 0;
}

/* Makes a new profile. */
static int
make_profile(struct browser *b, struct hr_err *err)
{
	static const char wishes[] = "{\"plugins\":{\"always_open_pdf_externally\":true}}";
	HR_FREE char *dir = NULL;
	HR_FREE char *path = NULL;

	if (clear_profile(b, err) < 0)
		return -1;
	if (mkdir(b->profile, 0700) != 0)
		return hr_err_sys(err, errno, "%s", b->profile);
	if (!b->saves_pdf)
		return 0;
	dir = hr_path_join(b->profile, "Default");
	if (dir != NULL)
		path = hr_path_join(dir, "Preferences");
	if (path == NULL)
		return hr_err_nomem(err);
	if (mkdir(dir, 0700) != 0)
		return hr_err_sys(err, errno, "%s", dir);
	return hr_path_write(path, wishes, sizeof(wishes) - 1, 0600, err);
}

int
br_start(struct browser *b, struct hr_err *err)
{
	hr_assert(b->pid == 0);
	b->gone = b->skipping = false;
	b->why[0] = '\0';
	b->mouse_x = b->mouse_y = 0;
	b->until_ms = hr_now_ms() + START_MS;
	if (make_profile(b, err) != 0)
		return -1;
	if (open_pipes(b, err) != 0 || watch(b, err) != 0) {
		br_stop(b);
		return -1;
	}
	if (set_up(b) != 0) {
		*err = b->err;
		hr_err_prefix(err, "Chromium does not start");
		br_stop(b);
		return -1;
	}
	return 0;
}

static void
kill_children(void)
{
	FILE *f = fopen("/proc/thread-self/children", "re");
	int pid;

	while (f != NULL && fscanf(f, "%d", &pid) == 1)
		(void)kill(pid, SIGKILL);
	if (f != NULL)
		(void)fclose(f);
}

/* Ends all processes that Chromium started, so that none writes into the profile any more: orphans
 * become children of this process (main). */
static void
reap(struct browser *b)
{
	(void)kill(-b->pid, SIGKILL);
	(void)kill(b->pid, SIGKILL);
	do
		kill_children();
	while (waitpid(-1, NULL, 0) >= 0 || errno == EINTR);
	b->pid = 0;
}

void
br_stop(struct browser *b)
{
	struct hr_err err = {0};

	while (!TAILQ_EMPTY(&b->tabs))
		br_tab_gone(b, TAILQ_FIRST(&b->tabs));
	hr_watch_drop(&b->reading);
	hr_watch_drop(&b->writing);
	hr_watch_drop(&b->ended);
	hr_fd_close(&b->to);
	hr_fd_close(&b->from);
	if (b->pid > 0)
		reap(b);
	hr_fd_close(&b->pidfd);
	hr_buf_done(&b->in);
	hr_buf_done(&b->out);
	hr_buf_init(&b->in, BR_TAPE_TEXT_MAX + READ_STEP);
	hr_buf_init(&b->out, OUT_MAX);
	b->scanned = b->sent = 0;
	b->downloads_begun = b->downloads_ended = 0; /* no more events will come */
	b->gone = true;
	br_cast_follow(b);
	if (b->profile != NULL && hr_path_remove(b->profile, &err) != 0)
		hr_log(HR_LOG_WARNING, "%s", err.msg);
}

void
br_done(struct browser *b)
{
	br_stop(b);
	hr_watch_drop(&b->timer);
	br_cast_done(&b->cast);
}
