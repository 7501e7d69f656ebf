/* Reads a snapshot from a hostile image. Its files are stored under their digests, which are
 * checked, before any of them is used. */
#include "config.h"

#include "box/oci/oci.h"

#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/volume.h"
#include "proto/json.h"

#define BLOBS "blobs"
#define IN_ARCHIVE "blobs/sha256/"
#define TEXT_MAX (1u << 20)
#define LABEL_MAX 4096
#define FILES_MAX (OCI_LAYERS_MAX + 8) /* an image of a snapshot has five and its layers */

struct import {
	int dir, blobs;
	struct archive *a;
	struct json_object *index;
	unsigned files;
};

static int
refuse(struct hr_err *err, const char *why)
{
	return hr_err_set(err, HR_E_INVAL, "the file is no snapshot of a box: %s", why);
}

static int
damaged(const struct import *m, struct hr_err *err)
{
	const char *why = archive_error_string(m->a);

	return hr_err_set(
	    err, HR_E_INVAL, "the file is cut or damaged: %s", why != NULL ? why : "it ends early");
}

/* Returns the digits of a digest of that form, or NULL. */
static const char *
digits_of(const char *digest, const char *before)
{
	const size_t n = strlen(before);

	return digest != NULL && strncmp(digest, before, n) == 0 &&
		       strspn(digest + n, "0123456789abcdef") == OCI_HEX - 1 &&
		       digest[n + OCI_HEX - 1] == '\0'
		   ? digest + n
		   : NULL;
}

/* Refuses what does not fit on the disk. */
static int
check_room(const struct import *m, int64_t size, struct hr_err *err)
{
	struct statvfs v;

	if (fstatvfs(m->dir, &v) != 0)
		return hr_err_sys(err, errno, "look at the free space");
	if (size >= 0 && (uint64_t)size / v.f_frsize < v.f_bavail)
		return 0;
	return hr_err_set(err, HR_E_TOOLARGE,
	    "the image has a file of %lld MB, and the disk has %llu MB free",
	    (long long)(size / 1000000), (unsigned long long)v.f_bavail * v.f_frsize / 1000000);
}

/* ---- the file ---- */

