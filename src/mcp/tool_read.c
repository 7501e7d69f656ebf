/* Implements the tool read, which finds the type of a file by its content and never by its name. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "files/charset/charset.h"
#include "files/charset/detect.h"
#include "files/document.h"
#include "files/picture.h"
#include "files/revise/revise.h"
#include "mcp/call.h"

#define TEXT_SHOWN (64u << 10) /* maximum bytes per answer */
#define LINE_SHOWN 2000        /* maximum bytes per line */
/* limits of models' services: at most 5 MB in base64 and 8,000 pixels */
#define PICTURE_MAX 3750000
#define PIXELS_MAX 8000
#define KIND_MAX 4096

/* ---- text ---- */

/* Cuts a long line at a character boundary. */
static void
put_line(struct hr_buf *b, const char *p, size_t len)
{
	size_t n = len;

	if (len > LINE_SHOWN)
		for (n = LINE_SHOWN; n > 0 && ((unsigned char)p[n] & 0xC0) == 0x80; n--)
			;
	hr_buf_add(b, p, n);
	if (n < len)
		hr_buf_addf(b, "[... %zu bytes more]", len - n);
	hr_buf_addc(b, '\n');
}

size_t
hr_mcp_put_lines(
    struct hr_buf *b, const struct hr_plaintext *t, size_t first, size_t last, size_t max)
{
	size_t at = hr_plaintext_line_at(t, first), line, n, end, put = 0, begin = b->len;

	for (line = first; line <= last && at < t->text.len && b->len - begin < max; line++) {
		n = hr_plaintext_line(t->text.p + at, t->text.len - at, t->cr, &end);
		hr_buf_addf(b, "%6zu\t", line);
		put_line(b, t->text.p + at, n);
		at += n + end;
		put = line;
	}
	return put;
}

/* Reports encoding and line ends, which a model must know before it changes the file. */
static void
say_form(struct hr_mcp_call *c, const struct hr_plaintext *t)
{
	if (t->charset != NULL)
		hr_mcp_say(c, "[%s]\n", t->charset->name);
	if (strcmp(t->ends, "\r\n") == 0)
		hr_mcp_say(c, "[lines end with CR LF]\n");
	else if (t->cr)
		hr_mcp_say(c, "[lines end with CR]\n");
	if (t->text.len > 0 && t->text.p[t->text.len - 1] != (t->cr ? '\r' : '\n'))
		hr_mcp_say(c, "[the last line has no end]\n");
}

static void
show_text(struct hr_mcp_call *c, const struct hr_plaintext *t)
{
	size_t lines = hr_plaintext_lines(t), put;
	size_t first = (size_t)hr_mcp_arg_int(c, "first", 1, 1, INT32_MAX);
	int64_t last = hr_mcp_arg_int(c, "last", -1, -1, INT32_MAX);

	if (last == -1)
		last = INT32_MAX;
	if (first > lines || last < (int64_t)first) {
		hr_mcp_fail(c, "There are no lines %zu to %lld: it has %zu lines.", first,
		    (long long)last, lines);
		return;
	}
	put = hr_mcp_put_lines(&c->text, t, first, (size_t)last, TEXT_SHOWN);
	if (put < lines && put < (size_t)last)
		hr_mcp_say(c, "[%zu of %zu lines: continue with first=%zu]\n", put - first + 1,
		    lines, put + 1);
	if (put == lines)
		say_form(c, t);
}

/* ---- pictures and documents ---- */

static void
show_picture(
    struct hr_mcp_call *c, const char *path, const struct hr_buf *bytes, const struct hr_picture *p)
{
	if (!p->whole) {
		hr_mcp_fail(c, "%.2000s begins as %s, but is damaged or cut short (%zu bytes).",
		    path, p->mime, bytes->len);
		return;
	}
	if (bytes->len > PICTURE_MAX || p->width > PIXELS_MAX || p->height > PIXELS_MAX) {
		hr_mcp_fail(c,
		    "%.2000s is %s of %u x %u pixels and %zu bytes, too large to be shown: make a "
		    "smaller copy with run (at most %d pixels a side, %d bytes).",
		    path, p->mime, p->width, p->height, bytes->len, PIXELS_MAX, PICTURE_MAX);
		return;
	}
	hr_mcp_say(c, "%.2000s: %s, %u x %u pixels", path, p->mime, p->width, p->height);
	hr_buf_addf(&c->blocks, ",{\"type\":\"image\",\"mimeType\":\"%s\",\"data\":\"", p->mime);
	hr_quote_base64(&c->blocks, hr_buf_str(bytes), bytes->len);
	hr_buf_adds(&c->blocks, "\"}");
}

