/* Uses PCRE2, which accepts nearly all of Python's re syntax. PCRE2's own step limit restarts at
 * each start position, so the steps are counted here. */
#include "config.h"

#include "worker/rex/expect.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/clock.h"
#include "proto/json.h"

/* number of steps that are free: each expression takes some at every position */
#define STEPS_PER_BYTE 4
#define BYTES_PER_STEP 128 /* "[^x]*" passes any number in one item, from every position */
#define HEAP_KIB 16384

struct walk {
	int64_t left; /* number of steps */
	PCRE2_SIZE at;
};

static int
step(pcre2_callout_block *block, void *arg)
{
	struct walk *w = arg;
	PCRE2_SIZE now = block->current_position;

	w->left -= 1 + (int64_t)((now > w->at ? now - w->at : w->at - now) / BYTES_PER_STEP);
	w->at = now;
	return w->left > 0 ? 0 : PCRE2_ERROR_CALLOUT;
}

int
hr_rex_expect_init(struct hr_rex_expect *e, struct json_object *list, struct hr_buf *why)
{
	PCRE2_UCHAR said[128];
	PCRE2_SIZE at;
	const char *p;
	size_t len;
	int code;

	*e = (struct hr_rex_expect){.list = list};
	if (hr_json_count(list) > HR_REX_EXPECT_MAX) {
		hr_buf_addf(why, "more than %d expressions", HR_REX_EXPECT_MAX);
		return -1;
	}
	e->limits = pcre2_match_context_create(NULL);
	e->data = pcre2_match_data_create(1, NULL);
	if (e->limits == NULL || e->data == NULL) {
		hr_buf_adds(why, "out of memory");
		return -1;
	}
	e->steps = HR_REX_EXPECT_STEPS;
	(void)pcre2_set_match_limit(e->limits, UINT32_MAX);
	(void)pcre2_set_heap_limit(e->limits, HEAP_KIB);
	for (; e->n < hr_json_count(list); e->n++) {
		p = hr_json_str(hr_json_entry(list, e->n), &len);
		e->codes[e->n] = pcre2_compile((PCRE2_SPTR)p, len,
		    PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_DOTALL | PCRE2_NEVER_BACKSLASH_C |
			PCRE2_AUTO_CALLOUT,
		    &code, &at, NULL);
		if (e->codes[e->n] == NULL) {
			(void)pcre2_get_error_message(code, said, sizeof(said));
			hr_buf_addf(why, "%s at position %zu", (const char *)said, (size_t)at);
			return -1;
		}
	}
	return 0;
}

void
hr_rex_expect_done(struct hr_rex_expect *e)
{
	while (e->n > 0)
		pcre2_code_free(e->codes[--e->n]);
	pcre2_match_context_free(e->limits);
	pcre2_match_data_free(e->data);
}

int
hr_rex_expect_match(struct hr_rex_expect *e, const char *p, size_t len, size_t from,
    int64_t until_ms, size_t *ret_at)
{
	int64_t free_steps = (int64_t)(len - from) * STEPS_PER_BYTE;
	struct walk w;
	size_t i, at;
	int found = -1, r;

	for (i = 0; i < e->n && (until_ms == 0 || hr_now_ms() < until_ms); i++) {
		w = (struct walk){e->steps + free_steps, from};
		(void)pcre2_set_callout(e->limits, step, &w);
		r = pcre2_match(e->codes[i], (PCRE2_SPTR)p, len, from, 0, e->data, e->limits);
		e->steps = w.left < e->steps ? w.left : e->steps;
		if (r == PCRE2_ERROR_CALLOUT || r == PCRE2_ERROR_HEAPLIMIT ||
		    r == PCRE2_ERROR_MATCHLIMIT || r == PCRE2_ERROR_NOMEMORY)
			return -2;
		if (r < 0)
			continue;
		at = pcre2_get_ovector_pointer(e->data)[0];
		if (found < 0 || at < *ret_at) {
			*ret_at = at;
			found = (int)i;
		}
	}
	return found;
}
