/* hr_tarfile: packs a directory as a tar file; equal content makes equal bytes. */
#ifndef HR_HOST_TRANSFER_TARFILE_H
#define HR_HOST_TRANSFER_TARFILE_H

#include <stdbool.h>

/* Returns a descriptor, which the caller closes, of an unlinked file, at its start, with all below
 * dir: sorted, owner 0, time 0. With `gzip` it is compressed. With `links` a link to a file is
 * stored as that file, and others are left out; otherwise a link is an error. Returns -1 with *err
 * set. */
int hr_tarfile_make(const char *dir, bool gzip, bool links, struct hr_err *err);

#endif
