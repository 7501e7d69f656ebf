/* Loading the module. */
#include "config.h"

#include "files/zip.h"

#include <dlfcn.h>
#include <limits.h>

const struct hr_zip *
hr_zip_load(const char *directory, struct hr_err *err)
{
	static const struct hr_zip *loaded;
	const struct hr_zip *zip = NULL;
	struct hr_buf path;
	void *handle;

	if (loaded != NULL)
		return loaded;
	hr_buf_init(&path, PATH_MAX);
	/* always with a slash: a bare name would be looked for elsewhere */
	hr_buf_addf(&path, "%s/%s", directory, HR_ZIP_FILE);
	if (hr_buf_check(&path, err) != 0) {
		hr_buf_done(&path);
		return NULL;
	}
	handle = dlopen(hr_buf_str(&path), RTLD_NOW | RTLD_LOCAL);
	if (handle != NULL)
		zip = dlsym(handle, "hr_zip_module");
	if (zip == NULL) {
		(void)hr_err_set(err, HR_E_SYS, "no archives: %.200s", dlerror());
	} else if (zip->version != HR_ZIP_VERSION) {
		(void)hr_err_set(err, HR_E_SYS, "no archives: %.160s has version %u, not %d",
		    hr_buf_str(&path), zip->version, HR_ZIP_VERSION);
		zip = NULL;
	}
	if (zip == NULL && handle != NULL)
		(void)dlclose(handle); /* nothing of it is in use */
	loaded = zip;
	hr_buf_done(&path);
	return zip;
}
