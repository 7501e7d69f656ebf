/* hr_picture: whether some bytes are a picture that models of today take: PNG, JPEG, GIF or WebP.
 */
#ifndef HR_FILES_PICTURE_H
#define HR_FILES_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hr_picture {
	const char *mime; /* "image/png" and so on */
	uint32_t width, height;
	bool whole; /* its parts are there to the last one; not decoded */
};

/* Returns false where the bytes do not begin as such a picture. Pure. */
bool hr_picture_look(const void *p, size_t len, struct hr_picture *ret);

#endif