/* Stores a file of the image, whose name is its digest. */
static int
take_blob(struct import *m, struct archive_entry *e, const char *hex, struct hr_err *err)
{
	HR_CLOSE int fd = -1;
	char own[OCI_HEX];
	la_int64_t at, end = 0;
	const void *data;
	SHA2_CTX sum;
	size_t n;
	int r;

	if (check_room(m, archive_entry_size(e), err) < 0)
		return -1;
	fd = openat(m->blobs, hex, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EEXIST ? refuse(err, "it has a file twice")
				       : hr_err_sys(err, errno, "store a file of the image");
	SHA256Init(&sum);
	while ((r = archive_read_data_block(m->a, &data, &n, &at)) == ARCHIVE_OK) {
		if (at != end)
			return refuse(err, "a file of the image has holes");
		SHA256Update(&sum, data, n);
		if (hr_fd_write_full(fd, data, n, err) < 0)
			return -1;
		end += (la_int64_t)n;
	}
	if (r != ARCHIVE_EOF)
		return damaged(m, err);
	oci_hex(&sum, own);
	return strcmp(own, hex) == 0
		   ? 0
		   : hr_err_set(err, HR_E_INVAL,
			 "the file is damaged: " OCI_DIGEST "%.12s... has the digest %.12s...", hex,
			 own);
}

/* Reads a JSON file of the archive. */
static int
take_index(struct import *m, struct hr_err *err)
{
	HR_BUF(text, TEXT_MAX);
	char piece[4096];
	la_ssize_t n;

	if (m->index != NULL)
		return refuse(err, "it has index.json twice");
	while ((n = archive_read_data(m->a, piece, sizeof(piece))) > 0)
		hr_buf_add(&text, piece, (size_t)n);
	if (n < 0)
		return damaged(m, err);
	return hr_buf_check(&text, err) == 0 &&
		       hr_json_decode(hr_buf_str(&text), text.len, &m->index, NULL) == 0 &&
		       m->index != NULL
		   ? 0
		   : refuse(err, "index.json is not JSON");
}

static int
take_entry(struct import *m, struct archive_entry *e, struct hr_err *err)
{
	const char *name = archive_entry_pathname(e), *hex = digits_of(name, IN_ARCHIVE);

	if (++m->files > FILES_MAX)
		return refuse(err, "it has too many files");
	if (name != NULL && archive_entry_filetype(e) == AE_IFDIR)
		return 0;
	if (name != NULL && archive_entry_filetype(e) == AE_IFREG &&
	    archive_entry_hardlink(e) == NULL) {
		if (hex != NULL)
			return take_blob(m, e, hex, err);
		if (strcmp(name, "index.json") == 0)
			return take_index(m, err);
		/* the layout's version, and the lists that "docker load" reads */
		if (strcmp(name, "oci-layout") == 0 || strcmp(name, "manifest.json") == 0 ||
		    strcmp(name, "repositories") == 0)
			return 0;
	}
	return hr_err_set(err, HR_E_INVAL,
	    "the file is no snapshot of a box: an image has no entry \"%.100s\"",
	    name != NULL ? name : "");
}

static int
take_file(struct import *m, int in, struct hr_err *err)
{
	struct archive_entry *e;
	int r;

	if (archive_read_support_format_tar(m->a) != ARCHIVE_OK ||
	    archive_read_open_fd(m->a, in, OCI_PIECE) != ARCHIVE_OK)
		return damaged(m, err);
	while ((r = archive_read_next_header(m->a, &e)) == ARCHIVE_OK || r == ARCHIVE_WARN)
		if (take_entry(m, e, err) < 0)
			return -1;
	return r == ARCHIVE_EOF ? 0 : damaged(m, err);
}

/* ---- the image ---- */

/* Opens the file that a descriptor of the image names. */
static int
open_blob(const struct import *m, struct json_object *descriptor, struct hr_err *err)
{
	const char *digest = hr_json_text_at(descriptor, "digest");
	const char *hex = digits_of(digest, OCI_DIGEST);
	struct stat st;
	int fd;

	if (hex == NULL)
		return refuse(err, "a descriptor has no digest");
	fd = openat(m->blobs, hex, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0 &&
	    st.st_size == (off_t)hr_json_int_at(descriptor, "size"))
		return fd;
	hr_fd_close(&fd);
	return hr_err_set(
	    err, HR_E_INVAL, "the file is cut: %.19s... is missing, or too short", digest);
}

static int
read_blob(const struct import *m, struct json_object *descriptor, struct json_object **ret,
    struct hr_err *err)
{
	HR_CLOSE int fd = open_blob(m, descriptor, err);
	HR_BUF(text, TEXT_MAX);

	if (fd < 0 || hr_path_read_fd(fd, "the image", &text, err) < 0)
		return -1;
	return hr_json_decode(hr_buf_str(&text), text.len, ret, NULL) == 0 && *ret != NULL
		   ? 0
		   : refuse(err, "a file of the image is not JSON");
}

/* Returns a label, or NULL if it is missing or could mislead a terminal. */
static const char *
label(struct json_object *labels, const char *name)
{
	const char *text = hr_json_text_at(labels, name);
	const unsigned char *at;

	/* UTF-8 has the control characters from U+0080 to U+009F, too */
	for (at = (const unsigned char *)text; at != NULL && *at != '\0'; at++)
		if (*at < 0x20 || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0))
			return NULL;
	return text != NULL && strlen(text) <= LABEL_MAX ? text : NULL;
}

/* Number of entries, and bytes of files. */
struct count {
	uint64_t files, bytes;
};

static int
count_one(int dir, const char *name, const struct stat *st, void *arg)
{
	struct count *n = arg;

	(void)dir;
	(void)name;
	n->files++;
	if (S_ISREG(st->st_mode)) /* a file with several names is counted once for each of them */
		n->bytes += (uint64_t)st->st_blocks * 512 / st->st_nlink;
	return 0;
}

/* Prints the record of the snapshot. */
static int
report(struct json_object *labels, const char *tag, const struct count *n, struct hr_err *err)
{
	const char *still = label(labels, OCI_LABEL ".still");
	const char *created = label(labels, OCI_LABEL ".created");
	HR_PUT struct json_object *o = hr_json_object(err, "tag", json_object_new_string(tag),
	    "sandbox", hr_json_maybe(label(labels, OCI_LABEL ".sandbox")), "root",
	    hr_json_maybe(label(labels, OCI_LABEL ".root")), "created",
	    json_object_new_int64(created != NULL ? strtoll(created, NULL, 10) : 0), "files",
	    json_object_new_int64((int64_t)n->files), "bytes",
	    json_object_new_int64((int64_t)n->bytes), "still",
	    json_object_new_boolean(still != NULL && strcmp(still, "true") == 0), NULL);
	HR_FREE char *text = o != NULL ? hr_json_string(o, TEXT_MAX, err) : NULL;

	return text != NULL ? hr_fd_write_full(STDOUT_FILENO, text, strlen(text), err) : -1;
}

