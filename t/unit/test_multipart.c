/* files/multipart and files/params: the same calls whatever pieces a body comes in, and what is not
 * well-formed. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "files/multipart.h"
#include "files/params.h"

#define CRLF "\r\n"

/* The calls as text: "<disposition>data|". */
static int
note_begin(void *arg, const char *disposition, size_t len)
{
	struct hr_buf *b = arg;

	hr_buf_addc(b, '<');
	hr_buf_add(b, disposition != NULL ? disposition : "-", disposition != NULL ? len : 1);
	hr_buf_addc(b, '>');
	return 0;
}

static int
note_data(void *arg, const char *p, size_t len)
{
	ck_assert_uint_gt(len, 0);
	hr_buf_add(arg, p, len);
	return 0;
}

static int
note_end(void *arg)
{
	hr_buf_addc(arg, '|');
	return 0;
}

static const struct hr_multipart_ops notes = {note_begin, note_data, note_end};

/* 0 and the calls in b, or -1; the text is fed in pieces of `step` bytes. */
static int
parse(struct hr_buf *b, const char *boundary, const char *p, size_t len, size_t step)
{
	struct hr_multipart m;
	struct hr_err err = {0};
	int r;

	hr_buf_init(b, 1 << 20);
	r = hr_multipart_init(&m, boundary, strlen(boundary), &notes, b);
	for (; r == 0 && len > 0; p += step, len -= step) {
		step = step < len ? step : len;
		r = hr_multipart_feed(&m, p, step, &err);
	}
	ck_assert(r == 0 || err.code == HR_E_INVAL || err.code == HR_E_TOOLARGE || b->len == 0);
	hr_multipart_done(&m);
	return r;
}

#define HEAD "Content-Disposition: a" CRLF CRLF

static const struct {
	const char *text;
	const char *calls; /* NULL: malformed */
} bodies[] = {
    {"--B" CRLF HEAD "data" CRLF "--B--" CRLF, "<a>data|"},
    {CRLF CRLF "\n--B" CRLF HEAD CRLF "--B--", "<a>|"},
    {"--B" CRLF HEAD "1" CRLF "--B" CRLF HEAD "2" CRLF "--B--tail", "<a>1|<a>2|"},
    /* what looks like a boundary */
    {"--B" CRLF HEAD "x" CRLF "--" CRLF "--C" CRLF "--B-x" CRLF "--B\r-" CRLF "--Bx\r\r" CRLF
     "--B--",
	"<a>x" CRLF "--" CRLF "--C" CRLF "--B-x" CRLF "--B\r-" CRLF "--Bx\r\r|"},
    {"--B" CRLF HEAD CRLF CRLF CRLF "--B--", "<a>" CRLF CRLF "|"},
    {"--B" CRLF HEAD CRLF "--B\r" CRLF "--B--", "<a>" CRLF "--B\r|"},
    {"--B" CRLF HEAD CRLF "--B-" CRLF "--B--", "<a>" CRLF "--B-|"},
    /* blanks after a boundary */
    {"--B" CRLF HEAD "1" CRLF "--B \t" CRLF HEAD "2" CRLF "--B--", "<a>1|<a>2|"},
    {"--B\t " CRLF HEAD "1" CRLF "--B--", "<a>1|"},
    {"--B -- " CRLF HEAD "1" CRLF "--B--", NULL},
    {"--B \rx", NULL},
    {"--B" CRLF HEAD "1" CRLF "--B x" CRLF "--B--", NULL},
    {"--B" CRLF HEAD "1" CRLF "--B \r-" CRLF "--B--", NULL},
    {"--B" CRLF HEAD "1" CRLF "--B ", "<a>1"},
    /* headers */
    {"--B" CRLF CRLF "x" CRLF "--B--", "<->x|"},
    {"--B" CRLF "X-A:1" CRLF "cOnTent-disposition:   b ; c" CRLF "Y:" CRLF CRLF "x" CRLF "--B--",
	"<b ; c>x|"},
    {"--B" CRLF HEAD "Content-Disposition: late" CRLF "--B--", "<a>Content-Disposition: late|"},
    {"--B" CRLF "Content-Disposition: a" CRLF "Content-Disposition: b" CRLF CRLF CRLF "--B--",
	"<b>|"},
    /* ended early: no end of the part */
    {"--B" CRLF HEAD "data", "<a>data"},
    {"--B" CRLF HEAD "data" CRLF "--B", "<a>data"},
    {"--B" CRLF "Content-Dis", ""},
    {"", ""},
    {"--B--", ""},
    {"--B--" CRLF "--B" CRLF HEAD "x" CRLF "--B--", ""},
    /* malformed */
    {"x--B" CRLF, NULL},
    {"--C" CRLF, NULL},
    {"--Bx", NULL},
    {"--B\rx", NULL},
    {"--B-x", NULL},
    {"--B" CRLF ": v" CRLF CRLF, NULL},
    {"--B" CRLF "a b: v" CRLF CRLF, NULL},
    {"--B" CRLF "\xc3\xa9: v" CRLF CRLF, NULL},
    {"--B" CRLF "a: v\rx" CRLF CRLF, NULL},
    {"--B" CRLF HEAD, "<a>"},
    {"--B" CRLF "a: v" CRLF "\rx", NULL},
};

