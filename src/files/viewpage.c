/* Sends the page (doc/files.md, "The viewer's page"): a head, the file in base64, a foot. */
#include "config.h"

#include "files/viewpage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text/quote.h"
#include "proto/python/lower.h"

#define PART_MAX (1u << 20)
#define BLOCK (48u << 10) /* bytes read at a time; a multiple of 3 */
#define PDFJS "https://cdnjs.cloudflare.com/ajax/libs/pdf.js/3.11.174/"
/* Debian's libjs-pdf, which the viewer's nginx serves, so that no network is needed */
#define PDFJS_HERE "/usr/share/javascript/pdf/build/pdf.js"

struct viewpage {
	int fd;
	off_t size;
	struct hr_buf head, foot, out;
	unsigned char in[BLOCK];
};

static const struct {
	const char *ext, *type;
} types[] = {{".pdf", "application/pdf"}, {".png", "image/png"}, {".jpg", "image/jpeg"},
    {".jpeg", "image/jpeg"}, {".gif", "image/gif"}};

const char *
hr_viewpage_type(const char *path, struct hr_buf *ext)
{
	const char *name = hr_path_leaf(path), *dot;
	size_t i;

	name += strspn(name, "."); /* as in Python, ".png" has no extension */
	dot = strrchr(name, '.');
	if (dot != NULL)
		hr_pylower(ext, dot, strlen(dot));
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(hr_buf_str(ext), types[i].ext) == 0)
			return types[i].type;
	return NULL;
}

const char *
hr_viewpage_content(const void *head, size_t len)
{
	static const struct {
		const char *bytes, *type;
	} marks[] = {{"%PDF-", "application/pdf"}, {"\x89PNG\r\n\x1a\n", "image/png"},
	    {"\xff\xd8\xff", "image/jpeg"}, {"GIF87a", "image/gif"}, {"GIF89a", "image/gif"}};
	size_t i, n;

	for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		n = strlen(marks[i].bytes);
		if (len >= n && memcmp(head, marks[i].bytes, n) == 0)
			return marks[i].type;
	}
	return NULL;
}

void
hr_viewpage_escape(struct hr_buf *b, const char *text, bool quotes)
{
	for (; *text != '\0'; text++) {
		switch (*text) {
		case '&': hr_buf_adds(b, "&amp;"); break;
		case '<': hr_buf_adds(b, "&lt;"); break;
		case '>': hr_buf_adds(b, "&gt;"); break;
		case '"': hr_buf_adds(b, quotes ? "&quot;" : "\""); break;
		case '\'': hr_buf_adds(b, quotes ? "&#x27;" : "'"); break;
		default: hr_buf_addc(b, *text); break;
		}
	}
}

/* ---- the page ---- */

static void
put_head(struct hr_buf *b, const char *name, const char *type, bool pdf, bool here)
{
	hr_buf_adds(b,
	    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"UTF-8\">\n"
	    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1.0\">\n"
	    "<title>File Viewer - ");
	hr_viewpage_escape(b, name, false);
	hr_buf_adds(b,
	    "</title>\n<style>\n"
	    "body, html { margin: 0; padding: 0; height: 100%; font-family: sans-serif; }\n"
	    "#viewer { width: 100%; height: 100vh; overflow: auto; text-align: center; }\n"
	    ".page { margin: 10px auto; display: block; box-shadow: 0 0 8px #888; }\n"
	    "img { max-width: 100%; }\n"
	    ".error { color: #c00; background: #fdd; margin: 20px; padding: 10px; }\n"
	    "</style>\n<script>\n\"use strict\";\n"
	    "function showError(message) {\n"
	    "\tconst box = document.createElement(\"div\");\n"
	    "\tconst heading = document.createElement(\"h2\");\n"
	    "\tconst text = document.createElement(\"p\");\n"
	    "\tbox.className = \"error\";\n"
	    "\theading.textContent = \"Error loading file\";\n"
	    "\ttext.textContent = message;\n"
	    "\tbox.append(heading, text);\n"
	    "\tdocument.getElementById(\"viewer\").replaceChildren(box);\n"
	    "}\n</script>\n");
	if (pdf) {
		/* PDF.js's worker script is loaded in the page itself */
		hr_buf_adds(b, here ? "<script src=\"/pdf.js/pdf.js\"></script>\n"
				      "<script src=\"/pdf.js/pdf.worker.js\"></script>\n"
				    : "<script src=\"" PDFJS "pdf.min.js\"></script>\n");
		hr_buf_adds(b, "</head>\n<body>\n<div id=\"viewer\"></div>\n"
			       "<script type=\"application/pdf;base64\" id=\"file\">");
		return;
	}
	hr_buf_adds(b, "</head>\n<body>\n<div id=\"viewer\"><img alt=\"");
	hr_viewpage_escape(b, name, true);
	hr_buf_addf(
	    b, "\" onerror=\"showError('The image cannot be shown')\" src=\"data:%s;base64,", type);
}

