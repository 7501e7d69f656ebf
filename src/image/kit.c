/* Handles the kit and the build folder. */
#include "config.h"

#include "image/kit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "image/dirhash.h"
#include "image/dockerfile.h"

#define TEMPLATE_MAX (1u << 20)
#define COPY_PIECE 65536

int
hr_kit_tags(const char *kit, const char *base, const char *repo, bool browser, bool registry_port,
    bool v1, struct hr_image_tags *ret, struct hr_err *err)
{
	HR_BUF(named, 256);
	HR_FREE char *conf = hr_path_join(kit, HR_KIT_DEPS);
	HR_FREE char *lock = hr_path_join(kit, HR_KIT_LOCK);
	HR_FREE char *source = hr_path_join(kit, HR_KIT_SOURCE);
	const char *files[] = {conf, lock};
	struct hr_image_inputs in = {
	    .base = base,
	    .repo = repo,
	    .registry_port = registry_port,
	    .browser = browser,
	    .lock_files = files,
	    .lock_files_n = 2,
	    .source_dir = source,
	    .ignore = hr_dirhash_ignore_c,
	};
	int r = -1;

	hr_buf_addf(&named, PACKAGE_VERSION "%s", v1 ? "-openhands-v1" : "");
	in.version = hr_buf_str(&named);
	if (conf == NULL || lock == NULL || source == NULL)
		(void)hr_err_nomem(err);
	else
		r = hr_image_tags_init(ret, &in, err);
	return r;
}

static int
copy_bytes(int from, int to, const char *name, struct hr_err *err)
{
	HR_FREE char *piece = malloc(COPY_PIECE);
	ssize_t n;
	int r = 0;

	if (piece == NULL)
		return hr_err_nomem(err);
	while (r == 0 && (n = hr_fd_read(from, piece, COPY_PIECE)) != 0)
		r = n < 0 ? hr_err_sys(err, errno, "read %s", name)
			  : hr_fd_write_full(to, piece, (size_t)n, err);
	return r;
}

static int
copy_file(int from_dir, const char *name, int to_dir, const char *to_name, struct hr_err *err)
{
	int to = -1, r = -1;
	HR_CLOSE int from = openat(from_dir, name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (from < 0)
		return hr_err_sys(err, errno, "open %s", name);
	if (fstat(from, &st) != 0)
		return hr_err_sys(err, errno, "stat %s", name);
	/* keeps only the executable bit: the current umask must not change the image */
	to = openat(to_dir, to_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (to < 0)
		return hr_err_sys(err, errno, "create %s", to_name);
	r = copy_bytes(from, to, name, err);
	if (r == 0 && fchmod(to, (st.st_mode & 0100) != 0 ? 0755 : 0644) != 0)
		r = hr_err_sys(err, errno, "chmod %s", to_name);
	if (close(to) != 0 && r == 0)
		r = hr_err_sys(err, errno, "write %s", to_name);
	return r;
}

static int copy_tree(int from_dir, const char *name, int to_dir, int depth, struct hr_err *err);

static int
copy_entry(int from_dir, const char *name, int to_dir, int depth, struct hr_err *err)
{
	struct stat st;

	if (fstatat(from_dir, name, &st, 0) != 0)
		return 0; /* a broken link is left out */
	if (hr_dirhash_ignored(hr_dirhash_ignore_c, name, S_ISDIR(st.st_mode)))
		return 0;
	if (S_ISDIR(st.st_mode))
		return copy_tree(from_dir, name, to_dir, depth + 1, err);
	return S_ISREG(st.st_mode) ? copy_file(from_dir, name, to_dir, name, err) : 0;
}

/* Copies a directory's entries. Takes ownership of from and to. */
static int
copy_entries(int from, int to, int depth, struct hr_err *err)
{
	DIR *dir = hr_dir_take(from);
	struct dirent *e;
	int r = 0;

	if (dir == NULL) {
		r = hr_err_sys(err, errno, "read a directory");
		hr_fd_close(&to);
		return r;
	}
	while (r == 0 && (e = hr_dir_next(dir)) != NULL)
		r = copy_entry(dirfd(dir), e->d_name, to, depth, err);
	if (r == 0 && errno != 0)
		r = hr_err_sys(err, errno, "read a directory");
	(void)closedir(dir);
	hr_fd_close(&to);
	return r;
}

static int
copy_tree(int from_dir, const char *name, int to_dir, int depth, struct hr_err *err)
{
	int from, to;

	if (depth > HR_DIRHASH_DEPTH)
		return hr_err_set(err, HR_E_TOOLARGE, "%s: nested too deep", name);
	from = openat(from_dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (from < 0)
		return hr_err_sys(err, errno, "open %s", name);
	if ((mkdirat(to_dir, name, 0755) != 0 && errno != EEXIST) ||
	    (to = openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		(void)hr_err_sys(err, errno, "make %s", name);
		hr_fd_close(&from);
		return -1;
	}
	return copy_entries(from, to, depth, err);
}

static int
write_dockerfile(int kit, int folder, const struct hr_dockerfile *d, struct hr_err *err)
{
	int out = -1, r = -1;
	HR_BUF(text, TEMPLATE_MAX);
	HR_BUF(b, TEMPLATE_MAX);
	HR_CLOSE int in = openat(kit, HR_KIT_TEMPLATE, O_RDONLY | O_CLOEXEC);

	if (in < 0)
		return hr_err_sys(err, errno, "open " HR_KIT_TEMPLATE);
	if (hr_path_read_fd(in, "read " HR_KIT_TEMPLATE, &text, err) < 0 ||
	    hr_dockerfile_put(&b, text.p, text.len, d, err) < 0)
		return -1;
	out = openat(folder, "Dockerfile", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (out < 0)
		return hr_err_sys(err, errno, "create Dockerfile");
	r = hr_fd_write_full(out, b.p, b.len, err);
	if (close(out) != 0 && r == 0)
		r = hr_err_sys(err, errno, "write Dockerfile");
	return r;
}

static int
copy_parts(int kit, int code, struct hr_err *err)
{
	static const char *const files[] = {
	    HR_KIT_DEPS, HR_KIT_LOCK, HR_KIT_INSTALL, HR_KIT_PYTHON};
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (copy_file(kit, files[i], code, files[i], err) != 0)
			return -1;
	return copy_tree(kit, HR_KIT_SOURCE, code, 0, err);
}

int
hr_kit_prepare(const char *kit, const char *folder, const char *base,
    enum hr_image_strategy strategy, const struct hr_image_request *req,
    const struct hr_image_tags *tags, struct hr_err *err)
{
	const struct hr_dockerfile d = {
	    .from = base,
	    .strategy = strategy,
	    .extra_deps = req->extra_deps,
	    .browser = req->browser,
	    .v1 = req->v1,
	    .version = PACKAGE_VERSION,
	    .lock = strrchr(tags->lock, ':') + 1,
	    .source = strrchr(tags->source, ':') + 1,
	};
	int r = -1;
	HR_CLOSE int from = open(kit, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	HR_CLOSE int to = -1;
	HR_CLOSE int code = -1;

	if (from < 0)
		return hr_err_sys(err, errno, "open %s", kit);
	to = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (to < 0 || (mkdirat(to, "code", 0755) != 0 && errno != EEXIST) ||
	    (code = openat(to, "code", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return hr_err_sys(err, errno, "build folder %s", folder);
	if (write_dockerfile(from, to, &d, err) == 0 && copy_parts(from, code, err) == 0)
		r = 0;
	return r;
}
