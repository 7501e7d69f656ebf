/* hr_cache: holds this process's latest copy of the API server's rows and keys. Thread-safe;
 * returns copies. */
#ifndef HR_FLEET_KUBERNETES_CACHE_H
#define HR_FLEET_KUBERNETES_CACHE_H

#include "fleet/kubernetes/objects.h"

struct hr_cache;

struct hr_cache *hr_cache_new(struct hr_err *err);
void hr_cache_free(struct hr_cache *c); /* Frees c, which may be NULL. */

/* Stores one of handrail's objects, unless a newer version is known. Returns 1 if that changed a
 * row, whose id is in *ret_id (ret_id may be NULL); 0 if not; -1 without memory. */
int hr_cache_put(
    struct hr_cache *c, struct json_object *o, char ret_id[HR_FLEET_ID], struct hr_err *err);
void hr_cache_drop(struct hr_cache *c, const char *id);
void hr_cache_drop_key(struct hr_cache *c, int64_t id); /* Removes a key; id > 0. */
/* Starts a list; hr_cache_listed() removes the keys and rows that were not put since, and calls fn
 * for each row. */
void hr_cache_list(struct hr_cache *c);
void hr_cache_listed(struct hr_cache *c, void (*fn)(void *arg, const char *id), void *arg);

/* The state of a row as this process knows it. */
struct hr_cached {
	char version[HR_OBJECT_VERSION], owner[40];
	/* time on this machine's clock since which the row is unchanged at least */
	int64_t since_ms;
	int64_t used; /* see hr_cache_use() */
	bool held;    /* see hr_cache_hold() */
};
/* Records a use at `when`, unless a later one is known; it may not be stored yet. */
void hr_cache_use(struct hr_cache *c, const char *id, int64_t when);
/* Makes hr_cache_find() report a row as held, or not any more: a change is under way that depends
 * on its last use. */
void hr_cache_hold(struct hr_cache *c, const char *id, bool on);
/* Returns 1, 0, or -1. known may be NULL. */
int hr_cache_find(struct hr_cache *c, const char *id, struct hr_fleet_row *ret,
    struct hr_cached *known, struct hr_err *err);
/* Calls fn for each row, oldest first, until fn returns non-zero. fn must not call the cache. */
typedef int hr_cache_fn(void *arg, const struct hr_fleet_row *r);
int hr_cache_each(struct hr_cache *c, hr_cache_fn *fn, void *arg, struct hr_err *err);

/* Returns 1 with the valid key that has this sum, or 0. */
int hr_cache_key(
    struct hr_cache *c, const unsigned char sum[HR_FLEET_KEY_SUM], struct hr_fleet_key *ret);
void hr_cache_keys(struct hr_cache *c, hr_key_fn *fn, void *arg);
/* Returns 1 with the key and its sum, or 0. */
int hr_cache_key_of(
    struct hr_cache *c, int64_t id, struct hr_fleet_key *ret, unsigned char sum[HR_FLEET_KEY_SUM]);

#endif
