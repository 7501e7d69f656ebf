/* Holds code that copies through a sandbox's server share. */
#ifndef HR_HOST_TRANSFER_TRANSFER_H
#define HR_HOST_TRANSFER_TRANSFER_H

#include "host/handle.h"

/* Puts a file at DIR/NAME of the sandbox, or unpacks the archive below DIR, which is created. */
int hr_transfer_upload(struct hr_sandbox *s, const char *file, const char *name, const char *to,
    bool recursive, struct hr_err *err);
/* Puts a file at DIR/NAME and never unpacks it. `as_is`: uses /handrail/v1/upload, which accepts
 * any name. */
int hr_transfer_upload_as(struct hr_sandbox *s, const char *file, const char *name, const char *to,
    bool as_is, struct hr_err *err);
/* A new file that receives the body of an answer. Its blocks of zeros become holes: a sandbox can
 * send any number of them. */
struct hr_transfer_file {
	int fd;
	unsigned long long most, came; /* limit and number of bytes; most 0: no limit */
};
/* Is the sink (hr_http_sink_fn) of a struct hr_transfer_file. */
int hr_transfer_keep(void *file, const char *p, size_t len);
/* Sets the size of the file after the last byte. `name` is for the error. Returns 0 or -1. */
int hr_transfer_kept(const struct hr_transfer_file *f, const char *name, struct hr_err *err);
/* Bytes of a file that must come within each of these times: 1 KiB a second, so that a hostile
 * server cannot hold a copy by single bytes. */
#define HR_TRANSFER_LEAST(timeout_s) ((size_t)(timeout_s) << 10)
/* Replaces the error of a download of `path` that took too long by one that states the limit. */
void hr_transfer_slow(struct hr_err *err, const char *path, unsigned timeout_s);
/* Reports a request's progress to the caller of the sandbox; arg is the struct hr_sandbox. */
void hr_transfer_down(void *arg, unsigned long long done, unsigned long long total);

/* Makes hr_sandbox_copy_from() refuse an archive of more than `most` bytes; 0: any size. No limit
 * applies to an archive made by the back-end itself. With `empty` it includes empty directories,
 * which the original's server does not send. */
int hr_sandbox_copy_some(struct hr_sandbox *s, const char *sandbox_path, unsigned long long most,
    bool empty, char **ret_file, struct hr_err *err);
#endif
