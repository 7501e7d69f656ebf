/* br_picture: reads a screenshot, and draws the marks of elements onto it. Pure. */
#ifndef HR_PLUGINS_BROWSER_PAGE_PICTURE_H
#define HR_PLUGINS_BROWSER_PAGE_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "plugins/browser/page/props.h"

/* maximum of pixels; larger pictures are refused before any allocation */
#define BR_PICTURE_PIXELS_MAX (16u << 20)

struct br_picture {
	uint8_t *rgb; /* three bytes per pixel, row by row */
	size_t width, height;
};

/* Reads a PNG. Returns 0, and the caller calls br_picture_done(); or -1 with err. */
int br_picture_read(struct br_picture *ret, const void *png, size_t len, struct hr_err *err);
void br_picture_done(struct br_picture *p);
/* Appends a PNG. */
int br_picture_write(const struct br_picture *p, struct hr_buf *png, struct hr_err *err);

/* Returns true if there is any mark to draw. */
bool br_picture_has_marks(const struct br_props *props);
/* Draws a dashed box and the bid for each marked element that has a position. */
void br_picture_mark(struct br_picture *p, const struct br_props *props);

#endif
