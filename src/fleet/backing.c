/* Which engines there are. */
#include "config.h"

#include "fleet/engine.h"

#include <string.h>

#include "base/path.h"
#include "base/trust.h"

static const struct hr_fleet_backing *const backings[] = {
    &hr_fleet_local,
#ifdef HAVE_KUBERNETES
    &hr_fleet_kubernetes,
#endif
};

/* What lies there is believed and holds keys, so that only the user may look at it. */
int
hr_fleet_directory(const char *dir, struct hr_err *err)
{
	if (hr_path_mkdirs(dir, 0700, NULL, err) != 0)
		return -1;
	return hr_trust_directory(dir, err);
}

const struct hr_fleet_backing *
hr_fleet_backing(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(backings) / sizeof(*backings); i++)
		if (strcmp(backings[i]->name, name) == 0)
			return backings[i];
	return NULL;
}
