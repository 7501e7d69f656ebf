/* hr_picture: recognises the picture formats that models accept: PNG, JPEG, GIF and WebP. */
#ifndef HR_FILES_PICTURE_H
#define HR_FILES_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hr_picture {
	const char *mime; /* "image/png" etc.; a constant */
	uint32_t width, height;
	bool whole; /* true: the structure is complete to the end; pixels are not decoded */
};

/* Returns false if the bytes do not begin as such a picture. Pure. */
bool hr_picture_look(const void *p, size_t len, struct hr_picture *ret);

#endif
