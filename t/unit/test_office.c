/* office: documents made here, what is shown of them, and what is refused. */
#include "config.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "office/office.h"
#include "base/text/utf8.h"

#include "lines.h"
#include "office_pack.h"

#define ROOM (8u << 20)
#define MANY 200000u
#define W                                                                                          \
	"<w:document xmlns:w='urn:w' xmlns:a='urn:a' xmlns:mc='urn:mc' "                           \
	"xmlns:r='http://x/relationships'><w:body>"
#define W_END "</w:body></w:document>"
#define P(text) "<w:p><w:r><w:t>" text "</w:t></w:r></w:p>"
#define STYLED(style, text)                                                                        \
	"<w:p><w:pPr><w:pStyle w:val='" style "'/></w:pPr><w:r><w:t>" text "</w:t></w:r></w:p>"
#define RUN(mark, text) "<w:r><w:rPr>" mark "</w:rPr><w:t xml:space='preserve'>" text "</w:t></w:r>"
#define CELL(text) "<w:tc>" P(text) "</w:tc>"
#define ITEM(level, text)                                                                          \
	"<w:p><w:pPr><w:numPr><w:ilvl w:val='" level "'/><w:numId w:val='1'/></w:numPr></w:pPr>"   \
	"<w:r><w:t>" text "</w:t></w:r></w:p>"
#define PICTURE                                                                                    \
	"<a:graphic><a:graphicData><a:pic><a:blipFill><a:blip r:embed='i'/></a:blipFill></a:pic>"  \
	"</a:graphicData></a:graphic>"
#define BOX(name, p)                                                                               \
	"<mc:" name "><w:pict><w:txbxContent>" p "</w:txbxContent></w:pict></mc:" name ">"
#define EITHER(new, old)                                                                           \
	"<mc:AlternateContent>" BOX("Choice", new) BOX("Fallback", old) "</mc:AlternateContent>"
#define FIELD_CHAR(type) "<w:r><w:fldChar w:fldCharType='" type "'/></w:r>"
#define FIELD(code, text)                                                                          \
	FIELD_CHAR("begin")                                                                        \
	"<w:r><w:instrText>" code "</w:instrText></w:r>" FIELD_CHAR("separate") RUN("", text)      \
	    FIELD_CHAR("end")
#define NOTE(id) "<w:r><w:footnoteReference w:id='" id "'/></w:r>"
#define DELETED(runs) "<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr>" runs "</w:p>"
#define OPEN_FIELD                                                                                 \
	FIELD_CHAR("begin")                                                                        \
	"<w:r><w:instrText>HYPERLINK &quot;#f&quot;</w:instrText></w:r>" FIELD_CHAR("separate")
#define FOOTNOTE(id, xml) "<w:footnote w:id='" id "'>" xml "</w:footnote>"
#define MERGED(how, text) "<w:tc><w:tcPr><w:vMerge " how "/></w:tcPr>" P(text) "</w:tc>"
#define RELS "<Relationships>"
#define LONG_ID                                                                                    \
	"12345678901234567890123456789"                                                            \
	"é€é€é€"
#define RELS_END "</Relationships>"
#define REL(id, type, target) "<Relationship Id='" id "' Type='u/" type "' Target='" target "'/>"

static struct hr_buf text;
static struct hr_err err;
static char *archive_bytes;

static void
setup(void)
{
	archive_bytes = malloc(ROOM);
	ck_assert_ptr_nonnull(archive_bytes);
	hr_buf_init(&text, HR_OFFICE_TEXT_MAX);
	err = (struct hr_err){.code = HR_OK};
}

static void
teardown(void)
{
	free(archive_bytes);
	hr_buf_done(&text);
}

static int
convert(const char *kind, struct office_part *part, size_t n)
{
	size_t i, len;
	HR_FREE char *exact = NULL;

	for (i = 0; i < n; i++)
		if (part[i].len == 0)
			part[i].len = strlen(part[i].data);
	len = office_pack(part, n, archive_bytes, ROOM);
	ck_assert_uint_gt(len, 0);
	exact = malloc(len); /* nothing behind it */
	ck_assert_ptr_nonnull(exact);
	memcpy(exact, archive_bytes, len);
	hr_buf_reset(&text);
	return hr_office_text(kind, exact, len, &text, &err);
}

