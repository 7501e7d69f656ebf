/* Clones a repository into a sandbox (doc/host.md, "Repositories"). */
#include "config.h"

#include <string.h>

#include "base/random.h"
#include "base/err.h"
#include "host/git/gitrepo.h"
#include "shell/quote.h"
#include "host/life/action.h"
#include "host/mask.h"
#include "host/report.h"

#define CLONE_TIMEOUT_S 600
#define STEP_TIMEOUT_S 120
#define TEXT_MAX (1u << 20)
#define BRANCH_LETTERS 8

struct clone {
	struct hr_sandbox *s;
	struct hr_gitrepo repo;
	char directory[256]; /* last part of the repository's name */
	struct hr_buf path;  /* path of the clone */
};

/* ---- commands ---- */

/* Returns 0 if the command has succeeded or, unless strict, has failed and was logged. */
static int
step(struct clone *c, const struct hr_buf *command, double timeout_s, const char *what, bool strict,
    struct hr_err *err)
{
	HR_BUF(out, TEXT_MAX * 16);
	int status = 0, r;

	if (hr_buf_check(command, NULL) != 0)
		return hr_err_nomem(err);
	r = hr_sandbox_run(c->s, command->p, timeout_s, &status, &out, err);
	if (r == 0 && status != 0 && strict)
		r = hr_mask_err_set(
		    c->s, err, HR_E_RUNTIME, "%s failed: %s", what, hr_buf_str(&out));
	else if (r == 0 && status != 0)
		hr_sandbox_log(c->s, "%s failed: %s", what, hr_buf_str(&out));
	return r;
}

static int
clone_it(struct clone *c, bool strict, struct hr_err *err)
{
	HR_BUF(b, TEXT_MAX);

	hr_gitrepo_put_clone(&b, &c->repo, "");
	hr_buf_adds(&b, c->path.p);
	return step(c, &b, CLONE_TIMEOUT_S, "git clone", strict, err);
}

static int
check_out(struct clone *c, const char *branch, bool strict, struct hr_err *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
	unsigned char raw[BRANCH_LETTERS];
	HR_BUF(b, TEXT_MAX);

	if (hr_random(raw, sizeof(raw), NULL) < 0)
		return hr_err_set(
		    err, HR_E_SYS, "the system gave no random bytes for the branch's name");
	hr_buf_addf(&b, "cd %s && git checkout ", c->path.p);
	if (branch != NULL) {
		hr_shell_quote(&b, branch, strlen(branch));
	} else {
		size_t i;

		hr_buf_adds(&b, "-b openhands-workspace-");
		for (i = 0; i < sizeof(raw); i++)
			hr_buf_addc(&b, letters[raw[i] % 32]);
	}
	return step(c, &b, STEP_TIMEOUT_S, "git checkout", strict, err);
}

/* ---- the clone ---- */

static int
init_empty(struct clone *c, bool strict, struct hr_err *err)
{
	const char *root = hr_sandbox_workspace(c->s);
	HR_BUF(b, TEXT_MAX);
	int r = 0;

	hr_buf_adds(&b, "git init && git config --global --add safe.directory ");
	hr_shell_quote(&b, root, strlen(root));
	if (hr_config_bool(c->s->config, "core.init_git_in_empty_workspace"))
		r = step(c, &b, STEP_TIMEOUT_S, "git init", strict, err);
	return r;
}

/* Checks the names before anything is asked or done. */
static int
check(const char *repository, const char *branch, struct hr_err *err)
{
	if (hr_gitrepo_check(repository, err) < 0)
		return -1;
	if (branch != NULL && (*branch == '\0' || *branch == '-'))
		return hr_err_set(err, HR_E_INVAL, "\"%.200s\" is not a branch", branch);
	return 0;
}

static int
find(struct clone *c, const char *repository, struct hr_err *err)
{
	const char *root = hr_sandbox_workspace(c->s);
	HR_BUF(b, TEXT_MAX);

	if (hr_gitrepo_directory(repository, c->directory, sizeof(c->directory), err) < 0)
		return -1;
	if (hr_gitrepo_find(&c->repo, c->s, repository, true, err) < 0) {
		if (c->s->status != NULL)
			c->s->status(c->s->status_arg, "error",
			    "STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR", "");
		return -1;
	}
	hr_buf_addf(&b, "%s/%s", root, c->directory);
	hr_shell_quote(&c->path, hr_buf_str(&b), b.len);
	return hr_buf_check(&c->path, NULL) != 0 ? hr_err_nomem(err) : 0;
}

int
hr_sandbox_clone(struct hr_sandbox *s, const char *repository, const char *branch, bool strict,
    char **ret_directory, struct hr_err *err)
{
	struct clone c = {.s = s};
	int r;

	if (repository == NULL)
		repository = hr_config_text(s->config, "sandbox.selected_repo");
	hr_buf_init(&c.path, TEXT_MAX);
	if (repository == NULL) {
		r = init_empty(&c, strict, err);
	} else {
		r = check(repository, branch, err);
		if (r == 0)
			r = find(&c, repository, err);
		if (r == 0 && s->status != NULL)
			s->status(s->status_arg, "info", "STATUS$SETTING_UP_WORKSPACE",
			    "Setting up workspace...");
		if (r == 0)
			r = hr_gitrepo_give_token(&c.repo, err);
		if (r == 0)
			r = clone_it(&c, strict, err);
		if (r == 0)
			r = check_out(&c, branch, strict, err);
	}
	if (r == 0 && (*ret_directory = strdup(c.directory)) == NULL)
		r = hr_err_nomem(err);
	if (r != 0)
		hr_mask_error(s, err);
	hr_buf_done(&c.path);
	hr_gitrepo_done(&c.repo);
	return r;
}
