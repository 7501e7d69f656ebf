/* Writes a snapshot as an image. */
#include "config.h"

#include "box/oci/oci.h"

#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "proto/json.h"

#define TEXT_MAX (64u << 10)
#define MEDIA "application/vnd.oci.image."
#define TIME_SIZE 32

/* A JSON file of the image. */
struct text {
	char *p;
	struct oci_blob blob;
};

static void
text_done(struct text *t)
{
	free(t->p);
}

/* Takes ownership of o; NULL: *err is set. */
static int
text_of(struct text *t, struct json_object *o, struct hr_err *err)
{
	SHA2_CTX sum;

	t->p = o != NULL ? hr_json_string(o, TEXT_MAX, err) : NULL;
	json_object_put(o);
	if (t->p == NULL)
		return -1;
	t->blob.size = strlen(t->p);
	SHA256Init(&sum);
	SHA256Update(&sum, (const uint8_t *)t->p, t->blob.size);
	oci_hex(&sum, t->blob.hex);
	return 0;
}

static struct json_object *
digest_of(const struct oci_blob *b)
{
	char text[sizeof(OCI_DIGEST) + OCI_HEX];

	(void)snprintf(text, sizeof(text), OCI_DIGEST "%s", b->hex);
	return json_object_new_string(text);
}

/* Returns a list of one value, of which it takes ownership. */
static struct json_object *
one(struct json_object *v, struct hr_err *err)
{
	struct json_object *list = json_object_new_array();

	if (hr_json_append(list, v, err) == 0)
		return list;
	json_object_put(list);
	return NULL;
}

static struct json_object *
descriptor(
    const char *type, const struct oci_blob *b, struct json_object *notes, struct hr_err *err)
{
	return hr_json_object(err, "mediaType", json_object_new_string(type), "digest",
	    digest_of(b), "size", json_object_new_int64((int64_t)b->size), "annotations", notes,
	    NULL);
}

/* Returns the name that images have for the machine. */
static const char *
architecture(struct utsname *u)
{
	(void)uname(u);
	return strcmp(u->machine, "x86_64") == 0    ? "amd64"
	       : strcmp(u->machine, "aarch64") == 0 ? "arm64"
						    : u->machine;
}

static struct json_object *
config(struct json_object *record, const struct oci_blob *layer, struct hr_err *err)
{
	const char *sandbox = hr_json_text_or(record, "sandbox", "");
	const char *root = hr_json_text_at(record, "root");
	const time_t at = (time_t)hr_json_int_at(record, "created");
	char created[TIME_SIZE] = "1970-01-01T00:00:00Z", seconds[24];
	struct utsname u;
	struct tm tm;
	HR_BUF(said, 8192);

	if (gmtime_r(&at, &tm) != NULL)
		(void)strftime(created, sizeof(created), "%Y-%m-%dT%H:%M:%SZ", &tm);
	(void)snprintf(seconds, sizeof(seconds), "%lld", (long long)at);
	hr_buf_addf(&said, "differences of the sandbox %s to %s%s, which %s not in this image",
	    sandbox, root != NULL ? "its root directory " : "the programs of its host",
	    root != NULL ? root : "", root != NULL ? "is" : "are");
	if (hr_buf_check(&said, err) < 0)
		return NULL;
	return hr_json_object(err, "created", json_object_new_string(created), "architecture",
	    json_object_new_string(architecture(&u)), "os", json_object_new_string("linux"),
	    "config",
	    hr_json_object(err, "Labels",
		hr_json_texts(err, OCI_LABEL, hr_json_text_or(record, "tag", ""),
		    OCI_LABEL ".backend", "box", OCI_LABEL ".sandbox", sandbox,
		    OCI_LABEL ".created", seconds, OCI_LABEL ".root", root, OCI_LABEL ".still",
		    hr_json_true_at(record, "still") ? "true" : "false", NULL),
		NULL),
	    "rootfs",
	    hr_json_object(err, "type", json_object_new_string("layers"), "diff_ids",
		one(digest_of(layer), err), NULL),
	    "history",
	    one(hr_json_texts(err, "created", created, "created_by", "handrail snapshot export",
		    "comment", hr_buf_str(&said), NULL),
		err),
	    NULL);
}

static struct json_object *
manifest(const struct oci_blob *config_blob, const struct oci_blob *layer, struct hr_err *err)
{
	return hr_json_object(err, "schemaVersion", json_object_new_int(2), "mediaType",
	    json_object_new_string(MEDIA "manifest.v1+json"), "config",
	    descriptor(MEDIA "config.v1+json", config_blob, HR_JSON_NONE, err), "layers",
	    one(descriptor(MEDIA "layer.v1.tar", layer, HR_JSON_NONE, err), err), NULL);
}

static struct json_object *
index_of(const struct oci_blob *b, const char *tag, struct hr_err *err)
{
	return hr_json_object(err, "schemaVersion", json_object_new_int(2), "mediaType",
	    json_object_new_string(MEDIA "index.v1+json"), "manifests",
	    one(descriptor(MEDIA "manifest.v1+json", b,
		    hr_json_texts(err, "org.opencontainers.image.ref.name", tag, NULL), err),
		err),
	    NULL);
}

/* Returns the list that "docker load" reads. */
static struct json_object *
docker_list(const struct oci_blob *config_blob, const struct oci_blob *layer, const char *tag,
    struct hr_err *err)
{
	char paths[2][sizeof("blobs/sha256/") + OCI_HEX], name[300];

