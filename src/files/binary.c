/* Decides between binary and text. One pass over the bytes settles most files; a charset is
 * detected only when that would change the verdict. */
#include "config.h"

#include "files/binary.h"

#include <fcntl.h>
#include <string.h>
#include <sys/types.h>

#include "base/fd.h"
#include "files/charset/charset.h"
#include "files/charset/guess.h"
#include "files/place/reach.h"
#include "base/text/utf8.h"

enum byte_class {
	IS_PRINTABLE = 1, /* the byte counts as text in p */
	IS_LOW = 2,       /* the byte is below 0x7F */
	IS_BAD = 4,       /* the byte is 0x00 or 0xFF */
};

static unsigned char
classify(unsigned b)
{
	bool printable =
	    (b >= 0x20 && b <= 0x7E) || (b >= 0x08 && b <= 0x0A) || b == 0x0C || b == 0x0D;

	return (unsigned char)((printable ? IS_PRINTABLE : 0) | (b < 0x7F ? IS_LOW : 0) |
			       (b == 0x00 || b == 0xFF ? IS_BAD : 0));
}

/* Applies rule d. Comparisons are strict, and in integers so that 0.3 of 1000 bytes is exact. */
static bool
is_suspect(size_t odd, size_t low, size_t len)
{
	return (odd * 10 > len * 3 && low * 20 < len) || (odd * 5 > len * 4 && low * 5 > len * 4);
}

/* Counts the characters of more than one byte in UTF-8 that the original's detector accepts. With
 * *ret_cut the bytes end within a character; it does not count. Returns 0 for other bytes. */
static unsigned
count_wide(const char *p, size_t len, bool *ret_cut)
{
	const char *end = p + len;
	unsigned many = 0;
	size_t n;
	int32_t cp;

	*ret_cut = false;
	for (; p < end; p += n) {
		cp = hr_utf8_next(p, end, &n);
		if (cp < 0 && p + n == end && (unsigned char)*p >= 0xC2 &&
		    (unsigned char)*p <= 0xF4)
			*ret_cut = true;
		else if (cp < 0 || hr_utf8_is_surrogate(cp) || (cp >= 0x10000 && cp <= 0x1FFFF) ||
			 cp == 0x0E || cp == 0x0F || cp == 0x1B)
			return 0;
		else
			many += n > 1;
	}
	return many;
}

/* Applies rule e. */
static bool
is_decodable(const char *p, size_t len)
{
	enum hr_bom bom = hr_charset_bom(p, len);
	unsigned many;
	bool cut;

	switch (bom) {
	case HR_BOM_NONE: break;
	case HR_BOM_ODD: return false;
	default: return hr_charset_fits(hr_charset_of_bom(bom), p, len);
	}
	/* doc/files.md, "A charset that is certain", 2 */
	many = count_wide(p, len, &cut);
	if (hr_charset_has_high(p, len) && hr_charset_check_utf8(p, len, NULL) == 0)
		return many >= 4;
	if (cut && many >= 2)
		return false;
	return hr_guess_sure(p, len);
}

bool
hr_binary_head(const void *p, size_t len)
{
	const unsigned char *s = p;
	size_t i, odd = 0, low = 0;
	unsigned bad = 0, c;
	bool suspect;

	if (len == 0)
		return false;
	for (i = 0; i < len; i++) {
		c = classify(s[i]);
		odd += (c & IS_PRINTABLE) == 0;
		low += (c & IS_LOW) != 0;
		bad |= c & IS_BAD;
	}
	suspect = is_suspect(odd, low, len);
	if (!suspect && bad == 0)
		return false;
	/* the head is suspect or holds a bad byte, so the file is binary if it does not decode */
	return !is_decodable(p, len);
}

bool
hr_binary_name(const char *path, size_t len)
{
	return len >= 4 && memcmp(path + len - 4, ".pyc", 4) == 0;
}

bool
hr_binary_file(const char *path)
{
	HR_CLOSE int fd = hr_reach_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	char head[HR_BINARY_HEAD];
	ssize_t n;

	if (fd < 0)
		return false;
	n = hr_fd_read_full(fd, head, sizeof(head), NULL);
	return n > 0 && hr_binary_head(head, (size_t)n);
}
