/* Computes the three tags. Lengths are in characters, as the original counts them. */
#include "config.h"

#include "image/tags.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "image/dirhash.h"
#include "proto/python/lower.h"
#include "base/text/utf8.h"
#include "base/text/percent.h"

/* maximum characters; longer names are cut to their end, after a hash */
#define REPO_CHARACTERS 32
#define REPO_KEPT 24         /* characters kept at the end */
#define TAG_CHARACTERS 128   /* maximum characters in registries */
#define SUFFIX_CHARACTERS 96 /* maximum characters of a mangled base */

static bool
continues(char c)
{
	return ((unsigned char)c & 0xC0) == 0x80;
}

static size_t
characters(const char *s)
{
	size_t n = 0;

	for (; *s != '\0'; s++)
		n += !continues(*s);
	return n;
}

/* Returns the start of the last n characters of s. */
static const char *
last_characters(const char *s, size_t n)
{
	const char *p = s + strlen(s);

	while (p > s && n > 0) {
		p--;
		while (p > s && continues(*p))
			p--;
		n--;
	}
	return p;
}

int
hr_image_truncate_hash(const char *hex, char ret[HR_IMAGE_HASH], struct hr_err *err)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	unsigned __int128 value = 0;
	size_t n = 0;
	const char *p;

	if (*hex == '\0' || strlen(hex) > 32)
		return hr_err_set(
		    err, HR_E_INVAL, "the hash must be a hexadecimal number of at most 128 bits");
	for (p = hex; *p != '\0'; p++) {
		if (hr_hex_value(*p) < 0)
			return hr_err_set(err, HR_E_INVAL, "the hash must be a hexadecimal number");
		value = value << 4 | (unsigned)hr_hex_value(*p);
	}
	for (; value > 0 && n < HR_IMAGE_HASH - 1; value /= 36)
		ret[n++] = digits[value % 36];
	ret[n] = '\0';
	return 0;
}

/* Appends s with every `from` replaced. */
static void
add_replaced(struct hr_buf *b, const char *s, char from, const char *to)
{
	for (; *s != '\0'; s++) {
		if (*s == from)
			hr_buf_adds(b, to);
		else
			hr_buf_addc(b, *s);
	}
}

void
hr_image_versioned_suffix(const char *base, struct hr_buf *b)
{
	HR_BUF(slashes, HR_IMAGE_NAME_MAX * 4);
	HR_BUF(colons, HR_IMAGE_NAME_MAX * 4);
	HR_BUF(lower, HR_IMAGE_NAME_MAX * 4);

	add_replaced(&slashes, base, '/', "_s_");
	add_replaced(&colons, hr_buf_str(&slashes), ':', "_t_");
	hr_pylower(&lower, hr_buf_str(&colons), colons.len);
	hr_buf_adds(b, last_characters(hr_buf_str(&lower), SUFFIX_CHARACTERS));
	if (b->fail == HR_OK)
		b->fail = slashes.fail != HR_OK  ? slashes.fail
			  : colons.fail != HR_OK ? colons.fail
						 : lower.fail;
}

/* Splits "REPO:TAG" in place at its only ':'. */
static int
split_name(char *name, bool registry_port, char **ret_tag, struct hr_err *err)
{
	char *colon = strchr(name, ':'), *slash = strrchr(name, '/');

	if (registry_port)
		colon = strrchr(slash != NULL ? slash : name, ':');
	else if (colon != NULL && strchr(colon + 1, ':') != NULL)
		return hr_err_set(err, HR_E_INVAL, "too many values to unpack (expected 2)");
	hr_assert(colon != NULL); /* the caller has appended a tag */
	*colon = '\0';
	*ret_tag = colon + 1;
	return 0;
}

/* Applies doc/images.md, "The repository and the base's tag", 4 and 5. */
static int
mangle_repo(struct hr_buf *b, const char *repo, struct hr_err *err)
{
	const char *end = last_characters(repo, REPO_KEPT);
	char md5[HR_DIGEST_HEX];

	if (characters(repo) > REPO_CHARACTERS) {
		if (hr_digest_of(HR_DIGEST_MD5, repo, (size_t)(end - repo), md5, err) < 0)
			return -1;
		hr_buf_add(b, md5, 8);
		hr_buf_addc(b, '_');
		repo = end;
	}
	add_replaced(b, repo, '/', "_s_");
	return hr_buf_check(b, err);
}

/* Applies 4 to 6 for a base that is no runtime image yet. */
static int
descriptive_tag(const char *version, const char *repo, const char *tag, struct hr_buf *ret_tag,
    struct hr_err *err)
{
	char md5[HR_DIGEST_HEX];
	HR_BUF(t, HR_IMAGE_NAME_MAX * 4);

	hr_buf_addf(&t, "oh_v%s_image_", version);
	if (mangle_repo(&t, repo, err) < 0)
		return -1;
	hr_buf_adds(&t, "_tag_");
	hr_buf_adds(&t, tag);
	if (hr_buf_check(&t, err) < 0)
		return -1;
	if (characters(t.p) > TAG_CHARACTERS) {
		if (hr_digest_of(HR_DIGEST_MD5, t.p, t.len, md5, err) < 0)
			return -1;
		hr_buf_addf(ret_tag, "oh_v%s_image_%s", version, md5);
	} else {
		hr_buf_add(ret_tag, t.p, t.len);
	}
	return 0;
}

