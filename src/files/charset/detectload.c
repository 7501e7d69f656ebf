/* Asks both libraries through their modules. */
#include "config.h"

#include <stdbool.h>

#include "base/log.h"
#include "files/charset/detect.h"
#include "base/module.h"

struct lazy {
	const char *file, *symbol, *missing;
	const struct hr_detector *loaded;
	bool told;
};

static const char *modules = "";

void
hr_detect_from(const char *directory)
{
	modules = directory;
}

static void
ask(struct lazy *l, struct hr_buf *b, const void *p, size_t len)
{
	struct hr_err err = {.code = HR_OK};

	if (l->loaded == NULL)
		l->loaded = hr_module_load(modules, l->file, l->symbol, HR_DETECT_VERSION, &err);
	if (l->loaded != NULL) {
		l->loaded->ask(b, p, len);
	} else if (!l->told) {
		hr_log(HR_LOG_ERROR, "%s: %s", l->missing, err.msg);
		l->told = true;
	}
}

void
hr_detect_charset(struct hr_buf *b, const void *p, size_t len)
{
	static struct lazy charset = {.file = HR_DETECT_CHARSET_FILE,
	    .symbol = "hr_charset_module",
	    .missing = "only Unicode and Western text is recognised"};

	ask(&charset, b, p, len);
}

void
hr_detect_kind(struct hr_buf *b, const void *p, size_t len)
{
	static struct lazy kind = {.file = HR_DETECT_KIND_FILE,
	    .symbol = "hr_kind_module",
	    .missing = "files that cannot be shown are not described"};

	ask(&kind, b, p, len);
}
