/* hr_fleet_builds: images that are built for clients: a queue with bounds, and a directory for each
 * build with what it is made of, what is known of it ("build.json") and what was said ("log"). A
 * build that a process began which was killed is built again by the next one.
 *
 * Each key builds below a prefix of its own that nobody else can guess, and no other key may start
 * what is there: whoever builds an image decides what runs in it. */
#ifndef HR_FLEET_BUILD_BUILD_H
#define HR_FLEET_BUILD_BUILD_H

#include "fleet/engine.h"

#define HR_FLEET_BUILD_ID 33
#define HR_FLEET_PREFIX 300
#define HR_FLEET_PREFIX_MAX 200 /* of --registry-prefix: names of images are not much longer */
#define HR_FLEET_BUILD_S 1800   /* clients wait no longer */

struct hr_fleet_builds;

/* Reads what a predecessor left, and starts the threads, which end with the process. engine and
 * self stay the caller's. upload_s: so long a form may come. */
struct hr_fleet_builds *hr_fleet_builds_open(const char *dir, int64_t upload_s,
    const struct hr_fleet_engine *engine, void *self, struct hr_err *err);

/* Where a key's images are: "PREFIX/k" and digits that follow from it. */
void hr_fleet_build_prefix(const char *prefix, const char *api_key, char ret[HR_FLEET_PREFIX]);
/* May it start that image? Those below the prefix are each for one key, and an id of an image may
 * be anybody's. */
bool hr_fleet_build_allows(const char *prefix, const char *api_key, const char *image);

/* The bytes of a body: how many, as soon as there are some; 0 at its end, -1. */
typedef int hr_fleet_body_fn(void *arg, char *p, size_t room);

struct hr_fleet_build_form {
	int64_t key;
	const char *below, *type; /* where the key builds; the Content-Type */
	hr_fleet_body_fn *body;
	void *body_arg;
	/* May the key still build, once all has come? 0, or -1. */
	int (*allowed)(void *arg, struct hr_err *err);
	void *arg;
};

/* Receives a form and puts it into the queue; one that waits or is built for this key and the same
 * names already is joined. 0: its id. HR_E_INVAL: the form is wrong; HR_E_TOOLARGE; HR_E_TIMEOUT:
 * it came too slowly; HR_E_BUSY: the queue is full. */
int hr_fleet_build(struct hr_fleet_builds *b, const struct hr_fleet_build_form *form,
    char ret_id[HR_FLEET_BUILD_ID], struct hr_err *err);
/* {"build_id", "status", "image", "error"}, with the end of its log if `log`. 1; 0: this key has no
 * such build; -1. */
int hr_fleet_build_tell(struct hr_fleet_builds *b, int64_t key, const char *id, bool log,
    struct hr_buf *to, struct hr_err *err);

/* ---- for engines ---- */

/* In the directory of a build. */
#define HR_FLEET_BUILD_CONTEXT "context"
#define HR_FLEET_BUILD_LOG "log"
/* Its names, from build.json; the first is the target. */
struct hr_strv;
int hr_fleet_build_names(const char *dir, struct hr_strv *names, struct hr_err *err);

#endif