static bool
has_tag(const char *base, bool registry_port)
{
	const char *slash = strrchr(base, '/');

	return strchr(registry_port && slash != NULL ? slash : base, ':') != NULL;
}

int
hr_image_repo_and_tag(const char *base, const char *version, const char *repo, bool registry_port,
    struct hr_buf *ret_repo, struct hr_buf *ret_tag, struct hr_err *err)
{
	HR_BUF(name, HR_IMAGE_NAME_MAX);
	char *tag = NULL;
	bool ours;
	int r;

	if (repo == NULL)
		repo = HR_IMAGE_REPO;
	hr_buf_adds(&name, base);
	if (!has_tag(base, registry_port))
		hr_buf_adds(&name, ":latest");
	r = hr_buf_check(&name, err);
	if (r != 0)
		return r;
	ours = strstr(name.p, repo) != NULL;
	r = split_name(name.p, registry_port, &tag, err);
	if (r != 0)
		return r;
	hr_buf_adds(ret_repo, ours ? name.p : repo);
	if (ours)
		hr_buf_adds(ret_tag, tag);
	else
		r = descriptive_tag(version, name.p, tag, ret_tag, err);
	if (r == 0)
		r = hr_buf_check(ret_repo, err);
	if (r == 0)
		r = hr_buf_check(ret_tag, err);
	return r;
}

int
hr_image_lock_hash(const char *base, bool browser, const char *const *files, size_t nfiles,
    char ret_md5[HR_DIGEST_HEX], char ret[HR_IMAGE_HASH], struct hr_err *err)
{
	struct hr_digest *d = hr_digest_new(HR_DIGEST_MD5, err);
	char md5[HR_DIGEST_HEX];
	int r = 0;
	size_t i;

	if (d == NULL)
		return -1;
	hr_digest_add(d, base, strlen(base));
	if (!browser)
		hr_digest_add(d, "False", 5);
	for (i = 0; i < nfiles && r == 0; i++)
		r = hr_digest_add_file(d, AT_FDCWD, files[i], err);
	if (r == 0)
		hr_digest_hex(d, md5);
	hr_digest_free(d);
	if (r != 0)
		return -1;
	if (ret_md5 != NULL)
		memcpy(ret_md5, md5, sizeof(md5));
	return hr_image_truncate_hash(md5, ret, err);
}

/* Computes the hash of a source tree (doc/images.md, "The source hash"), without the files that
 * match the patterns in `ignore` (dirhash.h). */
static int
source_hash(const char *dir, const char *const *ignore, char ret[HR_IMAGE_HASH], struct hr_err *err)
{
	char md5[HR_DIGEST_HEX];

	if (hr_dirhash(dir, ignore, NULL, md5, err) != 0)
		return -1;
	return hr_image_truncate_hash(md5, ret, err);
}

/* Starts a name with "REPO:oh_vVERSION_"; the caller appends the rest to *b. */
static void
begin_name(struct hr_buf *b, const char *repo, const char *version)
{
	hr_buf_init(b, HR_IMAGE_NAME_MAX * 4);
	hr_buf_addf(b, "%s:oh_v%s_", repo, version);
}

static int
take_name(struct hr_buf *b, char **ret, struct hr_err *err)
{
	int r = hr_buf_check(b, err);

	if (r == 0)
		*ret = hr_buf_take(b);
	hr_buf_done(b);
	return r;
}

int
hr_image_tags_init(struct hr_image_tags *t, const struct hr_image_inputs *in, struct hr_err *err)
{
	char lock[HR_IMAGE_HASH], source[HR_IMAGE_HASH];
	struct hr_buf name;
	HR_BUF(repo, HR_IMAGE_NAME_MAX);
	HR_BUF(tag, HR_IMAGE_NAME_MAX);
	int r;

	memset(t, 0, sizeof(*t));
	if (!hr_utf8_valid(in->base, strlen(in->base)))
		return hr_err_set(err, HR_E_INVAL, "the base image's name is not UTF-8");
	r = hr_image_repo_and_tag(
	    in->base, in->version, in->repo, in->registry_port, &repo, &tag, err);
	if (r == 0)
		r = take_name(&repo, &t->repo, err);
	if (r != 0 ||
	    hr_image_lock_hash(
		in->base, in->browser, in->lock_files, in->lock_files_n, NULL, lock, err) < 0 ||
	    source_hash(in->source_dir, in->ignore, source, err) < 0)
		goto fail;

	begin_name(&name, t->repo, in->version);
	hr_buf_addf(&name, "%s_%s", lock, source);
	if (take_name(&name, &t->source, err) < 0)
		goto fail;
	begin_name(&name, t->repo, in->version);
	hr_buf_adds(&name, lock);
	if (take_name(&name, &t->lock, err) < 0)
		goto fail;
	begin_name(&name, t->repo, in->version);
	hr_image_versioned_suffix(in->base, &name);
	if (take_name(&name, &t->versioned, err) < 0)
		goto fail;
	return 0;
fail:
	hr_image_tags_done(t);
	return -1;
}

void
hr_image_tags_done(struct hr_image_tags *t)
{
	free(t->repo);
	free(t->source);
	free(t->lock);
	free(t->versioned);
	memset(t, 0, sizeof(*t));
}
