/* handrail-git: the "changes" view of a client, for sandboxes with and without Python. What the
 * original's clients call (git_changes.py, git_diff.py) leads here, see runtime-image. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "git/git.h"

#define OUTPUT_MAX (1u << 30)

static int
usage(int status)
{
	static const char text[] =
	    "usage: handrail-git changes [--any] [--ref COMMIT]\n"
	    "       handrail-git diff [--ref COMMIT | --commit COMMIT] FILE\n"
	    "       handrail-git v1-changes [--ref COMMIT]\n"
	    "       handrail-git v1-diff [--ref COMMIT | --commit COMMIT] FILE\n";

	(void)hr_fd_write_full(status == 0 ? STDOUT_FILENO : STDERR_FILENO, text, sizeof(text) - 1,
	    NULL); /* nobody to tell */
	return status;
}

int
main(int argc, char **argv)
{
	const char *ref = NULL, *commit = NULL, *what = argc > 1 ? argv[1] : "";
	const bool v1 = strncmp(what, "v1-", 3) == 0;
	HR_BUF(json, OUTPUT_MAX);
	HR_BUF(why, OUTPUT_MAX);
	int r, n = 2;
	bool any;

	if (argc == 2 && strcmp(what, "--help") == 0)
		return usage(0);
	what += v1 ? 3 : 0;
	any = argc > 2 && strcmp(argv[1], "changes") == 0 && strcmp(argv[2], "--any") == 0;
	if (any) {
		argv[2] = argv[1];
		argv++;
		argc--;
	}
	if (argc > 3 && strcmp(argv[2], "--ref") == 0)
		ref = argv[3];
	else if (argc > 3 && strcmp(what, "diff") == 0 && strcmp(argv[2], "--commit") == 0)
		commit = argv[3];
	if (ref != NULL || commit != NULL)
		n = 4;
	if (!(argc == n && strcmp(what, "changes") == 0) &&
	    !(argc == n + 1 && strcmp(what, "diff") == 0))
		return usage(2);
	/* git would take it for an option */
	if (n == 4 && (argv[3][0] == '-' || argv[3][0] == '\0'))
		return usage(2);
	/* a question that nobody hears would wait for ever */
	(void)setenv("GIT_TERMINAL_PROMPT", "0", 1);
	if (any) {
		(void)setenv("LC_ALL", "C", 1); /* its errors are looked at */
		r = hr_git_any_changes(".", ref, &json, &why);
	} else if (argc == n)
		r = (v1 ? hr_git_v1_changes : hr_git_changes)(".", ref, &json, &why);
	else if (commit != NULL)
		r = hr_git_commit_diff(argv[n], commit, v1, &json, &why);
	else
		r = (v1 ? hr_git_v1_diff : hr_git_diff)(argv[n], ref, &json, &why);
	if (r == 0) {
		hr_buf_addc(&json, '\n');
		r = hr_fd_write_full(STDOUT_FILENO, hr_buf_str(&json), json.len, NULL);
	} else {
		hr_buf_addc(&why, '\n');
		(void)hr_fd_write_full(STDERR_FILENO, hr_buf_str(&why), why.len, NULL);
	}
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
