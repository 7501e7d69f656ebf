/* Revises files and keeps their history. An entry of the history is the file's former bytes after a
 * head that identifies the bytes that the change made, so that an undo can check that they are
 * still there. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/path.h"
#include "files/charset/charset.h"
#include "files/history.h"
#include "files/place/atomic.h"
#include "files/place/reach.h"
#include "files/revise/revise.h"

#define BYTES_MAX (HR_PLAINTEXT_MAX * 4)
/* prefix of the history's keys; no path of the original's editor begins with it: both share one
 * history and its lock */
#define KEY "revise:"

struct head {
	uint64_t len, hash; /* length and hash of the bytes that the change made */
};

static struct head
head_of(const struct hr_buf *bytes)
{
	return (struct head){bytes->len, hr_hash(HR_HASH, hr_buf_str(bytes), bytes->len)};
}

static int
fail(struct hr_buf *why, const char *text)
{
	hr_buf_adds(why, text);
	return -1;
}

static int
fail_err(struct hr_buf *why, const struct hr_err *err)
{
	return fail(why, err->sys != 0 ? strerror(err->sys) : err->msg);
}

/* ---- reading ---- */

/* Reads to the end, not to the reported size: files of the kernel report 0 or a page. */
static int
read_all(int fd, struct hr_buf *b, struct hr_buf *why)
{
	struct hr_err err = {.code = HR_OK};

	if (hr_path_read_fd(fd, "it", b, &err) == 0)
		return 0;
	if (err.code == HR_E_TOOLARGE) {
		hr_buf_addf(
		    why, "it is longer than %zu MB: use run, with sed, head or grep", b->cap >> 20);
		return -1;
	}
	return fail_err(why, &err);
}

int
hr_revise_load(const char *path, struct hr_buf *b, struct hr_buf *why)
{
	HR_CLOSE int fd = hr_reach_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail(why, errno == ENOENT ? "there is no such file" : strerror(errno));
	if (S_ISDIR(st.st_mode))
		return fail(why, "it is a directory");
	if (!S_ISREG(st.st_mode))
		return fail(why, "it is not a regular file, but a device, a pipe or a socket");
	return read_all(fd, b, why);
}

/* ---- changing ---- */

/* The state of one change of a file. */
struct revision {
	const struct hr_revise *r;
	struct hr_history history;
	struct hr_buf key, before, after; /* `before` and `after` are the bytes of the file */
	struct hr_plaintext text;
};

static void
revision_done(struct revision *v)
{
	hr_history_close(&v->history);
	hr_buf_done(&v->key);
	hr_buf_done(&v->before);
	hr_buf_done(&v->after);
	hr_plaintext_done(&v->text);
}

/* Blocks until the lock is free, then reads the file. */
static int
revision_open(struct revision *v, const struct hr_revise *r, struct hr_buf *why)
{
	struct hr_err err = {.code = HR_OK};
	HR_FREE char *real = realpath(r->path, NULL);

	v->r = r;
	hr_buf_init(&v->key, 1u << 20);
	hr_buf_init(&v->before, HR_PLAINTEXT_MAX);
	hr_buf_init(&v->after, BYTES_MAX);
	hr_plaintext_init(&v->text);
	hr_buf_adds(&v->key, KEY);
	hr_buf_adds(&v->key, real != NULL ? real : r->path);
	if (hr_history_open(&v->history, r->history_dir, &err) < 0)
		return fail(why, err.msg);
	return hr_revise_load(r->path, &v->before, why);
}

static int
revision_decode(struct revision *v, struct hr_buf *why)
{
	if (hr_plaintext_decode(&v->text, hr_buf_str(&v->before), v->before.len))
		return 0;
	return fail(why, v->text.text.fail == HR_OK ? "it is a binary file: change it by run"
						    : "there is no memory for it");
}

/* Refuses lone surrogates, which a file cannot hold. */
static int
check_new(struct hr_span new, struct hr_buf *why)
{
	return hr_charset_check_text(new.p, new.len, why);
}

static int
store(struct revision *v, struct hr_span bytes, struct hr_buf *why)
{
	struct hr_err err = {.code = HR_OK};

	if (hr_atomic_write_telling(v->r->path, bytes.p, bytes.len, 0666, v->r->commit, &err) == 0)
		return 0;
	return fail_err(why, &err);
}

/* Saves the former bytes. The change is already made: without an entry, undo reports an error. */
static void
remember(struct revision *v)
{
	const struct head head = head_of(&v->after);
	struct hr_err err = {.code = HR_OK};
	HR_BUF(entry, HR_PLAINTEXT_MAX + sizeof(head));

	hr_buf_add(&entry, &head, sizeof(head));
	hr_buf_add(&entry, hr_buf_str(&v->before), v->before.len);
	if (hr_buf_check(&entry, &err) < 0 ||
	    hr_history_push(&v->history, hr_span_of_buf(&v->key), entry.p, entry.len, &err) < 0)
		hr_log(HR_LOG_WARNING, "an edit cannot be undone: %s", err.msg);
}

