/* Builds the list of errors; the entries are few and always have the same members. */
#include "config.h"

#include "worker/request/invalid.h"

#include <string.h>

#include "proto/python/repr.h"

void
hr_invalid_open(struct hr_buf *errors, const char *type, const char *loc, const char *msg)
{
	hr_buf_addf(errors, "%s{'type': '%s', 'loc': (%s), 'msg': ", errors->len == 0 ? "[" : ", ",
	    type, loc);
	hr_pyrepr_str(errors, msg, strlen(msg));
	hr_buf_adds(errors, ", 'input': ");
}

void
hr_invalid_close(struct hr_buf *errors, const char *ctx)
{
	if (ctx != NULL)
		hr_buf_adds(errors, ctx);
	hr_buf_addc(errors, '}');
}

void
hr_invalid_missing(struct hr_buf *errors, const char *loc)
{
	hr_invalid_open(errors, "missing", loc, "Field required");
	hr_buf_adds(errors, "None");
	hr_invalid_close(errors, NULL);
}

bool
hr_invalid_answer(struct hr_buf *errors, struct hr_answer *ret)
{
	hr_buf_addc(errors, ']');
	return hr_answer_invalid(ret, errors);
}
