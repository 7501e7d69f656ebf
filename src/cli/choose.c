/* The back-end of a new sandbox where no setting names one. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cli/cli.h"

#include "base/fd.h"
#include "host/config/settings.h"
#include "host/kind.h"
#include "host/records/record.h"

#define ENGINE "/var/run/docker.sock"

/* Returns 0 where a Docker Engine listens, or where the caller has named one: then its error is
 * what the caller must see. Returns the error, as in errno, where there is none or the account is
 * refused. Asks nothing, because an Engine that hangs would delay the choice. */
static int
no_engine(const struct cli *c)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = ENGINE};
	HR_CLOSE int fd = -1;

	if (hr_env_get(c->env, "DOCKER_HOST") != NULL)
		return 0;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return 0;
	return errno == ENOENT || errno == ECONNREFUSED || errno == EACCES ? errno : 0;
}

int
cli_choose_kind(struct cli *c, const char *name)
{
	HR_CLEAN(hr_record_done) struct hr_record recorded = {0};
	struct hr_err err = {0};
	const char *kind = "box";
	int why;

	if (c->config->runtime_set)
		return CLI_OK;
	if (name != NULL && hr_record_load(c->state_dir, name, &recorded, &err) < 0)
		return cli_fail(&err);
	if (recorded.runtime != NULL) {
		kind = recorded.runtime;
	} else if ((why = no_engine(c)) == 0) {
		kind = HR_KIND_DEFAULT;
	} else {
		/* -q does not hide it, as commands meet another isolation than the user may expect
		 */
		cli_say("No Docker Engine can be reached at " ENGINE " (%s), so the sandbox is a "
			"box (handrail-box(8)). Choose another back-end with -r or core.runtime.",
		    strerror(why));
	}
	return hr_config_put_text(c->config, "core.runtime", kind, &err) < 0 ? cli_fail(&err)
									     : CLI_OK;
}