START_TEST(bodies_in_pieces)
{
	const char *text = bodies[_i].text, *calls = bodies[_i].calls;
	struct hr_buf b;
	size_t step;

	for (step = 1; step <= strlen(text) + 1; step++) {
		int r = parse(&b, "B", text, strlen(text), step);

		ck_assert_msg((r == 0) == (calls != NULL), "%s in steps of %zu: %d", text, step, r);
		if (calls != NULL)
			ck_assert_str_eq(hr_buf_str(&b), calls);
		hr_buf_done(&b);
	}
}
END_TEST

START_TEST(data_of_any_bytes)
{
	struct hr_buf b;
	HR_BUF(body, 1 << 20);
	size_t i, step;

	hr_buf_adds(&body, "--bound" CRLF HEAD);
	for (i = 0; i < 3000; i++)
		hr_buf_addc(&body, (char)(i * 7 % 256));
	hr_buf_adds(&body, CRLF "--boun" CRLF "--bound--");
	for (step = 1; step < 200; step += 3) {
		ck_assert_int_eq(parse(&b, "bound", body.p, body.len, step), 0);
		ck_assert_uint_eq(b.len, 3 + 3000 + 8 + 1);
		for (i = 0; i < 3000; i++)
			ck_assert_int_eq((unsigned char)b.p[3 + i], i * 7 % 256);
		hr_buf_done(&b);
	}
}
END_TEST

START_TEST(headers_have_an_end)
{
	struct hr_buf b;
	HR_BUF(body, 1 << 20);
	size_t i;

	hr_buf_adds(&body, "--B" CRLF);
	for (i = 0; i <= HR_MULTIPART_HEADERS_MAX / 4; i++)
		hr_buf_adds(&body, "ab:cd" CRLF);
	ck_assert_int_eq(parse(&b, "B", body.p, body.len, 1000), -1);
	hr_buf_done(&b);
	hr_buf_reset(&body);
	hr_buf_adds(&body, "--B" CRLF "a: ");
	for (i = 0; i < HR_MULTIPART_HEADERS_MAX + 1; i++)
		hr_buf_addc(&body, 'x');
	ck_assert_int_eq(parse(&b, "B", body.p, body.len, 1000), -1);
	hr_buf_done(&b);
}
END_TEST

static int
stop_now(void *arg, const char *p, size_t len)
{
	(void)arg;
	(void)p;
	(void)len;
	return -7;
}

START_TEST(a_call_can_stop_it)
{
	static const struct hr_multipart_ops ops = {note_begin, stop_now, note_end};
	static const char text[] = "--B" CRLF HEAD "data";
	struct hr_err err = {0};
	struct hr_multipart m;
	HR_BUF(b, 100);

	ck_assert_int_eq(hr_multipart_init(&m, "B", 1, &ops, &b), 0);
	ck_assert_int_eq(hr_multipart_feed(&m, text, strlen(text), &err), -7);
	ck_assert_int_eq(err.code, HR_OK);
	hr_multipart_done(&m);
	ck_assert_int_eq(hr_multipart_init(&m, "", 0, &ops, &b), -1);
	hr_multipart_done(&m);
}
END_TEST

/* Answers of Python's email.message.Message.get_params(). */
static const struct {
	const char *header, *name, *value; /* NULL: none */
} params[] = {
    {"multipart/form-data; boundary=abc", "boundary", "abc"},
    {"multipart/form-data; BOUNDARY=\"a b;c\"; x=y", "boundary", "a b;c"},
    {"multipart/form-data", "boundary", NULL},
    {"multipart/form-data; boundary", "boundary", ""},
    {"boundary=1; other=2", "boundary", NULL},
    {"form-data; name=\"file\"; filename=\"a\\\"b\\\\c.txt\"", "filename", "a\"b\\c.txt"},
    {"form-data; name=\"x; filename=no\"; filename=yes", "filename", "yes"},
    {"form-data; filename=one; filename=two", "filename", "two"},
    {"form-data; filename=<angle>", "filename", "angle"},
    {"form-data; filename*=UTF-8''n%C3%A4%zz.txt; filename=plain", "filename", "n\xC3\xA4%zz.txt"},
    {"form-data; filename=\"\"", "filename", ""},
    {"form-data; filename=\"", "filename", "\""},
    {"form-data;filename = \" x \" ", "filename", " x "},
    {"form-data; filename*0=a; filename*1=b", "filename", NULL},
    {"form-data; xfilename=a; filenamex=b", "filename", NULL},
    {";;;=;filename=e;", "filename", "e"},
};

START_TEST(parameters)
{
	HR_BUF(b, 1000);
	bool found;

	found = hr_params_get(params[_i].header, strlen(params[_i].header), params[_i].name, &b);
	ck_assert_int_eq(found, params[_i].value != NULL);
	if (found)
		ck_assert_str_eq(hr_buf_str(&b), params[_i].value);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("multipart");
	TCase *tc = tcase_create("multipart");
	SRunner *sr;
	int failed;

	tcase_add_loop_test(tc, bodies_in_pieces, 0, (int)(sizeof(bodies) / sizeof(bodies[0])));
	tcase_add_test(tc, data_of_any_bytes);
	tcase_add_test(tc, headers_have_an_end);
	tcase_add_test(tc, a_call_can_stop_it);
	tcase_add_loop_test(tc, parameters, 0, (int)(sizeof(params) / sizeof(params[0])));
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
