/* hr_unpack: unpacks the files of a zip archive below a directory, all of them or none.
 *
 * They are unpacked into a private staging directory on the same file system, then checked against
 * the existing files, then renamed. So an archive that is damaged, encrypted, too large, or
 * obstructed by an existing entry changes nothing; a reader sees each file old or new. Leftovers of
 * a killed process are removed by the next one.
 *
 * The contract (doc/http.md, "POST /upload_file"): names that begin with '/' or hold ".." anywhere
 * are left out; the archive's modes, times and owners are ignored; a symbolic link becomes a file
 * that holds the name of its target. handrail's own additions: devices and sockets are refused;
 * existing links are followed while they stay beneath the directory. */
#ifndef HR_FILES_ARCHIVE_UNPACK_H
#define HR_FILES_ARCHIVE_UNPACK_H

#include <stdint.h>

#include "base/buf.h"
#include "files/place/commit.h"

#define HR_UNPACK_DEPTH 200 /* maximum of nested directories */

struct hr_unpack_limits {
	uint64_t bytes;   /* maximum sum over all files; 0: no limit */
	uint64_t entries; /* maximum number; 0: no limit */
};

/* Returns true if the file ends as a zip archive does, as Python's is_zipfile() checks. */
bool hr_unpack_is_zip(int fd);

/* Unpacks zip, which is open for reading; zip_name is for messages. Returns 0, or -1 with the error
 * text in why and *ret_too_large set if a limit was the reason. commit (or NULL) is called when
 * everything is unpacked and nothing is in its place yet. Requires a locale with UTF-8 names. */
int hr_unpack(int zip, const char *zip_name, const char *directory,
    const struct hr_unpack_limits *limits, const struct hr_commit *commit, bool *ret_too_large,
    struct hr_buf *why);

/* Checks an entry's name. Returns 0 with the clean name appended to ret (nothing for the directory
 * itself), 1 if the name is left out, -1 with errno if it is refused (ENAMETOOLONG; ELOOP: too
 * deep). */
int hr_unpack_name(const char *name, struct hr_buf *ret);

#endif
