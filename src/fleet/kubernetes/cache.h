/* hr_cache: the rows and keys of the API server as this process last heard of them. Several threads
 * may use it. What is given is a copy. */
#ifndef HR_FLEET_KUBERNETES_CACHE_H
#define HR_FLEET_KUBERNETES_CACHE_H

#include "fleet/kubernetes/objects.h"

struct hr_cache;

struct hr_cache *hr_cache_new(struct hr_err *err);
void hr_cache_free(struct hr_cache *c); /* NULL: nothing */

/* An object of ours; what is older than what is known is left out. 1: *ret_id (may be NULL) is a
 * row that has changed by it; 0: none has; -1: no memory. */
int hr_cache_put(
    struct hr_cache *c, struct json_object *o, char ret_id[HR_FLEET_ID], struct hr_err *err);
void hr_cache_drop(struct hr_cache *c, const char *id);
/* Between a list's beginning and its end: rows that were not put meanwhile are gone. fn is told of
 * them. */
void hr_cache_list(struct hr_cache *c);
void hr_cache_listed(struct hr_cache *c, void (*fn)(void *arg, const char *id), void *arg);

/* How this process knows a row. */
struct hr_cached {
	char version[HR_OBJECT_VERSION], owner[40];
	int64_t since_ms; /* by our clock: it has been as it is at least since then */
	int64_t used;     /* see hr_cache_use() */
};
/* It was used then, if it was not later, though that may not be written down yet. */
void hr_cache_use(struct hr_cache *c, const char *id, int64_t when);
/* 1, 0, -1. known may be NULL. */
int hr_cache_find(struct hr_cache *c, const char *id, struct hr_fleet_row *ret,
    struct hr_cached *known, struct hr_err *err);
/* Oldest first. fn non-zero: enough. fn calls nothing of the cache. */
typedef int hr_cache_fn(void *arg, const struct hr_fleet_row *r);
int hr_cache_each(struct hr_cache *c, hr_cache_fn *fn, void *arg, struct hr_err *err);

/* 1: the good key that has this sum. */
int hr_cache_key(
    struct hr_cache *c, const unsigned char sum[HR_FLEET_KEY_SUM], struct hr_fleet_key *ret);
void hr_cache_keys(struct hr_cache *c, hr_key_fn *fn, void *arg);
/* 1 and its sum; 0. */
int hr_cache_key_of(
    struct hr_cache *c, int64_t id, struct hr_fleet_key *ret, unsigned char sum[HR_FLEET_KEY_SUM]);

#endif
