/* hr_fleet_builds: builds images for clients: a bounded queue, and a directory for each build with
 * its context, its record ("build.json") and its output ("log"). After a restart, interrupted
 * builds run again.
 *
 * Each key builds below its own secret prefix, and no other key may start those images, because the
 * author of an image decides what runs in it. */
#ifndef HR_FLEET_BUILD_BUILD_H
#define HR_FLEET_BUILD_BUILD_H

#include "fleet/engine.h"

#define HR_FLEET_BUILD_ID 33
#define HR_FLEET_PREFIX 300
#define HR_FLEET_PREFIX_MAX 200 /* value of --registry-prefix; leaves room for names */
#define HR_FLEET_BUILD_S 1800   /* seconds; clients wait no longer */

struct hr_fleet_builds;

/* Reads a predecessor's builds and starts the threads, which end with the process. engine and self
 * stay the caller's. upload_s is the time limit for receiving a form. */
struct hr_fleet_builds *hr_fleet_builds_open(const char *dir, int64_t upload_s,
    const struct hr_fleet_engine *engine, void *self, struct hr_err *err);

/* Writes the prefix of a key's images: "PREFIX/k" and digits derived from the key. */
void hr_fleet_build_prefix(const char *prefix, const char *api_key, char ret[HR_FLEET_PREFIX]);
/* Returns true if the key may start the image. Images below the prefix belong to one key each, and
 * an image id may be another key's. */
bool hr_fleet_build_allows(const char *prefix, const char *api_key, const char *image);

/* Reads from a body. Returns the number of bytes as soon as there are some; 0 at its end, or -1. */
typedef int hr_fleet_body_fn(void *arg, char *p, size_t room);

struct hr_fleet_build_form {
	int64_t key;
	/* below: prefix of the key's images; type: the value of Content-Type */
	const char *below, *type;
	hr_fleet_body_fn *body;
	void *body_arg;
	/* Checks, once all is received, that the key may still build. Returns 0, or -1. */
	int (*allowed)(void *arg, struct hr_err *err);
	void *arg;
};

/* Receives a form and queues it, or joins an unfinished build of this key with the same names.
 * Returns 0 with the build's id, or -1 with HR_E_INVAL if the form is wrong, HR_E_TOOLARGE,
 * HR_E_TIMEOUT if it came too slowly, or HR_E_BUSY if the queue is full. */
int hr_fleet_build(struct hr_fleet_builds *b, const struct hr_fleet_build_form *form,
    char ret_id[HR_FLEET_BUILD_ID], struct hr_err *err);
/* Appends {"build_id", "status", "image", "error"}, with the end of its log if `log`. Returns 1; 0
 * if this key has no such build; or -1. */
int hr_fleet_build_tell(struct hr_fleet_builds *b, int64_t key, const char *id, bool log,
    struct hr_buf *to, struct hr_err *err);

/* ---- engines ---- */

/* the names in a build's directory */
#define HR_FLEET_BUILD_CONTEXT "context"
#define HR_FLEET_BUILD_LOG "log"
/* Reads a build's names from build.json; the first is the target. */
struct hr_strv;
int hr_fleet_build_names(const char *dir, struct hr_strv *names, struct hr_err *err);

#endif
