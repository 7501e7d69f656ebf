/* Prints the branch that is checked out in a directory of a sandbox that is there, "-" for none.
 *   branch STATE_DIR SID DIRECTORY */
#include <stdio.h>
#include <stdlib.h>

#include <handrail.h>

extern char **environ;

int
main(int argc, char **argv)
{
	struct hr_sandbox_options o = {.attach = true, .headless = true};
	struct hr_err err = {0};
	struct hr_config *c = hr_config_new(&err);
	struct hr_sandbox *s = NULL;
	char *branch = NULL;
	int r = -1;

	if (argc != 4)
		return 2;
	o.environ = (const char *const *)environ;
	o.state_dir = argv[1];
	o.sid = argv[2];
	if (c != NULL && hr_config_load(c, NULL, o.environ, NULL, NULL, &err) == 0)
		s = hr_sandbox_open(c, &o, &err);
	if (s != NULL && hr_sandbox_connect(s, &err) == 0)
		r = hr_sandbox_git_branch(s, argv[3], &branch, &err);
	if (r == 0)
		printf("%s\n", branch != NULL ? branch : "-");
	else
		fprintf(stderr, "%s\n", err.msg);
	free(branch);
	hr_sandbox_free(s);
	hr_config_free(c);
	return r == 0 ? 0 : 1;
}