/* Stores `text` as the file's content; *now becomes the text as it is shown. */
static int
conclude(struct revision *v, struct hr_buf *text, struct hr_plaintext *now, struct hr_buf *why)
{
	struct hr_plaintext swap;

	if (text->fail != HR_OK)
		return fail(why, "it would be too long");
	if (hr_plaintext_encode(&v->text, hr_span_of_buf(text), &v->after, why) < 0)
		return -1;
	if (v->after.fail != HR_OK || v->after.len > HR_PLAINTEXT_MAX)
		return fail(why, "it would be too long");
	if (store(v, hr_span_of_buf(&v->after), why) < 0)
		return -1;
	remember(v);
	if (v->r->before != NULL)
		hr_buf_add(v->r->before, hr_buf_str(&v->text.text), v->text.text.len);
	hr_buf_done(&v->text.text);
	v->text.text = *text;
	hr_buf_init(text, 0);
	swap = *now;
	*now = v->text;
	v->text = swap;
	return 0;
}

int
hr_revise_file_replace(const struct hr_revise *r, struct hr_span old, struct hr_span new,
    struct hr_plaintext *now, struct hr_revised *ret, struct hr_buf *why)
{
	HR_CLEAN(revision_done) struct revision v = {.history = {.dir = -1, .lock = -1}};
	HR_BUF(text, BYTES_MAX);

	if (check_new(new, why) < 0 || revision_open(&v, r, why) < 0 ||
	    revision_decode(&v, why) < 0 ||
	    hr_revise_replace(&v.text, old, new, &text, ret, why) < 0)
		return -1;
	return conclude(&v, &text, now, why);
}

int
hr_revise_file_insert(const struct hr_revise *r, int64_t after_line, struct hr_span new,
    struct hr_plaintext *now, struct hr_revised *ret, struct hr_buf *why)
{
	HR_CLEAN(revision_done) struct revision v = {.history = {.dir = -1, .lock = -1}};
	HR_BUF(text, BYTES_MAX);

	if (check_new(new, why) < 0 || revision_open(&v, r, why) < 0 ||
	    revision_decode(&v, why) < 0 ||
	    hr_revise_insert(&v.text, after_line, new, &text, ret, why) < 0)
		return -1;
	return conclude(&v, &text, now, why);
}

/* ---- undo ---- */

static int
put_back(struct revision *v, const struct hr_buf *entry, struct hr_buf *why)
{
	const struct head now = head_of(&v->before);
	struct hr_err err = {.code = HR_OK};
	struct head head;

	if (entry->len < sizeof(head))
		return fail(why, "its history is damaged");
	memcpy(&head, entry->p, sizeof(head));
	if (head.len != now.len || head.hash != now.hash)
		return fail(why, "the file has changed since its last edit, and an undo would lose "
				 "that: read it, and take the lines back with edit");
	if (store(v, (struct hr_span){entry->p + sizeof(head), entry->len - sizeof(head)}, why) < 0)
		return -1;
	/* drops the entry only now, so that a failed undo can be repeated */
	if (hr_history_drop(&v->history, hr_span_of_buf(&v->key), &err) < 0)
		hr_log(HR_LOG_WARNING, "%s", err.msg);
	return 0;
}

int
hr_revise_file_undo(const struct hr_revise *r, struct hr_buf *why)
{
	HR_CLEAN(revision_done) struct revision v = {.history = {.dir = -1, .lock = -1}};
	HR_BUF(entry, BYTES_MAX);
	struct hr_err err = {.code = HR_OK};
	int found;

	if (revision_open(&v, r, why) < 0)
		return -1;
	found = hr_history_peek(&v.history, hr_span_of_buf(&v.key), &entry, &err);
	if (found < 0)
		return fail(why, err.msg);
	if (found == 0)
		return fail(why, "no edit of it is known");
	return put_back(&v, &entry, why);
}

/* ---- write ---- */

static int
make_parents(const char *path, struct hr_err *err)
{
	const char *slash = strrchr(path, '/');
	HR_FREE char *dir = slash != NULL ? strndup(path, (size_t)(slash - path)) : NULL;
	struct stat st;

	if (slash == NULL || slash == path)
		return 0;
	if (dir == NULL)
		return hr_err_nomem(err);
	/* a parent that is not a directory makes the later open fail */
	return stat(dir, &st) == 0 ? 0 : hr_path_mkdirs(dir, 0777, NULL, err);
}

/* Gives a new file its owner before its name: otherwise a user with write access to the directory
 * could put a link in its place and have another file chowned. */
static int
write_bytes(const struct hr_revise *r, struct hr_span bytes, struct hr_err *err)
{
	struct hr_atomic a;
	int ret;

	if (hr_atomic_open(&a, r->path, 0666, err) < 0)
		return err->code == HR_E_UNSUPPORTED ? hr_atomic_write_telling(r->path, bytes.p,
							   bytes.len, 0666, r->commit, err)
						     : -1;
	ret = hr_fd_write_full(a.spool.fd, bytes.p, bytes.len, err);
	if (ret == 0 && a.old < 0 && geteuid() == 0 &&
	    fchown(a.spool.fd, r->owner, (gid_t)r->owner) < 0)
		ret = hr_err_sys(err, errno, "chown");
	if (ret < 0) {
		hr_atomic_abort(&a);
		return -1;
	}
	a.commit = r->commit;
	return hr_atomic_commit(&a, err);
}

int
hr_revise_file_write(const struct hr_revise *r, struct hr_span bytes, struct hr_buf *why)
{
	struct hr_err err = {.code = HR_OK};
	struct hr_history turn;
	int ret;

	if (check_new(bytes, why) < 0)
		return -1;
	if (hr_history_open(&turn, r->history_dir, &err) < 0)
		return fail(why, err.msg);
	ret = make_parents(r->path, &err);
	if (ret == 0)
		ret = write_bytes(r, bytes, &err);
	hr_history_close(&turn);
	return ret == 0 ? 0 : fail_err(why, &err);
}