/* Shows a document as text, with lines counted as in a text file. */
static void
show_document(struct hr_mcp_call *c, const char *path, const char *suffix)
{
	HR_CLEAN(hr_plaintext_done) struct hr_plaintext t;
	HR_BUF(name, 16);
	HR_BUF(why, KIND_MAX);

	hr_plaintext_init(&t);
	hr_buf_addf(&name, "x%s", suffix);
	if (hr_document_text(c->env->office, path, hr_buf_str(&name), name.len, &t.text, &why) < 0)
		hr_mcp_fail(c, "%.2000s is a document (%s) that cannot be shown: %.1500s.", path,
		    suffix + 1, hr_buf_str(&why));
	else if (t.text.fail == HR_E_NOMEM)
		hr_mcp_fail(c, "Out of memory. Try again.");
	else if (t.text.len == 0 || hr_utf8_rstrip(t.text.p, t.text.len) == 0)
		hr_mcp_fail(c,
		    "%.2000s is a document (%s) without text, of pictures alone perhaps. Make "
		    "pictures of its pages with run and read those.",
		    path, suffix + 1);
	else
		show_text(c, &t);
	if (!c->is_error && t.text.fail == HR_E_TOOLARGE)
		hr_mcp_say(c, "[the text is cut: the document is too long]\n");
}

static void
refuse_binary(struct hr_mcp_call *c, const char *path, const struct hr_buf *bytes)
{
	HR_BUF(kind, KIND_MAX);

	hr_detect_kind(&kind, bytes->p, bytes->len);
	if (kind.fail != HR_OK || !hr_utf8_strict(hr_buf_str(&kind), kind.len))
		hr_buf_reset(&kind);
	hr_mcp_fail(c,
	    "%.2000s is a binary file of %zu bytes%s%.1000s. Look at it with run, by file, xxd or "
	    "strings.",
	    path, bytes->len, kind.len > 0 ? ": " : "", hr_buf_str(&kind));
}

/* Returns the suffix of a document that can be shown as text, or NULL. Office documents are zip
 * archives like many others, so their name counts, too. */
static const char *
document_suffix(const char *path, const struct hr_buf *bytes)
{
	static const char *const office[] = {".docx", ".pptx", ".xlsx"};
	size_t i, n = strlen(path);

	if (bytes->len >= 5 && memcmp(bytes->p, "%PDF-", 5) == 0)
		return ".pdf";
	for (i = 0; i < sizeof(office) / sizeof(office[0]); i++)
		if (n > 5 && strcasecmp(path + n - 5, office[i]) == 0 && bytes->len >= 4 &&
		    memcmp(bytes->p, "PK\3\4", 4) == 0)
			return office[i];
	return NULL;
}

static void
show(struct hr_mcp_call *c, const char *path, const struct hr_buf *bytes)
{
	HR_CLEAN(hr_plaintext_done) struct hr_plaintext t;
	const char *suffix = document_suffix(path, bytes);
	struct hr_picture picture;

	hr_plaintext_init(&t);
	if (bytes->len == 0)
		hr_mcp_say(c, "%.2000s is empty.\n", path);
	else if (hr_picture_look(bytes->p, bytes->len, &picture))
		show_picture(c, path, bytes, &picture);
	else if (suffix != NULL)
		show_document(c, path, suffix);
	else if (hr_plaintext_decode(&t, bytes->p, bytes->len))
		show_text(c, &t);
	else if (t.text.fail == HR_E_NOMEM)
		hr_mcp_fail(c, "Out of memory. Try again.");
	else
		refuse_binary(c, path, bytes);
}

static void
call_read(struct hr_mcp_call *c)
{
	HR_FREE char *path = hr_mcp_path(c, "path");
	HR_BUF(bytes, HR_PLAINTEXT_MAX);
	HR_BUF(why, KIND_MAX);
	struct stat st;

	if (path == NULL)
		return;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		hr_mcp_list_names(c, path);
	else if (hr_revise_load(path, &bytes, &why) < 0)
		hr_mcp_fail(c, "%.2000s cannot be read: %s.", path, hr_buf_str(&why));
	else
		show(c, path, &bytes);
	hr_mcp_count_as(c, "read");
}

static const struct hr_mcp_param read_params[] = {
    {"path", HR_MCP_STR, true, "Absolute, or below the default shell's directory."},
    {"first", HR_MCP_INT, false, "Number of the first line, from 1."},
    {"last", HR_MCP_INT, false, "Number of the last line; left out: to the end."},
    {NULL, HR_MCP_STR, false, NULL},
};

const struct hr_mcp_tool hr_mcp_read = {.name = "read",
    .title = "Read a file",
    .help = "Shows a file with numbers before its lines, or the names in a directory. PNG, JPEG, "
	    "GIF and WebP pictures are shown as such, PDF and office documents as text. Waits for "
	    "no command.",
    .reads = true,
    .idempotent = true,
    .params = read_params,
    .call = call_read};
