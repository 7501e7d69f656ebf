/* Loads the module that uses libarchive. */
#include "config.h"

#include "files/archive/zip.h"

#include "base/module.h"

const struct hr_zip *
hr_zip_load(const char *directory, struct hr_err *err)
{
	static const struct hr_zip *loaded;

	if (loaded == NULL)
		loaded =
		    hr_module_load(directory, HR_ZIP_FILE, "hr_zip_module", HR_ZIP_VERSION, err);
	if (loaded != NULL)
		loaded->rules(hr_reach_get_rules());
	else
		hr_err_prefix(err, "no archives");
	return loaded;
}
