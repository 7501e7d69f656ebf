/* Stores rows in hash chains by id, under one lock. Versions of objects are growing numbers: news
 * older than an answer that this process received are ignored. */
#include "config.h"

#include "fleet/kubernetes/cache.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/clock.h"
#include "base/hash.h"
#include "proto/json.h"

#define CHAINS 4096

struct entry {
	struct entry *next;
	struct hr_fleet_row row;
	struct hr_cached known;
	uint64_t version;
	unsigned seen; /* number of the last list that had the entry */
	int64_t used;  /* last use known to this process; perhaps not yet stored */
	bool held;
};

struct key {
	struct key *next;
	struct hr_fleet_key key;
	unsigned char sum[HR_FLEET_KEY_SUM];
	uint64_t version;
	unsigned seen; /* as of an entry */
};

struct hr_cache {
	pthread_mutex_t lock;
	struct entry *chains[CHAINS];
	size_t n;
	struct key *keys;
	unsigned lists;
};

struct hr_cache *
hr_cache_new(struct hr_err *err)
{
	struct hr_cache *c = calloc(1, sizeof(*c));

	if (c == NULL)
		(void)hr_err_nomem(err);
	else
		(void)pthread_mutex_init(&c->lock, NULL);
	return c;
}

static void
free_entry(struct entry *e)
{
	hr_fleet_row_done(&e->row);
	free(e);
}

void
hr_cache_free(struct hr_cache *c)
{
	struct entry *e;
	struct key *k;
	int i;

	if (c == NULL)
		return;
	for (i = 0; i < CHAINS; i++)
		while ((e = c->chains[i]) != NULL) {
			c->chains[i] = e->next;
			free_entry(e);
		}
	while ((k = c->keys) != NULL) {
		c->keys = k->next;
		free(k);
	}
	(void)pthread_mutex_destroy(&c->lock);
	free(c);
}

/* Returns the link to the entry, or to its place in the chain. */
static struct entry **
place(struct hr_cache *c, const char *id)
{
	struct entry **at = &c->chains[hr_hash(HR_HASH, id, strlen(id)) % CHAINS];

	while (*at != NULL && strcmp((*at)->row.id, id) != 0)
		at = &(*at)->next;
	return at;
}

static int
put_row(struct hr_cache *c, struct json_object *o, struct hr_fleet_row *row, uint64_t version)
{
	struct entry **at = place(c, row->id), *e = *at;

	if (e != NULL) {
		e->seen = c->lists;
		if (e->version >= version)
			return 0;
	} else {
		e = calloc(1, sizeof(*e));
		if (e == NULL)
			return -1;
		*at = e;
		c->n++;
		e->seen = c->lists;
	}
	hr_fleet_row_done(&e->row);
	e->row = *row;
	row->request = NULL; /* the entry owns it now */
	e->version = version;
	e->known.since_ms = hr_now_ms();
	(void)snprintf(e->known.version, sizeof(e->known.version), "%s", hr_object_version(o));
	(void)snprintf(e->known.owner, sizeof(e->known.owner), "%s", hr_object_owner(o));
	return 1;
}

static int
put_key(
    struct hr_cache *c, const struct hr_fleet_key *key, const unsigned char *sum, uint64_t version)
{
	struct key *k = c->keys;

	while (k != NULL && k->key.id != key->id)
		k = k->next;
	if (k == NULL) {
		k = calloc(1, sizeof(*k));
		if (k == NULL)
			return -1;
		k->next = c->keys;
		c->keys = k;
	}
	k->seen = c->lists;
	if (k->version < version) {
		k->key = *key;
		memcpy(k->sum, sum, HR_FLEET_KEY_SUM);
		k->version = version;
	}
	return 0;
}

int
hr_cache_put(
    struct hr_cache *c, struct json_object *o, char ret_id[HR_FLEET_ID], struct hr_err *err)
{
	uint64_t version = strtoull(hr_object_version(o), NULL, 10);
	bool is_row = strcmp(hr_object_kind(o), "row") == 0;
	unsigned char sum[HR_FLEET_KEY_SUM];
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	struct hr_fleet_key key;
	HR_PUT struct json_object *data = NULL;
	int r = 0;

	if (!is_row && strcmp(hr_object_kind(o), "key") != 0)
		return 0;
	data = hr_object_data(o);
	r = is_row ? hr_object_read_row(data, &row) : hr_object_read_key(data, &key, sum);
	if (r > 0) {
		(void)pthread_mutex_lock(&c->lock);
		if (is_row && ret_id != NULL)
			(void)snprintf(ret_id, HR_FLEET_ID, "%s", row.id);
		r = is_row ? put_row(c, o, &row, version) : put_key(c, &key, sum, version);
		(void)pthread_mutex_unlock(&c->lock);
	}
	return r < 0 ? hr_err_nomem(err) : r;
}

static void
drop(struct hr_cache *c, struct entry **at)
{
	struct entry *e = *at;

	*at = e->next;
	c->n--;
	free_entry(e);
}

void
hr_cache_drop(struct hr_cache *c, const char *id)
{
	struct entry **at;

	(void)pthread_mutex_lock(&c->lock);
	at = place(c, id);
	if (*at != NULL)
		drop(c, at);
	(void)pthread_mutex_unlock(&c->lock);
}

/* Removes a key, or with id 0 all that the last list did not have. Called with the lock. */
static void
drop_keys(struct hr_cache *c, int64_t id)
{
	struct key **at = &c->keys, *k;

	while ((k = *at) != NULL) {
		if (id != 0 ? k->key.id != id : k->seen == c->lists) {
			at = &k->next;
			continue;
		}
		*at = k->next;
		free(k);
	}
}

