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
#define PATH_SIZE (sizeof("blobs/sha256/") + OCI_HEX)

/* A JSON file of the image. */
struct text {
	char *p;
	struct oci_blob blob;
};

/* The layers of the image, the lowest one first, and their file, which has one after the other. */
struct stack {
	int fd;
	size_t n;
	struct oci_blob v[OCI_LAYERS_MAX];
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
digest_of(const struct oci_blob *b, struct hr_err *err)
{
	char text[sizeof(OCI_DIGEST) + OCI_HEX];

	(void)err;
	(void)snprintf(text, sizeof(text), OCI_DIGEST "%s", b->hex);
	return json_object_new_string(text);
}

/* Returns a list that has a value n times. Takes ownership of the value. */
static struct json_object *
repeated(struct json_object *v, size_t n, struct hr_err *err)
{
	struct json_object *list = json_object_new_array();

	while (n-- > 0)
		if (hr_json_append(list, json_object_get(v), err) < 0) {
			json_object_put(list);
			list = NULL;
			break;
		}
	json_object_put(v);
	return list;
}

static struct json_object *
one(struct json_object *v, struct hr_err *err)
{
	return repeated(v, 1, err);
}

static struct json_object *
descriptor(
    const char *type, const struct oci_blob *b, struct json_object *notes, struct hr_err *err)
{
	return hr_json_object(err, "mediaType", json_object_new_string(type), "digest",
	    digest_of(b, err), "size", json_object_new_int64((int64_t)b->size), "annotations",
	    notes, NULL);
}

static struct json_object *
layer_of(const struct oci_blob *b, struct hr_err *err)
{
	return descriptor(MEDIA "layer.v1.tar", b, HR_JSON_NONE, err);
}

static struct json_object *
path_of(const struct oci_blob *b, struct hr_err *err)
{
	char path[PATH_SIZE];

	(void)err;
	(void)snprintf(path, sizeof(path), "blobs/sha256/%s", b->hex);
	return json_object_new_string(path);
}

/* Returns a list of a value for each layer. */
static struct json_object *
each(const struct stack *s,
    struct json_object *(*make)(const struct oci_blob *b, struct hr_err *err), struct hr_err *err)
{
	struct json_object *list = json_object_new_array();
	size_t i;

	for (i = 0; i < s->n; i++)
		if (hr_json_append(list, make(&s->v[i], err), err) < 0) {
			json_object_put(list);
			return NULL;
		}
	return list;
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
config(struct json_object *record, const struct stack *s, struct hr_err *err)
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
		each(s, digest_of, err), NULL),
	    "history",
	    repeated(hr_json_texts(err, "created", created, "created_by",
			 "handrail snapshot export", "comment", hr_buf_str(&said), NULL),
		s->n, err),
	    NULL);
}

