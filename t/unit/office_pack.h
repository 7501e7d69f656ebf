/* An office document made of parts, for the unit test and the fuzz target. */
#ifndef HR_T_UNIT_OFFICE_PACK_H
#define HR_T_UNIT_OFFICE_PACK_H

#include <stdlib.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>

struct office_part {
	const char *name, *data;
	size_t len;
};

/* A ZIP archive of the parts at p, room bytes; its size, or 0 if it does not fit. */
static inline size_t
office_pack(const struct office_part *part, size_t n, char *p, size_t room)
{
	struct archive *a = archive_write_new();
	struct archive_entry *e;
	size_t used = 0, i;
	bool good = a != NULL && archive_write_set_format_zip(a) == ARCHIVE_OK &&
		    archive_write_set_bytes_per_block(a, 1) == ARCHIVE_OK &&
		    archive_write_open_memory(a, p, room, &used) == ARCHIVE_OK;

	for (i = 0; i < n && good; i++) {
		e = archive_entry_new();
		archive_entry_set_pathname(e, part[i].name);
		archive_entry_set_size(e, (la_int64_t)part[i].len);
		archive_entry_set_filetype(e, AE_IFREG);
		good = archive_write_header(a, e) == ARCHIVE_OK &&
		       (part[i].len == 0 || archive_write_data(a, part[i].data, part[i].len) ==
						(la_ssize_t)part[i].len);
		archive_entry_free(e);
	}
	good = good && archive_write_close(a) == ARCHIVE_OK;
	(void)archive_write_free(a);
	return good ? used : 0;
}

#endif
