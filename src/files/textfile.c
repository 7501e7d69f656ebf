/* Reads whole files. */
#include "config.h"

#include "files/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "files/binary.h"
#include "files/charset/charset.h"
#include "files/pytext.h"
#include "files/place/reach.h"

#define PIECE (64u << 10)

/* Decides once the bytes for the verdict, or all bytes, have arrived. */
static bool
is_binary(const struct hr_buf *b, bool all, bool *looked)
{
	if (*looked || (!all && b->len < HR_BINARY_HEAD))
		return false;
	*looked = true;
	return b->len > 0 &&
	       hr_binary_head(b->p, b->len < HR_BINARY_HEAD ? b->len : HR_BINARY_HEAD);
}

/* Reads the file; ret_binary NULL: do not check whether it is binary. */
static int
read_file(const char *path, struct hr_buf *b, bool *ret_binary, struct hr_err *err)
{
	HR_CLOSE int fd = hr_reach_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	bool looked = ret_binary == NULL, sized, ended = false;
	struct stat st = {0};
	size_t want = PIECE;
	ssize_t n = -1;
	char *room;

	if (fd < 0)
		return hr_err_sys(err, errno, "%s", path);
	if (fstat(fd, &st) == 0) {
		n = S_ISDIR(st.st_mode) ? -1 : 0;
		errno = EISDIR;
	}
	/* one byte more than expected, so that the first read also finds the end */
	sized = n == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size < b->cap;
	if (sized && st.st_size > 0) /* files of the kernel report 0 as well */
		want = (size_t)st.st_size + 1;
	while (n >= 0 && !ended) {
		if (b->len == b->cap) {
			errno = EFBIG;
			n = -1;
			break;
		}
		if (want > b->cap - b->len)
			want = b->cap - b->len;
		room = hr_buf_reserve(b, want);
		if (room == NULL)
			break;
		n = hr_fd_read(fd, room, want);
		if (n < 0)
			break;
		hr_buf_grew(b, (size_t)n);
		ended = n == 0 || (sized && (size_t)n < want && b->len == (size_t)st.st_size);
		if (is_binary(b, ended, &looked))
			*ret_binary = ended = true;
		want = (size_t)n < want ? want - (size_t)n : PIECE;
	}
	if (n < 0)
		(void)hr_err_sys(err, errno, "%s", path);
	return n < 0 ? -1 : hr_buf_check(b, err);
}

int
hr_textfile_read(const char *path, struct hr_buf *b, struct hr_err *err)
{
	return read_file(path, b, NULL, err);
}

int
hr_textfile_read_text(const char *path, struct hr_buf *b, bool *ret_binary, struct hr_err *err)
{
	*ret_binary = false;
	return read_file(path, b, ret_binary, err);
}

int
hr_textfile_decode(
    struct hr_buf *bytes, const struct hr_encoding *e, struct hr_buf *text, struct hr_buf *why)
{
	struct hr_buf swap;
	size_t from = text->len;

	if (e->charset->kind == HR_CHARSET_UTF8 && !e->mark && from == 0) {
		if (hr_charset_check_utf8(hr_buf_str(bytes), bytes->len, why) < 0)
			return -1;
		swap = *text;
		*text = *bytes;
		text->cap = swap.cap > bytes->cap ? swap.cap : bytes->cap;
		*bytes = swap;
	} else if (hr_charset_decode(e->charset, hr_buf_str(bytes), bytes->len, text, why) < 0) {
		return -1;
	}
	hr_pytext_universal(text, from);
	return 0;
}
