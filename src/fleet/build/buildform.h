/* hr_fleet_form: parses the form of POST /build as it arrives: the build folder, a tar that is
 * mostly compressed and mostly in base64, goes to a file; image names stay in memory. */
#ifndef HR_FLEET_BUILD_BUILDFORM_H
#define HR_FLEET_BUILD_BUILDFORM_H

#include <stdbool.h>
#include <stdint.h>

#include "files/multipart.h"
#include "base/strv.h"

#define HR_FLEET_CONTEXT_MAX (512u << 20) /* maximum bytes of the file */
#define HR_FLEET_NAMES_MAX 16

struct hr_fleet_form {
	struct hr_multipart m;
	struct hr_strv names; /* target_image first, then the tags */
	bool has_context, has_target;
	/* ---- private members ---- */
	int fd;
	enum { HR_FORM_OTHER, HR_FORM_CONTEXT, HR_FORM_NAME } part;
	bool plain; /* the folder is not in base64 */
	bool begun; /* `plain` is decided */
	bool target;
	uint64_t written;
	struct hr_buf rest, name; /* rest: not yet decided or decoded; name: being received */
	struct hr_err why;
};

/* Starts a form; `type` is the request's Content-Type. fd stays the caller's. hr_fleet_form_done()
 * must follow in any case. */
int hr_fleet_form_init(struct hr_fleet_form *f, const char *type, int fd, struct hr_err *err);
int hr_fleet_form_feed(struct hr_fleet_form *f, const char *p, size_t len, struct hr_err *err);
/* Checks a completely received form: all parts, and only names below `prefix` ("host/a/b"). Fails
 * with HR_E_INVAL, whose message names the fault. */
int hr_fleet_form_check(struct hr_fleet_form *f, const char *prefix, struct hr_err *err);
void hr_fleet_form_done(struct hr_fleet_form *f);

#endif