static void
shows(const char *kind, struct office_part *part, size_t n, const char *want)
{
	ck_assert_msg(convert(kind, part, n) == 0, "%s", err.msg);
	ck_assert_str_eq(hr_buf_str(&text), want);
}

static void
docx_shows(const char *xml, const char *want)
{
	struct office_part part[] = {{"word/document.xml", xml, 0},
	    {"word/_rels/document.xml.rels",
		RELS REL("s", "styles", "styles.xml") REL("n", "numbering", "/word/numbering.xml")
		    REL("i", "image", "media/a.jpg")
			REL("h", "hyperlink", "http://e.org/' TargetMode='External") RELS_END,
		0},
	    {"word/styles.xml",
		"<w:styles xmlns:w='urn:w'><w:style w:styleId='berschrift2'><w:name w:val='heading "
		"2'/></w:style>"
		"<w:style w:styleId='Punkt'><w:name w:val='x'/><w:pPr><w:numPr><w:numId "
		"w:val='1'/></w:numPr></w:pPr></w:style></w:styles>",
		0},
	    {"word/numbering.xml",
		"<w:numbering xmlns:w='urn:w'><w:abstractNum w:abstractNumId='7'>"
		"<w:lvl w:ilvl='0'><w:numFmt w:val='decimal'/><w:pStyle w:val='Zahl'/></w:lvl>"
		"<w:lvl w:ilvl='1'><w:numFmt w:val='bullet'/></w:lvl></w:abstractNum>"
		"<w:num w:numId='1'><w:abstractNumId w:val='7'/></w:num></w:numbering>",
		0}};

	shows("docx", part, 4, want);
}

static void
notes_show(const char *xml, const char *notes, const char *want)
{
	struct office_part part[] = {{"word/document.xml", xml, 0},
	    {"word/_rels/document.xml.rels", RELS REL("f", "footnotes", "footnotes.xml") RELS_END,
		0},
	    {"word/footnotes.xml", notes, 0}};

	shows("docx", part, 3, want);
}

/* Appends xml n times. */
static void
repeat(struct hr_buf *b, const char *xml, size_t n)
{
	while (n-- > 0)
		hr_buf_adds(b, xml);
	ck_assert_int_eq(b->fail, HR_OK);
}

/* Converts within a time that is generous for MANY steps, and too short for MANY * MANY. */
static int
convert_soon(const char *kind, struct office_part *part, size_t n)
{
	clock_t cpu = clock();
	int r = convert(kind, part, n);

	ck_assert_int_lt(clock() - cpu, 5 * CLOCKS_PER_SEC);
	return r;
}

START_TEST(paragraphs)
{
	docx_shows(W P("one") P("") "<w:p/>" P("  two\n\n2 ") W_END, "one\n\ntwo\n2");
	docx_shows(W
	    "<w:p><w:r><w:t>a</w:t><w:br/><w:t>b</w:t><w:tab/><w:t>c</w:t></w:r></w:p>" W_END,
	    "a  \nb c");
	docx_shows(W P("a*b_c") W_END, "a\\*b\\_c");
	docx_shows(W STYLED("Heading1", "H") STYLED("berschrift2", "Zwei") STYLED("Heading9", "no")
		       W_END,
	    "# H\n\n## Zwei\n\nno");
	docx_shows(W "<w:sdt><w:sdtContent>" P("in") "</w:sdtContent></w:sdt>" W_END, "in");
	docx_shows(W "<w:p><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:t>old</w:t></"
		     "w:r></w:del></w:p>" W_END,
	    "new");
}
END_TEST

