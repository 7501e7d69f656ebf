/* box_table: reads the kernel's list of the mounts that a process sees (proc(5), mountinfo). */
#ifndef HR_BOX_TABLE_H
#define HR_BOX_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

#define BOX_TABLE_MAX 2048 /* maximum number of mounts */

/* Strings are borrowed from the table. */
struct box_table_mount {
	uint64_t id, parent;
	const char *device;
	const char *root;  /* directory of the file system */
	const char *place; /* path as the process sees it */
	const char *type, *source;
};

struct box_table {
	struct hr_buf text;
	struct box_table_mount v[BOX_TABLE_MAX];
	size_t n;
};

/* Reads the list from its start, into an empty table. Returns 0, or -1 with *err. */
int box_table_read(struct box_table *t, int fd, struct hr_err *err);
void box_table_done(struct box_table *t);

/* Returns a mount by its number, or NULL. */
const struct box_table_mount *box_table_find(const struct box_table *t, uint64_t id);
/* Returns the mount that covers `m` as a whole, or NULL. */
const struct box_table_mount *
box_table_over(const struct box_table *t, const struct box_table_mount *m);

/* The source of a root that is an overlay names its directories by their inodes. */
#define BOX_TABLE_SOURCE 64
void box_table_name(uint64_t upper, uint64_t work, char ret[BOX_TABLE_SOURCE]);
/* Sets *ret_upper to the inode of the directory that has the changes to the root `m`, and *ret_work
 * to that of its working directory (0: none). `root` is a descriptor of the root. Returns 0, or -1
 * with *err: an overlay that has another source, too. */
int box_table_upper(const struct box_table_mount *m, int root, uint64_t *ret_upper,
    uint64_t *ret_work, struct hr_err *err);

/* Opens the root that process `pid` has as *ret_root, and reads its list of mounts. Returns the
 * root's mount, borrowed from the empty table *t, or NULL with *err. */
const struct box_table_mount *
box_table_of(struct box_table *t, pid_t pid, int *ret_root, struct hr_err *err);

#endif
