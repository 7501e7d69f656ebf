/* Hands nginx over in an upgrade in place. Invariant: each master of the previous image is a child
 * that continues, or an orphan. A master that continues keeps its connections: one that ends closes
 * idle connections, which cuts requests that are being sent. */
#include "config.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "supervisor/children/adopt.h"
#include "supervisor/edge/nginx.h"
#include "supervisor/edge/nginxconf.h"
#include "supervisor/run/context.h"

#define TEXT_MAX (1u << 18)
#define MAPS_MAX (1u << 20)
#define GONE " (deleted)" /* the kernel appends this to the name of a replaced file */

/* Returns a digest of everything that determines nginx's start; 0: unknown. */
static uint64_t
digest(const struct hr_site *s)
{
	const struct hr_settings *c = &s->ctx->settings;
	const char *words[] = {c->nginx, NULL, NULL};
	HR_BUF(text, TEXT_MAX);
	uint64_t d = 0;

	/* nginx has read the certificates at its start, and they may have changed */
	if (c->tls_certificate[0] != '\0')
		return 0;
	if (hr_nginx_compose(&text, "all", s, c, &s->keys, NULL) == 0 &&
	    hr_buf_check(&text, NULL) == 0) {
		words[1] = hr_buf_str(&text);
		d = hr_adopt_digest(words);
	}
	return d;
}

int
hr_nginx_hand_over(const struct hr_nginx *n, struct hr_handover *h, struct hr_err *err)
{
	unsigned i;

	for (i = 0; i < n->norphans; i++) {
		if (hr_handover_add(h, -1, err, "nginx/%ld", (long)n->orphans[i]) != 0)
			return -1;
	}
	if (n->svc.child.pid == 0)
		return 0;
	return hr_handover_add(h, n->svc.child.log_fd, err, "nginx-master/%ld/%" PRIx64,
	    (long)n->svc.child.pid, digest(n->site));
}

/* Returns true if nginx's program and libraries are still the files on disk. */
static bool
is_current(pid_t pid)
{
	char path[48], *line, *save = NULL, *at;
	HR_BUF(maps, MAPS_MAX);
	bool current = true;
	size_t len;

	(void)snprintf(path, sizeof(path), "/proc/%ld/maps", (long)pid);
	if (hr_path_read(path, &maps, NULL) != 0 || maps.len == 0)
		current = false;
	/* the format of a line is ADDRESSES r-xp OFFSET DEVICE INODE NAME */
	line = current ? strtok_r(maps.p, "\n", &save) : NULL;
	for (; line != NULL && current; line = strtok_r(NULL, "\n", &save)) {
		at = strchr(line, ' ');
		len = strlen(line);
		current = at == NULL || strlen(at) < 4 || at[3] != 'x' || len < sizeof(GONE) - 1 ||
			  strcmp(line + len - (sizeof(GONE) - 1), GONE) != 0;
	}
	return current;
}

/* Decides whether a master continues; its port must be the same, too. */
static bool
master_stays(struct hr_nginx *n, pid_t pid, uint64_t its, int log_fd)
{
	const struct hr_context *ctx = n->ctx;
	struct hr_site *s = n->site;
	struct hr_err err = {0};

	if (!ctx->relieves || s->listener < 0 || its == 0 || its != digest(s) || !is_current(pid))
		return false;
	if (hr_child_adopt(&n->svc.child, pid, log_fd, &err) < 0) {
		hr_log(HR_LOG_WARNING, "%s", err.msg);
		return false;
	}
	hr_service_move(&n->svc, HR_SERVICE_READY);
	atomic_store(&ctx->board->nginx_pid, pid);
	hr_log(HR_LOG_INFO, "nginx continues (process %ld)", (long)pid);
	return true;
}

void
hr_nginx_succeed(struct hr_nginx *n, struct hr_handover *h)
{
	const char *name;
	size_t at = 0;
	char *end;
	long pid;
	int fd;

	while ((name = hr_handover_next(h, &at, "nginx/")) != NULL) {
		pid = strtol(strchr(name, '/') + 1, NULL, 10);
		if (pid > 1 && kill((pid_t)-pid, 0) == 0)
			hr_nginx_orphan(n, (pid_t)pid);
	}
	at = 0;
	name = hr_handover_next(h, &at, "nginx-master/");
	if (name == NULL)
		return;
	pid = strtol(strchr(name, '/') + 1, &end, 10);
	fd = hr_handover_take(h, name);
	if (pid > 1 && *end == '/' && master_stays(n, (pid_t)pid, strtoull(end + 1, NULL, 16), fd))
		return;
	hr_fd_close(&fd);
	/* if a new one will be started, the old one serves until then */
	if (pid > 1 && kill((pid_t)-pid, n->ctx->settings.start_nginx ? 0 : SIGQUIT) == 0)
		hr_nginx_orphan(n, (pid_t)pid);
}
