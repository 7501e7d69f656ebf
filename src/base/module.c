/* Calls dlopen() for files that were checked first. */
#include "config.h"

#include "base/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/trust.h"

int
hr_module_open(struct hr_module *m, const char *path, uid_t also, struct hr_err *err)
{
	HR_CLEAN(hr_trusted_done) struct hr_trusted t = {.fd = -1, .dir = -1};
	HR_BUF(name, sizeof(t.name) + 64);

	*m = (struct hr_module)HR_MODULE_NONE;
	if (hr_trust_open(&t, path, also, err) != 0)
		return -1;
	/* Load through the directory's descriptor: nobody else can replace the file in that
	 * directory. The loader also identifies objects by name, and this name is unique while the
	 * directory is open. */
	hr_buf_addf(&name, "/proc/self/fd/%d/%s", t.dir, t.name);
	if (hr_buf_check(&name, err) < 0)
		return -1;
	m->object = dlopen(name.p, RTLD_NOW | RTLD_LOCAL);
	if (m->object == NULL)
		return hr_err_set(err, HR_E_SYS, "%.100s: %.130s", path, dlerror());
	m->dir = t.dir;
	t.dir = -1;
	return 0;
}

void
hr_module_close(struct hr_module *m)
{
	free(m->made);
	m->made = NULL;
	if (m->object != NULL)
		(void)dlclose(m->object);
	m->object = NULL;
	hr_fd_close(&m->dir);
}

void *
hr_module_symbol(const struct hr_module *m, const char *name, struct hr_err *err)
{
	void *found = dlsym(m->object, name);

	if (found == NULL)
		(void)hr_err_set(err, HR_E_SYS, "it exports no %s", name);
	return found;
}

const void *
hr_module_load(const char *directory, const char *file, const char *symbol, unsigned version,
    struct hr_err *err)
{
	const unsigned *found = NULL;
	HR_BUF(path, PATH_MAX);
	struct hr_module m;
	int r;

	/* A name without a slash would be searched on the library path. */
	hr_buf_addf(&path, "%s/%s", directory, file);
	if (hr_buf_check(&path, err) < 0)
		return NULL;
	r = hr_module_open(&m, hr_buf_str(&path), hr_trust_program_owner(), err);
	if (r == 0)
		found = hr_module_symbol(&m, symbol, err);
	if (r == 0 && found == NULL) {
		hr_err_prefix(err, "%s", hr_buf_str(&path));
	} else if (r == 0 && *found != version) {
		(void)hr_err_set(err, HR_E_SYS, "%.160s has version %u, not %u", hr_buf_str(&path),
		    *found, version);
		found = NULL;
	}
	if (found == NULL)
		hr_module_close(&m); /* nothing of the object is in use yet */
	hr_fd_close(&m.dir);
	return found;
}
