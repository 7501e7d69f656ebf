/* files/picture: the sizes of pictures, and which of them are complete. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "files/picture.h"
#include "lines.h"

#define PICTURE(text) text, sizeof(text) - 1

/* Each is complete with its last byte and not before it. */
static const struct {
	const char *bytes;
	size_t len;
	const char *mime;
	uint32_t width, height;
} pictures[] = {
    {PICTURE("\x89PNG\r\n\x1A\n"
	     "\0\0\0\x0D"
	     "IHDR\0\1\2\3\0\0\4\5\x08\2\0\0\0crc1"
	     "\0\0\0\1"
	     "IDATxcrc2"
	     "\0\0\0\0"
	     "IENDcrc3"),
	"image/png", 0x10203, 0x405},
    {PICTURE("\xFF\xD8\xFF\xFF\xE0\0\4ab"             /* with padding before the name */
	     "\xFF\xC4\0\x0B\x08\7\7\7\7abcd"         /* a table, which has no size */
	     "\xFF\xC2\0\x0B\x08\1\2\3\4\1\x11\x22\0" /* the frame */
	     "\xFF\xDA\0\2x\xFF\0y\xFF\xD9"),
	"image/jpeg", 0x304, 0x102},
    {PICTURE("GIF89a\2\1\4\3\x80\0\0"
	     "colors"
	     "!\xF9\4abcd\0"
	     ",abcdefgh\x81"
	     "more colors.\2\3abc\1d\0"),
	"image/gif", 0x102, 0x304},
    {PICTURE("GIF87a\2\1\4\3\0\0\0,abcdefgh\0\2\1a\0"), "image/gif", 0x102, 0x304},
    {PICTURE("RIFF\x16\0\0\0WEBPVP8 \x0A\0\0\0abc\x9D\1\x2A\2\x41\4\xC3"), "image/webp", 0x102,
	0x304},
    {PICTURE("RIFF\x16\0\0\0WEBPVP8L\x0A\0\0\0\x2F\2\1\xC1\0abcde"), "image/webp", 0x103, 0x305},
    {PICTURE("RIFF\x16\0\0\0WEBPVP8X\x0A\0\0\0abcd\3\2\1\6\5\4"), "image/webp", 0x10204, 0x40507},
};

/* Looks at a copy, whose end a sanitizer knows. */
static bool
look(const char *bytes, size_t len, struct hr_picture *ret)
{
	char *copy = malloc(len + 1);
	bool found;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy + 1, bytes, len);
	found = hr_picture_look(copy + 1, len, ret);
	free(copy);
	return found;
}

START_TEST(sizes_and_ends)
{
	struct hr_picture got;
	size_t i, n;

	for (i = 0; i < sizeof(pictures) / sizeof(pictures[0]); i++) {
		ck_assert(look(pictures[i].bytes, pictures[i].len, &got));
		ck_assert_str_eq(got.mime, pictures[i].mime);
		ck_assert_msg(got.width == pictures[i].width && got.height == pictures[i].height,
		    "%zu: %#x, %#x", i, got.width, got.height);
		ck_assert_msg(got.whole, "%zu", i);
		for (n = 0; n < pictures[i].len; n++)
			ck_assert_msg(
			    !look(pictures[i].bytes, n, &got) || !got.whole, "%zu: %zu", i, n);
	}
}
END_TEST

/* The beginning is a picture's, so the type is known, and the rest is not. */
START_TEST(damaged)
{
	static const struct {
		const char *bytes;
		size_t len;
	} rows[] = {
	    {PICTURE("\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR\0\0\0\0\0\0\4\5\x08\2\0\0\0crc1"
		     "\0\0\0\1"
		     "IDATxcrc2\0\0\0\0IENDcrc3")}, /* no width */
	    {PICTURE("\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR\0\0\0\1\0\0\4\5\x08\2\0\0\0crc1"
		     "\0\0\0\0IDATcrc2\0\0\0\0IENDcrc3")}, /* no pixels */
	    {PICTURE("\xFF\xD8\xFF\xC0\0\x0B\x08\1\2\3\4\1\x11\x22\0 "
		     "\xFF\xDA\0\2x\xFF\xD9")}, /* something between the segments */
	    {PICTURE("\xFF\xD8\xFF\xC0\0\x0B\x08\1\2\3\4\1\x11\x22\0\xFF\xFE\0\1"
		     "\xFF\xDA\0\2x\xFF\xD9")},                  /* an impossible length */
	    {PICTURE("\xFF\xD8\xFF\xDA\0\2x\xFF\xD9")},          /* no frame */
	    {PICTURE("GIF89a\2\1\4\3\0\0\0!\xF9\4abcd\0;")},     /* no image */
	    {PICTURE("GIF89a\2\1\4\3\0\0\0?abcdefgh\0\2\1a\0")}, /* an unknown block */
	    {PICTURE("RIFF\x17\0\0\0WEBPVP8X\x0A\0\0\0abcd\3\2\1\6\5\4")},
	    {PICTURE("RIFF\x16\0\0\0WEBPVP8L\x0A\0\0\0\x2E\2\1\xC1\0abcde")},
	};
	struct hr_picture got;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_msg(look(rows[i].bytes, rows[i].len, &got) && !got.whole, "%zu", i);
	ck_assert(!look(PICTURE("RIFF\x16\0\0\0WAVEVP8X\x0A\0\0\0abcd\3\2\1\6\5\4"), &got));
	ck_assert(!look(PICTURE("GIF88a\2\1\4\3\0\0\0,abcdefgh\0\2\1a\0"), &got));
	ck_assert(!look("", 0, &got));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("picture");
	TCase *c = tcase_create("picture");

	tcase_add_test(c, sizes_and_ends);
	tcase_add_test(c, damaged);
	suite_add_tcase(s, c);
	return lines_run(s);
}
