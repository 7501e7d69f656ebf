/* hr_zip: makes and unpacks zip files of directories, the form in which they are sent to and from a
 * sandbox. */
#ifndef HR_HOST_TRANSFER_ZIP_H
#define HR_HOST_TRANSFER_ZIP_H

#include <stdbool.h>

#include "host/handrail.h"

/* Creates a file *.zip in dir (NULL: /tmp), open for writing; the caller removes it and frees its
 * name. Returns NULL with *err set. */
char *hr_zip_temporary(int *ret_fd, const char *dir, struct hr_err *err);

/* Makes such a file with all regular files and empty directories below `path` (or path itself).
 * With with_name, names begin with the directory's own. Links to files are stored as their targets,
 * linked directories are not entered. */
char *hr_zip_directory(const char *path, bool with_name, bool deflate, struct hr_err *err);

/* Unpacks below `dir`, which is created; no entry can leave it, and existing directories keep their
 * attributes. `most` is the limit in bytes, in which an entry counts 4096 besides its contents; 0:
 * no limit. After an error, the entries unpacked so far remain. */
int hr_zip_extract(const char *file, const char *dir, unsigned long long most, struct hr_err *err);

#endif
