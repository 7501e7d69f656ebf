/* Reads the broker's sentences about refused connections. */
#include "config.h"

#include "session/netlog.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

#define TAIL_MAX (64u << 10) /* bytes that are read at most, the last ones */
#define SENTENCES_MAX 5      /* different ones that an observation names */

struct sentence {
	const char *p;
	size_t len;
	unsigned count;
};

void
hr_netlog_begin(struct hr_netlog *l)
{
	struct stat st;

	l->file = 0;
	l->at = 0;
	if (l->path == NULL || stat(l->path, &st) != 0)
		return;
	l->file = st.st_ino;
	l->at = st.st_size;
}

/* Counts the sentence of a line. Returns false if it is one too many. */
static bool
count_line(struct sentence list[SENTENCES_MAX], const char *p, size_t len)
{
	struct sentence s = {p, len, 1};
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
		if (list[i].len == s.len && memcmp(list[i].p, s.p, s.len) == 0) {
			list[i].count++;
			return true;
		}
	}
	return false;
}

void
hr_netlog_why(const struct hr_netlog *l, struct hr_buf *out)
{
	struct sentence list[SENTENCES_MAX] = {{0}};
	HR_CLOSE int fd = l->path != NULL ? open(l->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	const char *p, *end;
	unsigned more = 0;
	struct stat st;
	off_t at;
	size_t i, n;
	HR_BUF(text, TAIL_MAX);

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return;
	/* a new file has taken the place of one that was full */
	at = st.st_ino == l->file && st.st_size >= l->at ? l->at : 0;
	if (st.st_size - at > (off_t)TAIL_MAX)
		at = st.st_size - (off_t)TAIL_MAX;
	n = (size_t)(st.st_size - at);
	if (n == 0 || hr_buf_reserve(&text, n) == NULL || hr_fd_pread_full(fd, text.p, n, at) != 0)
		return;
	for (p = text.p; (end = memchr(p, '\n', (size_t)(text.p + n - p))) != NULL; p = end + 1)
		more += !count_line(list, p, (size_t)(end - p));
	for (i = 0; i < SENTENCES_MAX && list[i].count > 0; i++) {
		hr_buf_adds(out, "\n[Network: ");
		hr_buf_add(out, list[i].p, list[i].len);
		if (list[i].count > 1)
			hr_buf_addf(out, ", %u times", list[i].count);
		hr_buf_adds(out, ".]");
	}
	if (more > 0)
		hr_buf_addf(out, "\n[Network: %u more refusals.]", more);
}
