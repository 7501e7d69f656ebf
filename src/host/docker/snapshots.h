/* hr_docker_snapshots: snapshots of containers. Each one is the image "handrail-snapshot:TAG" of
 * the Engine, whose labels name its user. Images without these labels are never touched. */
#ifndef HR_HOST_DOCKER_SNAPSHOTS_H
#define HR_HOST_DOCKER_SNAPSHOTS_H

#include "base/err.h"

struct json_object;

#define HR_DOCKER_TAG_MAX 128 /* characters of a snapshot's name */

/* Appends the records of this user's snapshots to the list `ret`. Returns 0, or -1 with *err set,
 * HR_E_UNAVAILABLE if no Engine answers. */
int hr_docker_snapshots(const char *const *env, struct json_object *ret, struct hr_err *err);

/* Finds the image of a snapshot. The caller frees *ret. Returns 0, or -1 with *err set,
 * HR_E_NOTFOUND if this user has no such snapshot. */
int
hr_docker_snapshot_image(const char *const *env, const char *tag, char **ret, struct hr_err *err);

/* Removes a snapshot. Returns 0, or -1 with *err set, HR_E_NOTFOUND as above. */
int hr_docker_snapshot_remove(const char *const *env, const char *tag, struct hr_err *err);

#endif
