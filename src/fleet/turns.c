/* Gives turns and limits per key, so that one key cannot use up what all keys share. */
#include "config.h"

#include "fleet/fleet_int.h"

/* maximum per key: each waiter has a thread, and a key has fewer threads */
#define TURNS_MOST 32
#define TURNS_OPEN 3 /* the same for requests without a key */

static unsigned
count(const struct hr_fleet_place *p, int64_t key, bool its)
{
	unsigned n = 0;

	for (; p != NULL; p = p->next)
		n += (p->key == key) == its;
	return n;
}

static void
add(struct hr_fleet_place **list, struct hr_fleet_place *p, int64_t key)
{
	*p = (struct hr_fleet_place){*list, key};
	*list = p;
}

static void
drop(struct hr_fleet_place **list, const struct hr_fleet_place *p)
{
	while (*list != p)
		list = &(*list)->next;
	*list = p->next;
}

bool
hr_fleet_place_take(struct hr_fleet *f, struct hr_fleet_place *p, int64_t key)
{
	unsigned most = f->set.waiting, others = count(f->waiters, key, false);

	if (f->waiting >= most || count(f->waiters, key, true) >= (most - others + 1) / 2)
		return false;
	f->waiting++;
	add(&f->waiters, p, key);
	return true;
}

void
hr_fleet_place_give(struct hr_fleet *f, struct hr_fleet_place *p)
{
	f->waiting--;
	drop(&f->waiters, p);
}

/* Returns true if another place of its key is before it. */
static bool
is_behind(const struct hr_fleet_place *p)
{
	return count(p->next, p->key, true) > 0;
}

bool
hr_fleet_turn_take(struct hr_fleet *f, struct hr_fleet_place *p, int64_t key)
{
	bool may;

	(void)pthread_mutex_lock(&f->lock);
	may = count(f->turns, key, true) < (key == HR_FLEET_NO_KEY ? TURNS_OPEN : TURNS_MOST);
	if (may)
		add(&f->turns, p, key);
	while (may && is_behind(p))
		(void)pthread_cond_wait(&f->turned, &f->lock);
	(void)pthread_mutex_unlock(&f->lock);
	return may;
}

void
hr_fleet_turn_give(struct hr_fleet *f, struct hr_fleet_place *p)
{
	(void)pthread_mutex_lock(&f->lock);
	drop(&f->turns, p);
	(void)pthread_cond_broadcast(&f->turned);
	(void)pthread_mutex_unlock(&f->lock);
}
