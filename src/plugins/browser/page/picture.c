/* Reads and writes PNG with libpng's simple interface: the size is known before the pixels. */
#include "config.h"

#include "plugins/browser/page/picture.h"

#include <stdlib.h>

#include <png.h>

int
br_picture_read(struct br_picture *ret, const void *png, size_t len, struct hr_err *err)
{
	png_image image = {.version = PNG_IMAGE_VERSION};
	png_color white = {255, 255, 255};

	if (!png_image_begin_read_from_memory(&image, png, len))
		return hr_err_set(err, HR_E_PROTO, "not a PNG picture: %s", image.message);
	if ((uint64_t)image.width * image.height > BR_PICTURE_PIXELS_MAX) {
		png_image_free(&image);
		return hr_err_set(err, HR_E_TOOLARGE, "%u times %u pixels; at most %u", image.width,
		    image.height, BR_PICTURE_PIXELS_MAX);
	}
	image.format = PNG_FORMAT_RGB;
	*ret = (struct br_picture){
	    .rgb = malloc(PNG_IMAGE_SIZE(image)), .width = image.width, .height = image.height};
	if (ret->rgb == NULL) {
		png_image_free(&image);
		return hr_err_nomem(err);
	}
	if (!png_image_finish_read(&image, &white, ret->rgb, 0, NULL)) {
		br_picture_done(ret);
		return hr_err_set(err, HR_E_PROTO, "not a PNG picture: %s", image.message);
	}
	return 0;
}

void
br_picture_done(struct br_picture *p)
{
	free(p->rgb);
	*p = (struct br_picture){0};
}

int
br_picture_write(const struct br_picture *p, struct hr_buf *png, struct hr_err *err)
{
	png_image image = {.version = PNG_IMAGE_VERSION,
	    .width = (png_uint_32)p->width,
	    .height = (png_uint_32)p->height,
	    .format = PNG_FORMAT_RGB,
	    .flags = PNG_IMAGE_FLAG_FAST}; /* saves time, since a client is waiting */
	png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
	char *room = hr_buf_reserve(png, size);

	if (room == NULL)
		return hr_buf_check(png, err);
	if (!png_image_write_to_memory(&image, room, &size, 0, p->rgb, 0, NULL))
		return hr_err_set(err, HR_E_NOMEM, "not a PNG picture: %s", image.message);
	hr_buf_grew(png, size);
	return 0;
}
