/* Goes into a sandbox that "handrail up" made, copies a file into a directory of it, and prints
 * what is there before and after.
 *   visit STATE_DIR NAME FILE DIRECTORY
 *   cc visit.c -o visit $(pkg-config --cflags --libs handrail) */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include <handrail.h>

extern char **environ;

static int
visit(struct hr_sandbox *s, const char *file, const char *directory, struct hr_err *err)
{
	char path[PATH_MAX], *names = NULL;

	if (realpath(file, path) == NULL) {
		perror(file);
		return -1;
	}
	printf("%s is %s at %s\n", hr_sandbox_id(s), hr_sandbox_state(s),
	    hr_sandbox_url(s) != NULL ? hr_sandbox_url(s) : "no address");
	if (hr_sandbox_list_files(s, directory, &names, err) != 0)
		return -1;
	printf("before: %s\n", names);
	free(names);
	names = NULL;
	if (hr_sandbox_copy_to(s, path, directory, false, err) != 0 ||
	    hr_sandbox_list_files(s, directory, &names, err) != 0)
		return -1;
	printf("after: %s\n", names);
	free(names);
	return 0;
}

int
main(int argc, char **argv)
{
	/* attach: what is there is not ended, and what is not there is not made */
	struct hr_sandbox_options o = {.attach = true};
	struct hr_config *c;
	struct hr_sandbox *s = NULL;
	struct hr_err err = {0};
	int r = -1;

	if (argc != 5)
		return 2;
	o.environ = (const char *const *)environ;
	o.state_dir = argv[1];
	o.sid = argv[2];
	c = hr_config_new(&err);
	if (c != NULL && hr_config_load(c, NULL, o.environ, NULL, NULL, &err) == 0)
		s = hr_sandbox_open(c, &o, &err);
	if (s != NULL && hr_sandbox_connect(s, &err) == 0)
		r = visit(s, argv[3], argv[4], &err);
	if (r != 0 && err.code == HR_E_NO_SANDBOX)
		fprintf(stderr, "visit: there is no sandbox \"%s\"; handrail up %s makes it\n",
		    argv[2], argv[2]);
	else if (r != 0)
		fprintf(stderr, "visit: %s\n", err.msg);
	hr_sandbox_free(s);
	hr_config_free(c);
	return r == 0 ? 0 : 1;
}
