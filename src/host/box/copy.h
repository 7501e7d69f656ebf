/* hr_box_copy: copies and removes the files of boxes by the launcher. */
#ifndef HR_HOST_BOX_COPY_H
#define HR_HOST_BOX_COPY_H

#include "host/box/box_int.h"

struct hr_box_copy {
	const int *locks; /* HR_BOX_LOCKS of them */
	const char *from; /* a storage, which the caller keeps from other commands */
	const char *to;   /* the name of a new directory, which may be there after a failure */
	int64_t most;     /* bytes that the copy may take; 0: no limit */
	bool shifted; /* result: the root of the box was not copied: it became a layer of both */
};

/* Copies a storage without the server's journal, while the box b that uses it stands still (NULL:
 * none does). Fails with HR_E_TOOLARGE if the copy would take more bytes than `most`, unless it
 * shares them with the original. Returns 0, or -1 with *err set. */
int hr_box_copy(const struct hr_box *b, struct hr_box_copy *c, struct hr_err *err);

struct hr_box_size {
	int64_t files, bytes;
};
/* Counts the files of a storage and of its layers. Returns 0, or -1 with *err set. */
int hr_box_count(
    const char *state_dir, const char *storage, struct hr_box_size *ret, struct hr_err *err);

#endif
