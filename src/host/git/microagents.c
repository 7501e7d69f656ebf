/* Finds and reads microagents: Markdown files with instructions for agents in a workspace, a
 * repository and its organisation (doc/host.md, "Microagents"). The reader interprets their
 * content. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/err.h"
#include "host/git/gitrepo.h"
#include "host/transfer/zip.h"
#include "proto/json.h"
#include "base/text/utf8.h"
#include "shell/quote.h"
#include "host/life/action.h"
#include "host/mask.h"
#include "host/report.h"
#include "host/transfer/transfer.h"

#define FOLDER ".openhands/microagents"
#define LEGACY ".openhands_instructions"
#define LEGACY_NAME "repo_legacy"
#define SUFFIX ".md"
#define CLONE_TIMEOUT_S 600
#define STEP_TIMEOUT_S 120
#define FILE_MAX (4u << 20)
#define ALL_MAX (64u << 20)
#define TEXT_MAX (1u << 20)
#define DEPTH_MAX 32

struct load {
	struct hr_sandbox *s;
	struct hr_buf json;
	const char *source,
	    *where; /* source: that of the current files; where: their folder in the sandbox */
};

static void
put_one(struct load *l, const char *name, const char *path, const struct hr_buf *content)
{
	hr_buf_adds(&l->json, l->json.len > 1 ? ",{" : "{");
	if (l->json.fail != HR_OK)
		return;
	hr_json_put_named(&l->json, "name", name);
	hr_json_put_named(&l->json, "source", l->source);
	hr_json_put_named(&l->json, "path", path);
	hr_json_put_member(&l->json, "content", hr_span_of_buf(content));
	hr_buf_addc(&l->json, '}');
}

/* ---- a copy of a folder ---- */

/* Loads a file; an unreadable file is logged and skipped. */
static void
load_file(struct load *l, int dirfd, const char *file, const char *relative)
{
	HR_BUF(content, FILE_MAX);
	HR_BUF(path, TEXT_MAX);
	HR_CLOSE int fd = openat(dirfd, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	const char *why = NULL;
	char *room;
	HR_FREE char *name = NULL;
	struct stat st;
	ssize_t n = 0;

	hr_buf_addf(&path, "%s/%s", l->where, relative);
	if (fd < 0 || fstat(fd, &st) != 0)
		why = strerror(errno);
	else if (!S_ISREG(st.st_mode))
		why = "it is not a regular file";
	else if ((room = hr_buf_reserve(&content, (size_t)st.st_size + 1)) == NULL)
		why = "it is too large";
	else if ((n = hr_fd_read_full(fd, room, (size_t)st.st_size, NULL)) < 0)
		why = "it cannot be read";
	if (why == NULL) {
		hr_buf_grew(&content, (size_t)n);
		if (!hr_utf8_valid(hr_buf_str(&content), content.len) ||
		    (n > 0 && memchr(content.p, '\0', content.len) != NULL))
			why = "it is not UTF-8";
		else if ((name = strndup(relative, strlen(relative) - strlen(SUFFIX))) == NULL)
			why = "out of memory";
	}
	if (why != NULL)
		hr_sandbox_log(l->s, "microagent %s was not loaded: %s", hr_buf_str(&path), why);
	else
		put_one(l, name, hr_buf_str(&path), &content);
}

static bool
is_microagent(const char *name)
{
	size_t n = strlen(name), suffix = strlen(SUFFIX);

	return n > suffix && strcmp(name + n - suffix, SUFFIX) == 0 &&
	       strcmp(name, "README.md") != 0;
}

static int
by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Loads a folder. Takes ownership of fd. `below` is "" or "some/folder/". */
static void
load_folder(struct load *l, int fd, const char *below, unsigned depth)
{
	HR_FREE struct dirent **names = NULL;
	int n = fd >= 0 ? scandirat(fd, ".", &names, NULL, by_name) : -1, inner;
	int i;

	if (n < 0)
		hr_sandbox_log(l->s, "%s/%s was not read: %s", l->where, below, strerror(errno));
	for (i = 0; i < n; i++) {
		const char *name = names[i]->d_name;
		HR_BUF(relative, TEXT_MAX);

		hr_buf_addf(&relative, "%s%s", below, name);
		inner = -1;
		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && depth < DEPTH_MAX)
			inner = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (inner >= 0) {
			hr_buf_addc(&relative, '/');
			load_folder(l, inner, hr_buf_str(&relative), depth + 1);
		} else if (is_microagent(name)) {
			load_file(l, fd, name, hr_buf_str(&relative));
		}
		free(names[i]);
	}
	hr_fd_close(&fd);
}

