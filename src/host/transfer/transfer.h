/* What copies over a sandbox's server share. */
#ifndef HR_HOST_TRANSFER_TRANSFER_H
#define HR_HOST_TRANSFER_TRANSFER_H

#include "host/handle.h"

/* The file as DIR/NAME of the sandbox, or the archive that it is below DIR, which is made. */
int hr_transfer_upload(struct hr_sandbox *s, const char *file, const char *name, const char *to,
    bool recursive, struct hr_err *err);
/* As a file in any case, to DIR/NAME; as_is: by /handrail/v1/upload, which takes any name. */
int hr_transfer_upload_as(struct hr_sandbox *s, const char *file, const char *name, const char *to,
    bool as_is, struct hr_err *err);
/* For a request's progress, with the sandbox, whose caller asks for it. */
void hr_transfer_down(void *arg, unsigned long long done, unsigned long long total);

/* hr_sandbox_copy_from() of an archive that takes `most` bytes at most; 0: of any size. The archive
 * of a kind that makes it by itself is not bounded. empty: with empty directories, which a server
 * of the original's does not send. */
int hr_sandbox_copy_some(struct hr_sandbox *s, const char *sandbox_path, unsigned long long most,
    bool empty, char **ret_file, struct hr_err *err);
#endif
