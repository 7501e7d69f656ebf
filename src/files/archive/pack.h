/* hr_pack: packs a directory tree as a zip archive that is written while the tree is walked.
 *
 * The contract (doc/http.md, "GET /download_files") gives the contents: files only, by their names
 * below the top, stored without compression. A symbolic link to a file is packed as that file, one
 * to a directory is left out. Unreadable directories are left out; an unreadable file, a dangling
 * link, a name that is not UTF-8 or a time before 1980 makes the whole archive fail. A top that is
 * a file gives an empty archive. handrail's own addition: a device or a FIFO is packed as an empty
 * file, since reading one may never end.
 *
 * The tree is looked through first, so that such a failure is an error and not half an archive; but
 * for no longer than HR_PACK_LOOK_MS, so that the archive of a large tree starts at once. */
#ifndef HR_FILES_ARCHIVE_PACK_H
#define HR_FILES_ARCHIVE_PACK_H

#include "base/buf.h"
#include "base/err.h"
#include "proto/httperr.h"

#define HR_PACK_LOOK_MS 4

struct hr_pack;

/* Opens path, which is absolute. With `empty`, empty directories become entries as well. Returns
 * NULL with the contract's error text in why. Memory holds the archive's central directory: about
 * 150 bytes and the name for each file. */
struct hr_pack *hr_pack_open(const char *path, bool empty, struct hr_buf *why);

/* Sends the archive, for hr_answer_stream(). Requires a locale with UTF-8 names. */
int hr_pack_send(void *pack, struct hr_sink *sink, struct hr_err *err);
void hr_pack_free(void *pack); /* Accepts NULL. */

#endif