/* Unpacks the archive of a folder into a private directory and loads it. */
static int
load_archive(struct load *l, const char *zip, struct hr_err *err)
{
	const char *tmp = hr_env_get(l->s->host.environ, "TMPDIR");
	struct hr_err e = {0};
	HR_FREE char *dir = NULL;
	int r = -1;

	if (asprintf(&dir, "%s/handrail-microagents-XXXXXX",
		tmp != NULL && *tmp != '\0' ? tmp : "/tmp") < 0)
		return hr_err_nomem(err);
	if (mkdtemp(dir) == NULL) {
		(void)hr_err_sys(err, errno, "make %s", dir);
	} else {
		r = hr_zip_extract(zip, dir, ALL_MAX, &e);
		if (r != 0)
			(void)hr_err_set(err, e.code, "%s: %.800s", l->where, e.msg);
		else
			load_folder(l, open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), "", 0);
		(void)hr_path_remove(dir, NULL); /* a failure leaves only temporary files */
	}
	return r;
}

/* Loads all Markdown files below a folder of the sandbox; none if the folder is missing. */
static int
load_from(struct load *l, const char *source, const char *folder, struct hr_err *err)
{
	HR_FREE char *names = NULL;
	HR_FREE char *zip = NULL;
	bool empty;
	int r;

	if (hr_sandbox_list_files(l->s, folder, &names, err) != 0)
		return -1;
	empty = strcmp(names, "[]") == 0;
	if (empty)
		return 0;
	l->source = source;
	l->where = folder;
	r = hr_sandbox_copy_some(l->s, folder, ALL_MAX, false, &zip, err);
	if (r == 0)
		r = load_archive(l, zip, err);
	if (zip != NULL)
		(void)unlink(zip);
	return r;
}

/* ---- the organisation ---- */

/* Finds the organisation, the last part but one of a name or URL: *ret_len bytes at *ret_org,
 * inside `repository`. Returns false if there is none. */
static bool
find_organisation(const char *repository, const char **ret_org, size_t *ret_len)
{
	const char *first = strstr(repository, "://"), *end = repository + strlen(repository), *org;

	if (first != NULL) {
		first += 3;
		first += strcspn(first, "/");
		first += *first == '/';
	} else {
		first = repository;
	}
	while (end > first && end[-1] == '/')
		end--;
	while (end > first && end[-1] != '/')
		end--;
	while (end > first && end[-1] == '/')
		end--;
	for (org = end; org > first && org[-1] != '/';)
		org--;
	*ret_org = org;
	*ret_len = (size_t)(end - org);
	return *ret_len > 0;
}

/* Makes the name of the organisation's repository for all of its repositories: GitLab allows no
 * leading dot. A URL keeps its suffix. */
static int
name_of_all(struct hr_sandbox *s, const char *repository, size_t before, struct hr_buf *b,
    struct hr_err *err)
{
	size_t n = strlen(repository);
	HR_CLEAN(hr_gitrepo_done) struct hr_gitrepo repo = {0};
	struct hr_err e = {0};
	bool gitlab;

	/* a failed look-up counts as another provider */
	gitlab =
	    hr_gitrepo_find(&repo, s, repository, false, &e) == 0 && hr_gitrepo_is_gitlab(&repo);
	hr_buf_add(b, repository, before);
	hr_buf_adds(b, gitlab ? "/openhands-config" : "/.openhands");
	if (strstr(repository, "://") != NULL && n > 4 && strcmp(repository + n - 4, ".git") == 0)
		hr_buf_adds(b, ".git");
	return hr_buf_check(b, NULL) == 0 ? 0 : hr_err_nomem(err);
}

/* Runs a command of handrail's own. Returns 0, 1 if it failed, which is logged, or -1 with *err
 * set. */
static int
step(struct hr_sandbox *s, const struct hr_buf *command, unsigned timeout_s, const char *what,
    struct hr_err *err)
{
	HR_BUF(out, TEXT_MAX * 16);
	int status = 0, r;

	if (hr_buf_check(command, NULL) != 0)
		return hr_err_nomem(err);
	r = hr_sandbox_run(s, command->p, timeout_s, &status, &out, err);
	if (r == 0 && status != 0) {
		hr_sandbox_log(s, "%s: %s", what, hr_buf_str(&out));
		r = 1;
	}
	return r;
}

