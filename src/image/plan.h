/* hr_image_plan: decides which image is built from which, and under which names (doc/images.md,
 * "Which image is built from which"). */
#ifndef HR_IMAGE_PLAN_H
#define HR_IMAGE_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "image/tags.h"

enum hr_image_strategy {
	HR_IMAGE_SCRATCH,   /* builds everything, on the base image */
	HR_IMAGE_VERSIONED, /* builds dependencies and source, on an image of this version */
	HR_IMAGE_LOCK,      /* builds the source only, on an image with these dependencies */
};

/* Returns the strategy's name, e.g. "SCRATCH". */
const char *hr_image_strategy_name(enum hr_image_strategy s);

/* A request, apart from the names. Strings may be NULL. */
struct hr_image_request {
	const char *base;
	const char *platform;
	const char *extra_deps; /* shell text, run last in the build */
	const char *const *build_args;
	size_t build_args_n;
	bool browser;
	bool v1;    /* an image that starts by itself, with the agent server of OpenHands V1 */
	bool force; /* build from the base, whatever exists */
	bool retag; /* requires force: move all names, also existing ones */
	bool dry_run;
};

/* Callbacks that find images and make them. Each returns 0, or -1 with *err set. */
struct hr_image_builder {
	void *arg;
	/* Sets *ret if the image exists here or, with pull, in its registry (it is here
	 * afterwards). With `usable` it counts only an image that can be built upon. */
	int (*exists)(
	    void *arg, const char *name, bool pull, bool usable, bool *ret, struct hr_err *err);
	int (*prepare)(void *arg, const char *from, enum hr_image_strategy s,
	    const struct hr_image_request *r, struct hr_err *err);
	/* builds an image with these names, at least one */
	int (*build)(void *arg, const char *const *names, size_t n,
	    const struct hr_image_request *r, struct hr_err *err);
};

/* Ensures that the image t->source exists (with dry_run: only plans it). If it exists already
 * nothing is done, unless force. */
int hr_image_build(const struct hr_image_builder *b, const struct hr_image_tags *t,
    const struct hr_image_request *r, struct hr_err *err);

#endif
