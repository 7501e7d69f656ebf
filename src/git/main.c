/* handrail-git: prints a client's "changes" view, for sandboxes with and without Python. The
 * scripts that the original's clients call (git_changes.py, git_diff.py) run this program, see
 * runtime-image. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "git/archive.h"
#include "git/git.h"

#define OUTPUT_MAX (1u << 30)

static int
usage(int status)
{
	static const char text[] =
	    "usage: handrail-git changes [--any] [--ref COMMIT]\n"
	    "       handrail-git diff [--ref COMMIT | --commit COMMIT] FILE\n"
	    "       handrail-git v1-archive git-delta|tar.gz DIRECTORY [--ref=COMMIT] "
	    "[PATTERN...]\n"
	    "       handrail-git v1-changes [--ref COMMIT] [DIRECTORY]\n"
	    "       handrail-git v1-commits LIMIT DIRECTORY\n"
	    "       handrail-git v1-commit-changes COMMIT DIRECTORY\n"
	    "       handrail-git v1-diff [--ref COMMIT | --commit COMMIT] FILE\n";

	(void)hr_fd_write_full(status == 0 ? STDOUT_FILENO : STDERR_FILENO, text, sizeof(text) - 1,
	    NULL); /* nothing can be done about a failed write */
	return status;
}

struct order {
	bool diff, v1, any;
	unsigned limit;                  /* 0: list no commits */
	const char *ref, *commit, *file; /* NULL: the option is not given */
};

/* Parses a number of commits, or the name of a commit, and a directory. */
static bool
parse_commits(struct order *o, int argc, char **argv)
{
	unsigned limit = 0;

	if (argc != 4 || argv[2][0] == '-' || argv[2][0] == '\0')
		return false;
	*o = (struct order){.v1 = true, .file = argv[3]};
	if (strcmp(argv[1], "v1-commit-changes") == 0)
		o->commit = argv[2];
	else if (sscanf(argv[2], "%u", &limit) == 1)
		o->limit = limit;
	return o->commit != NULL || o->limit > 0;
}

/* Returns false for arguments that usage() does not list. */
static bool
parse(struct order *o, int argc, char **argv)
{
	const char *what = argv[1];
	int n = 2;

	if (argc < 2)
		return false;
	if (strncmp(what, "v1-commit", 9) == 0)
		return parse_commits(o, argc, argv);
	*o = (struct order){.v1 = strncmp(what, "v1-", 3) == 0};
	what += o->v1 ? 3 : 0;
	o->diff = strcmp(what, "diff") == 0;
	if (!o->diff && strcmp(what, "changes") != 0)
		return false;
	o->any = !o->diff && !o->v1 && argc > n && strcmp(argv[n], "--any") == 0;
	n += o->any;
	if (argc > n + 1 && strcmp(argv[n], "--ref") == 0)
		o->ref = argv[n + 1];
	else if (argc > n + 1 && o->diff && strcmp(argv[n], "--commit") == 0)
		o->commit = argv[n + 1];
	if (o->ref != NULL || o->commit != NULL) {
		/* git would take the argument for an option */
		if (argv[n + 1][0] == '-' || argv[n + 1][0] == '\0')
			return false;
		n += 2;
	}
	if ((o->diff || o->v1) && n < argc)
		o->file = argv[n++];
	return n == argc && (!o->diff || o->file != NULL);
}

/* Returns the exit status. */
static int
archive(int argc, char **argv)
{
	static const char prefix[] = "--ref=";
	const char *slash = strrchr(argv[0], '/'), *ref = NULL;
	HR_FREE char *libexec =
	    slash != NULL ? strndup(argv[0], (size_t)(slash - argv[0])) : strdup(".");
	int n = 4;

	if (argc > n && strncmp(argv[n], prefix, sizeof(prefix) - 1) == 0)
		ref = argv[n++] + sizeof(prefix) - 1;
	if (argc > n && strcmp(argv[n], "--") == 0)
		n++;
	if (argc < n || libexec == NULL || argc - n > HR_ARCHIVE_PATTERNS)
		return usage(2);
	(void)setenv("GIT_TERMINAL_PROMPT", "0", 1);
	return hr_git_v1_archive(argv[2], argv[3], ref, (const char *const *)argv + n, libexec) < 0
		   ? EXIT_FAILURE
		   : EXIT_SUCCESS;
}

static int
perform(const struct order *o, struct hr_buf *json, struct hr_buf *why)
{
	/* git would wait for ever for the reply to a prompt */
	(void)setenv("GIT_TERMINAL_PROMPT", "0", 1);
	if (o->any) {
		(void)setenv("LC_ALL", "C", 1); /* this program parses git's errors */
		return hr_git_any_changes(".", o->ref, json, why);
	}
	if (o->limit > 0)
		return hr_git_v1_commits(o->file, o->limit, json, why);
	if (!o->diff && o->commit != NULL)
		return hr_git_v1_commit_changes(o->file, o->commit, json, why);
	if (!o->diff)
		return (o->v1 ? hr_git_v1_changes : hr_git_changes)(
		    o->file != NULL ? o->file : ".", o->ref, json, why);
	if (o->commit != NULL)
		return hr_git_commit_diff(o->file, o->commit, o->v1, json, why);
	return (o->v1 ? hr_git_v1_diff : hr_git_diff)(o->file, o->ref, json, why);
}

int
main(int argc, char **argv)
{
	struct order o;
	HR_BUF(json, OUTPUT_MAX);
	HR_BUF(why, OUTPUT_MAX);
	int r;

	if (argc == 2 && strcmp(argv[1], "--help") == 0)
		return usage(0);
	if (argc > 1 && strcmp(argv[1], "v1-archive") == 0)
		return archive(argc, argv);
	if (!parse(&o, argc, argv))
		return usage(2);
	r = perform(&o, &json, &why);
	if (r == 0) {
		hr_buf_addc(&json, '\n');
		r = hr_fd_write_full(STDOUT_FILENO, hr_buf_str(&json), json.len, NULL);
	} else {
		hr_buf_addc(&why, '\n');
		(void)hr_fd_write_full(STDERR_FILENO, hr_buf_str(&why), why.len, NULL);
	}
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
