/* Manages the files shared by keeper and shell: two FIFOs from the shell, one for acks, one for
 * commands, the script of the prompt, and the start-up files. Secrets do not stay on the disk. */
#include "config.h"

#include "session/keeper_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "shell/exports.h"

/* names in the state directory; those of the FIFOs are in session/prompt/hook.h */
#define RC "rc"
#define EXPORTS "exports"
#define TEXT_CAP (8u << 20)

int
files_put_rc(struct hr_keeper *k, bool no_user_files, struct hr_err *err)
{
	HR_BUF(text, TEXT_CAP);
	int result;

	hr_hook_rcfile(&k->hook, no_user_files, k->config->line_module, &text);
	result = hr_buf_check(&text, err);
	if (result == 0)
		result = hr_statedir_put(&k->state, RC, text.p, text.len, HR_STATEDIR_USER, err);
	k->rc_there = result == 0;
	return result;
}

bool
files_put_exports(struct hr_keeper *k)
{
	struct hr_err err = {0};
	HR_BUF(kept, HR_REPORT_MAX);

	if (k->exports.len == 0)
		return false;
	hr_exports_keep(k->exports.p, k->exports.len, &kept);
	k->exports_there =
	    hr_buf_check(&kept, &err) == 0 && hr_statedir_put(&k->state, EXPORTS, hr_buf_str(&kept),
						  kept.len, HR_STATEDIR_USER, &err) == 0;
	if (!k->exports_there)
		hr_log(HR_LOG_WARNING, "exported variables could not be kept: %s", err.msg);
	return k->exports_there;
}

void
files_forget(struct hr_keeper *k)
{
	if (k->rc_there)
		hr_statedir_remove(&k->state, RC);
	if (k->exports_there)
		hr_statedir_remove(&k->state, EXPORTS);
	k->rc_there = k->exports_there = false;
}

/* Returns the name of a file in the directory, for hr_statedir_*(). */
static const char *
name_in(const char *path)
{
	return strrchr(path, '/') + 1;
}

/* Replaces a FIFO that was changed. */
static int
renew(struct hr_keeper *k, int *fd, const char *path, enum hr_statedir_use use, struct hr_err *err)
{
	const char *name = name_in(path);

	if (*fd >= 0 && hr_statedir_is_fifo(&k->state, name, *fd, use))
		return 0;
	if (*fd >= 0)
		hr_log(HR_LOG_WARNING, "%s was removed or changed: creating it again", path);
	hr_fd_close(fd);
	*fd = hr_statedir_fifo(&k->state, name, use, err);
	return *fd >= 0 ? 0 : -1;
}

int
files_share(struct hr_keeper *k, struct hr_err *err)
{
	const struct hr_hook *h = &k->hook;

	if (hr_statedir_pass(&k->state, err) < 0 ||
	    renew(k, &k->report_fd, h->report_path, HR_STATEDIR_ANYBODY, err) < 0 ||
	    renew(k, &k->exports_fd, h->exports_path, HR_STATEDIR_USER, err) < 0 ||
	    renew(k, &k->ack_fd, h->ack_path, HR_STATEDIR_USER, err) < 0 ||
	    renew(k, &k->line_fd, h->line_path, HR_STATEDIR_USER, err) < 0)
		return -1;
	return hr_statedir_put(&k->state, name_in(h->script_path), h->script, strlen(h->script),
	    HR_STATEDIR_ANYBODY, err);
}

int
files_open(struct hr_keeper *k, struct hr_err *err)
{
	static const char *const left[] = {RC, EXPORTS, HR_HOOK_REPORT, HR_HOOK_EXPORTS,
	    HR_HOOK_ACK, HR_HOOK_LINE, HR_HOOK_SCRIPT, HR_OUTLOG_NAME};
	const char *dir = k->config->state_dir;

	k->rcfile = hr_path_join(dir, RC);
	k->exports_path = hr_path_join(dir, EXPORTS);
	if (k->rcfile == NULL || k->exports_path == NULL)
		return hr_err_nomem(err);
	if (hr_hook_init(&k->hook, dir, &k->kept->secrets, err) < 0 ||
	    hr_statedir_open(&k->state, dir, k->user.uid, k->user.gid, k->user.change, err) < 0)
		return -1;
	if (k->after == KEEPER_RESUMES)
		return 0;
	hr_statedir_sweep(&k->state, left, sizeof(left) / sizeof(left[0]));
	return files_share(k, err);
}

void
files_close(struct hr_keeper *k)
{
	hr_fd_close(&k->report_fd);
	hr_fd_close(&k->exports_fd);
	hr_fd_close(&k->ack_fd);
	hr_fd_close(&k->line_fd);
	if (k->hook.prompt_command != NULL && !k->leaves) {
		hr_statedir_remove(&k->state, name_in(k->hook.report_path));
		hr_statedir_remove(&k->state, name_in(k->hook.exports_path));
		hr_statedir_remove(&k->state, name_in(k->hook.ack_path));
		hr_statedir_remove(&k->state, name_in(k->hook.line_path));
		hr_statedir_remove(&k->state, name_in(k->hook.script_path));
	}
	files_forget(k);
	hr_statedir_close(&k->state);
	hr_hook_done(&k->hook);
	free(k->rcfile);
	free(k->exports_path);
	k->rcfile = k->exports_path = NULL;
}