static void
put_foot(struct hr_buf *b, bool pdf, bool here)
{
	if (!pdf) {
		hr_buf_adds(b, "\"></div>\n</body>\n</html>\n");
		return;
	}
	hr_buf_adds(b, "</script>\n<script>\n\"use strict\";\n"
		       "async function showPages() {\n"
		       "\tif (typeof pdfjsLib === \"undefined\")\n"
		       "\t\tthrow new Error(\"PDF.js could not be loaded\");\n");
	if (!here)
		hr_buf_adds(b,
		    "\tpdfjsLib.GlobalWorkerOptions.workerSrc = \"" PDFJS "pdf.worker.min.js\";\n");
	hr_buf_adds(b, "\tconst text = atob(document.getElementById(\"file\").textContent);\n"
		       "\tconst data = Uint8Array.from(text, (c) => c.charCodeAt(0));\n"
		       /* otherwise PDF.js before 4.2 runs code from the file's fonts as script,
			* which could read everything that the viewer shows */
		       "\tconst pdf = await pdfjsLib.getDocument(\n"
		       "\t\t{data: data, isEvalSupported: false}).promise;\n"
		       "\tfor (let n = 1; n <= pdf.numPages; n++) {\n"
		       "\t\tconst page = await pdf.getPage(n);\n"
		       "\t\tconst viewport = page.getViewport({scale: 1.5});\n"
		       "\t\tconst canvas = document.createElement(\"canvas\");\n"
		       "\t\tcanvas.className = \"page\";\n"
		       "\t\tcanvas.width = viewport.width;\n"
		       "\t\tcanvas.height = viewport.height;\n"
		       "\t\tdocument.getElementById(\"viewer\").append(canvas);\n"
		       "\t\tawait page.render({canvasContext: canvas.getContext(\"2d\"),\n"
		       "\t\t\tviewport: viewport}).promise;\n"
		       "\t}\n}\n"
		       "showPages().catch((e) => showError(e.message));\n"
		       "</script>\n</body>\n</html>\n");
}

void *
hr_viewpage_new(int fd, off_t size, const char *path, const char *type, int64_t *ret_length)
{
	struct viewpage *v = calloc(1, sizeof(*v));
	bool pdf = strcmp(type, "application/pdf") == 0, here = access(PDFJS_HERE, R_OK) == 0;

	if (v == NULL) {
		hr_fd_close(&fd);
		return NULL;
	}
	v->fd = fd;
	v->size = size;
	hr_buf_init(&v->head, PART_MAX);
	hr_buf_init(&v->foot, PART_MAX);
	hr_buf_init(&v->out, BLOCK / 3 * 4);
	put_head(&v->head, hr_path_leaf(path), type, pdf, here);
	put_foot(&v->foot, pdf, here);
	if (v->head.fail != HR_OK || v->foot.fail != HR_OK) {
		hr_viewpage_free(v);
		return NULL;
	}
	*ret_length = (int64_t)(v->head.len + v->foot.len) + ((int64_t)size + 2) / 3 * 4;
	return v;
}

/* ---- sending it ---- */

static int
send_file(struct viewpage *v, struct hr_sink *sink, struct hr_err *err)
{
	off_t at = 0;
	size_t want, got;
	ssize_t n;

	while (at < v->size) {
		want = v->size - at < (off_t)BLOCK ? (size_t)(v->size - at) : BLOCK;
		for (got = 0; got < want; got += (size_t)n) {
			n = hr_fd_read(v->fd, v->in + got, want - got);
			if (n < 0)
				return hr_err_sys(err, errno, "reading the file");
			if (n == 0)
				return hr_err_set(err, HR_E_GONE, "the file has become shorter");
		}
		hr_buf_reset(&v->out);
		hr_quote_base64(&v->out, v->in, got); /* only the last block is padded */
		if (hr_buf_check(&v->out, err) != 0 || sink->write(sink, v->out.p, v->out.len) < 0)
			return -1;
		at += (off_t)got;
	}
	return 0;
}

int
hr_viewpage_send(void *page, struct hr_sink *sink, struct hr_err *err)
{
	struct viewpage *v = page;

	if (sink->write(sink, hr_buf_str(&v->head), v->head.len) < 0 || send_file(v, sink, err) < 0)
		return -1;
	return sink->write(sink, hr_buf_str(&v->foot), v->foot.len);
}

void
hr_viewpage_free(void *page)
{
	struct viewpage *v = page;

	if (v == NULL)
		return;
	hr_fd_close(&v->fd);
	hr_buf_done(&v->head);
	hr_buf_done(&v->foot);
	hr_buf_done(&v->out);
	free(v);
}