/* Fills the storage with the layers of the image, the lowest one first. */
static int
take_layers(const struct import *m, struct json_object *layers, int storage, bool whole, bool plain,
    struct hr_err *err)
{
	size_t i;

	for (i = 0; i < hr_json_count(layers); i++) {
		struct json_object *o = hr_json_entry(layers, i);
		HR_CLOSE int fd = open_blob(m, o, err);

		if (fd < 0 || check_room(m, hr_json_int_at(o, "size"), err) < 0 ||
		    oci_unpack(storage, i > 0, whole, plain, fd, err) < 0)
			return -1;
	}
	return 0;
}

/* Returns true if the layers are those of the configuration. Compressed ones are not. */
static bool
are_listed(struct json_object *layers, struct json_object *ids)
{
	const size_t n = hr_json_count(layers);
	size_t i;

	for (i = 0; i < n; i++)
		if (!hr_json_str_is(hr_json_entry(ids, i),
			hr_json_text_or(hr_json_entry(layers, i), "digest", "")))
			return false;
	return n > 0 && n <= OCI_LAYERS_MAX && hr_json_count(ids) == n;
}

static int
take_image(
    const struct import *m, const char *path, const char *tag, bool plain, struct hr_err *err)
{
	struct json_object *manifests = hr_json_at(m->index, "manifests"), *layers, *labels;
	HR_PUT struct json_object *manifest = NULL;
	HR_PUT struct json_object *config = NULL;
	HR_FREE char *made = hr_path_join(path, "storage");
	HR_CLOSE int storage = -1;
	struct count n = {0};

	if (made == NULL)
		return hr_err_nomem(err);
	if (m->index == NULL)
		return refuse(err, "it has no index.json, or is cut");
	if (hr_json_count(manifests) != 1)
		return refuse(err, "it does not have one image");
	if (read_blob(m, hr_json_entry(manifests, 0), &manifest, err) < 0 ||
	    read_blob(m, hr_json_at(manifest, "config"), &config, err) < 0)
		return -1;
	labels = hr_json_at(hr_json_at(config, "config"), "Labels");
	layers = hr_json_at(manifest, "layers");
	if (label(labels, OCI_LABEL) == NULL || (hr_json_at(labels, OCI_LABEL ".root") != NULL &&
						    label(labels, OCI_LABEL ".root") == NULL))
		return refuse(err, "\"handrail snapshot export\" has not made it");
	if (!are_listed(layers, hr_json_at(hr_json_at(config, "rootfs"), "diff_ids")))
		return refuse(err, "its layers are not those of its configuration, uncompressed");
	if (hr_volume_make(m->dir, "storage") != 0 ||
	    (storage = openat(m->dir, "storage", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return hr_err_sys(err, errno, "make the storage of the snapshot");
	if (take_layers(m, layers, storage, label(labels, OCI_LABEL ".root") != NULL, plain, err) <
	    0)
		return -1;
	(void)hr_path_walk(made, count_one, &n, NULL);
	return report(labels, tag, &n, err);
}

int
oci_import(const char *path, const char *tag, bool plain, int in, struct hr_err *err)
{
	struct import m = {.dir = -1, .blobs = -1, .a = archive_read_new()};
	HR_FREE char *blobs = hr_path_join(path, BLOBS);
	int r = -1;

	m.dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (m.a == NULL || blobs == NULL)
		(void)hr_err_nomem(err);
	else if (m.dir < 0 || mkdirat(m.dir, BLOBS, 0700) != 0 ||
		 (m.blobs = openat(m.dir, BLOBS, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		(void)hr_err_sys(err, errno, "make %s", blobs);
	else
		r = take_file(&m, in, err) == 0 ? take_image(&m, path, tag, plain, err) : -1;
	if (r == 0)
		r = hr_path_remove(blobs, err);
	if (m.a != NULL)
		(void)archive_read_free(m.a);
	json_object_put(m.index);
	hr_fd_close(&m.blobs);
	hr_fd_close(&m.dir);
	return r;
}
