/* Makes snapshots of sandboxes, which some back-ends have. */
#include "config.h"

#include <string.h>

#include "base/err.h"
#include "host/handle.h"

int
hr_sandbox_snapshot(struct hr_sandbox *s, const char *tag, char **ret_json, struct hr_err *err)
{
	if (s->ops->snapshot != NULL)
		return s->ops->snapshot(s->self, tag, ret_json, err);
	return hr_err_set(err, HR_E_UNSUPPORTED,
	    "sandbox \"%s\" has the back-end %s, which makes no snapshots: %s. \"handrail "
	    "up -r box\" and \"-r docker\" start sandboxes that can",
	    s->sid, s->ops->name,
	    strcmp(s->ops->name, "kubernetes") == 0
		? "Kubernetes has no call that copies the files of a running pod"
		: "handrail cannot copy its files");
}
