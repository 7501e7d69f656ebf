/* hr_zip: keeps the code that uses libarchive in a module that the first request for it loads:
 * otherwise every worker would map the library and all its dependencies. */
#ifndef HR_FILES_ARCHIVE_ZIP_H
#define HR_FILES_ARCHIVE_ZIP_H

#include "files/archive/pack.h"
#include "files/archive/tree.h"
#include "files/place/reach.h"
#include "files/archive/unpack.h"

#define HR_ZIP_FILE "handrail-zip.so"
#define HR_ZIP_VERSION 6 /* version of the struct below and of its functions' parameters */

struct hr_zip {
	unsigned version; /* first member, since it is checked before any other */
	/* sets the rules of the module's own copy, see reach.h */
	void (*rules)(const struct hr_reach *rules);
	struct hr_pack *(*pack_open)(const char *path, bool empty, struct hr_buf *why);
	int (*pack_send)(void *pack, struct hr_sink *sink, struct hr_err *err);
	void (*pack_free)(void *pack);
	bool (*is_zip)(int fd);
	int (*unpack)(int zip, const char *zip_name, const char *directory,
	    const struct hr_unpack_limits *limits, const struct hr_commit *commit,
	    bool *ret_too_large, struct hr_buf *why);
	struct hr_tree *(*tree_open)(
	    const char *path, const struct hr_tree_options *o, struct hr_err *err);
	int (*tree_send)(struct hr_tree *t, hr_tree_write_fn *fn, void *arg,
	    struct hr_tree_report *r, struct hr_err *err);
	void (*tree_free)(struct hr_tree *t);
	int (*tree_unpack)(const char *path, const struct hr_tree_options *o, hr_tree_read_fn *fn,
	    void *arg, struct hr_tree_report *r, struct hr_err *err);
};

/* Returns the module in directory, or NULL if it cannot be loaded or has another version. It is
 * loaded once and stays until the process ends. Not thread-safe. */
const struct hr_zip *hr_zip_load(const char *directory, struct hr_err *err);

/* the module's only symbol */
extern const struct hr_zip hr_zip_module;

#endif
