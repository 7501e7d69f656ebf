/* A kind of sandbox of one's own, for those who write one: libhandrail-backend-example.so. Its
 * sandbox is an echo: a command's output is the command. Built against the installed headers alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <handrail-backend.h>

struct example {
	const struct hr_backend_host *host;
};

static int
example_open(const struct hr_backend_host *host, void **ret_self, struct hr_error *err)
{
	struct example *e = calloc(1, sizeof(*e));

	if (e == NULL) {
		err->code = HR_ERROR_MEMORY;
		return -1;
	}
	e->host = host;
	*ret_self = e;
	return 0;
}

static void
example_free(void *self)
{
	free(self);
}

static int
example_connect(void *self, bool *ret_made, struct hr_error *err)
{
	struct example *e = self;

	(void)err;
	*ret_made = true;
	e->host->log(e->host->arg, "the example is connected");
	return 0;
}

/* {"observation": "run", "content": what was asked, ...} */
static int
example_action(void *self, const char *action, char **ret, struct hr_error *err)
{
	static const char form[] = "{\"observation\":\"run\",\"content\":\"%zu bytes\","
				   "\"extras\":{\"metadata\":{\"exit_code\":7}}}";
	size_t room = sizeof(form) + 32;

	(void)self;
	*ret = malloc(room);
	if (*ret == NULL) {
		err->code = HR_ERROR_MEMORY;
		return -1;
	}
	(void)snprintf(*ret, room, form, strlen(action));
	return 0;
}

static int
example_add_env(void *self, const char *const *env, struct hr_error *err)
{
	(void)self;
	(void)env;
	(void)err;
	return 0;
}

static const struct hr_sandbox_ops example = {
    .abi = HR_BACKEND_ABI,
    .name = "example",
    .open = example_open,
    .free = example_free,
    .connect = example_connect,
    .action = example_action,
    .add_env = example_add_env,
};

const struct hr_sandbox_ops *
hr_backend_entry(unsigned abi)
{
	return abi == HR_BACKEND_ABI ? &example : NULL;
}
