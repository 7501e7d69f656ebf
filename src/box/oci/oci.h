/* Converts snapshots of boxes to files and back. A file is a tar archive with an OCI image layout,
 * and with the index of "docker save". Its image has the differences of the box to the system below
 * it, which is not in the file: a layer for each one that the box shares with others, and the top
 * one for the changes of its own. */
#ifndef HR_BOX_OCI_OCI_H
#define HR_BOX_OCI_OCI_H

#include <archive.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <sha2.h>

#include "base/err.h"

#define OCI_LABEL "handrail.snapshot" /* labels of the image begin with this */
#define OCI_PIECE (128u << 10)
#define OCI_DEPTH_MAX 241 /* maximum of components of a name: the deepest file of a copy */
#define OCI_LAYERS_MAX 56 /* maximum of layers: more than a box can have */
#define OCI_NAME_MAX 4000 /* maximum length of a name, whose path in a storage is longer */
#define OCI_WHITEOUT ".wh."
#define OCI_OPAQUE ".wh..wh..opq"
#define OCI_DIGEST "sha256:"
#define OCI_HEX (2 * SHA256_DIGEST_LENGTH + 1)

/* A file of the image, which has its digest as its name. */
struct oci_blob {
	char hex[OCI_HEX];
	uint64_t size;
};

/* An archive that is written. */
struct oci_out {
	int fd;
	int sys; /* errno of a failed write; 0: none */
	struct archive *a;
	SHA2_CTX sum;
	uint64_t size;
};
/* Starts an archive in fd. Returns 0, or -1 with *err; then oci_out_done() frees it as well. */
int oci_out_open(struct oci_out *o, int fd, struct hr_err *err);
/* Ends the archive; its digest and its size are stored in *ret (may be NULL). */
int oci_out_close(struct oci_out *o, struct oci_blob *ret, struct hr_err *err);
int oci_out_fail(const struct oci_out *o, struct hr_err *err); /* Returns -1 with the reason. */
void oci_out_done(struct oci_out *o);

/* Returns true for the name of an entry that an image can have: neither too long nor too deep. */
bool oci_name_fits(const char *name);

/* Writes the hexadecimal digits of an ended sum. */
void oci_hex(SHA2_CTX *sum, char ret[OCI_HEX]);

/* Appends the directory of a storage with the changes of a directory of the host; `whole`: there is
 * one overlay for all of them. */
struct hr_buf;
void oci_place(const char *seen, bool whole, struct hr_buf *b);

/* The files of a layer. */
struct oci_source {
	int storage;
	int files;        /* the directory of a layer below the storage; -1: the storage itself */
	const int *below; /* directories on which the files lie; none: they are not known */
	size_t n_below;
	bool marks; /* the root can have whiteouts */
	bool plain; /* the caller is an ordinary user */
};

/* Appends a layer to the file `to`. Returns 0, or -1 with *err. */
int oci_pack(const struct oci_source *from, int to, struct oci_blob *ret, struct hr_err *err);
/* Fills a storage from a hostile layer. `over`: the storage has the files of lower layers, which
 * this one replaces and removes; otherwise it is empty. `whole`: there is a root directory below
 * the box; `plain`: the caller is an ordinary user. Returns 0, or -1 with *err. */
int oci_unpack(int storage, bool over, bool whole, bool plain, int layer, struct hr_err *err);

/* Writes the snapshot in the directory `path` to `out`; `layers` are the directories with the files
 * of the layers below its storage, the lowest one first. Returns 0, or -1 with *err. */
int oci_export(const char *path, char *const *layers, size_t n_layers, bool plain, int out,
    struct hr_err *err);

/* Makes the directory "storage" in the empty directory `path` from the file `in`, which is hostile,
 * and prints the record of the snapshot, whose name becomes `tag`, on standard output. Returns 0,
 * or -1 with *err; `path` must be removed then. */
int oci_import(const char *path, const char *tag, bool plain, int in, struct hr_err *err);

#endif
