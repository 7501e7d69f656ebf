/* hr_zip: directories as zip files, the form in which they travel to and from a sandbox. */
#ifndef HR_HOST_TRANSFER_ZIP_H
#define HR_HOST_TRANSFER_ZIP_H

#include <stdbool.h>

#include "host/handrail.h"

/* A new file *.zip in dir (NULL: /tmp), open for writing; its name is the caller's to remove and
 * free. NULL with *err. */
char *hr_zip_temporary(int *ret_fd, const char *dir, struct hr_err *err);

/* Such a file with all regular files and empty directories below `path` (or path itself);
 * with_name: the names begin with the directory's own. Links to files are stored as what they point
 * to, linked directories are not entered. */
char *hr_zip_directory(const char *path, bool with_name, bool deflate, struct hr_err *err);

/* Unpacks below `dir`, which is made; nothing leaves it, and directories that are there stay as
 * they are. most: so many bytes at most, of which an entry takes 4096 beside what is in it; 0:
 * without bound. What was unpacked until then stays. */
int hr_zip_extract(const char *file, const char *dir, unsigned long long most, struct hr_err *err);

#endif
