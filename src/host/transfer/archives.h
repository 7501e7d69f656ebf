/* hr_archives: holds the users of libarchive, in a module loaded at first use: libarchive loads a
 * dozen libraries, which would cost every start of a program more than a request to a sandbox.
 * Other modules call hr_zip_*() and hr_tarfile_make(). */
#ifndef HR_HOST_TRANSFER_ARCHIVES_H
#define HR_HOST_TRANSFER_ARCHIVES_H

#include <stdbool.h>

#include "files/archive/tree.h"
#include "host/handrail.h"

#define HR_ARCHIVES_FILE "handrail-archives.so"
#define HR_ARCHIVES_VERSION 6 /* version of the struct below and of its functions' arguments */

struct hr_archives {
	unsigned version; /* first member, since it is checked before any other */
	/* makes a zip file in fd, which stays open */
	int (*zip)(int fd, const char *path, bool with_name, bool deflate, struct hr_err *err);
	int (*unzip)(
	    const char *file, const char *dir, unsigned long long most, struct hr_err *err);
	int (*tar)(int fd, const char *dir, bool gzip, bool links, struct hr_err *err);
	int (*tree_pack)(int fd, const char *path, bool owner, struct hr_tree_report *report,
	    struct hr_err *err);
	int (*tree_unpack)(int fd, const char *path, bool owner, struct hr_tree_report *report,
	    struct hr_err *err);
};

/* Makes an unlinked file for an archive in `dir`; NULL or "": /tmp. Returns a descriptor, or -1
 * with *err set. */
int hr_archives_unlinked(const char *dir, struct hr_err *err);

/* Packs hr_tree of files/archive into a file; the next function unpacks it from the file's
 * start. */
int hr_treefile_pack(
    int fd, const char *path, bool owner, struct hr_tree_report *report, struct hr_err *err);
int hr_treefile_unpack(
    int fd, const char *path, bool owner, struct hr_tree_report *report, struct hr_err *err);

/* the module's only symbol */
extern const struct hr_archives hr_archives_module;

/* Makes a zip file; the next function unpacks it: see host/transfer/zip.h. */
int hr_arczip_make(int fd, const char *path, bool with_name, bool deflate, struct hr_err *err);
int
hr_arczip_extract(const char *file, const char *dir, unsigned long long most, struct hr_err *err);

struct archive;
/* An archive that is being written. */
struct hr_arc {
	struct archive *a;
	const char *what; /* prefix of errors, such as "zip" */
	/* A link to a file is stored as that file; a link to a directory, or a dangling one, is
	 * left out. If unset, a link is an error. */
	bool links;
	/* All directories are entries, not only empty ones; owner, time, and all of the mode but
	 * "executable" are normalised, so that equal content makes equal bytes. */
	bool plain;
};
/* Adds all below the directory `path`, sorted, each name after "prefix/" (if that is not empty); or
 * the file `path` as `name`, which is NULL if path must be a directory. */
int hr_arc_put(const struct hr_arc *to, const char *path, const char *name, const char *prefix,
    struct hr_err *err);
/* Sets "what: " and libarchive's error; returns -1. */
int hr_arc_failed(struct archive *a, const char *what, struct hr_err *err);

#endif
