/* The types of E2B's downloads, the ranges of a request, and how the name of a file is sent. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "lines.h"
#include "request.h"
#include "worker/e2b/e2b.h"
#include "worker/e2b/mime.h"

#define TEXT "text/plain; charset=utf-8"
#define HTML "text/html; charset=utf-8"
#define OCTETS "application/octet-stream"

START_TEST(types_by_name)
{
	static const struct {
		const char *name, *type;
	} rows[] = {
	    {"/a/b.avif", "image/avif"},
	    {"/a/b.PNG", "image/png"},
	    {"/a/b.tar.gz", "application/gzip"},
	    {"/a/.txt", TEXT},
	    {"/a/b.zip", "application/zip"},
	    {"/a/b.unknown", NULL},
	    {"/a/b.", NULL},
	    {"/a/png", NULL},
	    {"/a.png/b", NULL},
	};
	const char *type;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		type = hr_mime_by_name(rows[i].name);
		ck_assert_msg((type == NULL) == (rows[i].type == NULL), "%s", rows[i].name);
		if (type != NULL)
			ck_assert_str_eq(type, rows[i].type);
	}
}
END_TEST

static const struct {
	const char *p;
	size_t len;
	const char *type;
} contents[] = {
#define ROW(text, type)                                                                            \
	{                                                                                          \
		text, sizeof(text) - 1, type                                                       \
	}
    ROW("", TEXT),
    ROW("abc", TEXT),
    ROW("\xff", TEXT),
    ROW("<html>", HTML),
    ROW("\t\n\f\r <!DOCTYPE html ", HTML),
    ROW("<p >", HTML),
    ROW("<html", TEXT),
    ROW("<htmlx>", TEXT),
    ROW("a<html>", TEXT),
    ROW("<!-->", HTML),
    ROW(" <?xml", "text/xml; charset=utf-8"),
    ROW("<?xm", TEXT),
    ROW("%PDF-", "application/pdf"),
    ROW("%PDF", TEXT),
    ROW(" %PDF-", TEXT),
    ROW("\x89PNG\r\n\x1a\n", "image/png"),
    ROW("\x89PNG\r\n\x1a", OCTETS),
    ROW("PK\3\4", "application/zip"),
    ROW("\0\0\1\0", "image/x-icon"),
    ROW("RIFF\1\1\1\1WEBPVP", "image/webp"),
    ROW("RIFF\1\1\1\1WEBPVP8 ", "image/webp"),
    ROW("RIFF\1\1\1\1WEBPV", OCTETS),
    ROW("RIFF1111WEBPXX", TEXT),
    ROW("RIFF1111WAVE", "audio/wave"),
    ROW("RIFF1111WAV", TEXT),
    ROW("RIFX1111WAVE", TEXT),
    ROW("a\x08", OCTETS),
    ROW("a\tb", TEXT),
    ROW("a\x0b", OCTETS),
    ROW("a\x0c\x0d", TEXT),
    ROW("a\x0e", OCTETS),
    ROW("a\x1a", OCTETS),
    ROW("a\x1b", TEXT),
    ROW("a\x1c", OCTETS),
    ROW("a\x1f", OCTETS),
    ROW("a ", TEXT),
    ROW("a\0", OCTETS),
};

START_TEST(types_by_content)
{
	/* exactly as many bytes as there are, for tools that see a read past the end */
	char *p = malloc(contents[_i].len + 1);

	ck_assert_ptr_nonnull(p);
	memcpy(p, contents[_i].p, contents[_i].len + 1);
	ck_assert_str_eq(hr_mime_by_content(p, contents[_i].len), contents[_i].type);
	free(p);
}
END_TEST

/* Bytes after the first 512 decide nothing. */
START_TEST(long_content)
{
	char text[HR_MIME_SNIFF + 1];

	memset(text, 'a', sizeof(text));
	text[HR_MIME_SNIFF] = '\0';
	ck_assert_str_eq(hr_mime_by_content(text, sizeof(text)), TEXT);
	text[HR_MIME_SNIFF - 1] = '\0';
	ck_assert_str_eq(hr_mime_by_content(text, sizeof(text)), OCTETS);
}
END_TEST

START_TEST(dispositions)
{
	static const char *const rows[][2] = {
	    {"a.txt", "inline; filename=a.txt"},
	    {"a b", "inline; filename=\"a b\""},
	    {"a\tb", "inline; filename=\"a\tb\""},
	    {"a\"b\\c", "inline; filename=\"a\\\"b\\\\c\""},
	    {"a~", "inline; filename=a~"},
	    {"a'*%b", "inline; filename=a'*%b"},
	    {"a\nb", "inline; filename*=utf-8''a%0Ab"},
	    {"a\x7f", "inline; filename*=utf-8''a%7F"},
	    {"\xC3\xA9'*% =b", "inline; filename*=utf-8''%C3%A9%27%2A%25%20%3Db"},
	};
	HR_BUF(b, 1000);
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		hr_buf_reset(&b);
		hr_mime_put_disposition(&b, rows[i][0]);
		ck_assert_str_eq(hr_buf_str(&b), rows[i][1]);
	}
}
END_TEST

START_TEST(parents)
{
	static const char *const rows[][2] = {{"/a/b", "/a"}, {"/a", "/"}, {"/a/b/c", "/a/b"}};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		HR_FREE char *path = hr_e2b_parent(rows[i][0]);

		ck_assert_str_eq(path, rows[i][1]);
	}
}
END_TEST

