/* What snapshot.c finds and html.c writes. */
#ifndef HR_PLUGINS_BROWSER_PAGE_SNAPSHOT_INT_H
#define HR_PLUGINS_BROWSER_PAGE_SNAPSHOT_INT_H

#include "plugins/browser/page/snapshot.h"
#include "plugins/browser/page/tape.h"

struct br_snapshot {
	struct br_tape tape;
	uint32_t *strings; /* places on the tape */
	size_t n_strings;
	unsigned char *marked; /* strings with the mark of an element in front */
	uint32_t *documents;
	size_t n_documents;
};

/* The places of what a list holds: a string, a document, a node's part by its number. 0, or -1: no
 * memory. The caller frees it. */
int br_snapshot_column(const struct br_tape *t, uint32_t list, uint32_t **ret, size_t *ret_n);

/* Appends a string by its number, without its mark. false: there is none. */
bool br_snapshot_string(const struct br_snapshot *s, uint32_t number, struct hr_buf *b);

/* Is the string of this number this very text? As it came. */
bool br_snapshot_is(const struct br_snapshot *s, uint32_t number, const char *text);

#endif
