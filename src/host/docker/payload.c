/* Where the payload is. */
#include "config.h"

#include "host/docker/payload.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/path.h"

static bool
is_one(const char *dir)
{
	char *start = hr_path_join(dir, &HR_PAYLOAD_START[sizeof(HR_PAYLOAD_PLACE)]);
	bool is = start != NULL && access(start, X_OK) == 0;

	free(start);
	return is;
}

int
hr_payload_given(const struct hr_config *c, const char **ret, struct hr_err *err)
{
	const char *dir = hr_config_text(c, "sandbox.payload");

	*ret = dir != NULL && *dir != '\0' ? dir : NULL;
	if (*ret == NULL || is_one(dir))
		return 0;
	return hr_err_set(err, HR_E_INVAL,
	    "sandbox.payload: %.200s is no directory that \"packaging/payload DIR\" made, in a "
	    "source tree of handrail",
	    dir);
}

const char *
hr_payload_installed(void)
{
	return is_one(HR_PAYLOADDIR) ? HR_PAYLOADDIR : NULL;
}

bool
hr_payload_lacks(const char *said)
{
	return strstr(said, HR_PAYLOAD_START) != NULL &&
	       (strcasestr(said, "no such file") != NULL || strcasestr(said, "not found") != NULL);
}