START_TEST(marks)
{
	docx_shows(W "<w:p>" RUN("<w:b/>", "bo") RUN("<w:b/>", "ld ") RUN("", "x") "</w:p>" W_END,
	    "**bold** x");
	docx_shows(W "<w:p>" RUN("<w:b/>", "a") RUN("<w:b/><w:i/>", "b")
		       RUN("<w:i w:val='1'/>", "c") RUN("<w:b w:val='0'/>", "d") "</w:p>" W_END,
	    "**a*b****c*d");
	docx_shows(
	    W "<w:p>" RUN("<w:strike/>", "gone") RUN("<w:b/>", " ") "</w:p>" W_END, "~~gone~~");
	docx_shows(W "<w:p><w:hyperlink r:id='h'>" RUN("", "a ")
		       RUN("<w:b/>", "link") "</w:hyperlink></w:p>" W_END,
	    "[a **link**](http://e.org/)");
	docx_shows(W "<w:p><w:r><w:drawing><w:inline><w:docPr descr='a cat'/>" PICTURE
		     "</w:inline></w:drawing></w:r></w:p>" W_END,
	    "![a cat](data:image/jpg;base64...)");
	docx_shows(W "<w:p><w:r>" EITHER(P("new"), P("box")) "<w:t>text</w:t></w:r></w:p>" W_END,
	    "text\n\nbox");
}
END_TEST

START_TEST(lists)
{
	docx_shows(W P("before") ITEM("0", "one") ITEM("1", "in") ITEM("1", "in too") ITEM(
		       "0", "two") P("after") STYLED("Punkt", "anew") STYLED("Zahl", "next") W_END,
	    "before\n\n1. one\n   * in\n   * in too\n2. two\n\nafter\n\nanew\n\n1. next");
	docx_shows(W ITEM("77", "no such level") W_END, "no such level");
}
END_TEST

START_TEST(tables)
{
	docx_shows(W "<w:tbl><w:tr>" CELL("a") CELL("b|c") "</w:tr><w:tr><w:tc>" P("1")
		       P("2") "</w:tc></w:tr></w:tbl>" P("after") W_END,
	    "|  |  |\n| --- | --- |\n| a | b|c |\n| 1  2 |\n\nafter");
	docx_shows(W "<w:tbl><w:tr><w:trPr><w:tblHeader/></w:trPr><w:tc><w:tcPr><w:gridSpan "
		     "w:val='2'/></w:tcPr>" P("h") "</w:tc></w:tr><w:tr>" CELL("x")
			 CELL("") "</w:tr></w:tbl>" W_END,
	    "| h | |\n| --- | --- |\n| x |  |");
	docx_shows(W "<w:tbl><w:tr><w:trPr><w:tblHeader/></w:trPr><w:tc><w:tcPr><w:gridSpan "
		     "w:val='0'/></w:tcPr>" P("h") "</w:tc>" CELL("i") "</w:tr></w:tbl>" W_END,
	    "| h | i |\n| --- | --- |");
	/* the rule above counts the cells of a table within a cell, too */
	docx_shows(W "<w:tbl><w:tr><w:tc><w:tbl><w:tr>" CELL("in")
		       CELL("ner") "</w:tr></w:tbl></w:tc>" CELL("out") "</w:tr></w:tbl>" W_END,
	    "|  |  |  |  |\n| --- | --- | --- | --- |\n| |  |  | | --- | --- | | in | ner | | "
	    "out |");
}
END_TEST

START_TEST(links)
{
	docx_shows(W
	    "<w:p><w:hyperlink w:anchor='a_b'>" RUN("", "to a") "</w:hyperlink></w:p>" W_END,
	    "[to a](#a_b)");
	docx_shows(W "<w:p>" FIELD("HYPERLINK &quot;HTTP://e.org/a b_c?d=e&quot;", "x")
		       RUN("", "y") "</w:p>" W_END,
	    "[x](http://e.org/a%20b_c?d=e)y");
	docx_shows(
	    W "<w:p>" FIELD("HYPERLINK \\l &quot;top&quot;", "x") "</w:p>" W_END, "[x](#top)");
	docx_shows(W "<w:p>" FIELD("HYPERLINK &quot;mailto:a@e.org&quot;", "a@e.org")
		       FIELD("PAGE", "7") "</w:p>" W_END,
	    "a@e.org7");
	docx_shows(W "<w:p>" FIELD(
		       "HYPERLINK &quot;http://e.org/a_b&quot;", "http://e.org/a_b") "</w:p>" W_END,
	    "<http://e.org/a_b>");
	docx_shows(W
	    "<w:p>" FIELD("HYPERLINK &quot;http://e.org/a%00/%00?d%00&quot;", "x") "</w:p>" W_END,
	    "[x](http://e.org/a%00/%00?d%00)");
	docx_shows(W "<w:tbl><w:tr><w:tc><w:p>" OPEN_FIELD RUN(
		       "", "a") "</w:p></w:tc><w:tc><w:p>" RUN("", "b") FIELD_CHAR("end")
		       RUN("", "c") "</w:p></w:tc></w:tr></w:tbl>" P("d") W_END,
	    "|  |  |\n| --- | --- |\n| [a](#f) | [b](#f)c |\n\nd");
}
END_TEST

