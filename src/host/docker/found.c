/* Finds handrail's containers without a record by their label, or waits for them. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <json-c/json.h>

#include "base/err.h"
#include "base/text/text.h"
#include "host/common/owner.h"
#include "host/common/statedir.h"
#include "host/docker/docker_int.h"
#include "host/records/record.h"
#include "proto/json.h"

#define LIST_MAX (64u << 20)
#define ALL                                                                                        \
	"/containers/json?all=true&filters=%7B%22label%22%3A%5B%22" HR_CONTAINER_LABEL "%22%5D%7D"
#define CREATED                                                                                    \
	"%7B%22type%22%3A%5B%22container%22%5D%2C%22event%22%3A%5B%22create%22%5D%2C%22container%" \
	"22%3A%5B%22"
#define LATE_S 10    /* seconds to wait; an Engine creates faster, even under load */
#define SILENCE_S 70 /* seconds for an Engine that does not end its answer in time */

/* ---- labels ---- */

/* Identifies the directory itself, not its name, since several users and machines of one name may
 * share an Engine. *ret is NULL if it does not exist. */
static int
name_owner(const char *dir, char **ret, struct hr_err *err)
{
	char who[HR_OWNER];
	struct statx st;

	*ret = NULL;
	if (statx(AT_FDCWD, dir, 0, STATX_INO | STATX_BTIME, &st) != 0)
		return errno == ENOENT ? 0 : hr_err_sys(err, errno, "%s", dir);
	if ((st.stx_mask & STATX_BTIME) == 0)
		memset(&st.stx_btime, 0, sizeof(st.stx_btime));
	hr_owner(who);
	if (asprintf(ret, "%s-%llx-%llx.%x", who, (unsigned long long)st.stx_ino,
		(unsigned long long)st.stx_btime.tv_sec, st.stx_btime.tv_nsec) >= 0)
		return 0;
	*ret = NULL;
	return hr_err_nomem(err);
}

int
hr_docker_owner(const struct hr_backend_host *h, char **ret, struct hr_err *err)
{
	char who[HR_OWNER];

	*ret = NULL;
	if (h->state_dir == NULL) {
		hr_owner(who);
		return hr_text_set(ret, who, err);
	}
	return hr_state_directory(h->state_dir, true, err) == 0 ? name_owner(h->state_dir, ret, err)
								: -1;
}

bool
hr_docker_is_users(const char *label)
{
	char who[HR_OWNER];
	size_t n;

	hr_owner(who);
	n = strlen(who);
	return label != NULL && strncmp(label, who, n) == 0 &&
	       (label[n] == '-' || label[n] == '\0');
}

/* The label values of this directory, and of the pool's below it; NULL: none. */
struct owners {
	char *v[2];
};

static int
name_owners(const struct hr_docker *d, struct owners *ret, struct hr_err *err)
{
	HR_FREE char *pool = NULL;

	*ret = (struct owners){{NULL, NULL}};
	if (d->h->state_dir == NULL)
		return 0;
	if (asprintf(&pool, "%s" HR_POOL_BELOW, d->h->state_dir) < 0)
		return hr_err_nomem(err);
	return name_owner(d->h->state_dir, &ret->v[0], err) == 0 ? name_owner(pool, &ret->v[1], err)
								 : -1;
}

static void
owners_done(struct owners *o)
{
	free(o->v[0]);
	free(o->v[1]);
}

static bool
is_ours(const struct owners *o, const char *label)
{
	return (o->v[0] != NULL && strcmp(o->v[0], label) == 0) ||
	       (o->v[1] != NULL && strcmp(o->v[1], label) == 0);
}

/* ---- all of them ---- */

static int
add_found(struct json_object *list, struct json_object *o, const struct owners *owners,
    struct hr_err *err)
{
	const char *name = hr_json_text(hr_json_entry(hr_json_at(o, "Names"), 0));
	const char *id = hr_docker_id(o, "Id");
	bool ours =
	    is_ours(owners, hr_json_text_or(hr_json_at(o, "Labels"), HR_CONTAINER_LABEL, ""));
	static const char prefix[] = "/" HR_CONTAINER_PREFIX;
	struct json_object *it;

	/* a user has renamed the container, or this is no answer of an Engine */
	if (name == NULL || *id == '\0' || strncmp(name, prefix, sizeof(prefix) - 1) != 0 ||
	    !hr_sid_valid(name + sizeof(prefix) - 1))
		return 0;
	it = hr_json_object(err, "id", json_object_new_string(id), "sid",
	    json_object_new_string(name + sizeof(prefix) - 1), "run", json_object_new_string(""),
	    "state", json_object_new_string(hr_json_text_or(o, "State", "unknown")), "ours",
	    json_object_new_boolean(ours), NULL);
	return hr_json_append(list, it, err);
}

