/* Runs git. stdout is a pipe that is read to its end, stderr a memory file, so only one of them can
 * block. */
#include "config.h"

#include "git/gitrun.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "base/text/utf8.h"

static void
strip(struct hr_buf *b)
{
	const char *p = hr_buf_str(b);
	size_t len = b->len;

	hr_utf8_strip(&p, &len);
	if (len == b->len)
		return;
	hr_buf_drop_front(b, (size_t)(p - b->p));
	b->len = len;
	b->p[len] = '\0';
}

static int
fail_text(struct hr_buf *out, const char *what, int sys)
{
	hr_buf_reset(out);
	hr_buf_addf(out, "%s: %s", what, strerror(sys));
	return -1;
}

/* Waits for git, whose stdout is in out and whose stderr is in errors. */
static int
conclude(pid_t pid, int errors, struct hr_buf *out)
{
	HR_BUF(text, out->cap);
	int status;

	if (hr_spawn_end(pid, &status) != 0)
		return fail_text(out, "git", errno);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	/* 128 + number for a signal, as a shell reports it */
	status = hr_exit_code(status);
	hr_buf_addf(&text, "error_running_cmd:%d:", status);
	if (lseek(errors, 0, SEEK_END) > 0) {
		/* lseek() cannot fail, since errors is a memory file */
		(void)lseek(errors, 0, SEEK_SET);
		(void)hr_path_read_fd(errors, "git", &text, NULL);
	} else {
		hr_buf_add(&text, hr_buf_str(out), out->len);
	}
	hr_buf_reset(out);
	hr_buf_add(out, hr_buf_str(&text), text.len);
	return -1;
}

int
hr_gitrun(const char *directory, const char *const *args, struct hr_buf *out)
{
	int r = hr_gitrun_exact(directory, args, out);

	if (r == 0)
		strip(out);
	return r;
}

int
hr_gitrun_exact(const char *directory, const char *const *args, struct hr_buf *out)
{
	const char *argv[HR_GIT_ARGS + 4] = {"git", "-C", directory, "--no-pager"};
	int pair[2], r;
	HR_CLOSE int errors = memfd_create("git", MFD_CLOEXEC);
	size_t n = 4;
	struct hr_err err = {.code = HR_OK};
	enum hr_errc full;
	pid_t pid;

	hr_buf_reset(out);
	for (; *args != NULL; args++) {
		hr_assert(n + 1 < sizeof(argv) / sizeof(argv[0]));
		argv[n++] = *args;
	}
	argv[n] = NULL;
	if (errors < 0)
		return fail_text(out, "memfd_create", errno);
	if (pipe2(pair, O_CLOEXEC) < 0)
		return fail_text(out, "pipe", errno);
	pid = hr_spawn(&(const struct hr_spawn){.path = "git",
			   .argv = argv,
			   .fds = (const struct hr_spawn_fd[]){{pair[1], 1}, {errors, 2}},
			   .nfds = 2,
			   .umask = -1},
	    &err);
	hr_fd_close(&pair[1]);
	if (pid < 0) {
		hr_buf_adds(out, err.msg);
		r = -1;
	} else {
		(void)hr_path_read_fd(pair[0], "git", out, NULL);
		full = out->fail;
		hr_fd_close(&pair[0]); /* git ends if it has more to write */
		r = conclude(pid, errors, out);
		if (full != HR_OK) {
			hr_buf_reset(out);
			hr_buf_adds(out, "git printed too much");
			out->fail = full;
			r = -1;
		}
	}
	hr_fd_close(&pair[0]);
	return r;
}
