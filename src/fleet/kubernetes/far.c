/* Implements the table's calls that ask the API server, which may take seconds. Each releases the
 * caller's shared lock meanwhile, so that only its own thread waits for the server. One call runs
 * at a time, and has that lock again before the next one starts: so callers act on their results in
 * the order in which the store changed. */
#include "config.h"

#include "fleet/kubernetes/store_int.h"

void
hr_kube_far_share(struct hr_store *base, pthread_mutex_t *lock)
{
	hr_kube_store_of(base)->shared = lock;
}

static void
begin(struct hr_store *base)
{
	struct hr_kube_store *s = hr_kube_store_of(base);

	if (s->shared != NULL)
		(void)pthread_mutex_unlock(s->shared);
	(void)pthread_mutex_lock(&s->calls);
}

/* Leaves a call. No thread waits for `calls` while it holds the shared lock, so waiting for that
 * while holding `calls` cannot deadlock. */
static void
end(struct hr_store *base)
{
	struct hr_kube_store *s = hr_kube_store_of(base);

	if (s->shared != NULL)
		(void)pthread_mutex_lock(s->shared);
	(void)pthread_mutex_unlock(&s->calls);
}

int
hr_kube_far_key_make(
    struct hr_store *base, struct hr_fleet_key *k, char text[64], struct hr_err *err)
{
	int r;

	begin(base);
	r = hr_kube_store_key_make(base, k, text, err);
	end(base);
	return r;
}

int
hr_kube_far_key_revoke(struct hr_store *base, int64_t id, bool *ret_found, struct hr_err *err)
{
	int r;

	begin(base);
	r = hr_kube_store_key_revoke(base, id, ret_found, err);
	end(base);
	return r;
}

enum hr_fleet_result
hr_kube_far_reserve(struct hr_store *base, struct hr_fleet_row *row,
    const struct hr_fleet_limits *of_key, const struct hr_fleet_limits *of_all, hr_may_fn *may,
    void *arg, struct hr_err *err)
{
	struct hr_kube_store *s = hr_kube_store_of(base);
	enum hr_fleet_result r;

	begin(base);
	if (s->shared != NULL)
		(void)pthread_mutex_lock(s->shared);
	r = may(arg, err);
	if (s->shared != NULL)
		(void)pthread_mutex_unlock(s->shared);
	if (r == HR_FLEET_OK)
		r = hr_kube_store_reserve(base, row, of_key, of_all, err);
	end(base);
	return r;
}

/* Finds a row; known rows are found without the server. */
int
hr_kube_far_find(
    struct hr_store *base, const char *id, struct hr_fleet_row *ret, struct hr_err *err)
{
	int r = hr_kube_store_known(base, id, ret, err);

	if (r == 0) {
		begin(base);
		r = hr_kube_store_find(base, id, ret, err);
		end(base);
	}
	return r;
}

int
hr_kube_far_find_session(struct hr_store *base, int64_t key, const char *session, bool last,
    struct hr_fleet_row *ret, struct hr_err *err)
{
	int r;

	begin(base);
	r = hr_kube_store_find_session(base, key, session, last, ret, err);
	end(base);
	return r;
}

int
hr_kube_far_move(struct hr_store *base, const struct hr_fleet_row *row, enum hr_fleet_state from,
    enum hr_fleet_state to, const char *reason, unsigned how, bool *ret_moved, struct hr_err *err)
{
	int r;

	begin(base);
	r = hr_kube_store_move(base, row, from, to, reason, how, ret_moved, err);
	end(base);
	return r;
}

int
hr_kube_far_event(
    struct hr_store *base, const char *id, const char *what, const char *detail, struct hr_err *err)
{
	int r;

	begin(base);
	r = hr_kube_store_event(base, id, what, detail, err);
	end(base);
	return r;
}

int
hr_kube_far_note_get(struct hr_store *base, const char *name, char **ret_value, struct hr_err *err)
{
	int r;

	begin(base);
	r = hr_kube_store_note_get(base, name, ret_value, err);
	end(base);
	return r;
}

int
hr_kube_far_note_set(struct hr_store *base, const char *name, const char *value, struct hr_err *err)
{
	int r;

	begin(base);
	r = hr_kube_store_note_set(base, name, value, err);
	end(base);
	return r;
}

int
hr_kube_far_claim(
    struct hr_store *base, const struct hr_fleet_row *row, bool *ret_mine, struct hr_err *err)
{
	int r;

	begin(base);
	r = hr_kube_store_claim(base, row, ret_mine, err);
	end(base);
	return r;
}
