/* hr_image_plan: which image is built from which, and under which names (doc/images.md, "Which
 * image is built from which"). */
#ifndef HR_IMAGE_PLAN_H
#define HR_IMAGE_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "image/tags.h"

enum hr_image_strategy {
	HR_IMAGE_SCRATCH,   /* everything, on the base image */
	HR_IMAGE_VERSIONED, /* dependencies and source, on an image of this version */
	HR_IMAGE_LOCK,      /* the source only, on an image with these dependencies */
};

const char *hr_image_strategy_name(enum hr_image_strategy s); /* "SCRATCH" and so on */

/* What is asked for, beside the names. Texts may be NULL. */
struct hr_image_request {
	const char *base;
	const char *platform;
	const char *extra_deps; /* shell text, run last in the build */
	const char *const *build_args;
	size_t build_args_n;
	bool browser;
	bool force; /* from the base, whatever exists */
	bool retag; /* with force: give all names, also those that exist */
	bool dry_run;
};

/* Who looks for images and makes them. Each returns 0 or -1 with *err. */
struct hr_image_builder {
	void *arg;
	/* Is there such an image here, or, if pull, in its registry (it is here then)? `usable`:
	 * only one that can be built upon counts. */
	int (*exists)(
	    void *arg, const char *name, bool pull, bool usable, bool *ret, struct hr_err *err);
	int (*prepare)(void *arg, const char *from, enum hr_image_strategy s,
	    const struct hr_image_request *r, struct hr_err *err);
	/* names: at least one */
	int (*build)(void *arg, const char *const *names, size_t n,
	    const struct hr_image_request *r, struct hr_err *err);
};

/* The image t->source exists afterwards (or would: dry_run). Its existence before is no reason to
 * do anything, unless force. */
int hr_image_build(const struct hr_image_builder *b, const struct hr_image_tags *t,
    const struct hr_image_request *r, struct hr_err *err);

#endif
