/* hr_unpack: a zip archive's files go below a directory, all of them or none.
 *
 * They are unpacked into a directory of our own beside their places, which nobody else can enter,
 * then checked against what is there, then renamed. So an archive that is damaged, encrypted, too
 * large, or in whose way something stands, changes nothing; a reader sees each file old or new.
 * What a killed process left is removed by the next one.
 *
 * The contract (doc/http.md, "POST /upload_file"): names that begin with '/' or hold ".." anywhere
 * are left out, the modes, times and owners of the archive count for nothing, a symbolic link
 * becomes a file with its target's name in it. Of our own: devices and sockets are refused, links
 * that stand in the way are followed while they stay beneath the directory. */
#ifndef HR_FILES_ARCHIVE_UNPACK_H
#define HR_FILES_ARCHIVE_UNPACK_H

#include <stdint.h>

#include "base/buf.h"
#include "files/place/commit.h"

#define HR_UNPACK_DEPTH 200 /* directories in each other */

struct hr_unpack_limits {
	uint64_t bytes;   /* of all files together; 0: no limit */
	uint64_t entries; /* 0: no limit */
};

/* Does it end as a zip archive does? What Python's is_zipfile() looks for. */
bool hr_unpack_is_zip(int fd);

/* zip is open for reading; its name is for messages. 0, or -1 with the text in why. *ret_too_large:
 * whether a limit was the reason. moment (or NULL) is told when all is unpacked and nothing in its
 * place yet. Needs a locale with UTF-8 names. */
int hr_unpack(int zip, const char *zip_name, const char *directory,
    const struct hr_unpack_limits *limits, const struct hr_commit *commit, bool *ret_too_large,
    struct hr_buf *why);

/* What is done with an entry of that name: 0 and the clean name appended to ret (nothing, if it is
 * the directory itself), 1: left out, -1: refused with errno (ENAMETOOLONG, ELOOP: too deep). */
int hr_unpack_name(const char *name, struct hr_buf *ret);

#endif
