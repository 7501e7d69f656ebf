/* Composes the answer to a prompt's report, for which the shell waits: commands that it runs before
 * it shows the prompt. */
#include "config.h"

#include "session/keeper_int.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "session/prompt/mount.h"

/* A snapshot of the exported variables costs some 50 us: at most one per second in a fast
 * series. */
#define SNAPSHOT_MS 1000
/* maximum milliseconds from a report to the wait: without the builtin bash opens the FIFO later */
#define WAIT_MS 50
#define TEXT_CAP (8u << 20)
#define ACK_MAX 4096 /* PIPE_BUF, since so much is written whole or not at all */

static void
add_init_commands(struct hr_keeper *k, struct hr_buf *line)
{
	size_t i;

	for (i = 0; i < k->config->n_init_commands; i++) {
		/* the new shell starts in the old directory */
		if (strncmp(k->config->init_commands[i], "cd ", 3) == 0)
			continue;
		hr_buf_adds(line, k->config->init_commands[i]);
		hr_buf_adds(line, "; ");
	}
}

/* Returns true if the shell still waits: it has the FIFO open, and the FIFO is empty. */
static bool
waits_for_ack(const struct hr_keeper *k)
{
	char top[64], path[512];
	const struct dirent *e;
	struct stat fifo, is;
	bool waits = false;
	int waiting = 0;
	DIR *d;

	if (fstat(k->ack_fd, &fifo) < 0 || ioctl(k->ack_fd, FIONREAD, &waiting) < 0 || waiting > 0)
		return false;
	(void)snprintf(top, sizeof(top), "/proc/%d/fd", (int)k->shell.pid);
	d = opendir(top);
	while (d != NULL && !waits && (e = readdir(d)) != NULL) {
		(void)snprintf(path, sizeof(path), "%s/%s", top, e->d_name);
		waits =
		    stat(path, &is) == 0 && is.st_dev == fifo.st_dev && is.st_ino == fifo.st_ino;
	}
	if (d != NULL)
		(void)closedir(d);
	return waits;
}

/* Returns true if the shell has sent another report, within `ms`. */
static bool
has_later(const struct hr_keeper *k, int ms)
{
	struct pollfd in = {.fd = k->report_fd, .events = POLLIN};

	return k->reports.in.len > k->reports.used || poll(&in, 1, ms) > 0;
}

bool
shell_waits(struct hr_keeper *k)
{
	int i;

	for (i = 0; i < WAIT_MS && look_waits(k) != HR_SEEN_READLINE; i++) {
		if (waits_for_ack(k))
			return !has_later(k, 0);
		if (has_later(k, 1))
			return false;
	}
	return false;
}

void
shell_ack(void *arg, bool careful)
{
	struct hr_keeper *k = arg;
	HR_BUF(line, TEXT_CAP);
	int64_t now = hr_now_ms();
	char stale[256];
	bool snapshot;
	ssize_t n = -1;

	if (k->answered_before && !waits_for_ack(k)) {
		k->suspicious = k->sent_away = k->answered_before = false;
		return;
	}
	resume_note_answer(k);
	k->answered_before = false;
	hr_shellproc_tidy(&k->shell);
	if (k->sent_away)
		(void)shell_take_back(k);
	k->sent_away = false;
	hr_hook_ack_begin(&line);
	if (k->restarted) {
		k->restarted = false;
		if (files_put_exports(k))
			hr_hook_ack_source(k->exports_path, &line);
		add_init_commands(k, &line);
	}
	if (look_strays(k)) {
		k->kept->root = hr_root_mount();
		hr_hook_ack_enter(&line);
	}
	if (careful || k->suspicious)
		hr_hook_ack_readline(&line);
	snapshot = k->suspicious || now - k->exports_at >= SNAPSHOT_MS;
	/* another value of the same length is not noticed at once */
	if (careful || k->rehook || snapshot)
		hr_hook_ack_restore(&line);
	if (k->allexport)
		hr_hook_ack_unexport(&line);
	if (snapshot) {
		k->exports_at = now;
		hr_hook_ack_snapshot(&k->hook, &line);
	}
	k->suspicious = false;
	if (k->renonce)
		hr_hook_ack_nonce(&k->hook, &line);
	hr_hook_ack_end(k->from_us && !careful, &line);
	/* An interrupted shell may have left an ack unread. */
	while (hr_fd_read(k->ack_fd, stale, sizeof(stale)) > 0)
		k->exports_due = 0;
	/* A line longer than the pipe's room would stop the shell in the middle of it. */
	if (line.fail == HR_OK && line.len <= ACK_MAX)
		n = write(k->ack_fd, line.p, line.len);
	k->exports_due += snapshot && n > 0;
	if (n < 0 && write(k->ack_fd, HR_HOOK_ACK_NOTHING, 2) != 2)
		hr_log(HR_LOG_ERROR, "cannot answer the shell: %s", strerror(errno));
}
