/* hr_kit: reads the ingredients of an image in one directory (installed as PKGDATADIR/image), and
 * makes the build folder from it (doc/images.md, "The build folder"). */
#ifndef HR_IMAGE_KIT_H
#define HR_IMAGE_KIT_H

#include "base/err.h"
#include "image/plan.h"
#include "image/tags.h"

/* the parts, below the kit's directory */
#define HR_KIT_TEMPLATE "Dockerfile.in"
#define HR_KIT_DEPS "deps.conf" /* the requested versions */
#define HR_KIT_LOCK "deps.lock" /* the resolved versions */
#define HR_KIT_INSTALL "install-deps.sh"
#define HR_KIT_PYTHON "install-python.sh"
#define HR_KIT_SOURCE "runtime"

/* Computes the names of an image of this kit and version. repo NULL: the default. `v1`: images for
 * OpenHands V1 count as another version, so that neither image is built upon the other. */
int hr_kit_tags(const char *kit, const char *base, const char *repo, bool browser,
    bool registry_port, bool v1, struct hr_image_tags *ret, struct hr_err *err);

/* Writes code/ and the Dockerfile for an image with these tags on `base` into `folder`, which
 * exists. Build products are not copied, as they do not count for the source hash. */
int hr_kit_prepare(const char *kit, const char *folder, const char *base,
    enum hr_image_strategy strategy, const struct hr_image_request *req,
    const struct hr_image_tags *tags, struct hr_err *err);

#endif