static int
find_all(struct hr_docker *d, struct json_object *list, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	struct hr_err why = {0};
	HR_CLEAN(owners_done) struct owners owners = {0};
	size_t i;

	if (hr_docker_engine(d, &why) < 0) {
		/* no Engine is expected unless one is configured */
		if (why.code == HR_E_UNAVAILABLE && !d->h->config->runtime_named)
			return 0;
		return hr_err_pass(err, &why);
	}
	if (name_owners(d, &owners, err) != 0 ||
	    hr_engine_call(&d->engine, "GET", ALL, NULL, &o, err) != 0)
		return -1;
	if (!json_object_is_type(o, json_type_array))
		return hr_err_set(
		    err, HR_E_RUNTIME, "the Engine's answer is not a list of containers");
	for (i = 0; i < hr_json_count(o); i++)
		if (add_found(list, hr_json_entry(o, i), &owners, err) != 0)
			return -1;
	return 0;
}

int
hr_docker_found(void *self, char **ret_json, struct hr_err *err)
{
	HR_PUT struct json_object *list = json_object_new_array();
	int r = list != NULL ? find_all(self, list, err) : hr_err_nomem(err);

	if (r == 0 && (*ret_json = hr_json_string(list, LIST_MAX, err)) == NULL)
		r = -1;
	return r;
}

static int
removed(int r, const struct hr_err *why, struct hr_err *err)
{
	if (r == 0 || why->code == HR_E_NO_SANDBOX)
		return 0;
	return hr_err_pass(err, why);
}

int
hr_docker_end_found(void *self, const char *id, struct hr_err *err)
{
	struct hr_docker *d = self;
	struct hr_err why = {0};
	char path[256];

	if (*id == '\0' || strspn(id, "0123456789abcdefABCDEF") != strlen(id))
		return hr_err_set(err, HR_E_INVAL, "\"%.80s\" is not the ID of a container", id);
	if (hr_docker_engine(d, err) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "/containers/%.80s" HR_CONTAINER_REMOVE, id);
	return removed(hr_engine_call(&d->engine, "DELETE", path, NULL, NULL, &why), &why, err);
}

/* ---- containers being created ---- */

static int
enough(void *arg, const char *p, size_t len)
{
	(void)arg;
	(void)p;
	(void)len;
	return -1;
}

/* Returns 1 after removing the container, 0 if this user made none. */
static int
end_if_there(struct hr_docker *d, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	struct hr_err why = {0};
	char path[256];
	int r = 0;
	size_t i;

	if (hr_engine_call(&d->engine, "GET", ALL, NULL, &o, err) != 0)
		return -1;
	for (i = 0; r == 0 && i < hr_json_count(o); i++) {
		struct json_object *c = hr_json_entry(o, i);
		const char *name = hr_json_text(hr_json_entry(hr_json_at(c, "Names"), 0));
		const char *id = hr_docker_id(c, "Id");

		if (name == NULL || *name != '/' || strcmp(name + 1, d->name) != 0 || *id == '\0' ||
		    !hr_docker_is_users(
			hr_json_text_at(hr_json_at(c, "Labels"), HR_CONTAINER_LABEL)))
			continue;
		(void)snprintf(path, sizeof(path), "/containers/%.80s" HR_CONTAINER_REMOVE, id);
		r = hr_engine_call(&d->engine, "DELETE", path, NULL, NULL, &why);
		r = removed(r, &why, err) == 0 ? 1 : -1;
	}
	return r;
}

int
hr_docker_end_named(struct hr_docker *d, const struct timespec *since, struct hr_err *err)
{
	long long s = (long long)since->tv_sec;
	char path[1024];
	int r = end_if_there(d, err);

	if (r != 0)
		return r < 0 ? -1 : 0;
	/* the stream includes past events, and ends by itself */
	(void)snprintf(path, sizeof(path),
	    "/events?since=%lld.%09ld&until=%lld.%09ld&filters=%s%.300s%%22%%5D%%7D", s,
	    since->tv_nsec, s + LATE_S, since->tv_nsec, CREATED, d->name);
	if (hr_engine_stream(&d->engine, "GET", path, NULL, NULL, enough, NULL, SILENCE_S, err) < 0)
		return -1;
	return end_if_there(d, err) < 0 ? -1 : 0;
}
