/* hr_image_tags: names images, character for character as the original does (doc/images.md, "The
 * three tags"), so that both find each other's images in a registry. */
#ifndef HR_IMAGE_TAGS_H
#define HR_IMAGE_TAGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "image/digest.h"

#define HR_IMAGE_REPO "ghcr.io/openhands/runtime" /* the default repository */
#define HR_IMAGE_HASH 17                          /* 16 digits and a NUL */
#define HR_IMAGE_NAME_MAX 4096

/* Implements doc/images.md, "Short hashes": converts a hexadecimal MD5 to at most 16 digits of base
 * 36, least significant first. Fails with HR_E_INVAL if hex is not such a number. */
int hr_image_truncate_hash(const char *hex, char ret[HR_IMAGE_HASH], struct hr_err *err);

/* Appends the end of the versioned tag (doc/images.md, "The three tags"). */
void hr_image_versioned_suffix(const char *base, struct hr_buf *b);

/* Appends the repository and the descriptive tag of images built on `base` (doc/images.md, "The
 * repository and the base's tag"). repo NULL: HR_IMAGE_REPO. Fails with HR_E_INVAL for more than
 * one ':', unless registry_port is set: then the tag follows the last ':' after the last '/'. */
int hr_image_repo_and_tag(const char *base, const char *version, const char *repo,
    bool registry_port, struct hr_buf *ret_repo, struct hr_buf *ret_tag, struct hr_err *err);

/* Computes doc/images.md, "The lock hash", over the base's name and the files' bytes, in this
 * order. ret_md5 may be NULL. */
int hr_image_lock_hash(const char *base, bool browser, const char *const *files, size_t nfiles,
    char ret_md5[HR_DIGEST_HEX], char ret[HR_IMAGE_HASH], struct hr_err *err);

/* The input of the three tags. */
struct hr_image_inputs {
	const char *base;
	const char *version;
	const char *repo; /* NULL: HR_IMAGE_REPO */
	bool registry_port;
	bool browser;
	const char *const *lock_files;
	size_t lock_files_n;
	const char *source_dir;
	const char *const *ignore;
};

/* Full names: REPO:TAG. */
struct hr_image_tags {
	char *repo;
	char *source;    /* this source on these dependencies; also the image's name */
	char *lock;      /* these dependencies on this base */
	char *versioned; /* any build of this version on this base */
};

int
hr_image_tags_init(struct hr_image_tags *t, const struct hr_image_inputs *in, struct hr_err *err);
/* Frees t, which must be zeroed or initialised. */
void hr_image_tags_done(struct hr_image_tags *t);

#endif
