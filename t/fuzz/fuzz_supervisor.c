/* What the supervisor reads from others: its settings, its command line, children's log lines, and
 * the texts it puts into a configuration. The first byte chooses. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text/quote.h"
#include "supervisor/children/keeperargs.h"
#include "supervisor/edge/nginx.h"
#include "supervisor/edge/nginxline.h"
#include "supervisor/settings/options.h"
#include "supervisor/settings/settings.h"
#include "base/text/template.h"
#include "fuzz.h"

#define WORDS 64

static void
try_settings(const char *text, size_t len)
{
	struct hr_settings c;
	struct hr_err err = {0};

	if (hr_settings_init(&c, NULL) != 0)
		return;
	if (hr_settings_parse(&c, text, len, &err) != 0)
		hr_assert(err.code != HR_OK && err.msg[0] != '\0');
	else
		(void)hr_settings_check(&c, &err);
	hr_settings_done(&c);
}

/* NUL-separated words. */
static void
try_options(char *text, size_t len)
{
	char *argv[WORDS + 1] = {text};
	struct hr_settings c;
	struct hr_options o;
	size_t i;
	int argc = 1;

	for (i = 0; i < len && argc < WORDS; i += strlen(text + i) + 1)
		argv[argc++] = text + i;
	argv[argc] = NULL;
	if (hr_options_parse(&o, argc, argv, NULL) != 0 || hr_settings_init(&c, NULL) != 0)
		return;
	(void)hr_options_apply(&o, &c, NULL);
	hr_settings_done(&c);
}

static void
try_line(const char *text, size_t len)
{
	HR_BUF(b, 1 << 20);
	size_t skip, i;

	(void)hr_nginx_line(text, len, &skip);
	(void)hr_nginx_line_full(text, len);
	hr_assert(skip <= len);
	(void)hr_log_child_level(text, len, &skip);
	hr_assert(skip <= len);
	hr_quote_text(&b, text, len);
	for (i = 0; i < b.len; i++)
		hr_assert((unsigned char)b.p[i] >= ' ' && b.p[i] != 0x7F);
	hr_buf_reset(&b);
	hr_quote_json(&b, text, len);
	for (i = 0; i < b.len; i++)
		hr_assert((unsigned char)b.p[i] >= ' ');
}

static void
try_template(const char *text, size_t len)
{
	const struct hr_place places[] = {{"run_dir", text, false}, {"listen", "[::1]:1", false}};
	HR_BUF(b, 1 << 16);
	HR_FREE char *cd = NULL;

	(void)hr_template_fill(&b, text, len, places, 2, NULL);
	hr_buf_done(&b);
	cd = hr_keeper_cd(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HR_FREE char *text = NULL;

	if (size == 0 || size > 100000)
		return 0;
	text = malloc(size);
	if (text == NULL)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] % 4) {
	case 0: try_settings(text, size - 1); break;
	case 1: try_options(text, size - 1); break;
	case 2: try_line(text, size - 1); break;
	default: try_template(text, size - 1); break;
	}
	return 0;
}
