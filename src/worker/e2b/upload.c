/* Answers POST /files: the files of a form, or one as the body, plain or compressed. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/path.h"
#include "files/multipart.h"
#include "files/params.h"
#include "worker/e2b/write.h"
#include "worker/request/body.h"

#define CHUNK (128u << 10)
#define NAME_CAP (HR_MULTIPART_HEADERS_MAX * 2)
#define HEADER 10 /* bytes of gzip's header, which Go reads before it looks at them */
#define GZIP 16   /* added to zlib's window bits: the format of gzip */

/* ---- a form ---- */

static int
part_begin(void *arg, const char *disposition, size_t len)
{
	struct hr_e2b_write *u = arg;
	HR_BUF(value, NAME_CAP);

	u->wanted = disposition != NULL && hr_params_get(disposition, len, "name", &value) &&
		    value.len == 4 && memcmp(value.p, "file", 4) == 0;
	if (value.fail != HR_OK)
		return hr_e2b_write_fail(u, 500, "%s", "out of memory");
	if (!u->wanted)
		return 0;
	if (u->given.len > 0)
		return hr_e2b_write_begin(u, hr_span_of_buf(&u->given));
	hr_buf_reset(&value);
	if (!hr_params_get(disposition, len, "filename", &value) || value.fail != HR_OK)
		return hr_e2b_write_fail(u, 400,
		    "error getting multipart custom part file name: %s",
		    "filename not found in Content-Disposition header");
	return hr_e2b_write_begin(u, hr_span_of_buf(&value));
}

static int
part_data(void *arg, const char *p, size_t len)
{
	struct hr_e2b_write *u = arg;

	return u->wanted ? hr_e2b_write_data(u, p, len) : 0;
}

static int
part_end(void *arg)
{
	struct hr_e2b_write *u = arg;

	return u->wanted ? hr_e2b_write_end(u) : 0;
}

/* ---- the body ---- */

struct body {
	struct hr_e2b_write *u;
	struct hr_multipart *form; /* NULL: the body is the file */
	bool packed;
	z_stream z;
	bool begun; /* compressed data has come */
	bool whole; /* the compressed data has ended */
	unsigned char out[CHUNK];
};

static int
body_plain(struct body *b, const char *p, size_t len)
{
	struct hr_err err = {0};

	if (b->form == NULL)
		return hr_e2b_write_data(b->u, p, len);
	if (hr_multipart_feed(b->form, p, len, &err) < 0)
		return hr_e2b_write_fail(b->u, 500, "error parsing multipart form: %s",
		    err.msg[0] != '\0' ? err.msg : "malformed");
	return 0;
}

/* Decompresses; several streams may follow each other. */
static int
body_packed(struct body *b, char *p, size_t len)
{
	int r = Z_OK;

	b->z.next_in = (unsigned char *)p;
	b->z.avail_in = (unsigned)len;
	do {
		if (b->whole && b->z.avail_in > 0 && inflateReset(&b->z) == Z_OK)
			b->whole = false;
		if (b->whole)
			break;
		b->z.next_out = b->out;
		b->z.avail_out = sizeof(b->out);
		r = inflate(&b->z, Z_NO_FLUSH);
		if (r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR)
			return hr_e2b_write_fail(b->u, 400, "error decompressing request body: %s",
			    b->begun       ? "corrupt input"
			    : len < HEADER ? "failed to create gzip reader: unexpected EOF"
					   : "failed to create gzip reader: gzip: invalid header");
		b->whole = r == Z_STREAM_END;
		if (b->z.avail_out < sizeof(b->out)) {
			b->begun = true;
			if (body_plain(b, (char *)b->out, sizeof(b->out) - b->z.avail_out) < 0)
				return -1;
		}
	} while (b->z.avail_in > 0 || b->z.avail_out == 0);
	return 0;
}

static int
body_read(struct body *b)
{
	struct hr_e2b_write *u = b->u;
	const struct hr_request *r = u->c->r;
	struct hr_buf *buf = &u->c->w->body;
	ssize_t n = -1;
	char *p;

	hr_buf_reset(buf);
	p = hr_buf_reserve(buf, CHUNK);
	while (p != NULL && (n = r->body.read(r->body.ctx, p, CHUNK)) > 0)
		if ((b->packed ? body_packed(b, p, (size_t)n) : body_plain(b, p, (size_t)n)) < 0)
			return -1;
	if (p == NULL)
		return hr_e2b_write_fail(u, 500, "%s", "out of memory");
	if (b->packed && !b->whole && !b->begun)
		return hr_e2b_write_fail(u, 400,
		    "error decompressing request body: failed to create gzip reader: %s",
		    b->z.total_in > 0 ? "unexpected EOF" : "EOF");
	if (n < 0 || (b->packed && !b->whole))
		return hr_e2b_write_fail(u, 500, "error writing file: %s", "unexpected EOF");
	return 0;
}