static struct json_object *
manifest(const struct oci_blob *config_blob, const struct stack *s, struct hr_err *err)
{
	return hr_json_object(err, "schemaVersion", json_object_new_int(2), "mediaType",
	    json_object_new_string(MEDIA "manifest.v1+json"), "config",
	    descriptor(MEDIA "config.v1+json", config_blob, HR_JSON_NONE, err), "layers",
	    each(s, layer_of, err), NULL);
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
docker_list(
    const struct oci_blob *config_blob, const struct stack *s, const char *tag, struct hr_err *err)
{
	char name[300];

	(void)snprintf(name, sizeof(name), "handrail-box:%s", tag);
	return one(
	    hr_json_object(err, "Config", path_of(config_blob, err), "RepoTags",
		one(json_object_new_string(name), err), "Layers", each(s, path_of, err), NULL),
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
	char path[PATH_SIZE];

	(void)snprintf(path, sizeof(path), "blobs/sha256/%s", t->blob.hex);
	return put_header(o, name != NULL ? name : path, t->blob.size, err) < 0
		   ? -1
		   : put_bytes(o, t->p, t->blob.size, err);
}

static int
put_layer(struct oci_out *o, int fd, off_t at, const struct oci_blob *b, struct hr_err *err)
{
	const off_t end = at + (off_t)b->size;
	char path[PATH_SIZE];
	HR_FREE char *piece = malloc(OCI_PIECE);
	ssize_t n;

	if (piece == NULL)
		return hr_err_nomem(err);
	(void)snprintf(path, sizeof(path), "blobs/sha256/%s", b->hex);
	if (put_header(o, path, b->size, err) < 0)
		return -1;
	for (; at < end; at += n) {
		n = pread(
		    fd, piece, end - at < (off_t)OCI_PIECE ? (size_t)(end - at) : OCI_PIECE, at);
		if (n <= 0)
			return hr_err_sys(err, n == 0 ? EIO : errno, "read the layer");
		if (put_bytes(o, piece, (size_t)n, err) < 0)
			return -1;
	}
	return 0;
}

/* Writes each layer once: two can have the same files, and the same digest. */
static int
put_layers(struct oci_out *o, const struct stack *s, struct hr_err *err)
{
	off_t at = 0;
	size_t i, same;

	for (i = 0; i < s->n; at += (off_t)s->v[i].size, i++) {
		for (same = 0; strcmp(s->v[same].hex, s->v[i].hex) != 0;)
			same++;
		if (same == i && put_layer(o, s->fd, at, &s->v[i], err) < 0)
			return -1;
	}
	return 0;
}

static int
put_image(struct oci_out *o, const struct stack *s, struct json_object *record, struct hr_err *err)
{
	const char *tag = hr_json_text_or(record, "tag", "");
	HR_CLEAN(text_done) struct text layout = {0};
	HR_CLEAN(text_done) struct text conf = {0};
	HR_CLEAN(text_done) struct text man = {0};
	HR_CLEAN(text_done) struct text idx = {0};
	HR_CLEAN(text_done) struct text list = {0};

	if (text_of(&layout, hr_json_texts(err, "imageLayoutVersion", "1.0.0", NULL), err) < 0 ||
	    text_of(&conf, config(record, s, err), err) < 0 ||
	    text_of(&man, manifest(&conf.blob, s, err), err) < 0 ||
	    text_of(&idx, index_of(&man.blob, tag, err), err) < 0 ||
	    text_of(&list, docker_list(&conf.blob, s, tag, err), err) < 0)
		return -1;
	return put_text(o, "oci-layout", &layout, err) == 0 &&
		       put_text(o, "index.json", &idx, err) == 0 &&
		       put_text(o, "manifest.json", &list, err) == 0 &&
		       put_text(o, NULL, &man, err) == 0 && put_text(o, NULL, &conf, err) == 0 &&
		       put_layers(o, s, err) == 0
		   ? oci_out_close(o, NULL, err)
		   : -1;
}

/* Opens the directories of the layers below the storage, on the root directory that they lie on;
 * NULL: none. It may be missing: then *ret_known is false. */
static int
open_below(int *dirs, size_t *n, const char *root, char *const *layers, size_t n_layers,
    bool *ret_known, struct hr_err *err)
{
	size_t i;

	*ret_known = true;
	if (root != NULL && n_layers > 0) {
		dirs[*n] = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		*ret_known = dirs[*n] >= 0;
		*n += *ret_known;
	}
	for (i = 0; i < n_layers; i++, ++*n) {
		dirs[*n] = open(layers[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (dirs[*n] < 0)
			return hr_err_sys(err, errno, "open %s", layers[i]);
	}
	return 0;
}

/* Packs the layers, the storage as the top one. Those on a root directory have whiteouts from the
 * lowest one on. */
static int
pack_all(struct stack *s, int storage, const char *root, char *const *layers, size_t n_layers,
    bool plain, struct hr_err *err)
{
	int dirs[OCI_LAYERS_MAX]; /* one for each layer below, and the root directory */
	int r = -1;
	size_t n = 0, first;
	bool known;

	if (n_layers > OCI_LAYERS_MAX - 1)
		return hr_err_set(
		    err, HR_E_TOOLARGE, "the snapshot has more than %d layers", OCI_LAYERS_MAX - 1);
	if (open_below(dirs, &n, root, layers, n_layers, &known, err) == 0) {
		first = n - n_layers;
		for (r = 0; r == 0 && s->n <= n_layers; s->n++) {
			const struct oci_source from = {.storage = storage,
			    .files = s->n < n_layers ? dirs[first + s->n] : -1,
			    .below = dirs,
			    .n_below = known ? first + s->n : 0,
			    .marks = root != NULL || s->n > 0,
			    .plain = plain};

			r = oci_pack(&from, s->fd, &s->v[s->n], err);
		}
	}
	while (n > 0)
		hr_fd_close(&dirs[--n]);
	return r;
}

int
oci_export(
    const char *path, char *const *layers, size_t n_layers, bool plain, int out, struct hr_err *err)
{
	HR_FREE char *storage = hr_path_join(path, "storage");
	HR_FREE char *file = hr_path_join(path, "snapshot.json");
	HR_PUT struct json_object *record = NULL;
	struct stack s = {.n = 0};
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
	/* the digests of the layers precede the layers in the archive */
	s.fd = fd = hr_path_unnamed(path);
	if (fd < 0)
		return hr_err_sys(err, errno, "make a file in %s", path);
	if (pack_all(&s, from, hr_json_text_at(record, "root"), layers, n_layers, plain, err) < 0)
		return -1;
	r = oci_out_open(&o, out, err) < 0 ? -1 : put_image(&o, &s, record, err);
	oci_out_done(&o);
	return r;
}
