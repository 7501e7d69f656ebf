/* dlopen() of what is ours. */
#include "config.h"

#include "files/module.h"

#include <dlfcn.h>
#include <limits.h>

#include "base/buf.h"

const void *
hr_module_load(const char *directory, const char *file, const char *symbol, unsigned version,
    struct hr_err *err)
{
	const unsigned *found = NULL;
	struct hr_buf path;
	void *handle;

	hr_buf_init(&path, PATH_MAX);
	/* always with a slash: a bare name would be looked for elsewhere */
	hr_buf_addf(&path, "%s/%s", directory, file);
	if (hr_buf_check(&path, err) != 0) {
		hr_buf_done(&path);
		return NULL;
	}
	handle = dlopen(hr_buf_str(&path), RTLD_NOW | RTLD_LOCAL);
	if (handle != NULL)
		found = dlsym(handle, symbol);
	if (found == NULL) {
		(void)hr_err_set(err, HR_E_SYS, "%.200s", dlerror());
	} else if (*found != version) {
		(void)hr_err_set(err, HR_E_SYS, "%.160s has version %u, not %u", hr_buf_str(&path),
		    *found, version);
		found = NULL;
	}
	if (found == NULL && handle != NULL)
		(void)dlclose(handle); /* nothing of it is in use */
	hr_buf_done(&path);
	return found;
}
