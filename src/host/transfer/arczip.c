/* Makes and unpacks zip files by libarchive. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>

#include "base/path.h"
#include "files/archive/tree.h"
#include "host/transfer/archives.h"
#include "base/err.h"

#define PIECE 65536
#define ENTRY_BYTES 4096 /* bytes that a file system needs per file */

/* Returns the last component, without trailing slashes; the caller frees it. */
static char *
own_name(const char *path)
{
	char *slash;
	HR_FREE char *whole = realpath(path, NULL);

	if (whole == NULL)
		return NULL;
	slash = strrchr(whole, '/');
	return strdup(slash[1] != '\0' ? slash + 1 : "root");
}

static int
put_all(struct archive *a, const char *path, bool with_name, struct hr_err *err)
{
	const struct hr_arc to = {.a = a, .what = "zip", .links = true};
	HR_FREE char *name = own_name(path);

	return name == NULL ? hr_err_sys(err, errno, "%s", path)
			    : hr_arc_put(&to, path, name, with_name ? name : "", err);
}

static int
zip_into(int fd, const char *path, bool with_name, bool deflate, struct hr_err *err)
{
	struct archive *a = archive_write_new();
	int r;

	if (a == NULL)
		return hr_err_nomem(err);
	if (archive_write_set_format_zip(a) != ARCHIVE_OK ||
	    (deflate ? archive_write_zip_set_compression_deflate(a)
		     : archive_write_zip_set_compression_store(a)) != ARCHIVE_OK ||
	    archive_write_set_options(a, "hdrcharset=UTF-8") < ARCHIVE_WARN ||
	    archive_write_open_fd(a, fd) != ARCHIVE_OK)
		r = hr_arc_failed(a, "zip", err);
	else
		r = put_all(a, path, with_name, err);
	if (r == 0 && archive_write_close(a) != ARCHIVE_OK)
		r = hr_arc_failed(a, "zip", err);
	(void)archive_write_free(a);
	return r;
}

int
hr_arczip_make(int fd, const char *path, bool with_name, bool deflate, struct hr_err *err)
{
	struct hr_tree_locale l = hr_tree_locale(); /* names in a zip file are UTF-8 */
	int r = zip_into(fd, path, with_name, deflate, err);

	hr_tree_locale_end(&l);
	return r;
}

static int
too_large(unsigned long long most, struct hr_err *err)
{
	return hr_err_set(err, HR_E_INVAL, "the archive holds more than %llu MiB", most >> 20);
}

/* Checks a directory of the archive. Returns 1 if it exists: the sandbox must not change its mode;
 * 0 if nothing exists; -1 for anything else, which libarchive would remove. */
static int
is_there(char *path, struct hr_err *err)
{
	struct stat st;
	size_t len = strlen(path);

	/* lstat() follows a link before "/" or "/." at the end, and libarchive does not */
	while (len > 1 && (path[len - 1] == '/' || (path[len - 1] == '.' && path[len - 2] == '/')))
		path[--len] = '\0';
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return 1;
	if (lstat(path, &st) != 0)
		return 0;
	return hr_err_set(
	    err, HR_E_INVAL, "%s is not a directory: a directory cannot replace it", path);
}

static int
extract_entries(struct archive *in, struct archive *out, const char *dir, unsigned long long most,
    struct hr_err *err)
{
	unsigned long long used = 0;
	struct archive_entry *e;
	const void *p;
	size_t len;
	la_int64_t at;
	char *path;
	int r;

	while ((r = archive_read_next_header(in, &e)) == ARCHIVE_OK || r == ARCHIVE_WARN) {
		const char *name = archive_entry_pathname(e);

		used += ENTRY_BYTES;
		if (most > 0 && used > most)
			return too_large(most, err);
		if (name == NULL || hr_path_leads_out(name))
			continue; /* the flags below refuse it as well */
		/* A server sends only files and directories. A link could lead to any file of this
		 * machine when it is read or sent again, and a set-ID program of root's would be
		 * root's for all users. */
		if (archive_entry_filetype(e) != AE_IFREG && archive_entry_filetype(e) != AE_IFDIR)
			continue;
		archive_entry_set_hardlink(e, NULL);
		archive_entry_set_perm(e, archive_entry_perm(e) & 0777);
		path = hr_path_join(dir, name);
		if (path == NULL)
			return hr_err_nomem(err);
		r = archive_entry_filetype(e) == AE_IFDIR ? is_there(path, err) : 0;
		if (r != 0) {
			free(path);
			if (r < 0)
				return -1;
			continue;
		}
		archive_entry_set_pathname(e, path);
		free(path);
		if (archive_write_header(out, e) < ARCHIVE_WARN)
			return hr_arc_failed(out, "zip", err);
		while ((r = archive_read_data_block(in, &p, &len, &at)) == ARCHIVE_OK) {
			used += len;
			if (most > 0 && used > most)
				return too_large(most, err);
			if (archive_write_data_block(out, p, len, at) < ARCHIVE_WARN)
				return hr_arc_failed(out, "zip", err);
		}
		if (r != ARCHIVE_EOF)
			return hr_arc_failed(in, "zip", err);
	}
	return r == ARCHIVE_EOF ? 0 : hr_arc_failed(in, "zip", err);
}

static int
zip_extract(const char *file, const char *dir, unsigned long long most, struct hr_err *err)
{
	struct archive *in = archive_read_new(), *out = archive_write_disk_new();
	struct hr_err e = {0};
	HR_FREE char *whole = NULL;
	int r;

	if (in == NULL || out == NULL)
		r = hr_err_nomem(err);
	else if (hr_path_mkdirs(dir, 0755, NULL, &e) < 0)
		r = hr_err_from(err, HR_E_SYS, &e);
	else if ((whole = realpath(dir, NULL)) == NULL)
		r = hr_err_sys(err, errno, "%s", dir);
	else if (archive_write_disk_set_options(
		     out, ARCHIVE_EXTRACT_SECURE_SYMLINKS | ARCHIVE_EXTRACT_SECURE_NODOTDOT |
			      ARCHIVE_EXTRACT_SPARSE | ARCHIVE_EXTRACT_PERM) != ARCHIVE_OK ||
		 archive_read_support_format_zip(in) != ARCHIVE_OK ||
		 archive_read_open_filename(in, file, PIECE) != ARCHIVE_OK)
		r = hr_arc_failed(in, "zip", err);
	else
		r = extract_entries(in, out, whole, most, err);
	if (in != NULL)
		(void)archive_read_free(in);
	if (out != NULL && archive_write_free(out) != ARCHIVE_OK && r == 0)
		r = hr_err_set(err, HR_E_RUNTIME, "zip: cannot write the end of the archive");
	return r;
}

int
hr_arczip_extract(const char *file, const char *dir, unsigned long long most, struct hr_err *err)
{
	struct hr_tree_locale l = hr_tree_locale();
	int r = zip_extract(file, dir, most, err);

	hr_tree_locale_end(&l);
	return r;
}
