/* hr_archives: what needs libarchive, in a module of its own that is loaded at first use: it brings
 * a dozen of libraries along, which cost every start of a program more than a request to a sandbox
 * does. Other modules call hr_zip_*() and hr_tarfile_make(). */
#ifndef HR_HOST_TRANSFER_ARCHIVES_H
#define HR_HOST_TRANSFER_ARCHIVES_H

#include <stdbool.h>

#include "files/archive/tree.h"
#include "host/handrail.h"

#define HR_ARCHIVES_FILE "handrail-archives.so"
#define HR_ARCHIVES_VERSION 5 /* of the struct below and of what its functions take */

struct hr_archives {
	unsigned version; /* first: it is looked at before anything else */
	/* into fd, which stays open */
	int (*zip)(int fd, const char *path, bool with_name, bool deflate, struct hr_err *err);
	int (*unzip)(
	    const char *file, const char *dir, unsigned long long most, struct hr_err *err);
	int (*tar)(const char *dir, bool gzip, bool links, struct hr_err *err);
	int (*tree_pack)(int fd, const char *path, bool owner, struct hr_tree_report *report,
	    struct hr_err *err);
	int (*tree_unpack)(int fd, const char *path, bool owner, struct hr_tree_report *report,
	    struct hr_err *err);
};

/* hr_tree of files/archive into a file, and from its beginning. */
int hr_treefile_pack(
    int fd, const char *path, bool owner, struct hr_tree_report *report, struct hr_err *err);
int hr_treefile_unpack(
    int fd, const char *path, bool owner, struct hr_tree_report *report, struct hr_err *err);

/* The only symbol of the module. */
extern const struct hr_archives hr_archives_module;

/* What it is made of; see host/zip.h and host/tarfile.h. */
int hr_arczip_make(int fd, const char *path, bool with_name, bool deflate, struct hr_err *err);
int
hr_arczip_extract(const char *file, const char *dir, unsigned long long most, struct hr_err *err);
int hr_arctar_make(const char *dir, bool gzip, bool links, struct hr_err *err);
int hr_arctree_pack(
    int fd, const char *path, bool owner, struct hr_tree_report *report, struct hr_err *err);
int hr_arctree_unpack(
    int fd, const char *path, bool owner, struct hr_tree_report *report, struct hr_err *err);

struct archive;
/* An archive that is written. */
struct hr_arc {
	struct archive *a;
	const char *what; /* for errors: "zip" */
	/* A link to a file is stored as that file, one to a directory or to nothing left out. Not
	 * set: a link is an error. */
	bool links;
	/* All directories are entries and not only those with nothing in them; owner, time and all
	 * of a mode but "executable" count for nothing, so that the same content makes the same
	 * bytes. */
	bool plain;
};
/* All below the directory `path`, sorted, each name behind "prefix/" (if that is not empty); or the
 * file `path` under `name`, NULL where it is to be a directory. */
int hr_arc_put(const struct hr_arc *to, const char *path, const char *name, const char *prefix,
    struct hr_err *err);
/* -1, with libarchive's words behind "what: ". */
int hr_arc_failed(struct archive *a, const char *what, struct hr_err *err);

#endif
