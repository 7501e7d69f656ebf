/* Ends sandboxes of all back-ends. */
#include "config.h"

#include "base/err.h"
#include "host/client/client.h"
#include "host/handle.h"
#include "host/life/logstream.h"
#include "host/records/record.h"

int
hr_sandbox_close(struct hr_sandbox *s, struct hr_err *err)
{
	hr_sandbox_stop_log_stream(s);
	if (s->closed || s->attach)
		return 0;
	s->closed = true;
	s->connected = false;
	hr_client_done(&s->client);
	return s->ops->close != NULL ? s->ops->close(s->self, err) : 0;
}

/* Returns true if the name that should be ended is known to belong to a sandbox. */
static bool
is_known(const struct hr_sandbox *s)
{
	HR_CLEAN(hr_record_done) struct hr_record rec = {0};

	return !s->attach || s->state_dir == NULL || s->connected || s->recorded ||
	       hr_record_load(s->state_dir, s->sid, &rec, NULL) != 0 || rec.runtime != NULL;
}

int
hr_sandbox_delete(struct hr_sandbox *s, struct hr_err *err)
{
	int r;

	if (!is_known(s))
		return hr_err_set(err, HR_E_NO_SANDBOX,
		    "there is no sandbox \"%s\" that is recorded here or was found", s->sid);
	if (s->elsewhere)
		return hr_err_set(err, HR_E_UNSUPPORTED,
		    "sandbox \"%s\" is recorded at an Engine or a cluster that the settings do not "
		    "name",
		    s->sid);
	hr_sandbox_stop_log_stream(s);
	r = s->ops->destroy != NULL ? s->ops->destroy(s->self, err) : 0;
	s->closed = true;
	s->connected = false;
	if (r == 0 && s->state_dir != NULL)
		hr_record_remove(s);
	return r;
}
