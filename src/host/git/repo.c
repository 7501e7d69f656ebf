/* Runs repository hooks for sandboxes: .openhands/setup.sh and a git hook (doc/host.md,
 * "Repositories"). */
#include "config.h"

#include <string.h>

#include "host/life/action.h"
#include "host/report.h"

#define SETUP "chmod +x .openhands/setup.sh && source .openhands/setup.sh"
#define SETUP_TIMEOUT_S 600
#define STEP_TIMEOUT_S 120
#define FILE_MAX (16u << 20)
#define HOOK ".git/hooks/pre-commit"
#define MARK "This hook was installed by OpenHands"

static const char hook_text[] =
    "#!/bin/bash\n"
    "# " MARK "\n"
    "# It runs the hook that was here before, then the repository's own script.\n"
    "if [ -x \"" HOOK ".local\" ]; then\n"
    "\t\"" HOOK ".local\" \"$@\" || exit $?\n"
    "fi\n"
    "if [ -x \".openhands/pre-commit.sh\" ]; then\n"
    "\tsource \".openhands/pre-commit.sh\"\n"
    "\texit $?\n"
    "fi\n"
    "echo \"Warning: .openhands/pre-commit.sh not found or not executable\"\n"
    "exit 0\n";

int
hr_sandbox_run_setup_script(struct hr_sandbox *s, int *ret_status, struct hr_err *err)
{
	int there = hr_sandbox_file(s, ".openhands/setup.sh", NULL, NULL, err);

	*ret_status = 0;
	if (there <= 0)
		return there;
	hr_sandbox_report(s, "STATUS$SETTING_UP_WORKSPACE", "Setting up workspace...");
	return hr_sandbox_run(s, SETUP, SETUP_TIMEOUT_S, ret_status, NULL, err);
}

/* Returns 0, 1 if the command failed (logged), or -1 with *err set. */
static int
step(struct hr_sandbox *s, const char *command, const char *failure, struct hr_err *err)
{
	HR_BUF(b, FILE_MAX);
	int status = 0, r;

	r = hr_sandbox_run(s, command, STEP_TIMEOUT_S, &status, &b, err);
	if (r == 0 && status != 0) {
		hr_sandbox_log(s, "%s: %s", failure, hr_buf_str(&b));
		r = 1;
	}
	return r;
}

/* Renames a hook that handrail did not write; handrail's hook calls it. */
static int
preserve(struct hr_sandbox *s, struct hr_err *err)
{
	HR_BUF(b, FILE_MAX);
	int r;

	r = hr_sandbox_file(s, HOOK, NULL, &b, err);
	if (r == 1 && strstr(hr_buf_str(&b), MARK) == NULL) {
		hr_sandbox_log(s, "Preserving existing pre-commit hook");
		r = step(s, "mv " HOOK " " HOOK ".local",
		    "Failed to preserve existing pre-commit hook", err);
		if (r == 0)
			r = step(s, "chmod +x " HOOK ".local",
			    "Failed to make preserved hook executable", err);
	} else if (r >= 0) {
		r = 0;
	}
	return r;
}

int
hr_sandbox_install_git_hooks(struct hr_sandbox *s, struct hr_err *err)
{
	int r = hr_sandbox_file(s, ".openhands/pre-commit.sh", NULL, NULL, err);

	if (r <= 0)
		return r;
	hr_sandbox_report(s, "STATUS$SETTING_UP_GIT_HOOKS", "Setting up git hooks...");
	r = step(s, "mkdir -p .git/hooks", "Failed to create git hooks directory", err);
	if (r == 0)
		r = step(s, "chmod +x .openhands/pre-commit.sh",
		    "Failed to make pre-commit script executable", err);
	if (r == 0)
		r = preserve(s, err);
	if (r == 0) {
		r = hr_sandbox_file(s, HOOK, hook_text, NULL, err);
		if (r == 0)
			hr_sandbox_log(s, "Failed to write pre-commit hook");
		r = r == 1 ? 0 : r == 0 ? 1 : -1;
	}
	if (r == 0)
		r = step(s, "chmod +x " HOOK, "Failed to make pre-commit hook executable", err);
	if (r == 0)
		hr_sandbox_log(s, "Git pre-commit hook installed successfully");
	return r < 0 ? -1 : 0;
}
