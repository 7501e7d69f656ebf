/* Starts a box: its directories, its launcher, and the wait for its server. */
#include "config.h"

#include "host/box/box_int.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/plain.h"
#include "base/process/image.h"
#include "base/process/spawn.h"
#include "base/random.h"
#include "base/text/text.h"
#include "base/volume.h"
#include "host/box/layers.h"
#include "host/command.h"
#include "host/common/logfile.h"
#include "host/common/module.h"
#include "host/common/ready.h"
#include "host/common/statedir.h"
#include "host/records/record.h"
#include "proto/json.h"

/* A box's ports are below those that the kernel gives to clients, since an ended connection keeps
 * its client's port for a minute. */
#define OWN_MIN 20000
#define OWN_COUNT 10000u
#define JOURNAL_LEAF "handrail" /* the last name of HR_BOX_STATE_DIR */
#define NAME_DIGITS 12          /* hexadecimal digits after the sandbox's name */
#define NAME_SHOWN 40           /* maximum bytes of the sandbox's name in the box's name */
#define CONTROL 3               /* the launcher's descriptors */
#define DOCUMENT 4              /* only --check has it here */
#define DOCUMENT_PLACE "/proc/self/fd/4"
#define LAST_WORDS 600
#define TOO_LARGE 3 /* the launcher's status */

/* ---- names and directories ---- */

static int
choose_ports(struct hr_box *b, struct hr_err *err)
{
	static const enum hr_port_use uses[HR_BOX_PORTS] = {
	    [HR_BOX_VSCODE] = HR_PORT_VSCODE, HR_PORT_APP1, HR_PORT_APP2};
	enum hr_box_net net;
	int min, max, i;
	unsigned n;
	bool host;

	if (hr_box_network(b->h->config, &net, err) < 0)
		return -1;
	host = net == HR_BOX_HOST;
	for (i = 0; i < HR_BOX_PORTS; i++) {
		b->ports[i] = 0;
		/* the editor's port has the same number in the box and outside, because the server
		 * redirects browsers to it */
		if (!host && i == HR_BOX_VSCODE) {
			if (hr_random(&n, sizeof(n), err) < 0)
				return -1;
			b->ports[i] = OWN_MIN + (int)(n % OWN_COUNT);
		}
		if (!host)
			continue;
		hr_port_range(uses[i], &min, &max);
		if (hr_portlock_find(&b->locks[i], NULL, min, max, 20, "127.0.0.1", NULL, err) < 0)
			return -1;
		b->ports[i] = b->locks[i].port;
	}
	return 0;
}

/* Keeps the names of an earlier box of this sandbox. */
static int
choose_names(struct hr_box *b, struct hr_err *err)
{
	const char *tmp = hr_env_get(b->h->environ, "TMPDIR");
	char digits[NAME_DIGITS + 1], *at;

	if (hr_random_hex(digits, NAME_DIGITS, err) < 0)
		return -1;
	if (b->name == NULL) {
		if (hr_text_setf(&b->name, err, "%.*s-%s", NAME_SHOWN, b->h->sid, digits) != 0)
			return -1;
		for (at = b->name; *at != '\0'; at++)
			if (!isalnum((unsigned char)*at))
				*at = '-';
	}
	if (b->side.dir == NULL && b->h->state_dir != NULL) {
		b->side.dir = hr_record_path(b->h->state_dir, b->h->sid, HR_RECORD_HOME);
		if (b->side.dir == NULL)
			return hr_err_nomem(err);
	}
	if (b->side.dir == NULL && hr_text_setf(&b->side.dir, err, "%s/handrail-box-%s",
				       tmp != NULL ? tmp : "/var/tmp", digits) != 0)
		return -1;
	if (hr_text_setf(&b->edge, err, "%s/edge", b->side.dir) != 0)
		return -1;
	return b->key != NULL && hr_env_get(b->h->environ, "SESSION_API_KEY") == NULL
		   ? 0
		   : hr_command_key(b->h->environ, &b->key, err);
}

/* Lets ext4 place the boxes in different parts of the disk; other file systems refuse. ext4 does
 * not use the inode of a removed file again for a minute and more, and each new file searches past
 * all of them in its part. */
static void
spread(const char *dir)
{
	HR_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int flags;

	if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) != 0 || (flags & FS_TOPDIR_FL) != 0)
		return;
	flags |= FS_TOPDIR_FL;
	(void)ioctl(fd, FS_IOC_SETFLAGS, &flags); /* a refusal only makes starts slower */
}

