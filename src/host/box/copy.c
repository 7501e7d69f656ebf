/* Copies and removes the files of boxes by the launcher, since those of a user's box can belong to
 * subordinate ids. */
#include "config.h"

#include "host/box/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "base/strv.h"
#include "base/text/text.h"
#include "host/box/layers.h"
#include "proto/json.h"

#define FIRST_LOCK 3 /* the launcher's descriptors of locks begin here */
#define SAID_MAX 4096
#define REMOVALS 5 /* tries to remove a tree */

int
hr_box_run_program(const int locks[HR_BOX_LOCKS], const char *const *argv, bool thaws,
    const struct hr_spawn_fd *data, struct hr_buf *out, struct hr_err *err)
{
	HR_FREE char *path = hr_box_program(argv[0], err);
	int back[2], status = -1, i;
	struct hr_spawn_fd fds[3 + HR_BOX_LOCKS];
	struct rlimit files;
	/* The process that thaws a box outlives this one, and gets no signal of the terminal.
	 * Others end, so that the next command can remove their files. */
	struct hr_spawn sp = {.path = path,
	    .argv = argv,
	    .umask = -1,
	    .fds = fds,
	    .nfds = 2,
	    .setsid = true,
	    .pdeathsig = thaws ? 0 : SIGKILL};
	pid_t pid;

	if (path == NULL)
		return -1;
	/* copies hold a directory open for each level, in each layer */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		sp.nofile = &files;
	}
	if (pipe2(back, O_CLOEXEC) != 0)
		return hr_err_sys(err, errno, "a pipe");
	fds[0] = (struct hr_spawn_fd){back[1], 2};
	fds[1] = (struct hr_spawn_fd){back[1], 1};
	if (data != NULL)
		fds[data->to == 1 ? 1 : sp.nfds++] = *data;
	for (i = 0; locks != NULL && i < HR_BOX_LOCKS; i++)
		if (locks[i] >= 0)
			fds[sp.nfds++] = (struct hr_spawn_fd){locks[i], FIRST_LOCK + i};
	pid = hr_spawn(&sp, err);
	hr_fd_close(&back[1]);
	if (pid > 0)
		(void)hr_path_read_fd(back[0], argv[0], out, NULL);
	hr_fd_close(&back[0]);
	if (pid < 0)
		return -1;
	if (hr_spawn_end(pid, &status) < 0)
		return hr_err_sys(err, errno, "wait for %s", argv[0]);
	return status == 0 ? 0 : hr_box_refused(argv[0], hr_buf_str(out), status, err);
}

int
hr_box_remove_tree(const int locks[HR_BOX_LOCKS], const char *path, struct hr_err *err)
{
	const char *const argv[] = {HR_BOX_LAUNCHER, "--remove", path, NULL};
	HR_BUF(out, SAID_MAX);
	int i, r = -1;

	/* the first process of a box whose launcher was killed can make files until it ends */
	for (i = 0; r < 0 && i < REMOVALS; i++) {
		if (access(path, F_OK) != 0 || hr_path_remove(path, NULL) == 0)
			return 0;
		hr_buf_reset(&out);
		r = hr_box_run_program(locks, argv, false, NULL, &out, err);
	}
	return r;
}

/* ---- copies ---- */

/* The parts of a storage that a copy lacks: the links to layers, and the server's journal, which is
 * in the root of a box that an earlier version has started. */
#define WITHOUT                                                                                    \
	"--without", "below", "--without", HR_BOX_BELOW_OLD, "--without", HR_BOX_JOURNAL,          \
	    "--without", BOX_OVERLAY_TOP HR_BOX_STATE_DIR, "--without",                            \
	    BOX_OVERLAY_OWN_TOP HR_BOX_STATE_DIR

/* Adds the arguments that let the launcher exchange the root of a running box. */
static int
add_shift(struct hr_strv *argv, const struct hr_box *b, const struct hr_box_layer *l,
    const char *storage, struct hr_err *err)
{
	HR_CLEAN(hr_strv_done) struct hr_strv below = {0};
	size_t i;

	if (hr_box_below(b->h->state_dir, storage, &below, err) < 0)
		return -1;
	hr_strv_add(argv, "--shift");
	hr_strv_addf(argv, "%d", (int)b->pid);
	hr_strv_add(argv, l->path);
	for (i = 0; i < below.n; i++) {
		hr_strv_add(argv, "--below");
		hr_strv_add(argv, below.v[i]);
	}
	if (b->root != NULL) {
		hr_strv_add(argv, "--root");
		hr_strv_add(argv, b->root);
	}
	return 0;
}

/* Takes what the launcher has printed. */
static int
take_result(const char *said, struct json_object **ret, struct hr_err *err)
{
	return hr_json_decode(said, strlen(said), ret, NULL) == 0
		   ? 0
		   : hr_err_set(err, HR_E_RUNTIME, "the launcher did not report what it copied");
}

int
hr_box_copy(const struct hr_box *b, struct hr_box_copy *c, struct hr_err *err)
{
	HR_CLEAN(hr_box_layer_end) struct hr_box_layer l = HR_BOX_LAYER_NONE;
	HR_CLEAN(hr_strv_done) struct hr_strv argv = {0};
	const char *group = b != NULL ? hr_box_freezer(b) : NULL;
	bool shift = group != NULL && b->h->state_dir != NULL && b->pid > 0;
	HR_PUT struct json_object *o = NULL;
	HR_BUF(said, SAID_MAX);
	int r;

	hr_strv_add_all(&argv, (const char *const[]){HR_BOX_LAUNCHER, "--copy", c->from, c->to,
				   WITHOUT, group != NULL ? "--freeze" : NULL, group, NULL});
	/* all files are copied where there cannot be another layer */
	shift = shift && hr_box_layer_begin(&l, b->h->state_dir, c->from, NULL) == 0;
	if (shift && add_shift(&argv, b, &l, c->from, err) < 0)
		return -1;
	if (c->most > 0) {
		hr_strv_add(&argv, "--most");
		hr_strv_addf(&argv, "%" PRId64, c->most);
	}
	if (argv.failed)
		return hr_err_nomem(err);
	r = hr_box_run_program(c->locks, hr_strv_list(&argv), group != NULL, NULL, &said, err);
	/* the launcher may have been killed */
	if (r < 0 && group != NULL)
		(void)hr_box_freeze(b, false, NULL);
	if (r == 0 && shift)
		r = take_result(hr_buf_str(&said), &o, err);
	c->shifted = hr_json_true_at(o, "shifted");
	hr_box_layer_end(&l); /* a layer that got no files goes */
	if (r == 0 && c->shifted)
		r = hr_box_below_forget(c->from, err);
	return r < 0 ? -1 : hr_box_below_share(c->from, c->to, err);
}

int
hr_box_count(
    const char *state_dir, const char *storage, struct hr_box_size *ret, struct hr_err *err)
{
	HR_CLEAN(hr_strv_done) struct hr_strv argv = {0};
	HR_PUT struct json_object *o = NULL;
	HR_BUF(said, SAID_MAX);

	hr_strv_add_all(&argv, (const char *const[]){HR_BOX_LAUNCHER, "--size", storage, NULL});
	if (hr_box_below(state_dir, storage, &argv, err) < 0)
		return -1;
	if (argv.failed)
		return hr_err_nomem(err);
	if (hr_box_run_program(NULL, hr_strv_list(&argv), false, NULL, &said, err) < 0 ||
	    take_result(hr_buf_str(&said), &o, err) < 0)
		return -1;
	*ret = (struct hr_box_size){hr_json_int_at(o, "files"), hr_json_int_at(o, "bytes")};
	return 0;
}
