/* box_table: reads the kernel's list of the mounts that a process sees (proc(5), mountinfo). */
#ifndef HR_BOX_TABLE_H
#define HR_BOX_TABLE_H

#include <stddef.h>
#include <stdint.h>

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

#endif