START_TEST(notes)
{
	notes_show(W "<w:p>" RUN("", "one") NOTE("2") NOTE("9") RUN("", " two")
		       NOTE("1") "</w:p>" W_END,
	    "<w:footnotes xmlns:w='urn:w'>" FOOTNOTE("1", P("first") P("more"))
		FOOTNOTE("2", P("second")) "</w:footnotes>",
	    "one[[1]](#footnote-2) two[[2]](#footnote-1)\n\n1. second [↑](#footnote-ref-2)\n"
	    "2. first\n\n   more [↑](#footnote-ref-1)");
	/* an id is not cut */
	notes_show(W "<w:p>" NOTE(LONG_ID) "</w:p>" W_END,
	    "<w:footnotes xmlns:w='urn:w'>" FOOTNOTE(LONG_ID, P("n")) "</w:footnotes>",
	    "[[1]](#footnote-" LONG_ID ")\n\n1. n [↑](#footnote-ref-" LONG_ID ")");
	/* open fields and deleted paragraphs end with the body and with each note */
	notes_show(W "<w:p>" NOTE("1") NOTE("2") OPEN_FIELD "</w:p>" DELETED(RUN("", "gone")) W_END,
	    "<w:footnotes xmlns:w='urn:w'>" FOOTNOTE("1", "<w:p>" RUN("", "a") OPEN_FIELD
		"</w:p>" DELETED(RUN("", "gone"))) FOOTNOTE("2", P("b")) "</w:footnotes>",
	    "[[1]](#footnote-1)[[2]](#footnote-2)\n\n1. a [↑](#footnote-ref-1)\n2. b "
	    "[↑](#footnote-ref-2)");
}
END_TEST

START_TEST(merged_cells)
{
	docx_shows(W "<w:tbl><w:tr>" MERGED("w:val='restart'", "a") CELL(
		       "b") "</w:tr><w:tr>" MERGED("", "gone") CELL("c") "</w:tr></w:tbl>" W_END,
	    "|  |  |\n| --- | --- |\n| a | b |\n| c |");
}
END_TEST

START_TEST(deleted_paragraphs)
{
	docx_shows(
	    W DELETED(RUN("", "a ")) DELETED(RUN("", "b ")) "<w:p/>" P("d") W_END, "a b\n\nd");
	docx_shows(W DELETED(RUN("", "a ")
			   EITHER("", P("box") DELETED(RUN("", "in ")))) "<w:p>" RUN("", "b")
		       EITHER("", P("box 2")) "</w:p>" P("c") W_END,
	    "a b\n\nbox\n\nin box 2\n\nc");
	/* a note that is shown twice */
	notes_show(W "<w:p>" NOTE("1") NOTE("1") "</w:p>" W_END,
	    "<w:footnotes xmlns:w='urn:w'>" FOOTNOTE(
		"1", DELETED(RUN("", "a ")) P("b")) "</w:footnotes>",
	    "[[1]](#footnote-1)[[2]](#footnote-1)\n\n1. a b [↑](#footnote-ref-1)\n2. a b "
	    "[↑](#footnote-ref-1)");
	notes_show(W "<w:p>" NOTE("1") NOTE("1") "</w:p>" W_END,
	    "<w:footnotes xmlns:w='urn:w'>" FOOTNOTE(
		"1", DELETED(RUN("", "a ")) P("b") P("c")) "</w:footnotes>",
	    "[[1]](#footnote-1)[[2]](#footnote-1)\n\n1. a b\n\n   c [↑](#footnote-ref-1)\n"
	    "2. a b\n\n   c [↑](#footnote-ref-1)");
}
END_TEST

