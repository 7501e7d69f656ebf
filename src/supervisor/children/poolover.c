/* Hands pools over in an upgrade in place. Invariant: a worker that is handed over keeps its slot
 * on the scoreboard. */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "supervisor/children/pool_int.h"
#include "supervisor/run/context.h"
#include "base/process/handover.h"

void
hr_pool_socket_name(const struct hr_pool *p, char ret[64])
{
	(void)snprintf(ret, 64, "fcgi/%s.sock", p->name);
}

int
hr_pool_hand_over(const struct hr_pool *p, struct hr_handover *h, struct hr_err *err)
{
	const struct hr_pool_worker *w;
	char file[64];

	hr_pool_socket_name(p, file);
	if (hr_handover_add(h, p->listener, err, "%s", file) != 0)
		return -1;
	LIST_FOREACH(w, &p->workers, entry)
	{
		long pid = (long)w->child.pid;

		if (hr_handover_add(
			h, w->channel.fd, err, "worker/%s/%d/%ld", p->name, w->slot, pid) != 0 ||
		    hr_handover_add(h, w->child.log_fd, err, "log/%ld", pid) != 0)
			return -1;
	}
	return 0;
}

/* Adopts a worker: the open channel keeps it at work, and its messages are answered. It does not
 * count when the pool is filled. */
static int
worker_adopt(struct hr_pool_worker *w, pid_t pid, const char *name, struct hr_err *err)
{
	struct hr_context *ctx = w->pool->ctx;
	struct hr_handover *h = &ctx->handed;
	char log[32];
	int channel, fd;

	if (w->pool->all->slot_used[w->slot] ||
	    atomic_load(&ctx->board->slots[w->slot].pid) != (int32_t)pid)
		return hr_err_set(err, HR_E_PROTO, "%s: not on the scoreboard", name);
	(void)snprintf(log, sizeof(log), "log/%ld", (long)pid);
	fd = hr_handover_take(h, log);
	if (hr_child_adopt(&w->child, pid, fd, err) < 0) {
		hr_fd_close(&fd);
		return -1;
	}
	w->pool->all->slot_used[w->slot] = true;
	w->retiring = true;
	LIST_INSERT_HEAD(&w->pool->workers, w, entry);
	channel = hr_handover_take(h, name);
	if (channel >= 0 && hr_channel_adopt(&w->channel, ctx->loop, channel, err) < 0) {
		hr_log(HR_LOG_ERROR, "%s: %s", w->child.name, err->msg);
		hr_fd_close(&channel); /* the worker ends after its request */
	}
	return 0;
}

/* Adopts the previous image's workers. One with inconsistent data sees the end of its channel. */
void
hr_pool_adopt(struct hr_pool *p)
{
	const struct hr_handover *h = &p->ctx->handed;
	struct hr_err err = {0};
	struct hr_pool_worker *w;
	char prefix[64], *end;
	const char *name;
	size_t at = 0;
	long slot, pid;

	(void)snprintf(prefix, sizeof(prefix), "worker/%s/", p->name);
	while ((name = hr_handover_next(h, &at, prefix)) != NULL) {
		slot = strtol(name + strlen(prefix), &end, 10);
		pid = *end == '/' ? strtol(end + 1, &end, 10) : 0;
		if (*end != '\0' || slot < 0 || slot >= HR_SCOREBOARD_SLOTS || pid <= 1)
			continue;
		w = hr_pool_new_worker(p, (int)slot);
		if (w != NULL && worker_adopt(w, (pid_t)pid, name, &err) == 0)
			continue;
		hr_log(HR_LOG_WARNING, "a worker of the previous handraild ends: %s",
		    w != NULL ? err.msg : "out of memory");
		free(w);
	}
	hr_pool_publish(p);
}
