/* Defines the data that snapshot.c finds and html.c prints. */
#ifndef HR_PLUGINS_BROWSER_PAGE_SNAPSHOT_INT_H
#define HR_PLUGINS_BROWSER_PAGE_SNAPSHOT_INT_H

#include "plugins/browser/page/snapshot.h"
#include "plugins/browser/page/tape.h"

struct br_snapshot {
	struct br_tape tape;
	uint32_t *strings; /* indexes on the tape */
	size_t n_strings;
	unsigned char *marked; /* true for each string that begins with an element's mark */
	uint32_t *documents;
	size_t n_documents;
};

/* Lists the indexes of a list's values: strings, documents, or node attributes by node number.
 * Returns 0, or -1 without memory. The caller frees the list. */
int br_snapshot_column(const struct br_tape *t, uint32_t list, uint32_t **ret, size_t *ret_n);

/* Appends a string by its number, without its mark. Returns false if there is no such string. */
bool br_snapshot_string(const struct br_snapshot *s, uint32_t number, struct hr_buf *b);

/* Returns true if the string of this number is `text`, with any mark. */
bool br_snapshot_is(const struct br_snapshot *s, uint32_t number, const char *text);

#endif
