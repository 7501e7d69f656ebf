/* Screenshots, and the marks of elements on them. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/browser/page/picture.h"

#include "lines.h"

static struct br_picture picture;
static struct br_props props;
static struct hr_buf png;
static struct hr_err err;

static void
setup(void)
{
	picture = (struct br_picture){malloc(100 * 60 * 3), 100, 60};
	memset(picture.rgb, 200, 100 * 60 * 3);
	br_props_init(&props);
	hr_buf_init(&png, 1 << 22);
}

static void
teardown(void)
{
	br_picture_done(&picture);
	br_props_done(&props);
	hr_buf_done(&png);
}

static void
element(const char *bid, int marked, double x, double y, double width, double height)
{
	struct br_prop *p = br_props_put(&props, bid);

	p->marked = (signed char)marked;
	p->has_bbox = true;
	p->bbox[0] = x;
	p->bbox[1] = y;
	p->bbox[2] = width;
	p->bbox[3] = height;
}

static int
grey(size_t x, size_t y)
{
	return picture.rgb[(y * picture.width + x) * 3 + 1];
}

static size_t
painted(void)
{
	size_t i, n = 0;

	for (i = 0; i < picture.width * picture.height; i++)
		n += picture.rgb[i * 3] != 200;
	return n;
}

START_TEST(round_trip)
{
	struct br_picture again;

	picture.rgb[0] = 1;
	picture.rgb[5] = 77;
	ck_assert_int_eq(br_picture_write(&picture, &png, &err), 0);
	ck_assert_int_eq(br_picture_read(&again, png.p, png.len, &err), 0);
	ck_assert_uint_eq(again.width, 100);
	ck_assert_uint_eq(again.height, 60);
	ck_assert_mem_eq(again.rgb, picture.rgb, 100 * 60 * 3);
	br_picture_done(&again);
}
END_TEST

START_TEST(marks)
{
	element("7", 1, 20, 20, 60, 30);
	ck_assert(br_picture_has_marks(&props));
	br_picture_mark(&picture, &props);
	ck_assert_int_eq(grey(20, 45), 0);   /* the left side: a dash */
	ck_assert_int_eq(grey(20, 40), 200); /* and a gap */
	ck_assert_int_eq(grey(45, 50), 0);   /* the bottom */
	ck_assert_int_eq(grey(20, 20), 255); /* the label's frame begins at x */
	ck_assert_int_eq(grey(30, 24), 255); /* and ends behind the bid */
	ck_assert_int_eq(grey(21, 19), 0);   /* it is black inside */
	ck_assert_int_eq(grey(23, 21), 255); /* with a 7 in white */
	ck_assert_int_eq(grey(23, 22), 0);
	ck_assert_int_eq(grey(50, 30), 200); /* nothing in the box */
}
END_TEST

START_TEST(unmarked)
{
	element("1", 0, 10, 10, 50, 40);
	element("2", -1, 10, 10, 50, 40);
	element("3", 1, 10, 10, 4, 4);
	element("4", 1, 10, 10, -50, 40);
	br_props_put(&props, "5")->marked = 1;
	ck_assert(!br_picture_has_marks(&props));
	br_picture_mark(&picture, &props);
	ck_assert_uint_eq(painted(), 0);
}
END_TEST

/* However large and far away: in no time, and nothing outside the picture. */
START_TEST(beyond)
{
	element("1", 1, -1e12, -1e12, 2e12, 2e12);
	element("2", 1, 1e300, 0, 1e300, 10);
	element("6", 1, -1e300, -1e299, 1e301, 1e300);
	element("3", 1, -5, -5, 1e9, 30);
	element("4", 1, 95, 55, 50, 50);
	element("a-bid-of-a-page-that-wrote-its-own-attribute-and-is-long", 1, 0, 30, 1e308, 1e308);
	br_picture_mark(&picture, &props);
	ck_assert_uint_gt(painted(), 0);
}
END_TEST

START_TEST(refused)
{
	struct br_picture p;
	size_t i;

	ck_assert_int_eq(br_picture_read(&p, "no picture", 10, &err), -1);
	ck_assert_int_eq(br_picture_write(&picture, &png, &err), 0);
	for (i = 0; i < png.len - 20; i += 7)
		ck_assert_int_eq(br_picture_read(&p, png.p, i, &err), -1);
	memcpy(png.p + 16, "\0\0\xFF\xFF\0\0\xFF\xFF", 8); /* width and height */
	memcpy(png.p + 29, "\x5D\xE5\x75\x06", 4);         /* whatever the checksum: not taken */
	ck_assert_int_eq(br_picture_read(&p, png.p, png.len, &err), -1);
}
END_TEST

/* A picture of 5000 times 5000 pixels is a few kilobytes, and 75 MB once it is read. */
START_TEST(too_large)
{
	struct br_picture p;
	HR_BUF(b, 1 << 28);
	HR_CLEAN(br_picture_done) struct br_picture large = {calloc(5000 * 5000, 3), 5000, 5000};

	ck_assert_int_eq(br_picture_write(&large, &b, &err), 0);
	ck_assert_int_eq(br_picture_read(&p, b.p, b.len, &err), -1);
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("browser_picture");
	TCase *t = tcase_create("picture");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, round_trip);
	tcase_add_test(t, marks);
	tcase_add_test(t, unmarked);
	tcase_add_test(t, beyond);
	tcase_add_test(t, refused);
	tcase_add_test(t, too_large);
	suite_add_tcase(s, t);
	return lines_run(s);
}
