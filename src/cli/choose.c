/* The back-end of a new sandbox where no setting names one. */
#include "config.h"

#include "cli/cli.h"
#include "cli/progress.h"

#include "base/err.h"
#include "base/strv.h"
#include "host/config/settings.h"
#include "host/docker/engine.h"
#include "host/kind.h"
#include "host/records/record.h"

/* Returns true where a Docker Engine answers, or where the caller has named one: then its error is
 * what the caller must see. */
static bool
has_engine(const struct cli *c, struct hr_err *why)
{
	struct hr_engine e = {0};
	bool r;

	if (hr_env_get(c->env, "DOCKER_HOST") != NULL)
		return true;
	r = hr_engine_init(&e, c->env, why) == 0;
	hr_engine_done(&e);
	return r;
}

int
cli_choose_kind(struct cli *c, const char *name)
{
	HR_CLEAN(hr_record_done) struct hr_record recorded = {0};
	struct hr_err err = {0};
	const char *kind = "box";

	if (c->config->runtime_set)
		return CLI_OK;
	if (name != NULL && hr_record_load(c->state_dir, name, &recorded, &err) < 0)
		return cli_fail(&err);
	if (recorded.runtime != NULL) {
		kind = recorded.runtime;
	} else if (has_engine(c, &err)) {
		kind = HR_KIND_DEFAULT;
	} else {
		cli_note(c, "No Docker Engine answers, so the sandbox is a box (handrail-box(8)). "
			    "Choose another back-end with -r or core.runtime.");
	}
	return hr_config_put_text(c->config, "core.runtime", kind, &err) < 0 ? cli_fail(&err)
									     : CLI_OK;
}