START_TEST(picture_types)
{
	struct office_part part[] = {{"word/document.xml",
					 W "<w:p><w:r><w:drawing><w:inline>" PICTURE
					   "</w:inline></w:drawing></w:r></w:p>" W_END,
					 0},
	    {"word/_rels/document.xml.rels",
		RELS REL("i", "image", "a.123456789012345678901234é") RELS_END, 0},
	    {"[Content_Types].xml", "<Types/>", 0}};

	shows("docx", part, 3, "![](data:image/123456789012345678901234é;base64...)");
	part[2].data =
	    "<Types><Default Extension='123456789012345678901234é' "
	    "ContentType='a/345678901234567890123456789012345678901234567890123456789é'/></Types>";
	part[2].len = 0;
	shows("docx", part, 3,
	    "![](data:a/345678901234567890123456789012345678901234567890123456789é;base64...)");
}
END_TEST

START_TEST(many_rows_of_a_header)
{
	struct office_part part[] = {{"word/document.xml", NULL, 0}};
	HR_BUF(b, ROOM * 2);

	repeat(&b, W "<w:tbl>", 1);
	repeat(&b, "<w:tr><w:trPr><w:tblHeader/></w:trPr></w:tr>", MANY);
	repeat(&b, "</w:tbl>" W_END, 1);
	part[0].data = b.p;
	ck_assert_int_eq(convert_soon("docx", part, 1), 0);
}
END_TEST

START_TEST(many_open_fields)
{
	struct office_part part[] = {{"word/document.xml", NULL, 0}};
	HR_BUF(b, ROOM * 2);

	repeat(&b, W "<w:p><w:r>", 1);
	repeat(&b, "<w:fldChar w:fldCharType='begin'/><w:t>x</w:t>", MANY);
	repeat(&b, "</w:r></w:p>" W_END, 1);
	part[0].data = b.p;
	ck_assert_int_eq(convert_soon("docx", part, 1), 0);
	ck_assert_uint_eq(text.len, MANY);
}
END_TEST

/* A long note that is shown often makes too many elements; the rest is not read. */
START_TEST(many_shows_of_a_note)
{
	struct office_part part[] = {{"word/document.xml", NULL, 0},
	    {"word/_rels/document.xml.rels", RELS REL("f", "footnotes", "footnotes.xml") RELS_END,
		0},
	    {"word/footnotes.xml", NULL, 0}};
	HR_BUF(b, ROOM * 2);
	HR_BUF(note, ROOM * 2);

	repeat(&b, W "<w:p>", 1);
	repeat(&b, NOTE("1"), MANY);
	repeat(&b, "</w:p>" W_END, 1);
	repeat(&note, "<w:footnotes xmlns:w='urn:w'><w:footnote w:id='1'><w:p><w:r>", 1);
	repeat(&note, "<w:tab/>", MANY);
	repeat(&note, "</w:r></w:p></w:footnote></w:footnotes>", 1);
	part[0].data = b.p;
	part[2].data = note.p;
	ck_assert_int_eq(convert_soon("docx", part, 3), -1);
	ck_assert_msg(strstr(err.msg, "too large") != NULL, "%s", err.msg);
}
END_TEST

static void
sheet_shows(const char *rows, const char *want)
{
	struct office_part part[] = {
	    {"xl/workbook.xml",
		"<workbook xmlns:r='http://x/relationships'><sheets><sheet name='S' sheetId='1' "
		"r:id='a'/></sheets></workbook>",
		0},
	    {"xl/_rels/workbook.xml.rels",
		RELS REL("a", "worksheet", "worksheets/s.xml") REL("b", "sharedStrings",
		    "../xl/./st.xml") REL("c", "styles", "styles.xml") RELS_END,
		0},
	    {"xl/worksheets/s.xml", rows, 0},
	    {"xl/st.xml",
		"<sst><si><t>ze</t><t>ro</t><rPh><t>no</t></rPh></si><si><r><t>o_ne</t></r></si></"
		"sst>",
		0},
	    {"xl/styles.xml",
		"<styleSheet><numFmts><numFmt numFmtId='164' formatCode='[Red]0.0&quot;d&quot;'/>"
		"<numFmt numFmtId='165' formatCode='yyyy'/></numFmts><cellXfs><xf "
		"numFmtId='0'/><xf "
		"numFmtId='14'/><xf numFmtId='164'/><xf numFmtId='165'/></cellXfs></styleSheet>",
		0}};

	shows("xlsx", part, 5, want);
}

