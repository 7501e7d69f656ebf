/* What Chromium says, as bytes from its pipe, while somebody looks on: whatever comes, the plugin
 * goes on, what it notes stays within its limits, and all of it is freed. */
#include "config.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "plugins/browser/browser.h"
#include "plugins/browser/browser_int.h"
#include "fuzz.h"

static void
look(void *arg)
{
	struct browser *b = arg;
	HR_BUF(text, 1u << 26);

	hr_buf_adds(&text, "{");
	br_cast_put_state(b, true, &text);
	hr_buf_adds(&text, ",");
	br_cast_put_picture(&b->cast, &text);
	hr_buf_adds(&text, "}");
	hr_assert(text.fail == HR_OK && memchr(text.p, '\n', text.len) == NULL);
}

static void
check(struct browser *b)
{
	const struct br_session *s;
	const struct br_tab *tab;
	size_t n = 0;

	TAILQ_FOREACH(tab, &b->tabs, entry)
	{
		n++;
		hr_assert(br_page((struct br_tab *)tab) != NULL);
		TAILQ_FOREACH(s, &tab->sessions, entry)
		hr_assert(s->nframes <= BR_FRAMES_MAX && !TAILQ_EMPTY(&s->frames));
	}
	hr_assert(n == b->ntabs && n <= BR_TABS_MAX);
	hr_assert(b->active == NULL || br_tab_find(b, b->active->target) != NULL);
}

/* A line of the input is a message. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hr_err err = {0};
	struct browser b;
	size_t i;
	char *p;

	hr_log_setup("browser", HR_LOG_CHILD, HR_LOG_ERROR); /* not what is no JSON */
	br_init(&b);
	b.loop = hr_loop_new(&err);
	b.to = open("/dev/null", O_WRONLY | O_CLOEXEC);
	hr_assert(b.loop != NULL && b.to >= 0);
	br_cast_to(&b, look, &b);
	p = hr_buf_reserve(&b.in, size + 1);
	hr_assert(p != NULL);
	for (i = 0; i < size; i++)
		p[i] = data[i] == '\n' ? '\0' : (char)data[i];
	p[size] = '\0';
	hr_buf_grew(&b.in, size + 1);
	br_take(&b);
	hr_assert(!b.gone && b.in.len == 0);
	check(&b);
	br_cast_to(&b, NULL, NULL);
	br_done(&b);
	hr_loop_free(b.loop);
	return 0;
}
