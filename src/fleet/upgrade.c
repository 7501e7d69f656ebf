/* Replaces this process by the program that is now at its path, with the same arguments. */
#include "config.h"

#include "fleet/upgrade.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process/pid.h"
#include "base/process/spawn.h"
#include "fleet/helper.h"
#include "base/strv.h"

#define NGINX "nginx/"
#define HELPER "helper/"
#define ASK_MS 10000

static const char *const listener_names[HR_FLEET_LISTENERS] = {"listener", "console"};

/* Waits for the helpers, whose work is started again here, and must not run twice. */
static void
await_helpers(const struct hr_handover *h)
{
	const char *name;
	size_t at = 0;

	while ((name = hr_handover_next(h, &at, HELPER)) != NULL)
		(void)hr_spawn_end((pid_t)strtol(name + strlen(HELPER), NULL, 10), NULL);
}

int
hr_fleet_upgrade_begin(struct hr_fleet_upgrade *u, char *const *argv, struct hr_err *err)
{
	const char *notify = getenv("NOTIFY_SOCKET");

	memset(u, 0, sizeof(*u));
	u->argv = argv;
	/* read now, because another file may lie at that path later */
	if (hr_pid_link(u->program, sizeof(u->program), "/proc/self/exe") < 0)
		return hr_err_sys(err, errno, "/proc/self/exe");
	if (hr_handover_read(&u->handed, err) != 0 || hr_notify_open(&u->notify, notify, err) != 0)
		return -1;
	await_helpers(&u->handed);
	/* the socket is the service's own; sandboxes must not inherit it */
	if (notify != NULL && (u->notify_socket = strdup(notify)) == NULL)
		return hr_err_nomem(err);
	(void)unsetenv("NOTIFY_SOCKET");
	return 0;
}

pid_t
hr_fleet_upgrade_nginx(const struct hr_fleet_upgrade *u)
{
	size_t at = 0;
	const char *name = hr_handover_next(&u->handed, &at, NGINX);
	long pid = name != NULL ? strtol(name + strlen(NGINX), NULL, 10) : 0;

	return pid > 0 ? (pid_t)pid : -1;
}

int
hr_fleet_upgrade_ask(const struct hr_fleet_upgrade *u, struct hr_err *err)
{
	HR_CLEAN(hr_strv_done) struct hr_strv words = {0};
	char said[1024] = "", *end;
	int status;

	hr_strv_add(&words, u->program);
	hr_strv_add_all(&words, (const char *const *)u->argv + 1);
	hr_strv_add(&words, "--check");
	if (words.failed)
		return hr_err_nomem(err);
	status = hr_spawn_wait_for(hr_strv_list(&words), ASK_MS, said, sizeof(said), err);
	if (status <= 0)
		return status;
	end = strchr(said, '\n');
	if (end != NULL)
		*end = '\0';
	return hr_err_set(err, HR_E_INVAL, "%s (%s)", said, hr_exit_words(status));
}

void
hr_fleet_upgrade_listeners(struct hr_fleet_upgrade *u, int ret[HR_FLEET_LISTENERS])
{
	size_t i;

	for (i = 0; i < HR_FLEET_LISTENERS; i++)
		ret[i] = hr_handover_take(&u->handed, listener_names[i]);
}

struct helpers {
	struct hr_handover *handover;
	struct hr_err *err;
	int r;
};

static void
add_helper(void *arg, pid_t pid)
{
	struct helpers *all = arg;

	if (all->r == 0)
		all->r = hr_handover_add(all->handover, -1, all->err, HELPER "%ld", (long)pid);
}

int
hr_fleet_upgrade_go(struct hr_fleet_upgrade *u, int requests,
    const int listeners[HR_FLEET_LISTENERS], pid_t nginx, struct hr_err *err)
{
	struct hr_handover h = {NULL, 0};
	struct helpers helpers = {&h, err, 0};
	int r;
	size_t i;

	/* comes before any descriptor exists that a helper could inherit */
	hr_fleet_helper_hold(add_helper, &helpers);
	r = helpers.r;
	if (r == 0 && requests >= 0)
		r = hr_handover_add(&h, requests, err, "requests");
	for (i = 0; r == 0 && i < HR_FLEET_LISTENERS; i++)
		if (listeners[i] >= 0)
			r = hr_handover_add(&h, listeners[i], err, "%s", listener_names[i]);
	if (r == 0 && nginx > 0)
		r = hr_handover_add(&h, -1, err, NGINX "%ld", (long)nginx);
	if (r == 0 && u->notify_socket != NULL && setenv("NOTIFY_SOCKET", u->notify_socket, 1) != 0)
		r = hr_err_nomem(err);
	if (r == 0)
		r = hr_handover_show(&h, err);
	if (r == 0) {
		(void)execv(u->program, u->argv);
		(void)hr_err_sys(err, errno, "%s", u->program);
	}
	hr_handover_done(&h);
	return -1;
}