static int
receive(struct hr_e2b_write *u, struct hr_multipart *form)
{
	const char *encoding = hr_e2b_header(u->c, "CONTENT_ENCODING");
	struct body *b = calloc(1, sizeof(*b));
	int r;

	if (b == NULL)
		return hr_e2b_write_fail(u, 500, "%s", "out of memory");
	b->u = u;
	b->form = form;
	b->packed = strcasecmp(encoding, "gzip") == 0;
	if (b->packed && inflateInit2(&b->z, MAX_WBITS + GZIP) != Z_OK) {
		free(b);
		return hr_e2b_write_fail(u, 500, "%s", "out of memory");
	}
	r = body_read(b);
	if (b->packed)
		(void)inflateEnd(&b->z);
	free(b);
	return r;
}

static int
receive_form(struct hr_e2b_write *u)
{
	static const struct hr_multipart_ops ops = {part_begin, part_data, part_end};
	const char *type = u->c->r->content_type;
	HR_BUF(boundary, HR_MULTIPART_BOUNDARY_MAX + 1);
	struct hr_multipart m;
	int r;

	if (!hr_params_get(type, strlen(type), "boundary", &boundary) || boundary.len == 0)
		return hr_e2b_write_fail(u, 500, "error parsing multipart form: %s",
		    "no multipart boundary param in Content-Type");
	if (hr_multipart_init(&m, hr_buf_str(&boundary), boundary.len, &ops, u) < 0)
		r = hr_e2b_write_fail(
		    u, 500, "error parsing multipart form: %s", "invalid boundary");
	else
		r = receive(u, &m);
	if (r == 0 && u->open)
		r = hr_e2b_write_fail(u, 500, "error writing file: %s", "unexpected EOF");
	else if (r == 0 && m.state != HR_MULTIPART_END)
		r = hr_e2b_write_fail(
		    u, 500, "error parsing multipart form: %s", "multipart: NextPart: EOF");
	hr_multipart_done(&m);
	return r;
}

static int
receive_whole(struct hr_e2b_write *u)
{
	if (u->given.len == 0)
		return hr_e2b_write_fail(
		    u, 400, "%s", "path query parameter is required for raw body upload");
	if (hr_e2b_write_begin(u, hr_span_of_buf(&u->given)) < 0 || receive(u, NULL) < 0)
		return -1;
	return hr_e2b_write_end(u);
}

/* ---- the answer ---- */

static void
put_written(struct hr_e2b_write *u)
{
	size_t i, k;

	hr_buf_addc(&u->out, '[');
	for (i = 0; i < u->paths.n; i++) {
		hr_buf_adds(&u->out, i > 0 ? ",{" : "{");
		for (k = 0; k + 1 < u->metadata.n; k += 2) {
			hr_buf_adds(&u->out, k > 0 ? "," : "\"metadata\":{");
			hr_e2b_write_put_text(&u->out, u->metadata.v[k]);
			hr_buf_addc(&u->out, ':');
			hr_e2b_write_put_text(&u->out, u->metadata.v[k + 1]);
		}
		hr_buf_adds(&u->out, k > 0 ? "},\"name\":" : "\"name\":");
		hr_e2b_write_put_text(&u->out, hr_path_leaf(u->paths.v[i]));
		hr_buf_adds(&u->out, ",\"path\":");
		hr_e2b_write_put_text(&u->out, u->paths.v[i]);
		hr_buf_adds(&u->out, ",\"type\":\"file\"}");
	}
	hr_buf_addc(&u->out, ']');
}

void
hr_e2b_upload(struct hr_e2b_call *c)
{
	const char *encoding = hr_e2b_header(c, "CONTENT_ENCODING");
	const char *type = c->r->content_type;
	struct hr_e2b_write u;

	hr_e2b_write_init(&u, c);
	(void)hr_request_query_bytes(c->r, "path", &u.given);
	if (encoding[0] != '\0' && strcasecmp(encoding, "gzip") != 0 &&
	    strcasecmp(encoding, "identity") != 0)
		hr_e2b_refuse(c, 400,
		    "error decompressing request body: unsupported Content-Encoding: %s, "
		    "supported: "
		    "[gzip]",
		    encoding);
	else if (u.given.fail != HR_OK)
		hr_answer_generic(c->ret);
	else if (hr_e2b_check_query(c) && hr_e2b_find_user(c)) {
		if (hr_e2b_write_metadata(&u) == 0) {
			if (hr_body_is_type(type, "multipart/form-data"))
				(void)receive_form(&u);
			else if (hr_body_is_type(type, "application/octet-stream"))
				(void)receive_whole(&u);
			else
				(void)hr_e2b_write_fail(&u, 400,
				    "unsupported content type: %s, expected multipart/form-data or "
				    "application/octet-stream",
				    type);
		}
		put_written(&u);
		c->ret->content_type = "text/plain; charset=utf-8";
		hr_e2b_write_answer(&u);
	}
	hr_e2b_write_done(&u);
}
