/* dlopen() of what is ours. */
#include "config.h"

#include "files/module.h"

#include <dlfcn.h>
#include <limits.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/module.h"
#include "base/trust.h"

const void *
hr_module_load(const char *directory, const char *file, const char *symbol, unsigned version,
    struct hr_err *err)
{
	const unsigned *found = NULL;
	struct hr_buf path;
	struct hr_module m;
	int rc;

	hr_buf_init(&path, PATH_MAX);
	/* always with a slash: a bare name would be looked for elsewhere */
	hr_buf_addf(&path, "%s/%s", directory, file);
	if (hr_buf_check(&path, err) != 0) {
		hr_buf_done(&path);
		return NULL;
	}
	rc = hr_module_open(&m, hr_buf_str(&path), hr_trust_program_owner(), err);
	if (rc == 0)
		found = dlsym(m.object, symbol);
	if (rc == 0 && found == NULL) {
		(void)hr_err_set(err, HR_E_SYS, "%.200s", dlerror());
	} else if (rc == 0 && *found != version) {
		(void)hr_err_set(err, HR_E_SYS, "%.160s has version %u, not %u", hr_buf_str(&path),
		    *found, version);
		found = NULL;
	}
	if (found == NULL)
		hr_module_close(&m); /* nothing of it is in use */
	hr_fd_close(&m.dir);
	hr_buf_done(&path);
	return found;
}
