/* Follows a sandbox's log as another program would: with the public header and the shared object.
 *   streamer RUNTIME STATE_DIR COMMAND WORD N
 * COMMAND makes the log have N lines with WORD, which it has not otherwise. A thread of the
 * library's tells of every such line; each is awaited, nothing is slept for. */
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <handrail.h>

extern char **environ;

struct seen {
	sem_t come;
	int n;           /* of the thread's, read when it has ended */
	char first[256]; /* from the word on */
};

/* the last one is in use until the sandbox has ended */
static struct seen debug, first, second;
static const char *word;
static int lines; /* of one mark */

static int
on_line(void *arg, const char *line, size_t len)
{
	struct seen *s = arg;
	char text[256];
	const char *found;

	(void)snprintf(text, sizeof(text), "%.*s", (int)len, line);
	found = strstr(text, word);
	if (found == NULL)
		return 0;
	if (s->n++ == 0)
		(void)snprintf(s->first, sizeof(s->first), "%s", found);
	(void)sem_post(&s->come);
	return 0;
}

static void
log_line(void *arg, const char *text)
{
	static const char prefix[] = "[inside container] ";

	(void)arg;
	if (strncmp(text, prefix, sizeof(prefix) - 1) == 0)
		(void)on_line(&debug, text + sizeof(prefix) - 1, strlen(text) - sizeof(prefix) + 1);
	else
		fprintf(stderr, "log: %s\n", text);
}

static int
mark(struct hr_sandbox *s, const char *command, struct hr_err *err)
{
	char action[1024], *observation = NULL;
	int r;

	(void)snprintf(action, sizeof(action),
	    "{\"action\": \"run\", \"args\": {\"command\": \"%s\"}}", command);
	r = hr_sandbox_action(s, action, &observation, err);
	free(observation);
	return r;
}

static void
await(struct seen *s, int n)
{
	while (n-- > 0)
		while (sem_wait(&s->come) != 0)
			;
}

static int
start(struct hr_sandbox *s, struct seen *seen, struct hr_err *err)
{
	memset(seen, 0, sizeof(*seen));
	(void)sem_init(&seen->come, 0, 0);
	return hr_sandbox_start_log_stream(s, on_line, seen, err);
}

static int
follow(struct hr_sandbox *s, const char *command, struct hr_err *err)
{
	hr_sandbox_stop_log_stream(s);
	if (start(s, &first, err) == 0)
		return -1;
	printf("before: %s\n", err->msg);
	(void)sem_init(&debug.come, 0, 0);
	if (hr_sandbox_connect(s, err) != 0)
		return -1;
	if (getenv("DEBUG_RUNTIME") != NULL) {
		if (mark(s, command, err) != 0)
			return -1;
		await(&debug, lines);
		printf("%s\n", debug.first);
		return 0;
	}
	if (start(s, &first, err) != 0 || mark(s, command, err) != 0)
		return -1;
	await(&first, lines);
	hr_sandbox_stop_log_stream(s);
	hr_sandbox_stop_log_stream(s);
	printf("%d lines, the first %s\n", first.n, first.first);
	if (mark(s, command, err) != 0)
		return -1;
	printf("%d after it was stopped\n", first.n);
	/* from the beginning again; a second start ends the first */
	if (start(s, &first, err) != 0 || start(s, &second, err) != 0)
		return -1;
	await(&second, 2 * lines);
	printf("again\n");
	return 0;
}

int
main(int argc, char **argv)
{
	struct hr_sandbox_options o = {.sid = "streamer", .headless = true, .log = log_line};
	struct hr_err err = {0};
	struct hr_config *c;
	struct hr_sandbox *s = NULL;
	int r = -1;

	if (argc != 6)
		return 2;
	word = argv[4];
	lines = (int)strtol(argv[5], NULL, 10);
	o.environ = (const char *const *)environ;
	o.state_dir = argv[2];
	c = hr_config_new(&err);
	if (c != NULL && hr_config_load(c, NULL, o.environ, NULL, NULL, &err) == 0 &&
	    hr_config_set(c, "core.runtime", argv[1], &err) == 0)
		s = hr_sandbox_open(c, &o, &err);
	if (s != NULL)
		r = follow(s, argv[3], &err);
	if (r != 0)
		fprintf(stderr, "%s\n", err.msg);
	/* while it follows: the end of the sandbox is the end of the thread */
	if (s != NULL && hr_sandbox_delete(s, &err) != 0)
		r = -1;
	hr_sandbox_free(s);
	hr_config_free(c);
	return r == 0 ? 0 : 1;
}
