/* Finds the payload's directory. */
#include "config.h"

#include "host/common/payload.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/path.h"

bool
hr_payload_is(const char *dir)
{
	HR_FREE char *start = hr_path_join(dir, &HR_PAYLOAD_START[sizeof(HR_PAYLOAD_PLACE)]);

	return start != NULL && access(start, X_OK) == 0;
}

int
hr_payload_given(const struct hr_config *c, const char **ret, struct hr_err *err)
{
	const char *dir = hr_config_text(c, "sandbox.payload");
	struct stat st;

	*ret = dir != NULL && *dir != '\0' ? dir : NULL;
	if (*ret == NULL || hr_payload_is(dir))
		return 0;
	if (stat(dir, &st) == 0 && S_ISREG(st.st_mode))
		return hr_err_set(err, HR_E_INVAL,
		    "sandbox.payload: %.200s is a file, and a directory is mounted: unpack it by "
		    "\"tar -C DIR -xf FILE\", and name DIR",
		    dir);
	return hr_err_set(err, HR_E_INVAL,
	    "sandbox.payload: %.200s is not a directory that \"packaging/payload DIR\" made, in a "
	    "source tree of handrail",
	    dir);
}

const char *
hr_payload_installed(void)
{
	return hr_payload_is(HR_PAYLOADDIR) ? HR_PAYLOADDIR : NULL;
}

bool
hr_payload_lacks(const char *said)
{
	return strstr(said, HR_PAYLOAD_START) != NULL &&
	       (strcasestr(said, "no such file") != NULL || strcasestr(said, "not found") != NULL);
}