static const struct {
	const char *header;
	off_t size;
	int n;
	struct hr_bytepart to[3];
} ranges[] = {
    {"bytes=0-0", 10, 1, {{0, 1}}}, {"bytes=0-9", 10, 1, {{0, 10}}},
    {"bytes=0-99", 10, 1, {{0, 10}}}, {"bytes=9-", 10, 1, {{9, 1}}}, {"bytes=-1", 10, 1, {{9, 1}}},
    {"bytes=-99", 10, 1, {{0, 10}}}, {"bytes=0-0,2-3, 9-9", 10, 3, {{0, 1}, {2, 2}, {9, 1}}},
    {"bytes=0-0,,\t2-3,", 10, 2, {{0, 1}, {2, 2}}}, {"bytes=0-4,5-9", 10, 2, {{0, 5}, {5, 5}}},
    {"bytes=0-5,5-9", 10, 0, {{0, 0}}}, /* more than the file */
    {"bytes=0-0,10-", 10, 1, {{0, 1}}}, {"bytes=10-", 10, -1, {{0, 0}}},
    {"bytes=10-,11-", 10, -1, {{0, 0}}}, {"bytes=0-", 0, 0, {{0, 0}}}, {"bytes=", 10, 0, {{0, 0}}},
    {"bytes=a", 10, -2, {{0, 0}}}, {"bytes=0-0,b", 10, -2, {{0, 0}}},
    {"bytes=5-4", 10, -2, {{0, 0}}}, {"lines=0-0", 10, -2, {{0, 0}}},
    {"bytes=0000000000000000000000000000000000000000000000000000000-1", 10, 1, {{0, 2}}},
    {"bytes=00000000000000000000000000000000000000000000000000000000-1", 10, -2,
	{{0, 0}}}, /* too long */
};

START_TEST(ranges_of_a_request)
{
	struct hr_bytepart to[HR_E2B_RANGES];
	int i, n = hr_e2b_ranges(ranges[_i].header, ranges[_i].size, to);

	ck_assert_int_eq(n, ranges[_i].n);
	for (i = 0; i < n; i++) {
		ck_assert_int_eq(to[i].from, ranges[_i].to[i].from);
		ck_assert_int_eq(to[i].len, ranges[_i].to[i].len);
	}
}
END_TEST

START_TEST(many_ranges)
{
	struct hr_bytepart to[HR_E2B_RANGES];
	HR_BUF(b, 1000);
	int i;

	hr_buf_adds(&b, "bytes=0-0");
	for (i = 1; i < HR_E2B_RANGES; i++)
		hr_buf_addf(&b, ",%d-%d", i, i);
	ck_assert_int_eq(hr_e2b_ranges(hr_buf_str(&b), 1000, to), HR_E2B_RANGES);
	hr_buf_adds(&b, ",99-99");
	ck_assert_int_eq(hr_e2b_ranges(hr_buf_str(&b), 1000, to), 0);
}
END_TEST

static const struct {
	const char *query, *refused; /* NULL: accepted */
} queries[] = {
    {"", NULL},
    {"path=a&username=b&signature=c&signature_expiration=1", NULL},
    {"other=1&other=2", NULL},
    {"path=a&pat=b", NULL},
    {"path=a&p%61th=b", "path"},
    {"path&path", "path"},
    {"username=&a=1&username=", "username"},
    {"signature=a&signature=b", "signature"},
    {"signature_expiration=1&signature_expiration=1", "signature_expiration"},
    {"signature_expiration=", ""},
    {"signature_expiration=-1", ""},
    {"signature_expiration=999999999999999999", NULL},
    {"signature_expiration=1000000000000000000", ""},
};

START_TEST(queries_of_requests)
{
	char uri[200];
	HR_BUF(path, 1000);
	HR_BUF(want, 1000);
	HR_CLEAN(hr_answer_done) struct hr_answer a;
	struct hr_request r;
	struct hr_e2b_call c = {.r = &r, .ret = &a};
	const char *refused = queries[_i].refused;

	(void)snprintf(uri, sizeof(uri), "/files?%s", queries[_i].query);
	r = request_blank("GET", uri);
	r.path = &path;
	hr_answer_init(&a);
	ck_assert_int_eq(hr_request_split(&r), 0);
	ck_assert_int_eq(hr_e2b_check_query(&c), refused == NULL);
	if (refused == NULL)
		return;
	ck_assert_int_eq(a.status, 400);
	if (*refused != '\0')
		hr_buf_addf(&want,
		    "Invalid format for parameter %s: multiple values for single value parameter "
		    "'%s'\n",
		    refused, refused);
	else
		hr_buf_addf(&want,
		    "Invalid format for parameter signature_expiration: error binding string "
		    "parameter: strconv.ParseInt: parsing \"%s\": invalid syntax\n",
		    queries[_i].query + strlen("signature_expiration="));
	ck_assert_str_eq(hr_buf_str(&a.body), hr_buf_str(&want));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("e2b_worker");
	TCase *t = tcase_create("e2b_worker");

	tcase_add_test(t, types_by_name);
	tcase_add_loop_test(t, types_by_content, 0, (int)(sizeof(contents) / sizeof(*contents)));
	tcase_add_test(t, long_content);
	tcase_add_test(t, dispositions);
	tcase_add_test(t, parents);
	tcase_add_loop_test(t, ranges_of_a_request, 0, (int)(sizeof(ranges) / sizeof(*ranges)));
	tcase_add_test(t, many_ranges);
	tcase_add_loop_test(t, queries_of_requests, 0, (int)(sizeof(queries) / sizeof(*queries)));
	suite_add_tcase(s, t);
	return lines_run(s);
}
