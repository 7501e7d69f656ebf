/* Asks libuchardet. */
#include "config.h"

#include <uchardet.h>

#include "files/charset/detect.h"

void
hr_detect_charset(struct hr_buf *b, const void *p, size_t len)
{
	uchardet_t ud = uchardet_new();

	if (ud == NULL)
		return;
	if (uchardet_handle_data(ud, p, len) == 0) {
		uchardet_data_end(ud);
		hr_buf_adds(b, uchardet_get_charset(ud));
	}
	uchardet_delete(ud);
}
