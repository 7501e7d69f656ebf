/* Implements the decision tree. The order of look-ups is part of the contract, as registries
 * observe it. */
#include "config.h"

#include "image/plan.h"

const char *
hr_image_strategy_name(enum hr_image_strategy s)
{
	static const char *const names[] = {
	    [HR_IMAGE_SCRATCH] = "SCRATCH",
	    [HR_IMAGE_VERSIONED] = "VERSIONED",
	    [HR_IMAGE_LOCK] = "LOCK",
	};

	return names[s];
}

static int
choose(const struct hr_image_builder *b, const struct hr_image_tags *t,
    const struct hr_image_request *r, const char **ret_from, enum hr_image_strategy *ret,
    struct hr_err *err)
{
	bool there = false;

	if (b->exists(b->arg, t->lock, true, true, &there, err) != 0)
		return -1;
	if (there) {
		*ret = HR_IMAGE_LOCK;
		*ret_from = t->lock;
		return 0;
	}
	if (b->exists(b->arg, t->versioned, true, true, &there, err) != 0)
		return -1;
	*ret = there ? HR_IMAGE_VERSIONED : HR_IMAGE_SCRATCH;
	*ret_from = there ? t->versioned : r->base;
	return 0;
}

static int
build_missing(const struct hr_image_builder *b, const struct hr_image_tags *t,
    const struct hr_image_request *r, enum hr_image_strategy s, struct hr_err *err)
{
	const char *candidates[] = {t->source, t->lock, t->versioned}, *names[3];
	size_t count = s == HR_IMAGE_SCRATCH ? 3 : 2, n = 0, i;
	bool there;

	for (i = 0; i < count; i++) {
		there = false;
		if (!(r->force && r->retag) &&
		    b->exists(b->arg, candidates[i], false, false, &there, err) != 0)
			return -1;
		if (!there)
			names[n++] = candidates[i];
	}
	if (n == 0)
		return hr_err_set(err, HR_E_INVAL, "Build failed for image []");
	return b->build(b->arg, names, n, r, err);
}

int
hr_image_build(const struct hr_image_builder *b, const struct hr_image_tags *t,
    const struct hr_image_request *r, struct hr_err *err)
{
	enum hr_image_strategy s = HR_IMAGE_SCRATCH;
	const char *from = r->base;
	bool there = false;

	if (!r->force) {
		if (b->exists(b->arg, t->source, false, false, &there, err) != 0)
			return -1;
		if (there)
			return 0;
		if (choose(b, t, r, &from, &s, err) < 0)
			return -1;
	}
	if (b->prepare(b->arg, from, s, r, err) != 0)
		return -1;
	return r->dry_run ? 0 : build_missing(b, t, r, s, err);
}
