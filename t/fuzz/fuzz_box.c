/* The document of a box, of any bytes: no crash, an error that says something, and no path, name or
 * limit outside what the document may have. */
#include "config.h"

#include <string.h>

#include "box/spec.h"
#include "fuzz.h"

static void
is_path(const char *path)
{
	must(path[0] == '/' && strstr(path, "//") == NULL && strstr(path, "/../") == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hr_err err = {0};
	struct box_spec s;
	HR_BUF(b, 1 << 22);
	size_t i;

	if (box_spec_read(&s, (const char *)data, size, &err) == 0) {
		must(s.name[0] != '\0' && strchr(s.name, '/') == NULL && s.argv[0][0] == '/');
		is_path(s.storage);
		is_path(s.directory);
		for (i = 0; i < s.nmounts; i++) {
			is_path(s.mounts[i].source);
			is_path(s.mounts[i].target);
		}
		must(s.limits.memory_bytes >= 0 && s.limits.processes >= 0 && s.limits.cpus >= 0);
		box_spec_explain(&s, &b);
		must(b.len > 0);
	} else {
		must(err.code != HR_OK && err.msg[0] != '\0');
	}
	box_spec_done(&s);
	return 0;
}
