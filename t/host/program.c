/* A program that uses libhandrail as others would: only its public header, only its shared object.
 *   program RUNTIME ACTION      starts a sandbox, prints one observation, closes it
 *   program RUNTIME delete      starts a sandbox, and deletes it
 * What a command prints as it comes goes to stderr, where the runtime tells. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <handrail.h>

extern char **environ;

static void
on_status(void *arg, const char *level, const char *status, const char *message)
{
	(void)arg;
	(void)level;
	(void)message;
	fprintf(stderr, "%s\n", status);
}

static void
on_output(void *arg, const char *line, size_t len)
{
	(void)arg;
	fprintf(stderr, "output: %.*s", (int)len, line);
}

int
main(int argc, char **argv)
{
	struct hr_sandbox_options o = {.sid = "program", .headless = true, .status = on_status};
	struct hr_config *c;
	struct hr_sandbox *s = NULL;
	struct hr_err err = {0};
	char *observation = NULL;
	int r = 1;

	if (argc != 3)
		return 2;
	o.environ = (const char *const *)environ;
	c = hr_config_new(&err);
	if (c != NULL && hr_config_load(c, NULL, o.environ, NULL, NULL, &err) == 0 &&
	    hr_config_set(c, "core.runtime", argv[1], &err) == 0)
		s = hr_sandbox_open(c, &o, &err);
	if (s != NULL && hr_sandbox_subscribe_output(s, on_output, NULL))
		fprintf(stderr, "subscribed\n");
	if (s != NULL && hr_sandbox_connect(s, &err) == 0) {
		if (strcmp(argv[2], "delete") == 0)
			r = hr_sandbox_delete(s, &err);
		else
			r = hr_sandbox_action(s, argv[2], &observation, &err);
	}
	if (r == 0 && observation != NULL)
		printf("%s\n", observation);
	if (r != 0)
		fprintf(stderr, "%s: %s\n", hr_err_class(&err), err.msg);
	free(observation);
	if (s != NULL && hr_sandbox_close(s, &err) != 0)
		r = 1;
	hr_sandbox_free(s);
	hr_config_free(c);
	return r;
}
