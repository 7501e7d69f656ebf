/* Checks the structure of pictures, not their pixels. A model's service refuses a conversation for
 * ever once it holds an undecodable picture, so a truncated file must be found here. */
#include "config.h"

#include "files/picture.h"

#include <string.h>

static uint32_t
big(const unsigned char *p, unsigned n)
{
	uint32_t v = 0;

	while (n-- > 0)
		v = v << 8 | *p++;
	return v;
}

static uint32_t
little(const unsigned char *p, unsigned n)
{
	uint32_t v = 0;

	while (n-- > 0)
		v = v << 8 | p[n];
	return v;
}

static bool
is_at(const unsigned char *p, size_t len, size_t at, const char *what)
{
	size_t n = strlen(what);

	return at <= len && len - at >= n && memcmp(p + at, what, n) == 0;
}

/* Walks the chunks: length, name, data, CRC. */
static void
read_png(const unsigned char *p, size_t len, struct hr_picture *ret)
{
	size_t at = 8, n;
	bool pixels = false;

	if (!is_at(p, len, 12, "IHDR") || len < 24)
		return;
	ret->width = big(p + 16, 4);
	ret->height = big(p + 20, 4);
	while (len - at >= 12) {
		n = big(p + at, 4);
		if (n > len - at - 12)
			return;
		pixels |= is_at(p, len, at + 4, "IDAT") && n > 0;
		if (is_at(p, len, at + 4, "IEND")) {
			ret->whole = pixels;
			return;
		}
		at += n + 12;
	}
}

/* Walks the segments up to the pixel data, which ends with FF D9. */
static void
read_jpeg(const unsigned char *p, size_t len, struct hr_picture *ret)
{
	size_t at = 2, n;
	unsigned kind;

	while (len - at >= 4) {
		if (p[at] != 0xFF)
			return;
		kind = p[at + 1];
		if (kind == 0xFF) { /* skip padding */
			at++;
			continue;
		}
		n = big(p + at + 2, 2);
		if (n < 2 || n > len - at - 2)
			return;
		if (kind >= 0xC0 && kind <= 0xCF && kind != 0xC4 && kind != 0xC8 && kind != 0xCC &&
		    n >= 7) {
			ret->height = big(p + at + 5, 2);
			ret->width = big(p + at + 7, 2);
		}
		at += n + 2;
		if (kind == 0xDA) {
			ret->whole = memmem(p + at, len - at, "\xFF\xD9", 2) != NULL;
			return;
		}
	}
}

static void
read_gif(const unsigned char *p, size_t len, struct hr_picture *ret)
{
	size_t at = 13, n;

	if (len < at)
		return;
	ret->width = little(p + 6, 2);
	ret->height = little(p + 8, 2);
	if ((p[10] & 0x80) != 0)
		at += (size_t)3 << ((p[10] & 7) + 1);
	while (at < len) { /* skip blocks of data */
		if (p[at] == ';')
			return;
		n = p[at] == '!' ? 2 : p[at] == ',' ? 10 : 0;
		if (n == 0 || len - at < n)
			return;
		if (n == 10) {
			if ((p[at + 9] & 0x80) != 0)
				n += (size_t)3 << ((p[at + 9] & 7) + 1);
			n++; /* skip the minimum code size */
		}
		ret->whole |= n > 2; /* the first frame decides, and must be complete */
		for (at += n; at < len && p[at] != 0; at += (size_t)p[at] + 1)
			;
		if (at >= len) {
			ret->whole = false;
			return;
		}
		at++;
		if (ret->whole)
			return;
	}
}

static void
read_webp(const unsigned char *p, size_t len, struct hr_picture *ret)
{
	const unsigned char *q = p + 20; /* start of the first chunk */

	if (len < 30)
		return;
	if (is_at(p, len, 12, "VP8 ") && is_at(p, len, 23, "\x9D\x01\x2A")) {
		ret->width = little(q + 6, 2) & 0x3FFF;
		ret->height = little(q + 8, 2) & 0x3FFF;
	} else if (is_at(p, len, 12, "VP8L") && *q == 0x2F) {
		ret->width = (little(q + 1, 4) & 0x3FFF) + 1;
		ret->height = (little(q + 1, 4) >> 14 & 0x3FFF) + 1;
	} else if (is_at(p, len, 12, "VP8X")) {
		ret->width = little(q + 4, 3) + 1;
		ret->height = little(q + 7, 3) + 1;
	}
	ret->whole = little(p + 4, 4) <= len - 8;
}

bool
hr_picture_look(const void *p, size_t len, struct hr_picture *ret)
{
	static const struct {
		const char *begin, *mime;
		size_t len;
		void (*look)(const unsigned char *p, size_t len, struct hr_picture *ret);
	} kinds[] = {
	    {"\x89PNG\r\n\x1A\n", "image/png", 8, read_png},
	    {"\xFF\xD8\xFF", "image/jpeg", 3, read_jpeg},
	    {"GIF87a", "image/gif", 6, read_gif},
	    {"GIF89a", "image/gif", 6, read_gif},
	    {"RIFF", "image/webp", 4, read_webp},
	};
	size_t i;

	memset(ret, 0, sizeof(*ret));
	for (i = 0; len > 0 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (len < kinds[i].len || memcmp(p, kinds[i].begin, kinds[i].len) != 0)
			continue;
		if (kinds[i].look == read_webp && !is_at(p, len, 8, "WEBP"))
			continue;
		ret->mime = kinds[i].mime;
		kinds[i].look(p, len, ret);
		ret->whole &= ret->width > 0 && ret->height > 0;
		return true;
	}
	return false;
}
