/* Implements changes and diff: git's view of a work tree in a sandbox. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text/quote.h"
#include "base/process/spawn.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "proto/json.h"

/* ---- changes ---- */

static void
put_change(struct hr_buf *b, struct json_object *o)
{
	const char *path = hr_json_text_or(o, "path", ""),
		   *status = hr_json_text_or(o, "status", "");

	hr_quote_text(b, status, strlen(status));
	hr_buf_addc(b, ' ');
	hr_quote_text(b, path, strlen(path));
}

static int
changes(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	return cli_answer(c, s, a, hr_sandbox_git_changes, "the list of changes", put_change);
}

const struct cli_command cli_changes = {"repo changes", NULL, "[DIRECTORY]",
    "List the files that differ from the repository's origin.", NULL, 0, 1, CLI_PLAIN, NULL,
    changes};

/* ---- diff ---- */

/* Returns a descriptor from which the lines of `text` can be read, or -1 with errno. */
static int
as_file(const char *text)
{
	int fd = memfd_create("handrail-diff", MFD_CLOEXEC);
	size_t n = strlen(text);

	/* the last line lacks its end */
	if (fd >= 0 && n > 0 &&
	    (hr_fd_write_full(fd, text, n, NULL) != 0 || hr_fd_write_full(fd, "\n", 1, NULL) != 0))
		hr_fd_close(&fd);
	return fd;
}

/* Prints diff(1) of the two sides. */
static int
run_diff(const char *file, int original, int modified)
{
	const struct hr_spawn_fd fds[] = {{1, 1}, {2, 2}, {original, 3}, {modified, 4}};
	const char *const argv[] = {
	    "diff", "-u", "--label", file, "--label", file, "/dev/fd/3", "/dev/fd/4", NULL};
	const struct hr_spawn sp = {
	    .path = "diff", .argv = argv, .fds = fds, .nfds = 4, .umask = -1};
	struct hr_err e = {0};
	int status;
	pid_t pid = hr_spawn(&sp, &e);

	if (pid < 0) {
		cli_say("%s; --json needs no diff (Debian: diffutils)", e.msg);
		return CLI_ERROR;
	}
	(void)hr_spawn_end(pid, &status);
	/* status 1 means that the sides differ */
	return hr_exit_code(status) <= 1 ? CLI_OK : CLI_ERROR;
}

static int
show_diff(const char *file, const char *json)
{
	HR_PUT struct json_object *o = NULL;
	HR_BUF(name, 1 << 16);
	HR_CLOSE int original = -1;
	HR_CLOSE int modified = -1;

	if (hr_json_decode(json, strlen(json), &o, NULL) < 0)
		return cli_error("the diff cannot be read");
	original = as_file(hr_json_text_or(o, "original", ""));
	modified = as_file(hr_json_text_or(o, "modified", ""));
	hr_quote_text(&name, file, strlen(file));
	if (original < 0 || modified < 0)
		return cli_error("a temporary file: %s", strerror(errno));
	return run_diff(hr_buf_str(&name), original, modified);
}

static int
diff(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	/* the text of a path that does not exist; that of a missing helper names it */
	static const char missing[] = "error_in_git_diff: No such file or directory";
	struct hr_err err = {0};
	HR_FREE char *json = NULL;

	if (hr_sandbox_git_diff(s, a->argv[0], &json, &err) != 0) {
		if (strncmp(err.msg, missing, sizeof(missing) - 1) == 0)
			(void)hr_err_set(&err, HR_E_NOTFOUND,
			    "there is no file %s in the sandbox; a relative path starts in the "
			    "workspace, as those of \"handrail repo changes\"",
			    a->argv[0]);
		return cli_fail(&err);
	}
	return c->json ? cli_out_line(json) : show_diff(a->argv[0], json);
}

const struct cli_command cli_diff = {"repo diff", NULL, "FILE",
    "Print how a file differs from the repository's origin.", NULL, 1, 1, CLI_PLAIN, NULL, diff};