#define SHEET "<worksheet><sheetData>"
#define SHEET_END "</sheetData></worksheet>"
#define N(number) "<c><v>" number "</v></c>"
#define T(type, v) "<c t='" type "'><v>" v "</v></c>"
#define D(style, v) "<c s='" style "'><v>" v "</v></c>"
#define STR(v) "<c t='inlineStr'><is><t>" v "</t></is></c>"
#define HEAD "<row>" STR("h") "</row>"
#define HEAD_TEXT "## S\n| h |\n| --- |\n"

START_TEST(sheets)
{
	sheet_shows(SHEET SHEET_END, "## S\n|\n|  |");
	sheet_shows(SHEET HEAD SHEET_END, "## S\n| h |\n| --- |");
	sheet_shows(SHEET "<row>" T("s", "0") T("s", "1") T("s", "9")
			STR("x\ny") "</row>" SHEET_END,
	    "## S\n| zero | o\\_ne | Unnamed: 2 | x y |\n| --- | --- | --- | --- |");
	sheet_shows(SHEET "<row r='1'><c r='B1'><v>5</v></c></row><row r='3'><c r='A3'><v>1</v></c>"
			  "<c r='B3'><v>2</v></c></row>" SHEET_END,
	    "## S\n| Unnamed: 0 | 5 |\n| --- | --- |\n| NaN | NaN |\n| 1.0 | 2.0 |");
}
END_TEST

START_TEST(columns)
{
	sheet_shows(SHEET HEAD "<row>" N("1") "</row><row>" N("-20") "</row>" SHEET_END,
	    HEAD_TEXT "| 1 |\n| -20 |");
	sheet_shows(SHEET HEAD "<row>" N("1.25") "</row><row>" N("2") "</row>" SHEET_END,
	    HEAD_TEXT "| 1.25 |\n| 2.00 |");
	sheet_shows(SHEET HEAD "<row>" N("0.0000001") "</row><row>" N("2") "</row>" SHEET_END,
	    HEAD_TEXT "| 1.000000e-07 |\n| 2.000000e+00 |");
	sheet_shows(SHEET HEAD
	    "<row>" N("1.50") "</row><row>" STR("x") "</row><row>" N("3") "</row><row>" T(
		"b", "1") "</row><row>" T("e", "#N/A") "</row><row>" STR("y") "</row>" SHEET_END,
	    HEAD_TEXT "| 1.5 |\n| x |\n| 3 |\n| True |\n| NaN |\n| y |");
	sheet_shows(SHEET HEAD "<row>" D("1", "45306") "</row><row>" D("3", "1") "</row>" SHEET_END,
	    HEAD_TEXT "| 2024-01-15 |\n| 1900-01-01 |");
	sheet_shows(SHEET HEAD
	    "<row>" D("1", "45306.5") "</row><row/><row>" D("3", "45307") "</row>" SHEET_END,
	    HEAD_TEXT "| 2024-01-15 12:00:00 |\n| NaT |\n| 2024-01-16 00:00:00 |");
	sheet_shows(SHEET HEAD "<row>" D("2", "45306") "</row>" SHEET_END, HEAD_TEXT "| 45306 |");
	sheet_shows(SHEET HEAD "<row>" STR(" 12  ") "</row><row>" N("3") "</row>" SHEET_END,
	    HEAD_TEXT "| 12 |\n| 3 |");
	sheet_shows(SHEET HEAD "<row>" N("1e999") "</row>" SHEET_END, HEAD_TEXT "| 1e999 |");
}
END_TEST

/* Returns the result of converting a workbook of one sheet with these rows. */
static int
convert_rows(const char *rows)
{
	struct office_part part[] = {
	    {"xl/workbook.xml",
		"<workbook xmlns:r='http://x/relationships'><sheets><sheet name='S' "
		"r:id='a'/></sheets></workbook>",
		0},
	    {"xl/_rels/workbook.xml.rels", RELS REL("a", "worksheet", "s.xml") RELS_END, 0},
	    {"xl/s.xml", rows, 0}};

	return convert_soon("xlsx", part, 3);
}

