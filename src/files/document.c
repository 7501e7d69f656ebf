/* Shows documents as text, with one converter per suffix: pdftohtml for PDF, handrail-office or the
 * program set in its place for office documents. No converter listens to sound; the error has the
 * contract's text. */
#include "config.h"

#include "files/document.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/account.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "files/charset/charset.h"
#include "files/charset/detect.h"
#include "files/pdftext.h"
#include "files/purepath.h"
#include "files/pytext.h"
#include "files/place/reach.h"
#include "files/textfile.h"

#define FILE_MAX (10u << 20)
#define TEXT_MAX (64u << 20)
#define KIND_MAX 4096
#define SAID_MAX 4096   /* a program's messages */
#define REASON_MAX 1000 /* the part that an error shows */
/* seconds to wait; a damaged document may keep a converter busy for ever */
#define PATIENCE 30

/* ---- programs ---- */

static bool
is_installed(const char *name)
{
	HR_FREE char *path = hr_path_which(getenv("PATH"), name);

	return path != NULL;
}

/* Waits for one of the descriptors, of which -1 is none. Returns false when the time is over. */
static bool
wait_for(struct pollfd *p, nfds_t n, int64_t deadline)
{
	int64_t left;
	int r;

	do {
		left = deadline - hr_now_ms();
		if (left <= 0)
			return false;
		r = poll(p, n, (int)left);
	} while (r == 0 || (r < 0 && errno == EINTR));
	return r > 0;
}

/* Reads a piece of the output. Returns the number of bytes; 0: its end; -1: no room, an error. */
static ssize_t
read_output(int from, struct hr_buf *out)
{
	char *room = hr_buf_reserve(out, 65536);
	ssize_t n = room != NULL ? hr_fd_read(from, room, 65536) : -1;

	if (n > 0)
		hr_buf_grew(out, (size_t)n);
	return n;
}

/* Reads a piece of the messages and keeps the start of all of them. */
static ssize_t
read_messages(int from, struct hr_buf *said)
{
	char piece[SAID_MAX];
	ssize_t n = hr_fd_read(from, piece, sizeof(piece));

	if (n > 0)
		hr_buf_add(said, piece,
		    (size_t)n < said->cap - said->len ? (size_t)n : said->cap - said->len);
	return n;
}

/* Reads a program's whole output and messages and waits for its end, both within PATIENCE. Returns
 * its wait status, or -1. The shell's account may stop the program, and its children may hold its
 * stdout open. */
static int
collect(pid_t pid, int from, struct hr_buf *out, int said_from, struct hr_buf *said)
{
	int64_t deadline = hr_now_ms() + 1000 * (int64_t)PATIENCE;
	HR_CLOSE int end = hr_pidfd_open(pid);
	struct pollfd p[] = {{.fd = from, .events = POLLIN}, {.fd = said_from, .events = POLLIN},
	    {.fd = end, .events = POLLIN}};
	ssize_t n = 1;
	int status = -1;

	/* before Linux 5.3 (no pidfd_open) a program may close its stdout and still run */
	while (n >= 0 && (p[0].fd >= 0 || p[2].fd >= 0) && wait_for(p, 3, deadline)) {
		if (p[1].revents != 0 && read_messages(said_from, said) <= 0)
			p[1].fd = -1;
		if (p[0].revents != 0 && (n = read_output(from, out)) == 0)
			p[0].fd = -1;
		if (p[2].revents != 0)
			p[2].fd = -1;
	}
	if (p[0].fd >= 0 || p[2].fd >= 0)
		(void)kill(-pid, SIGKILL);
	(void)hr_spawn_end(pid, &status);
	return p[0].fd < 0 ? status : -1;
}

/* Opens a pipe. Returns 0, or -1 with *err set. */
static int
open_pipe(int *ret_from, int *ret_to, struct hr_err *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return hr_err_sys(err, errno, "pipe");
	*ret_from = ends[0];
	*ret_to = ends[1];
	return 0;
}

/* Runs a program with the file as stdin and collects its output, and the start of its messages in
 * said, of SAID_MAX. Returns its wait status, or -1. The program reads the agent's bytes with the
 * rights of the shell's account: an exploit gains nothing. */
