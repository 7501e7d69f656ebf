/* Checks a back-end's needs before a sandbox is started (doc/host.md, "doctor"). Continues after a
 * fault. */
#include "config.h"

#include <unistd.h>

#include "host/common/statedir.h"
#include "host/common/exam.h"
#include "host/kind.h"

struct exam {
	hr_finding_fn *fn;
	void *arg;
	bool bad;
};

static void
found(void *arg, bool ok, const char *what, const char *text)
{
	struct exam *x = arg;

	x->bad |= !ok;
	x->fn(x->arg, ok, what, text);
}

static void
state_directory(struct exam *x, const char *dir)
{
	struct hr_err e = {0};

	if (hr_state_directory(dir, true, &e) < 0)
		found(x, false, "state directory", e.msg);
	else if (access(dir, R_OK | W_OK | X_OK) != 0)
		hr_exam_say(found, x, false, "state directory", "%s cannot be written", dir);
	else
		found(x, true, "state directory", dir);
}

int
hr_doctor(const struct hr_config *c, const char *const *env, const char *state_dir,
    hr_finding_fn *fn, void *arg, bool *ret_well, struct hr_err *err)
{
	struct exam x = {.fn = fn, .arg = arg};
	HR_CLEAN(hr_kind_close) struct hr_kind k = {0};
	int r = 0;

	if (hr_kind_open(&k, NULL, c, env, state_dir, err) < 0)
		return -1;
	if (state_dir != NULL)
		state_directory(&x, state_dir);
	if (k.ops->doctor != NULL)
		r = k.ops->doctor(k.self, found, &x, err);
	*ret_well = !x.bad;
	return r;
}