void
hr_cache_drop_key(struct hr_cache *c, int64_t id)
{
	(void)pthread_mutex_lock(&c->lock);
	drop_keys(c, id);
	(void)pthread_mutex_unlock(&c->lock);
}

void
hr_cache_list(struct hr_cache *c)
{
	(void)pthread_mutex_lock(&c->lock);
	c->lists++;
	(void)pthread_mutex_unlock(&c->lock);
}

void
hr_cache_listed(struct hr_cache *c, void (*fn)(void *arg, const char *id), void *arg)
{
	char id[HR_FLEET_ID];
	struct entry **at;
	bool found = true;

	(void)pthread_mutex_lock(&c->lock);
	drop_keys(c, 0);
	(void)pthread_mutex_unlock(&c->lock);
	while (found) {
		int i;

		found = false;
		(void)pthread_mutex_lock(&c->lock);
		for (i = 0; i < CHAINS && !found; i++)
			for (at = &c->chains[i]; *at != NULL && !found;
			     at = found ? at : &(*at)->next)
				if ((*at)->seen != c->lists) {
					found = true;
					memcpy(id, (*at)->row.id, sizeof(id));
					drop(c, at);
					break;
				}
		(void)pthread_mutex_unlock(&c->lock);
		if (found && fn != NULL)
			fn(arg, id);
	}
}

/* ---- asking ---- */

static int
copy_row(struct hr_fleet_row *to, const struct hr_fleet_row *from, struct hr_err *err)
{
	*to = *from;
	to->request = strdup(from->request);
	return to->request != NULL ? 1 : hr_err_nomem(err);
}

int
hr_cache_find(struct hr_cache *c, const char *id, struct hr_fleet_row *ret, struct hr_cached *known,
    struct hr_err *err)
{
	struct entry *e;
	int r = 0;

	(void)pthread_mutex_lock(&c->lock);
	e = *place(c, id);
	if (e != NULL) {
		r = copy_row(ret, &e->row, err);
		if (known != NULL) {
			*known = e->known;
			known->used = e->used;
			known->held = e->held;
		}
	}
	(void)pthread_mutex_unlock(&c->lock);
	return r;
}

void
hr_cache_use(struct hr_cache *c, const char *id, int64_t when)
{
	struct entry *e;

	(void)pthread_mutex_lock(&c->lock);
	e = *place(c, id);
	if (e != NULL && e->used < when)
		e->used = when;
	(void)pthread_mutex_unlock(&c->lock);
}

void
hr_cache_hold(struct hr_cache *c, const char *id, bool on)
{
	struct entry *e;

	(void)pthread_mutex_lock(&c->lock);
	e = *place(c, id);
	if (e != NULL)
		e->held = on;
	(void)pthread_mutex_unlock(&c->lock);
}

static int
older(const void *a, const void *b)
{
	const struct hr_fleet_row *x = &(*(struct entry *const *)a)->row,
				  *y = &(*(struct entry *const *)b)->row;

	return x->created != y->created ? (x->created > y->created) - (x->created < y->created)
					: strcmp(x->id, y->id);
}

int
hr_cache_each(struct hr_cache *c, hr_cache_fn *fn, void *arg, struct hr_err *err)
{
	HR_FREE struct entry **all = NULL;
	size_t n = 0;

	(void)pthread_mutex_lock(&c->lock);
	all = calloc(c->n + 1, sizeof(*all)); /* adds one, since n may be 0 */
	if (all != NULL) {
		struct entry *e;
		size_t i;

		for (i = 0; i < CHAINS; i++)
			for (e = c->chains[i]; e != NULL; e = e->next)
				all[n++] = e;
		qsort(all, n, sizeof(struct entry *), older);
		for (i = 0; i < n; i++) {
			struct hr_fleet_row row = all[i]->row; /* the request is borrowed */

			if (row.active < all[i]->used)
				row.active = all[i]->used;
			if (fn(arg, &row) != 0)
				break;
		}
	}
	(void)pthread_mutex_unlock(&c->lock);
	return all != NULL ? 0 : hr_err_nomem(err);
}

int
hr_cache_key(
    struct hr_cache *c, const unsigned char sum[HR_FLEET_KEY_SUM], struct hr_fleet_key *ret)
{
	int found = 0;
	struct key *k;

	(void)pthread_mutex_lock(&c->lock);
	for (k = c->keys; k != NULL; k = k->next)
		if (hr_fleet_key_good(&k->key, k->sum, sum)) {
			*ret = k->key;
			found = 1;
		}
	(void)pthread_mutex_unlock(&c->lock);
	return found;
}

void
hr_cache_keys(struct hr_cache *c, hr_key_fn *fn, void *arg)
{
	struct key *k;

	(void)pthread_mutex_lock(&c->lock);
	for (k = c->keys; k != NULL; k = k->next)
		fn(arg, &k->key);
	(void)pthread_mutex_unlock(&c->lock);
}

int
hr_cache_key_of(
    struct hr_cache *c, int64_t id, struct hr_fleet_key *ret, unsigned char sum[HR_FLEET_KEY_SUM])
{
	int found = 0;
	struct key *k;

	(void)pthread_mutex_lock(&c->lock);
	for (k = c->keys; k != NULL && !found; k = k->next)
		if (k->key.id == id) {
			*ret = k->key;
			memcpy(sum, k->sum, HR_FLEET_KEY_SUM);
			found = 1;
		}
	(void)pthread_mutex_unlock(&c->lock);
	return found;
}
