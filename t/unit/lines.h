/* Lines of a corpus file, for loop tests over data. */
#ifndef HR_T_UNIT_LINES_H
#define HR_T_UNIT_LINES_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/buf.h"

static inline FILE *
lines_open(const char *name)
{
	const char *dir = getenv("srcdir");
	char path[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/t/corpus/%s", dir != NULL ? dir : ".", name);
	f = fopen(path, "r");
	ck_assert_msg(f != NULL, "cannot open %s", path);
	return f;
}

/* The next line that is no comment, without its newline; false at the end. */
static inline bool
lines_next(FILE *f, char **line, size_t *cap)
{
	ssize_t n;

	while ((n = getline(line, cap, f)) > 0) {
		if ((*line)[n - 1] == '\n')
			(*line)[n - 1] = '\0';
		if ((*line)[0] != '#' && (*line)[0] != '\0')
			return true;
	}
	return false;
}

/* Appends the bytes of a hex text; "-" is none. */
static inline void
lines_unhex(struct hr_buf *b, const char *hex)
{
	char two[3] = {0};

	for (; hex[0] != '\0' && hex[1] != '\0'; hex += 2) {
		memcpy(two, hex, 2);
		hr_buf_addc(b, (char)strtol(two, NULL, 16));
	}
}

static inline int
lines_run(Suite *s)
{
	SRunner *r = srunner_create(s);
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}

#endif
