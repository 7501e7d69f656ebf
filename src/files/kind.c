/* libmagic, kept open from its first use to the end of the process. */
#include "config.h"

#include "files/kind.h"

#include <magic.h>
#include <stdbool.h>
#include <string.h>

static magic_t magic;
static bool tried;

static void
kind_open(void)
{
	tried = true;
	magic = magic_open(MAGIC_NO_CHECK_COMPRESS | MAGIC_NO_CHECK_TAR);
	if (magic != NULL && magic_load(magic, NULL) < 0) {
		magic_close(magic);
		magic = NULL;
	}
}

void
hr_kind_describe(struct hr_buf *b, const void *p, size_t len)
{
	const char *said;

	if (!tried)
		kind_open();
	said = magic != NULL ? magic_buffer(magic, p, len) : NULL;
	if (said != NULL)
		hr_buf_adds(b, said);
}
