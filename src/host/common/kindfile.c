/* Handles names and directories of back-ends that are files. */
#include "config.h"

#include "host/common/kindfile.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"

#define PATH_TEXT_MAX 4096
#define BEFORE "libhandrail-backend-"
#define AFTER ".so"

const char *
hr_kindfile_program(const char *path)
{
	const char *file = hr_path_leaf(path);
	size_t n = sizeof(HR_KINDFILE_PROGRAM) - 1;

	return strncmp(file, HR_KINDFILE_PROGRAM, n) == 0 ? file + n : NULL;
}

bool
hr_kindfile_name(const char *path, char ret[HR_KINDFILE_NAME])
{
	const char *file = hr_path_leaf(path), *program = hr_kindfile_program(path);
	size_t n = strlen(file), skip = sizeof(BEFORE) - 1, end = sizeof(AFTER) - 1;

	if (program == NULL && (n <= skip + end || strncmp(file, BEFORE, skip) != 0 ||
				   strcmp(file + n - end, AFTER) != 0))
		return false;
	(void)snprintf(ret, HR_KINDFILE_NAME, "%.*s",
	    program != NULL ? (int)strlen(program) : (int)(n - skip - end),
	    program != NULL ? program : file + skip);
	return true;
}

static int
find_in(const char *dir, size_t len, const char *name, hr_kindfile_fn *fn, void *arg)
{
	static const char *const around[][2] = {{"/" BEFORE, AFTER}, {"/" HR_KINDFILE_PROGRAM, ""}};
	int r = 0;
	size_t i;

	for (i = 0; r == 0 && i < sizeof(around) / sizeof(*around); i++) {
		HR_BUF(path, PATH_TEXT_MAX);

		hr_buf_add(&path, dir, len);
		hr_buf_adds(&path, around[i][0]);
		hr_buf_adds(&path, name);
		hr_buf_adds(&path, around[i][1]);
		if (hr_buf_check(&path, NULL) == 0 && access(path.p, R_OK) == 0)
			r = fn(arg, path.p);
	}
	return r;
}

int
hr_kindfile_find(const char *dirs, const char *name, hr_kindfile_fn *fn, void *arg)
{
	const char *end;
	int r = 0;

	for (; r == 0 && dirs != NULL && *dirs != '\0'; dirs = *end == ':' ? end + 1 : end) {
		end = strchrnul(dirs, ':');
		if (end > dirs)
			r = find_in(dirs, (size_t)(end - dirs), name, fn, arg);
	}
	return r == 0 ? find_in(HR_BACKENDDIR, strlen(HR_BACKENDDIR), name, fn, arg) : r;
}
