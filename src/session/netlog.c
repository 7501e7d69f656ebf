/* Reads the broker's sentences about refused connections. */
#include "config.h"

#include "session/netlog.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

#define TAIL_MAX (64u << 10) /* bytes that are read at most, the last ones */
#define SENTENCES_MAX 5      /* different ones that an observation names */

struct sentence {
	const char *p;
	size_t len;
	bool earlier; /* true: it was there before the command */
	unsigned count;
};

void
hr_netlog_begin(struct hr_netlog *l)
{
	struct stat st;

	if (l->path == NULL || stat(l->path, &st) != 0)
		st = (struct stat){.st_ino = 0};
	if (l->file == 0) /* nothing was reported yet, and nothing before is this shell's */
		l->at = st.st_size;
	else if (st.st_ino != l->file || st.st_size < l->at)
		l->at = 0; /* a new file has taken the place of one that was full */
	l->file = st.st_ino;
	l->begun = st.st_size;
}

/* Counts the sentence of a line. Returns false if it is one too many. */
static bool
count_line(struct sentence list[SENTENCES_MAX], const char *p, size_t len, bool earlier)
{
	struct sentence s = {p, len, earlier, 1};
	const char *blank;
	size_t i;

	for (i = 0; i < 2; i++) { /* the time and the target */
		blank = memchr(s.p, ' ', s.len);
		if (blank == NULL)
			return true;
		s.len -= (size_t)(blank + 1 - s.p);
		s.p = blank + 1;
	}
	for (i = 0; i < SENTENCES_MAX; i++) {
		if (list[i].count == 0) {
			list[i] = s;
			return true;
		}
		if (list[i].earlier == earlier && list[i].len == s.len &&
		    memcmp(list[i].p, s.p, s.len) == 0) {
			list[i].count++;
			return true;
		}
	}
	return false;
}

void
hr_netlog_why(struct hr_netlog *l, struct hr_buf *out)
{
	struct sentence list[SENTENCES_MAX] = {{0}};
	HR_CLOSE int fd = l->path != NULL ? open(l->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	const char *p, *end;
	unsigned more = 0;
	struct stat st;
	HR_BUF(text, TAIL_MAX);
	size_t i, n;

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return;
	if (st.st_ino != l->file || st.st_size < l->at)
		l->at = l->begun = 0;
	l->file = st.st_ino;
	if (st.st_size - l->at > (off_t)TAIL_MAX)
		l->at = st.st_size - (off_t)TAIL_MAX;
	n = (size_t)(st.st_size - l->at);
	if (n == 0 || hr_buf_reserve(&text, n) == NULL ||
	    hr_fd_pread_full(fd, text.p, n, l->at) != 0)
		return;
	for (p = text.p; (end = memchr(p, '\n', (size_t)(text.p + n - p))) != NULL; p = end + 1)
		more += !count_line(list, p, (size_t)(end - p), l->at + (p - text.p) < l->begun);
	l->at += p - text.p;
	for (i = 0; i < SENTENCES_MAX && list[i].count > 0; i++) {
		hr_buf_adds(out, "\n[Network: ");
		hr_buf_adds(out, list[i].earlier ? "before this command began, " : "");
		hr_buf_add(out, list[i].p, list[i].len);
		if (list[i].count > 1)
			hr_buf_addf(out, ", %u times", list[i].count);
		hr_buf_adds(out, ".]");
	}
	if (more > 0)
		hr_buf_addf(
		    out, "\n[Network: %u more refusals, which \"handrail net log\" lists.]", more);
}
