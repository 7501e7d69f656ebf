/* Lets calls ask the API server, which may take seconds, without the caller's shared lock, so that
 * only their own thread waits for the server. One call runs at a time, and has that lock again
 * before the next one starts: so callers act on their results in the order in which the store
 * changed. */
#include "config.h"

#include "fleet/kubernetes/store_int.h"

void
hr_kube_far_share(struct hr_store *base, pthread_mutex_t *lock)
{
	hr_kube_store_of(base)->shared = lock;
}

struct hr_kube_store *
hr_kube_far_begin(struct hr_store *base)
{
	struct hr_kube_store *s = hr_kube_store_of(base);

	if (s->shared != NULL)
		(void)pthread_mutex_unlock(s->shared);
	(void)pthread_mutex_lock(&s->calls);
	return s;
}

void
hr_kube_far_end(struct hr_kube_store **in)
{
	struct hr_kube_store *s = *in;

	if (s == NULL)
		return;
	/* no thread waits for `calls` while it holds the shared lock: this cannot deadlock */
	if (s->shared != NULL)
		(void)pthread_mutex_lock(s->shared);
	(void)pthread_mutex_unlock(&s->calls);
}
