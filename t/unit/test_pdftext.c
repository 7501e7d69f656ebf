/* files/pdftext, pdfpage: the text of a PDF from pdftohtml's XML. t/corpus/files/documents.jsonl
 * has what the original makes of whole files. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "files/pdftext.h"

#include "lines.h"

#define PAGE                                                                                       \
	"<page number=\"1\" position=\"absolute\" top=\"0\" left=\"0\" height=\"2400\" "           \
	"width=\"1800\">\n"
#define FONT(id, size, family)                                                                     \
	"\t<fontspec id=\"" id "\" size=\"" size "\" family=\"" family "\" color=\"#000000\"/>\n"
/* the size is 12 points, so the height at the enlargement of 3 is 33.3 */
#define TEXT(top, left, width, text)                                                               \
	"<text top=\"" top "\" left=\"" left "\" width=\"" width                                   \
	"\" height=\"33.3\" font=\"0\">" text "</text>\n"
#define END "</page>\n"

static void
check(const char *xml, const char *want)
{
	HR_BUF(out, 1 << 20);

	hr_pdftext(xml, strlen(xml), &out);
	ck_assert_int_eq(out.fail, HR_OK);
	ck_assert_str_eq(hr_buf_str(&out), want);
}

START_TEST(boxes)
{
	/* lines of one size at less than half of it are a box, left or right or centred */
	check(PAGE FONT("0", "36", "Helvetica") TEXT("100", "200", "300", "one")
		  TEXT("150", "200", "90", "two") TEXT("210", "200", "90", "far") END,
	    "one\ntwo\n\nfar\n\n\f");
	/* the left column is read first, whichever order the page has */
	check(PAGE FONT("0", "36", "Helvetica") TEXT("100", "200", "90", "a") TEXT("100", "900",
		  "90", "c") TEXT("140", "200", "90", "b") TEXT("140", "900", "90", "d") END,
	    "a\nb\n\nc\nd\n\n\f");
	/* a page is over at its end */
	check(PAGE FONT("0", "36", "Helvetica") TEXT("100", "200", "90", "a") END END, "a\n\n\f\f");
	/* two runs of a line: with a gap, without one */
	check(PAGE FONT("0", "36", "Helvetica") TEXT("100", "200", "90", "on")
		  TEXT("100", "291", "60", "ly") TEXT("100", "360", "90", "now") END,
	    "only now\n\n\f");
	check(
	    PAGE END PAGE FONT("0", "36", "Helvetica") TEXT("100", "200", "9", " ") END, "\f \n\f");
}
END_TEST

START_TEST(texts)
{
	check(PAGE FONT("0", "36", "Courier") TEXT("100", "200", "900",
		  "<b>a &lt;b&gt; &amp;amp; &quot;c&#34;</b> <a href=\"x\">d</a> &unknown;") END,
	    "a <b> &amp; \"c\" d &unknown;\n\n\f");
	/* a justified text has its blanks twice, if the widths of the font are known */
	check(PAGE FONT("0", "36", "Helvetica") TEXT("100", "200", "120", "a b c") END,
	    "a  b  c\n\n\f");
	check(PAGE FONT("0", "36", "Helvetica") TEXT("100", "200", "120", "<b>a b c</b>") END,
	    "a b c\n\n\f");
	check(PAGE FONT("0", "36", "DejaVu Sans") TEXT("100", "200", "120", "a b c") END,
	    "a b c\n\n\f");
}
END_TEST

/* A font that is not declared is Helvetica, of the text's height. */
START_TEST(unknown_fonts)
{
#define BARE(font, top, text)                                                                      \
	"<text top=\"" top "\" left=\"200\" width=\"90\" height=\"36\" font=\"" font "\">" text    \
	"</text>"
	check(PAGE BARE("7", "100", "a") BARE("4096", "140", "b") BARE("-1", "230", "c") END,
	    "a\nb\n\nc\n\n\f");
#undef BARE
}
END_TEST

/* No damage of the XML is an error: what is there is shown. */
START_TEST(damaged)
{
	static const char xml[] = PAGE FONT("0", "36", "Times") FONT("99999", "1e999", "x")
	    FONT("-1", "nan", "x") TEXT("100", "200", "90", "a") TEXT("nan", "-1e300", "1e300", "b")
		TEXT("1e300", "inf", "-5", "c") "<text font=\"0\">d</text>" END END
						"</text><page >" END;
	size_t i;

	for (i = 0; i < sizeof(xml); i++) {
		HR_BUF(out, 1 << 16);
		char *part = strndup(xml, i);

		ck_assert_ptr_nonnull(part);
		hr_pdftext(part, i, &out);
		ck_assert_int_eq(out.fail, HR_OK);
		free(part);
		hr_buf_done(&out);
	}
	ck_assert_uint_gt(i, 400);
}
END_TEST

/* A text of tags that do not end takes a time of its length, and so does a page of many strings at
 * one place. A page without its end is shown. */