/* Makes the directory of all files of the box. */
static int
make_directory(struct hr_box *b, struct hr_err *err)
{
	if (b->h->state_dir != NULL) {
		if (hr_state_directory(b->h->state_dir, true, err) < 0)
			return -1;
		spread(b->h->state_dir);
	}
	return hr_sidecar_make_directory(b->side.dir, &b->new_dir, err);
}

/* Moves the journal of a box that an earlier version has started out of its root, where the box may
 * have put something else. */
static void
take_journal(const struct hr_box *b, const char *storage)
{
	HR_CLOSE int dir = open(storage, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	HR_CLOSE int from = -1;
	HR_FREE char *path = NULL;
	struct stat st;

	if (dir < 0 || hr_text_setf(&path, NULL, "%s" HR_BOX_STATE_DIR, hr_box_top(b->root)) < 0)
		return;
	path[hr_path_leaf(path) - path - 1] = '\0';
	from = hr_plain_openat2(
	    dir, path, O_PATH | O_DIRECTORY | O_CLOEXEC, RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH);
	if (from < 0 || fstatat(from, JOURNAL_LEAF, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
	    !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return;
	if (hr_path_rename_free(from, JOURNAL_LEAF, dir, HR_BOX_JOURNAL) != 0 && errno != EEXIST)
		b->h->log(b->h->arg, "The journal of earlier actions cannot be kept.");
}

static int
make_directories(struct hr_box *b, struct hr_err *err)
{
	HR_FREE char *storage = hr_sidecar_path(&b->side, "storage");
	HR_FREE char *process = hr_sidecar_path(&b->side, HR_BOX_PROCESS);
	HR_FREE char *old = hr_sidecar_path(&b->side, HR_BOX_OLD);
	HR_FREE char *journal = NULL;
	HR_CLOSE int dir = -1;
	bool ignored;

	if (storage == NULL || process == NULL || old == NULL)
		return hr_err_nomem(err);
	if (hr_box_remove_tree(NULL, old, err) < 0 || hr_box_take_branch(b, err) < 0 ||
	    hr_box_fill(b, err) < 0 || hr_box_keep_settings(b, err) < 0)
		return -1;
	dir = open(b->side.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || (hr_volume_make(dir, "storage") != 0 && errno != EEXIST))
		return hr_err_sys(err, errno, "create %s", storage);
	journal = hr_path_join(storage, HR_BOX_JOURNAL);
	if (journal == NULL)
		return hr_err_nomem(err);
	if (hr_sidecar_make_directory(storage, &ignored, err) < 0 ||
	    hr_box_below_forget(storage, err) < 0)
		return -1;
	take_journal(b, storage);
	if (hr_sidecar_make_directory(journal, &ignored, err) < 0)
		return -1;
	/* an earlier box has ended: its process record and its socket directory are leftovers */
	return hr_path_remove(process, err) < 0 ? -1 : hr_sidecar_make_edge(b->edge, err);
}

/* ---- the launcher ---- */

char *
hr_box_program(const char *name, struct hr_err *err)
{
	char *path = hr_module_path(name, err);

	if (path != NULL && access(path, X_OK) != 0) {
		(void)hr_err_set(err, HR_E_RUNTIME,
		    "a box needs %s, and %s cannot be executed; Debian: apt-get install handrail",
		    name, path);
		free(path);
		return NULL;
	}
	return path;
}

int
hr_box_refused(const char *program, const char *said, int status, struct hr_err *err)
{
	const enum hr_errc code =
	    WIFEXITED(status) && WEXITSTATUS(status) == TOO_LARGE ? HR_E_TOOLARGE : HR_E_RUNTIME;
	const size_t len = strlen(program);
	const char *at = said, *last = NULL;

	for (; (at = strstr(at, program)) != NULL; at += len)
		if ((at == said || at[-1] == '\n') && strncmp(at + len, ": ", 2) == 0)
			last = at + len + 2;
	if (last == NULL)
		return hr_err_set(err, HR_E_RUNTIME, "%s ended: %s%s%s", program,
		    hr_exit_words(status), *said != '\0' ? "; its last output:\n" : "", said);
	return hr_err_set(err, code, "%.*s", (int)strcspn(last, "\n"), last);
}

int
hr_box_check(struct json_object *o, struct hr_buf *out, struct hr_err *err)
{
	const char *const argv[] = {HR_BOX_LAUNCHER, "--check", DOCUMENT_PLACE, NULL};
	HR_BUF(text, 1u << 16);
	HR_CLOSE int document = -1;

	if (hr_json_put(&text, o) != 0 || hr_buf_check(&text, NULL) != 0)
		return hr_err_nomem(err);
	document = hr_fd_of_bytes(text.p, text.len, err);
	return document < 0 ? -1
			    : hr_box_run_program(NULL, argv, false,
				  &(const struct hr_spawn_fd){document, DOCUMENT}, out, err);
}

int
hr_box_take_process(struct hr_box *b, const char *line, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	struct json_object *groups;
	int64_t pid;
	size_t i;

	hr_strv_done(&b->groups);
	if (hr_json_decode(line, strlen(line), &o, NULL) < 0)
		return 0;
	groups = hr_json_at(o, "groups");
	for (i = 0; i < hr_json_count(groups); i++)
		if (hr_json_text(hr_json_entry(groups, i)) != NULL)
			hr_strv_add(&b->groups, hr_json_text(hr_json_entry(groups, i)));
	pid = hr_json_int_at(o, "pid");
	b->started = (unsigned long long)hr_json_int_at(o, "started");
	b->pid = pid > 1 && pid <= INT32_MAX ? (pid_t)pid : 0;
	if (b->groups.failed)
		return hr_err_nomem(err);
	if (hr_sidecar_watch(&b->side, b->pid, b->started) < 0 && errno != ESRCH)
		return hr_err_sys(err, errno, "look at process %ld of the box", (long)b->pid);
	return b->side.watch >= 0;
}

/* Reads the line of the launcher. Returns false if the launcher has ended. */
static bool
read_line(int control, struct hr_buf *line)
{
	ssize_t n = 1;
	char *room;

	while (n > 0 && (line->len == 0 || line->p[line->len - 1] != '\n')) {
		room = hr_buf_reserve(line, 1024);
		n = room != NULL ? hr_fd_read(control, room, 1024) : -1;
		hr_buf_grew(line, n > 0 ? (size_t)n : 0);
	}
	return n > 0;
}

/* Records the box's process, so that the next handrail command finds it if this one is killed,
 * starts the broker of its network, which listens before the box runs anything, and lets the box
 * start. Until then the box ends if this process does. */
static int
release(struct hr_box *b, int control, const struct hr_buf *line, struct hr_err *err)
{
	HR_FREE char *path = hr_sidecar_path(&b->side, HR_BOX_PROCESS);

	if (path == NULL)
		return hr_err_nomem(err);
	return hr_path_write(path, line->p, line->len, 0600, err) == 0 &&
		       hr_egress_keep(&b->side, err) == 0
		   ? hr_fd_send(control, "g", 1, -1, err)
		   : -1;
}

/* Logs what the launcher cannot enforce here, by its line. */
static void
report_lacks(const struct hr_box *b, const char *line)
{
	HR_PUT struct json_object *o = NULL;
	HR_FREE char *text = NULL;
	char *rest, *one;

	if (hr_json_decode(line, strlen(line), &o, NULL) < 0 || hr_json_text_at(o, "lacks") == NULL)
		return;
	text = strdup(hr_json_text_at(o, "lacks"));
	for (rest = text; rest != NULL && (one = strsep(&rest, "\n")) != NULL;)
		if (*one != '\0')
			b->h->log(b->h->arg, one);
}

/* Makes the file that is the box's output, beside that of an earlier box, which
 * hr_logfile_keep() replaces. It is a new one for each box, whose root can change the mode and the
 * owner of its own.
 */
static int
open_log(const char *path, struct hr_err *err)
{
	int fd = -1;

	if (unlink(path) == 0 || errno == ENOENT)
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	return fd >= 0 ? fd : hr_err_sys(err, errno, "create %s", path);
}

/* The launcher of a box. It starts before its document is written, which takes as long. */
struct launch {
	pid_t pid;             /* 0: none */
	int control, document; /* sockets; -1: none */
	char *log;             /* path; NULL: it is the log of the box */
};

/* Ends a launcher that has no document, or waits for one that has ended the box. */
static void
launch_done(struct launch *l)
{
	hr_fd_close(&l->document);
	hr_fd_close(&l->control);
	if (l->pid > 0)
		(void)hr_spawn_end(l->pid, NULL); /* another reason is known */
	if (l->log != NULL)
		(void)unlink(l->log); /* the error contains its last lines */
	free(l->log);
}

static int
launch_start(struct launch *l, const struct hr_box *b, struct hr_err *err)
{
	static const char *const argv[] = {HR_BOX_LAUNCHER, "--detach", "3", NULL};
	HR_FREE char *path = hr_box_program(HR_BOX_LAUNCHER, err);
	const long long nofile = hr_box_open_files(b->h->config, err);
	const struct rlimit open_files = {(rlim_t)nofile, (rlim_t)nofile};
	HR_CLOSE int image = -1;
	HR_CLOSE int log = -1;
	HR_CLOSE int control = -1;
	HR_CLOSE int document = -1;
	int ends[2];

	if (path == NULL || nofile < 0)
		return -1;
	l->log = hr_sidecar_path(&b->side, "log" HR_LOGFILE_NEW);
	if (l->log == NULL)
		return hr_err_nomem(err);
	log = open_log(l->log, err);
	if (log < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return hr_err_sys(err, errno, "a socket pair");
	l->control = ends[0];
	control = ends[1];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return hr_err_sys(err, errno, "a socket pair");
	l->document = ends[0];
	document = ends[1];
	/* the launcher would make this copy of itself, and execute it */
	image = hr_image_open(path, HR_BOX_LAUNCHER, 0500, NULL);
	const struct hr_spawn_fd fds[] = {{document, 0}, {log, 1}, {log, 2}, {control, CONTROL}};
	const struct hr_spawn sp = {.path = path,
	    .image = &image,
	    .argv = argv,
	    .setsid = true,
	    .umask = -1,
	    .fds = fds,
	    .nfds = 4,
	    .alone = true,
	    .nofile = nofile > 0 ? &open_files : NULL};
	l->pid = hr_spawn(&sp, err);
	return l->pid > 0 ? 0 : -1;
}

/* Sends the document, of which a signal may cut a part. A launcher that has ended has printed why.
 */
static void
send_document(int to, const struct hr_buf *document)
{
	size_t done = 0;
	ssize_t n = 0;

	while (done < document->len && (n >= 0 || errno == EINTR)) {
		n = send(to, document->p + done, document->len - done, MSG_NOSIGNAL);
		done += n > 0 ? (size_t)n : 0;
	}
}

/* Gives the launcher its document, and lets the box start. */
static int
launch_box(struct launch *l, struct hr_box *b, const struct hr_buf *document, struct hr_err *err)
{
	HR_BUF(line, HR_BOX_LINE_MAX);
	char said[LAST_WORDS];
	int status = -1, known, r;

	send_document(l->document, document);
	hr_fd_close(&l->document);
	known = read_line(l->control, &line) ? hr_box_take_process(b, hr_buf_str(&line), err) : 0;
	r = known > 0 ? release(b, l->control, &line, err) : known;
	if (known <= 0 || r != 0)
		hr_fd_close(&l->control); /* ends the box, and the launcher */
	if (hr_spawn_end(l->pid, &status) < 0)
		status = -1;
	l->pid = 0;
	if (r == 0 && (known == 0 || status != 0)) {
		hr_logfile_tail(l->log, said, sizeof(said));
		r = hr_box_refused(HR_BOX_LAUNCHER, said, status, err);
	}
	if (r == 0)
		report_lacks(b, hr_buf_str(&line));
	return r;
}

int
hr_box_open_socket(struct hr_box *b, struct hr_err *err)
{
	return hr_sidecar_open_socket(&b->side, b->edge, err) < 0
		   ? -1
		   : hr_text_setf(&b->url, err, "unix:%s/" HR_SIDECAR_SOCKET, b->edge);
}

int
hr_box_make(struct hr_box *b, struct hr_err *err)
{
	HR_CLEAN(launch_done) struct launch launch = {.control = -1, .document = -1};
	HR_BUF(document, 1u << 20);
	HR_CLOSE int notify = -1;
	HR_CLOSE int edge = -1;
	enum hr_box_net net;

	if (hr_text_set(&b->root, hr_config_text(b->h->config, "box.root"), err) != 0 ||
	    hr_box_network(b->h->config, &net, err) < 0 || choose_ports(b, err) < 0 ||
	    choose_names(b, err) < 0)
		return -1;
	b->h->begun(b->h->arg);
	if (make_directory(b, err) < 0 || launch_start(&launch, b, err) < 0 ||
	    make_directories(b, err) < 0 ||
	    hr_egress_prepare(&b->side, net == HR_BOX_EGRESS, err) < 0 ||
	    hr_box_document(b, &document, err) < 0)
		return -1;
	edge = open(b->edge, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (edge < 0)
		return hr_err_sys(err, errno, "open %s", b->edge);
	notify = hr_ready_open(edge, HR_BOX_NOTIFY, NULL, err);
	if (notify < 0 || launch_box(&launch, b, &document, err) < 0 ||
	    hr_ready_wait(notify, b->pid, b->side.watch, launch.log, err) < 0 ||
	    hr_logfile_keep(launch.log, err) < 0)
		return -1;
	free(launch.log);
	launch.log = NULL;
	(void)unlinkat(edge, HR_BOX_NOTIFY, 0);
	return hr_box_open_socket(b, err);
}
