/* Stores times of last use in a thread: a routed request records its use without waiting for the
 * API server. */
#include "config.h"

#include "fleet/kubernetes/store_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/log.h"
#include "host/client/rest.h"
#include "host/common/proc.h"

#define AGAIN_MS 2000

void
hr_kube_uses_init(struct hr_kube_uses *u)
{
	(void)pthread_mutex_init(&u->lock, NULL);
	(void)pthread_cond_init(&u->more, NULL);
}

void
hr_kube_uses_done(struct hr_kube_uses *u)
{
	free(u->v);
	(void)pthread_cond_destroy(&u->more);
	(void)pthread_mutex_destroy(&u->lock);
}

int
hr_kube_store_active(struct hr_store *base, const char *id, int64_t when, struct hr_err *err)
{
	struct hr_kube_store *s = hr_kube_store_of(base);
	struct hr_kube_uses *u = &s->uses;
	size_t i = 0;
	int r = 0;

	(void)pthread_mutex_lock(&u->lock);
	while (i < u->n && strcmp(u->v[i].id, id) != 0)
		i++;
	if (i == u->n && (r = hr_grow(&u->v, u->n, &u->room, sizeof(*u->v))) == 0) {
		u->v[u->n].when = 0;
		(void)snprintf(u->v[u->n++].id, HR_FLEET_ID, "%s", id);
	}
	if (r == 0 && u->v[i].when < when)
		u->v[i].when = when;
	(void)pthread_cond_signal(&u->more);
	(void)pthread_mutex_unlock(&u->lock);
	if (r == 0)
		hr_cache_use(s->cache, id, when);
	return r == 0 ? 0 : hr_err_nomem(err);
}

static void *
write_thread(void *arg)
{
	struct hr_kube_store *s = arg;
	struct hr_kube_uses *u = &s->uses;
	struct hr_kube_use use;
	struct hr_err err;

	for (;;) {
		(void)pthread_mutex_lock(&u->lock);
		while (u->n == 0)
			(void)pthread_cond_wait(&u->more, &u->lock);
		use = u->v[0];
		u->v[0] = u->v[--u->n];
		(void)pthread_mutex_unlock(&u->lock);
		err = (struct hr_err){0};
		if (hr_kube_store_write_use(s->writer, use.id, use.when, &err) == 0)
			continue;
		hr_log(HR_LOG_WARNING, "sandbox %s: its use cannot be written down: %.400s", use.id,
		    err.msg);
		(void)hr_kube_store_active(&s->base, use.id, use.when, NULL);
		(void)hr_rest_wait(-1, AGAIN_MS);
	}
	return NULL;
}

int
hr_kube_store_write_uses(struct hr_kube_store *s, struct hr_err *err)
{
	struct hr_kube_store *w = s->writer;

	w->cache = s->cache;
	w->making_ms = s->making_ms;
	memcpy(w->ns, s->ns, sizeof(w->ns));
	memcpy(w->me, s->me, sizeof(w->me));
	return hr_thread_detached(write_thread, s, err);
}
