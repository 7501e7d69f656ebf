/* hr_dockerfile: makes the Dockerfile of a runtime image from the template in runtime-image/
 * (doc/images.md, "The Dockerfile"). */
#ifndef HR_IMAGE_DOCKERFILE_H
#define HR_IMAGE_DOCKERFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "image/plan.h"

struct hr_dockerfile {
	const char *from;
	enum hr_image_strategy strategy;
	const char *extra_deps; /* NULL or "": there are none */
	bool browser;
	bool v1; /* add the agent server of OpenHands V1 */
	const char *version;
	const char *lock; /* hashes or tags, for labels; "" if unknown */
	const char *source;
};

/* Expands a template line by line: "@if WORD..." keeps the lines up to "@end" if one of the words
 * holds (scratch, versioned, lock, browser, extra_deps, openhands_v1); "@name@" is replaced by a
 * value. HR_E_INVAL names the line of a mistake in the template. Values with a line feed are
 * refused except extra_deps, which is copied verbatim. */
int hr_dockerfile_put(struct hr_buf *b, const char *text, size_t len, const struct hr_dockerfile *d,
    struct hr_err *err);

#endif
