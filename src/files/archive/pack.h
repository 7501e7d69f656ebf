/* hr_pack: a directory tree as a zip archive that is written while the tree is walked.
 *
 * What is in it is the contract's (doc/http.md, "GET /download_files"): files only, by their names
 * below the top, stored without compression; a symbolic link to a file is that file, one to a
 * directory is left out; directories that cannot be read are left out, a file that cannot be read,
 * a dangling link, a name that is not UTF-8 or a time before 1980 makes the whole of it fail. A top
 * that is a file gives an empty archive. Of our own: a device or a FIFO is an empty file, since
 * reading one may have no end.
 *
 * To say so with an error instead of with half an archive, the tree is looked through first; but no
 * longer than HR_PACK_LOOK_MS, so that the archive of a large tree begins at once. */
#ifndef HR_FILES_ARCHIVE_PACK_H
#define HR_FILES_ARCHIVE_PACK_H

#include "base/buf.h"
#include "base/err.h"
#include "proto/httperr.h"

#define HR_PACK_LOOK_MS 4

struct hr_pack;

/* path is absolute. empty: directories with nothing in them are entries, too. NULL with the text of
 * the contract in why. Memory is used for the archive's directory, about 150 bytes and the name of
 * each file. */
struct hr_pack *hr_pack_open(const char *path, bool empty, struct hr_buf *why);

/* For hr_answer_stream(). Needs a locale with UTF-8 names. */
int hr_pack_send(void *pack, struct hr_sink *sink, struct hr_err *err);
void hr_pack_free(void *pack); /* NULL: nothing */

#endif
