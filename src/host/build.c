/* Builds runtime images: the back-end does it, or else the default back-end. */
#include "config.h"

#include "host/kind.h"

int
hr_build_image(const struct hr_config *c, const struct hr_build_options *o, char **ret_name,
    struct hr_err *err)
{
	struct hr_kind k;
	int r;

	if (hr_kind_open(&k, NULL, c, o->environ, NULL, err) < 0)
		return -1;
	if (k.ops->build == NULL) {
		hr_kind_close(&k);
		if (hr_kind_open(&k, HR_KIND_DEFAULT, c, o->environ, NULL, err) < 0)
			return -1;
	}
	r = k.ops->build(k.self, o, ret_name, err);
	hr_kind_close(&k);
	return r;
}
