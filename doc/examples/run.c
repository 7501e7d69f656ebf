/* Runs a command in a fresh sandbox, prints what it printed, and ends as it did.
 *   run COMMAND
 * The back-end is RUNTIME's, as for the handrail command.
 *   cc run.c -o run $(pkg-config --cflags --libs handrail json-c) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <handrail.h>
#include <json-c/json.h>

extern char **environ;

static void
say(void *arg, const char *text)
{
	(void)arg;
	fprintf(stderr, "%s\n", text);
}

/* {"action": "run", "args": {"command": COMMAND}}; the caller's. */
static char *
action_of(const char *command)
{
	struct json_object *args = json_object_new_object(), *all = json_object_new_object();
	char *text;

	json_object_object_add(args, "command", json_object_new_string(command));
	json_object_object_add(all, "action", json_object_new_string("run"));
	json_object_object_add(all, "args", args);
	text = strdup(json_object_to_json_string(all));
	json_object_put(all);
	return text;
}

/* The exit code, or -1 if there is none. */
static int
print(const char *observation)
{
	struct json_object *all = json_tokener_parse(observation), *found;
	int code = -1;

	if (json_object_object_get_ex(all, "content", &found))
		puts(json_object_get_string(found));
	if (json_object_object_get_ex(all, "extras", &found) &&
	    json_object_object_get_ex(found, "metadata", &found) &&
	    json_object_object_get_ex(found, "exit_code", &found))
		code = json_object_get_int(found);
	json_object_put(all);
	return code;
}

int
main(int argc, char **argv)
{
	struct hr_sandbox_options o = {.headless = true, .log = say};
	struct hr_config *c;
	struct hr_sandbox *s = NULL;
	struct hr_err err = {0};
	char *action = NULL, *observation = NULL;
	int code = -1;

	if (argc != 2)
		return 2;
	o.environ = (const char *const *)environ;
	c = hr_config_new(&err);
	if (c != NULL && hr_config_load(c, NULL, o.environ, say, NULL, &err) == 0)
		s = hr_sandbox_open(c, &o, &err);
	action = action_of(argv[1]);
	if (s != NULL && action != NULL && hr_sandbox_connect(s, &err) == 0 &&
	    hr_sandbox_action(s, action, &observation, &err) == 0)
		code = print(observation);
	else
		fprintf(stderr, "run: %s\n", err.msg);
	free(action);
	free(observation);
	if (s != NULL && hr_sandbox_delete(s, &err) != 0)
		fprintf(stderr, "run: %s\n", err.msg);
	hr_sandbox_free(s);
	hr_config_free(c);
	return code >= 0 ? code : 1;
}