static int
run(const char *const *argv, const char *file, struct hr_buf *out, struct hr_buf *said,
    struct hr_err *err)
{
	const struct hr_reach *rules = hr_reach_get_rules();
	struct hr_account shell;
	struct hr_spawn_user user;
	int status;
	HR_CLOSE int in = hr_reach_open(AT_FDCWD, file, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	HR_CLOSE int out_from = -1;
	HR_CLOSE int out_to = -1;
	HR_CLOSE int said_from = -1;
	HR_CLOSE int said_to = -1;
	struct hr_spawn s = {.path = argv[0], .argv = argv, .setsid = true, .umask = -1};
	struct hr_spawn_fd fds[3] = {{in, STDIN_FILENO}};
	pid_t pid;

	if (in < 0)
		return hr_err_sys(err, errno, "open");
	if (open_pipe(&out_from, &out_to, err) < 0 || open_pipe(&said_from, &said_to, err) < 0)
		return -1;
	if (rules != NULL && rules->shell != 0 && geteuid() == 0) {
		hr_account_find(&shell, rules->shell);
		user = (struct hr_spawn_user){
		    shell.uid, shell.gid, shell.groups, (size_t)shell.ngroups};
		s.user = &user;
	}
	fds[1] = (struct hr_spawn_fd){out_to, STDOUT_FILENO};
	fds[2] = (struct hr_spawn_fd){said_to, STDERR_FILENO};
	s.fds = fds;
	s.nfds = 3;
	s.pdeathsig = SIGKILL;
	pid = hr_spawn(&s, err);
	hr_fd_close(&out_to);
	hr_fd_close(&said_to);
	status = pid >= 0 ? collect(pid, out_from, out, said_from, said) : -1;
	if (pid >= 0 && status < 0)
		return hr_err_set(err, HR_E_SYS, "%s failed", argv[0]);
	return status;
}

/* The input of a converter. */
struct source {
	const char *office, *file, *suffix;
	struct hr_buf *bytes; /* the whole file */
};

/* ---- converters: they return 0 with Markdown in raw; 1: not such a document; -1: reason in why
 * ---- */

/* Appends the reason for a failed run: its status and the first line of its messages. */
static void
say_failed(struct hr_buf *why, const char *name, int status, const struct hr_buf *said,
    const struct hr_err *err)
{
	const char *p = hr_buf_str(said), *end = strchrnul(p, '\n');
	size_t n = hr_pytext_rstrip(p, (size_t)(end - p));

	if (status < 0)
		hr_buf_adds(why, err->msg);
	else
		hr_buf_addf(why, "%s failed (%s)", name, hr_exit_words(status));
	if (n > REASON_MAX)
		n = hr_pytext_prefix(p, n, REASON_MAX);
	if (n > 0 && hr_charset_check_utf8(p, n, NULL) == 0)
		hr_buf_addf(why, ": %.*s", (int)n, p);
}

/* Converts in the order of pdftotext, for a poppler that is too old. */
static int
convert_old_pdf(const struct source *d, struct hr_buf *raw, struct hr_buf *why)
{
	const char *const argv[] = {"pdftotext", "-q", "-enc", "UTF-8", "-", "-", NULL};
	struct hr_err err = {.code = HR_OK};
	HR_BUF(said, SAID_MAX);
	int status = run(argv, d->file, raw, &said, &err);

	if (status != 0)
		say_failed(why, argv[0], status, &said, &err);
	return status == 0 ? 0 : -1;
}

static int
convert_pdf(const struct source *d, struct hr_buf *raw, struct hr_buf *why)
{
	const char *const argv[] = {HR_PDFTEXT_COMMAND, NULL};
	const struct hr_buf *bytes = d->bytes;
	struct hr_err err = {.code = HR_OK};
	HR_BUF(xml, TEXT_MAX);
	HR_BUF(said, SAID_MAX);
	int status;
	bool cut;

	/* PDF readers look for the header in the first 1024 bytes */
	if (memmem(bytes->p, bytes->len < 1024 ? bytes->len : 1024, "%PDF-", 5) == NULL)
		return 1;
	if (!is_installed(argv[0])) {
		hr_buf_adds(
		    why, "pdftohtml (of poppler-utils), which reads PDF files, is not installed");
		return -1;
	}
	status = run(argv, d->file, &xml, &said, &err);
	cut = status < 0 && xml.fail == HR_E_TOOLARGE;
	if (status == 0 || cut) {
		hr_pdftext(hr_buf_str(&xml), xml.len, raw);
		if (cut)
			hr_buf_adds(raw, "\n[the text is cut: the document is too long]\n");
		return 0;
	}
	if (status > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 1) {
		/* an option is unknown to this poppler */
		if (memmem(hr_buf_str(&said), said.len, "Usage:", 6) != NULL)
			return convert_old_pdf(d, raw, why);
		/* the original shows a damaged PDF as the text that it is */
		if (memchr(bytes->p, '\0', bytes->len) == NULL &&
		    hr_charset_check_utf8(bytes->p, bytes->len, NULL) == 0)
			return 1;
	}
	say_failed(why, argv[0], status, &said, &err);
	return -1;
}

static int
convert_sound(const struct source *d, struct hr_buf *raw, struct hr_buf *why)
{
	(void)d;
	(void)why;
	hr_buf_adds(raw, "### Audio Transcript:\nError. Could not transcribe this audio.");
	return 0;
}

static int
convert_packed_sound(const struct source *d, struct hr_buf *raw, struct hr_buf *why)
{
	if (is_installed("ffmpeg") || is_installed("avconv"))
		return convert_sound(d, raw, why);
	hr_buf_adds(raw, "\n\n### Audio Transcript:\nTranscription unavailable - ffmpeg/avconv not "
			 "installed.");
	return 0;
}

/* Converts by a program that prints the reason on stdout when its status is 1. */
static int
convert_office(const struct source *d, struct hr_buf *raw, struct hr_buf *why)
{
	const char *const argv[] = {d->office, d->suffix + 1, NULL};
	struct hr_err err = {.code = HR_OK};
	HR_BUF(said, SAID_MAX);
	int status;

	if (d->bytes->len < 4 || memcmp(d->bytes->p, "PK\3\4", 4) != 0)
		return 1;
	if (d->office == NULL || access(d->office, X_OK) != 0) {
		hr_buf_addf(why, "%s, which reads office documents, is not installed",
		    d->office != NULL ? d->office : "handrail-office");
		return -1;
	}
	status = run(argv, d->file, raw, &said, &err);
	if (status == 0)
		return 0;
	if (status < 0)
		hr_buf_adds(why, err.msg);
	else if (WIFEXITED(status) && WEXITSTATUS(status) == 1 && raw->len > 0)
		hr_buf_add(why, raw->p, raw->len);
	else
		hr_buf_adds(why, "the document needs too much time or memory, or is damaged");
	return -1;
}

static const struct converter {
	const char *suffix;
	int (*convert)(const struct source *d, struct hr_buf *raw, struct hr_buf *why);
} converters[] = {
    {".pdf", convert_pdf},
    {".docx", convert_office},
    {".pptx", convert_office},
    {".xlsx", convert_office},
    {".wav", convert_sound},
    {".mp3", convert_packed_sound},
    {".m4a", convert_packed_sound},
    {".flac", convert_packed_sound},
};

static const struct converter *
find_converter(const char *path, size_t len)
{
	struct hr_span s = hr_purepath_suffix(path, len);
	size_t i;

	for (i = 0; i < sizeof(converters) / sizeof(converters[0]); i++)
		if (s.len == strlen(converters[i].suffix) &&
		    strncasecmp(s.p, converters[i].suffix, s.len) == 0)
			return &converters[i];
	return NULL;
}

/* ---- all of it ---- */

/* Strips each line on the right and keeps at most one empty line in a row. */
static void
strip_lines(struct hr_buf *out, const char *p, size_t len)
{
	const char *end = p + len, *next;
	unsigned newlines = 0;
	size_t n;

	for (;; p = next + 1) {
		next = memchr(p, '\n', (size_t)(end - p));
		n = hr_pytext_rstrip(p, (size_t)((next != NULL ? next : end) - p));
		if (n > 0)
			newlines = 0;
		hr_buf_add(out, p, n);
		if (next == NULL)
			return;
		if (newlines < 2)
			hr_buf_addc(out, '\n');
		newlines++;
	}
}

/* Appends the file's actual type to the error. */
static void
refuse_kind(const struct hr_buf *bytes, struct hr_buf *why)
{
	HR_BUF(kind, KIND_MAX);

	hr_detect_kind(&kind, bytes->p, bytes->len);
	if (kind.fail == HR_OK && kind.len > 0 &&
	    hr_charset_check_utf8(kind.p, kind.len, NULL) == 0)
		hr_buf_addf(why, " but %s", kind.p);
}

static int
to_markdown(
    const struct source *d, const struct converter *c, struct hr_buf *raw, struct hr_buf *why)
{
	struct hr_buf *bytes = d->bytes;
	const struct hr_encoding utf8 = {.charset = &hr_charset_utf8};
	struct hr_err err = {.code = HR_OK};
	int r;

	if (hr_textfile_read(d->file, bytes, &err) < 0) {
		hr_buf_adds(why, strerror(err.sys));
		return -1;
	}
	if (bytes->len == 0) {
		hr_buf_adds(why, "Input was empty");
		return -1;
	}
	r = c != NULL ? c->convert(d, raw, why) : 1;
	if (r <= 0)
		return r;
	if (hr_textfile_decode(bytes, &utf8, raw, NULL) == 0)
		return 0;
	hr_buf_adds(why, "it is neither such a document nor text");
	refuse_kind(bytes, why);
	return -1;
}

int
hr_document_text(const char *office, const char *file, const char *path, size_t len,
    struct hr_buf *text, struct hr_buf *why)
{
	const struct converter *c = find_converter(path, len);
	HR_BUF(bytes, FILE_MAX + 1);
	HR_BUF(raw, TEXT_MAX);
	const struct source d = {office, file, c != NULL ? c->suffix : "", &bytes};
	int r;

	r = to_markdown(&d, c, &raw, why);
	if (r == 0)
		strip_lines(text, hr_buf_str(&raw), raw.len);
	if (raw.fail != HR_OK)
		text->fail = raw.fail;
	return r;
}