	(void)snprintf(paths[0], sizeof(paths[0]), "blobs/sha256/%s", config_blob->hex);
	(void)snprintf(paths[1], sizeof(paths[1]), "blobs/sha256/%s", layer->hex);
	(void)snprintf(name, sizeof(name), "handrail-box:%s", tag);
	return one(hr_json_object(err, "Config", json_object_new_string(paths[0]), "RepoTags",
		       one(json_object_new_string(name), err), "Layers",
		       one(json_object_new_string(paths[1]), err), NULL),
	    err);
}

/* ---- the file ---- */

/* Starts a file of the archive. */
static int
put_header(struct oci_out *o, const char *name, uint64_t size, struct hr_err *err)
{
	struct archive_entry *e = archive_entry_new();
	int r;

	if (e == NULL)
		return hr_err_nomem(err);
	archive_entry_set_pathname(e, name);
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_perm(e, 0644);
	archive_entry_set_size(e, (la_int64_t)size);
	r = archive_write_header(o->a, e) >= ARCHIVE_WARN ? 0 : oci_out_fail(o, err);
	archive_entry_free(e);
	return r;
}

static int
put_bytes(struct oci_out *o, const char *p, size_t n, struct hr_err *err)
{
	return archive_write_data(o->a, p, n) == (la_ssize_t)n && o->sys == 0
		   ? 0
		   : oci_out_fail(o, err);
}

/* Writes a file of the image under the name, or under its digest. */
static int
put_text(struct oci_out *o, const char *name, const struct text *t, struct hr_err *err)
{
	char path[sizeof("blobs/sha256/") + OCI_HEX];

	(void)snprintf(path, sizeof(path), "blobs/sha256/%s", t->blob.hex);
	return put_header(o, name != NULL ? name : path, t->blob.size, err) < 0
		   ? -1
		   : put_bytes(o, t->p, t->blob.size, err);
}

static int
put_layer(struct oci_out *o, int fd, const struct oci_blob *b, struct hr_err *err)
{
	char path[sizeof("blobs/sha256/") + OCI_HEX];
	HR_FREE char *piece = malloc(OCI_PIECE);
	ssize_t n;

	if (piece == NULL)
		return hr_err_nomem(err);
	(void)snprintf(path, sizeof(path), "blobs/sha256/%s", b->hex);
	if (put_header(o, path, b->size, err) < 0)
		return -1;
	if (lseek(fd, 0, SEEK_SET) != 0)
		return hr_err_sys(err, errno, "read the layer");
	while ((n = hr_fd_read(fd, piece, OCI_PIECE)) > 0)
		if (put_bytes(o, piece, (size_t)n, err) < 0)
			return -1;
	return n == 0 ? 0 : hr_err_sys(err, errno, "read the layer");
}

static int
put_image(struct oci_out *o, int layer_fd, const struct oci_blob *layer, struct json_object *record,
    struct hr_err *err)
{
	const char *tag = hr_json_text_or(record, "tag", "");
	HR_CLEAN(text_done) struct text layout = {0};
	HR_CLEAN(text_done) struct text conf = {0};
	HR_CLEAN(text_done) struct text man = {0};
	HR_CLEAN(text_done) struct text idx = {0};
	HR_CLEAN(text_done) struct text list = {0};

	if (text_of(&layout, hr_json_texts(err, "imageLayoutVersion", "1.0.0", NULL), err) < 0 ||
	    text_of(&conf, config(record, layer, err), err) < 0 ||
	    text_of(&man, manifest(&conf.blob, layer, err), err) < 0 ||
	    text_of(&idx, index_of(&man.blob, tag, err), err) < 0 ||
	    text_of(&list, docker_list(&conf.blob, layer, tag, err), err) < 0)
		return -1;
	return put_text(o, "oci-layout", &layout, err) == 0 &&
		       put_text(o, "index.json", &idx, err) == 0 &&
		       put_text(o, "manifest.json", &list, err) == 0 &&
		       put_text(o, NULL, &man, err) == 0 && put_text(o, NULL, &conf, err) == 0 &&
		       put_layer(o, layer_fd, layer, err) == 0
		   ? oci_out_close(o, NULL, err)
		   : -1;
}

int
oci_export(const char *path, int out, struct hr_err *err)
{
	HR_FREE char *storage = hr_path_join(path, "storage");
	HR_FREE char *file = hr_path_join(path, "snapshot.json");
	HR_PUT struct json_object *record = NULL;
	struct oci_blob layer;
	struct oci_out o;
	HR_BUF(text, TEXT_MAX);
	HR_CLOSE int from = -1;
	HR_CLOSE int fd = -1;
	int r;

	if (storage == NULL || file == NULL)
		return hr_err_nomem(err);
	from = open(storage, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0)
		return hr_err_sys(err, errno, "open %s", storage);
	if (hr_path_read(file, &text, err) < 0)
		return -1;
	if (hr_json_decode(hr_buf_str(&text), text.len, &record, NULL) < 0)
		return hr_err_set(err, HR_E_INVAL, "%s is damaged", file);
	/* the digest of the layer precedes the layer in the archive */
	fd = hr_path_unnamed(path);
	if (fd < 0)
		return hr_err_sys(err, errno, "make a file in %s", path);
	if (oci_pack(from, fd, &layer, err) < 0)
		return -1;
	r = oci_out_open(&o, out, err) < 0 ? -1 : put_image(&o, fd, &layer, record, err);
	oci_out_done(&o);
	return r;
}
