/* hr_tarfile: a directory as a tar file, the same bytes for the same content. */
#ifndef HR_HOST_TRANSFER_TARFILE_H
#define HR_HOST_TRANSFER_TARFILE_H

#include <stdbool.h>

/* A descriptor of a file without a name, at its start, with all below dir: sorted, owner 0, time 0;
 * gzip: compressed; links: one to a file is stored as that file, others are left out; not set: a
 * link is an error. The caller closes it. -1 with *err. */
int hr_tarfile_make(const char *dir, bool gzip, bool links, struct hr_err *err);

#endif
