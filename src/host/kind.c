/* Opens a back-end without a sandbox. */
#include "config.h"

#include "host/kind.h"

#include <stdio.h>
#include <string.h>

#include "host/backends.h"

static void
log_nothing(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

static void
begin_nothing(void *arg)
{
	(void)arg;
}

int
hr_kind_open(struct hr_kind *k, const char *name, const struct hr_config *c, const char *const *env,
    const char *state_dir, struct hr_err *err)
{
	static const char *const none[] = {NULL};
	bool named = name == NULL && c->runtime_named;

	memset(k, 0, sizeof(*k));
	k->module = (struct hr_module)HR_MODULE_NONE;
	if (name == NULL)
		name = hr_config_text(c, "core.runtime");
	k->config = hr_config_copy(c, err);
	if (k->config == NULL)
		return -1;
	k->host = (struct hr_backend_host){
	    .config = k->config,
	    .sid = "default",
	    .plugins = none,
	    .env = none,
	    .environ = env != NULL ? env : none,
	    .attach = true,
	    .state_dir = state_dir,
	    .log = log_nothing,
	    .status = log_nothing,
	    .begun = begin_nothing,
	    .config_text = hr_config_text,
	    .config_int = hr_config_int,
	    .config_bool = hr_config_bool,
	    .stop_fd = -1,
	};
	k->ops = hr_backend_find(name != NULL ? name : HR_KIND_DEFAULT, named, k->host.environ,
	    &k->module, NULL, NULL, err);
	k->host.ops = k->ops;
	if (k->ops != NULL && hr_config_own(k->config, k->ops->name, k->ops->options, err) == 0 &&
	    k->ops->open(&k->host, &k->self, err) == 0)
		return 0;
	hr_kind_close(k);
	return -1;
}

void
hr_kind_close(struct hr_kind *k)
{
	if (k->self != NULL)
		k->ops->free(k->self);
	if (k->config != NULL)
		hr_module_close(&k->module);
	hr_config_free(k->config);
	memset(k, 0, sizeof(*k));
}

int
hr_config_options(const struct hr_config *c, const char *const *env, hr_option_fn *fn, void *arg,
    struct hr_err *err)
{
	const struct hr_backend_option *o;
	char key[200];
	HR_CLEAN(hr_kind_close) struct hr_kind k = {0};

	if (hr_kind_open(&k, NULL, c, env, NULL, err) < 0)
		return -1;
	for (o = k.ops->options; o != NULL && o->key != NULL; o++) {
		(void)snprintf(key, sizeof(key), "%s.%s", k.ops->name, o->key);
		fn(arg, key, o->help != NULL ? o->help : "");
	}
	return 0;
}

/* Builds with the back-end, or else with the default one. */
int
hr_build_image(const struct hr_config *c, const struct hr_build_options *o, char **ret_name,
    struct hr_err *err)
{
	struct hr_kind k;
	int r;

	if (hr_kind_open(&k, NULL, c, o->environ, NULL, err) < 0)
		return -1;
	if (k.ops->build == NULL) {
		hr_kind_close(&k);
		if (hr_kind_open(&k, HR_KIND_DEFAULT, c, o->environ, NULL, err) < 0)
			return -1;
	}
	r = k.ops->build(k.self, o, ret_name, err);
	hr_kind_close(&k);
	return r;
}