/* Clones, loads and removes the repository, which usually does not exist. */
static int
load_clone(struct load *l, struct hr_gitrepo *repo, const char *to, struct hr_err *err)
{
	HR_BUF(command, TEXT_MAX);
	HR_BUF(folder, TEXT_MAX);
	int r;

	hr_buf_addf(&folder, "%s/microagents", to);
	r = hr_gitrepo_give_token(repo, err);
	if (r == 0) {
		hr_gitrepo_put_clone(&command, repo, " -q --depth 1");
		hr_shell_quote(&command, to, strlen(to));
		r = step(l->s, &command, CLONE_TIMEOUT_S,
		    "no microagents of the organisation were cloned", err);
	}
	if (r == 0) {
		r = load_from(l, "organization", hr_buf_str(&folder), err);
		hr_buf_reset(&command);
		hr_buf_adds(&command, "rm -rf -- ");
		hr_shell_quote(&command, to, strlen(to));
		if (step(l->s, &command, STEP_TIMEOUT_S, "their clone was not removed",
			r == 0 ? err : NULL) < 0)
			r = -1;
	}
	return r < 0 ? -1 : 0;
}

static int
load_organisation(struct load *l, const char *repository, struct hr_err *err)
{
	HR_CLEAN(hr_gitrepo_done) struct hr_gitrepo repo = {0};
	struct hr_err e = {0};
	HR_BUF(all, TEXT_MAX);
	HR_BUF(to, TEXT_MAX);
	const char *org;
	size_t len;
	int r;

	if (!find_organisation(repository, &org, &len)) {
		hr_sandbox_log(l->s, "%s belongs to no organisation", repository);
		return 0;
	}
	hr_buf_addf(&to, "%s/org_openhands_%.*s", hr_sandbox_workspace(l->s), (int)len, org);
	r = name_of_all(l->s, repository, (size_t)(org - repository) + len, &all, err);
	if (r == 0 && hr_buf_check(&to, NULL) != 0)
		r = hr_err_nomem(err);
	if (r == 0 && hr_gitrepo_find(&repo, l->s, all.p, false, &e) == 0)
		r = load_clone(l, &repo, to.p, err);
	return r;
}

/* ---- the workspace ---- */

static int
load_legacy(struct load *l, const char *folder, struct hr_err *err)
{
	HR_BUF(path, TEXT_MAX);
	HR_BUF(content, ALL_MAX);
	int r;

	hr_buf_addf(&path, "%s/" LEGACY, folder);
	r = hr_sandbox_file(l->s, hr_buf_str(&path), NULL, &content, err);
	l->source = "repository";
	if (r == 1)
		put_one(l, LEGACY_NAME, hr_buf_str(&path), &content);
	return r;
}

/* Loads from `directory` below the workspace; "": the workspace itself. */
static int
load_workspace(struct load *l, const char *directory, struct hr_err *err)
{
	const char *root = hr_sandbox_workspace(l->s);
	HR_BUF(top, TEXT_MAX);
	HR_BUF(folder, TEXT_MAX);
	int r;

	hr_buf_addf(&top, "%s%s%s", root, *directory != '\0' ? "/" : "", directory);
	hr_buf_addf(&folder, "%s/" FOLDER, hr_buf_str(&top));
	r = load_legacy(l, root, err);
	if (r == 0 && *directory != '\0')
		r = load_legacy(l, hr_buf_str(&top), err);
	if (r >= 0)
		r = load_from(l, "repository", hr_buf_str(&folder), err);
	return r;
}

int
hr_sandbox_microagents(
    struct hr_sandbox *s, const char *repository, char **ret_json, struct hr_err *err)
{
	struct load l = {.s = s};
	char directory[256] = "";
	int r = 0;

	if (repository == NULL)
		repository = hr_config_text(s->config, "sandbox.selected_repo");
	if (repository != NULL &&
	    (hr_gitrepo_check(repository, err) < 0 ||
		hr_gitrepo_directory(repository, directory, sizeof(directory), err) < 0))
		return -1;
	hr_buf_init(&l.json, ALL_MAX);
	hr_buf_addc(&l.json, '[');
	if (repository != NULL)
		r = load_organisation(&l, repository, err);
	if (r == 0)
		r = load_workspace(&l, directory, err);
	hr_buf_addc(&l.json, ']');
	if (r == 0 && hr_buf_check(&l.json, NULL) != 0)
		r = l.json.fail == HR_E_NOMEM
			? hr_err_nomem(err)
			: hr_err_set(err, HR_E_INVAL,
			      "the microagents must have at most %u MiB together", ALL_MAX >> 20);
	if (r == 0)
		*ret_json = hr_buf_take(&l.json);
	else
		hr_mask_error(s, err);
	hr_buf_done(&l.json);
	return r;
}