/* One cell far away does not make a table of that size. */
START_TEST(a_cell_far_away)
{
	HR_BUF(b, ROOM * 2);

	ck_assert_int_eq(
	    convert_rows(SHEET "<row r='1048576'><c r='XFD1048576'><v>1</v></c></row>" SHEET_END),
	    0);
	ck_assert_uint_gt(text.len, 16000);
	ck_assert_uint_le(text.len, HR_OFFICE_TEXT_MAX);

	/* nor does it make the rows below it slow */
	repeat(&b, SHEET "<row><c r='XFD1' s='1'/></row>", 1);
	repeat(&b, "<row/>", 12 * MANY);
	repeat(&b, SHEET_END, 1);
	ck_assert_int_eq(convert_rows(b.p), 0);
}
END_TEST

#define SP(ph, t)                                                                                  \
	"<p:sp><p:nvSpPr><p:nvPr><p:ph type='" ph "'/></p:nvPr></p:nvSpPr><p:txBody>" t            \
	"</p:txBody></p:sp>"
#define AP(t) "<a:p><a:r><a:t>" t "</a:t></a:r></a:p>"

START_TEST(slides)
{
	struct office_part part[] = {
	    {"_rels/.rels", RELS REL("x", "officeDocument", "/show/main.xml") RELS_END, 0},
	    {"show/main.xml",
		"<p:p xmlns:p='urn:p' xmlns:r='http://x/relationships'><p:sldIdLst><p:sldId id='1' "
		"r:id='b'/>"
		"<p:sldId id='2' r:id='none'/><p:sldId id='3' r:id='a'/></p:sldIdLst></p:p>",
		0},
	    {"show/_rels/main.xml.rels",
		RELS REL("a", "slide", "1.xml") REL("b", "slide", "2.xml") RELS_END, 0},
	    {"show/1.xml", "<p:s xmlns:p='urn:p'><p:spTree/></p:s>", 0},
	    {"show/2.xml",
		"<p:s xmlns:p='urn:p' xmlns:a='urn:a'><p:spTree>" SP("body' idx='1", AP("un_der"))
		    SP("ctrTitle", AP("Title")) "<p:grpSp>" SP(
			"x", AP("a") AP("b")) "</p:grpSp><p:pic><p:nvPicPr><p:cNvPr name='Pic "
					      "1.x'/></p:nvPicPr></p:pic>"
					      "<p:graphicFrame><a:tbl><a:tr><a:tc><a:txBody>" AP(
						  "h_1") "</a:txBody></a:tc></a:tr><a:tr>"
							 "<a:tc><a:txBody>" AP("x")
							     AP("y") "</a:txBody></a:tc></a:tr></"
								     "a:tbl></p:graphicFrame>"
								     "</p:spTree></p:s>",
		0},
	    {"show/_rels/2.xml.rels", RELS REL("n", "notesSlide", "n.xml") RELS_END, 0},
	    {"show/n.xml",
		"<p:s xmlns:p='urn:p' xmlns:a='urn:a'><p:spTree>" SP("sldNum", AP("7"))
		    SP("body", AP("say")) "</p:spTree></p:s>",
		0}};

	shows("pptx", part, 7,
	    "<!-- Slide number: 1 -->\nun_der\n# Title\n\n![Pic 1.x](Pic1x.jpg)\n\n| h\\_1 "
	    "|\n| --- "
	    "|\n| x y |\n\n### Notes:\nsay\n\n<!-- Slide number: 2 -->");
}
END_TEST

/* ---- what is refused ---- */

static void
refuses(const char *xml, size_t len, const char *why)
{
	struct office_part part[] = {{"word/document.xml", xml, len}};

	ck_assert_int_eq(convert("docx", part, 1), -1);
	ck_assert_msg(strstr(err.msg, why) != NULL, "%s", err.msg);
}

START_TEST(hostile)
{
	size_t big = 33u << 20, i;
	HR_BUF(b, big + 1);

	while (b.len < big)
		hr_buf_adds(&b, "                                                                ");
	refuses(b.p, b.len, "too large");
	hr_buf_reset(&b);
	for (i = 0; i < 201; i++)
		hr_buf_adds(&b, "<x>");
	refuses(b.p, b.len, "too deep");
	hr_buf_done(&b);
	refuses("<!DOCTYPE w [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><w>&b;</w>", 0, "DOCTYPE");
	refuses("<!DOCTYPE w SYSTEM 'file:///etc/passwd'><w/>", 0, "DOCTYPE");
	refuses("<w>&b;</w>", 0, "not well-formed");
	refuses("<w><p></w>", 0, "not well-formed");
	refuses("<w>\xff</w>", 0, "not well-formed");
}
END_TEST