START_TEST(heaps)
{
	HR_BUF(xml, 1 << 22);
	HR_BUF(want, 1 << 22);
	HR_BUF(out, 1 << 22);
	int i;

	hr_buf_adds(&xml, PAGE FONT("0", "36", "Courier"));
	for (i = 0; i < 2000; i++)
		hr_buf_adds(
		    &xml, i % 2 == 0 ? TEXT("300", "200", "9", "a") : TEXT("321", "200", "9", "b"));
	for (i = 0; i < 2000; i++)
		hr_buf_adds(&want, i < 1000 ? "a\n" : "b\n");
	hr_buf_adds(&xml, END PAGE "<text font=\"0\">");
	hr_buf_adds(&want, "\n\f");
	for (i = 0; i < 1000000; i++)
		hr_buf_addc(&xml, '<');
	hr_buf_add(&want, xml.p + xml.len - 1000000, 1000000);
	hr_buf_adds(&xml, "</text>");
	hr_buf_adds(&want, "\n\f");
	hr_pdftext(hr_buf_str(&xml), xml.len, &out);
	ck_assert_int_eq(out.fail, HR_OK);
	ck_assert_int_eq(xml.fail, HR_OK);
	ck_assert_uint_eq(out.len, want.len);
	ck_assert_int_eq(memcmp(out.p, want.p, want.len), 0);
}
END_TEST

/* Puts n words below each other, from the lowest to the highest. */
static void
upwards(struct hr_buf *xml, int n)
{
	int i;

	hr_buf_adds(xml, PAGE FONT("0", "3", "Courier"));
	for (i = 0; i < n; i++)
		hr_buf_addf(xml,
		    "<text top=\"%d\" left=\"30\" width=\"10\" height=\"3\" "
		    "font=\"0\">w%d</text>\n",
		    8 * (n - i), i);
	hr_buf_adds(xml, END);
}

/* More than 250 boxes, or 2,000 lines, stay in the page's order. */
START_TEST(many)
{
	static const struct {
		int n;
		const char *begins;
	} rows[] = {{200, "w199\n\nw198\n\n"}, {300, "w0\n\nw1\n\n"}, {2100, "w0\nw1\n"}};
	HR_BUF(xml, 1 << 20);
	HR_BUF(out, 1 << 20);

	upwards(&xml, rows[_i].n);
	hr_pdftext(hr_buf_str(&xml), xml.len, &out);
	ck_assert_int_eq(out.fail, HR_OK);
	ck_assert_int_eq(strncmp(hr_buf_str(&out), rows[_i].begins, strlen(rows[_i].begins)), 0);
}
END_TEST

/* Pages that no view shows are not arranged, but all are there. */
START_TEST(long_text)
{
	HR_BUF(xml, 1 << 22);
	HR_BUF(out, 1 << 22);
	static const char first[] = "w99\n\nw98\n\n", last[] = "w98\nw99\n\f";
	int i, pages = 0;

	for (i = 0; i < 600; i++)
		upwards(&xml, 100);
	hr_pdftext(hr_buf_str(&xml), xml.len, &out);
	ck_assert_int_eq(out.fail, HR_OK);
	for (i = 0; i < (int)out.len; i++)
		pages += out.p[i] == '\f';
	ck_assert_int_eq(pages, 600);
	ck_assert_int_eq(strncmp(out.p, first, strlen(first)), 0);
	ck_assert_str_eq(out.p + out.len - strlen(last), last);
}
END_TEST

/* Puts n letters at places without a pattern around one that covers the page, if it is large. */
static void
scatter(struct hr_buf *xml, int n, bool large)
{
	unsigned at = 1;
	int i, x, y;

	hr_buf_adds(xml, PAGE FONT("0", "9", "Helvetica") FONT("1", "2300", "Helvetica"));
	if (large)
		hr_buf_adds(xml, "<text top=\"20\" left=\"20\" width=\"1700\" height=\"2300\" "
				 "font=\"1\">-</text>\n");
	for (i = 0; i < n; i++) {
		at = at * 1103515245 + 12345;
		x = 20 + (int)(at >> 16) % 1700;
		at = at * 1103515245 + 12345;
		y = 20 + (int)(at >> 16) % 2300;
		hr_buf_addf(xml,
		    "<text top=\"%d\" left=\"%d\" width=\"4\" height=\"9\" "
		    "font=\"0\">%c</text>\n",
		    y, x, "abcdefghijklmnopqrstuvwxyz"[i % 26]);
	}
	hr_buf_adds(xml, END);
}

/* The closest boxes are joined in one order only, and also those that others are between. */
START_TEST(scattered)
{
	static const char *const want[] = {
	    "rexhmmcffbejiplqwtwpwdoaqjadxkdnkodkfurpkyutnicugsbigmksnalqhvoebyjthfzmuoizgcstvrzvmj"
	    "fnyewalclpxhibdcsygqroaexzvlbhjgpn",
	    "mliaymhcxvnkhgfcplhexsmnxokdaqodkjdakifbpeljdtrpwwu-"
	    "abhqrbgoxizgjpgpuymrvsbvzhjkwynfqttciruefncdefovznszabjlmtyilqsuwcego"};
	HR_BUF(xml, 1 << 20);
	HR_BUF(out, 1 << 20);
	HR_BUF(letters, 1 << 20);
	size_t i;

	scatter(&xml, 120, _i == 1);
	hr_pdftext(hr_buf_str(&xml), xml.len, &out);
	ck_assert_int_eq(out.fail, HR_OK);
	for (i = 0; i < out.len; i++)
		if (out.p[i] > ' ')
			hr_buf_addc(&letters, out.p[i]);
	ck_assert_str_eq(hr_buf_str(&letters), want[_i]);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("pdftext");
	TCase *tc = tcase_create("pdftext");

	tcase_add_test(tc, boxes);
	tcase_add_test(tc, texts);
	tcase_add_test(tc, unknown_fonts);
	tcase_add_test(tc, damaged);
	tcase_add_test(tc, heaps);
	tcase_add_loop_test(tc, many, 0, 3);
	tcase_add_test(tc, long_text);
	tcase_add_loop_test(tc, scattered, 0, 2);
	suite_add_tcase(s, tc);
	return lines_run(s);
}
