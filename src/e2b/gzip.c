#include "config.h"

#include "e2b/gzip.h"

#include <stdint.h>

#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* the format of gzip, with the largest window */
#define PIECE 16384

/* Runs deflate() or inflate() over all of the data. Invariant: z has been initialised. */
static int
run(z_stream *z, int (*step)(z_stream *, int), struct hr_buf *b, struct hr_span data)
{
	char *room;
	int r;

	z->next_in = (Bytef *)(uintptr_t)data.p; /* zlib only reads it */
	z->avail_in = (uInt)data.len;
	do {
		room = hr_buf_reserve(b, PIECE);
		if (room == NULL)
			return -1;
		z->next_out = (Bytef *)room;
		z->avail_out = PIECE;
		r = step(z, Z_FINISH);
		hr_buf_grew(b, PIECE - z->avail_out);
	} while (r == Z_OK || (r == Z_BUF_ERROR && z->avail_out == 0));
	return r == Z_STREAM_END && z->avail_in == 0 ? 0 : -1;
}

int
hr_gzip(struct hr_buf *b, struct hr_span data)
{
	z_stream z = {0};
	int r;

	if (deflateInit2(
		&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -1;
	r = run(&z, deflate, b, data);
	(void)deflateEnd(&z);
	return r;
}

int
hr_gunzip(struct hr_buf *b, struct hr_span data)
{
	z_stream z = {0};
	int r;

	if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
		return -1;
	r = run(&z, inflate, b, data);
	(void)inflateEnd(&z);
	return r;
}