START_TEST(damaged)
{
	struct office_part none[] = {{"other.xml", "<x/>", 0}};
	struct office_part part[] = {{"word/document.xml", W P("text") W_END, 0}};
	size_t len, i;

	ck_assert_int_eq(convert("docx", none, 1), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "no part word/document.xml"));
	ck_assert_int_eq(hr_office_text("docx", "PK\3\4 no", 8, &text, &err), -1);
	ck_assert_int_eq(hr_office_text("odt", "PK\3\4 no", 8, &text, &err), -1);
	ck_assert_int_eq(convert("docx", part, 1), 0);
	len = office_pack(part, 1, archive_bytes, ROOM);
	for (i = 0; i < 60; i++) { /* in what is before the last byte of its data */
		hr_buf_reset(&text);
		ck_assert_int_eq(hr_office_text("docx", archive_bytes, i, &text, &err), -1);
	}
	for (i = 0; i < len; i++) { /* whatever comes of it */
		archive_bytes[i] = (char)(archive_bytes[i] ^ 0x55);
		hr_buf_reset(&text);
		(void)hr_office_text("docx", archive_bytes, len, &text, &err);
		ck_assert(hr_utf8_valid(hr_buf_str(&text), text.len));
		archive_bytes[i] = (char)(archive_bytes[i] ^ 0x55);
	}
}
END_TEST

START_TEST(long_text_is_cut)
{
	HR_BUF(b, 8u << 20);
	struct office_part part[] = {{"word/document.xml", NULL, 0}};

	hr_buf_adds(&b, W);
	while (b.len < 4u << 20)
		hr_buf_adds(&b, P("\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"));
	hr_buf_adds(&b, W_END);
	part[0].data = b.p;
	ck_assert_int_eq(convert("docx", part, 1), 0);
	ck_assert_uint_gt(text.len, HR_OFFICE_TEXT_MAX - 64);
	ck_assert(hr_utf8_valid(text.p, text.len));

	/* one cell that is too long */
	hr_buf_reset(&b);
	hr_buf_adds(&b, W "<w:tbl><w:tr><w:tc><w:p><w:r><w:rPr><w:b/></w:rPr><w:t>");
	while (b.len < 4u << 20)
		hr_buf_adds(&b, "x\xe2\x82\xac\xe2\x82\xac *");
	hr_buf_adds(&b, "</w:t></w:r></w:p></w:tc></w:tr></w:tbl>" W_END);
	part[0] = (struct office_part){"word/document.xml", b.p, 0};
	ck_assert_int_eq(convert("docx", part, 1), 0);
	ck_assert_uint_gt(text.len, HR_OFFICE_TEXT_MAX - 64);
	ck_assert(hr_utf8_valid(text.p, text.len));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("office");
	TCase *tc = tcase_create("office"), *large = tcase_create("large");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_set_tags(large, "no-valgrind"); /* its limits are seconds */
	tcase_add_checked_fixture(large, setup, teardown);
	tcase_set_timeout(large, 120);
	tcase_add_test(large, many_rows_of_a_header);
	tcase_add_test(large, many_open_fields);
	tcase_add_test(large, many_shows_of_a_note);
	tcase_add_test(large, a_cell_far_away);
	tcase_add_test(large, long_text_is_cut);
	tcase_add_test(tc, paragraphs);
	tcase_add_test(tc, marks);
	tcase_add_test(tc, lists);
	tcase_add_test(tc, tables);
	tcase_add_test(tc, links);
	tcase_add_test(tc, notes);
	tcase_add_test(tc, merged_cells);
	tcase_add_test(tc, deleted_paragraphs);
	tcase_add_test(tc, picture_types);
	tcase_add_test(tc, sheets);
	tcase_add_test(tc, columns);
	tcase_add_test(tc, slides);
	tcase_add_test(tc, hostile);
	tcase_add_test(tc, damaged);
	suite_add_tcase(s, tc);
	suite_add_tcase(s, large);
	return lines_run(s);
}
