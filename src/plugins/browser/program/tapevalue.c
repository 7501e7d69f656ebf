/* Converts a JSON value to a Python value, for its repr(). */
#include "config.h"

#include "plugins/browser/page/tape.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/browser/program/value.h"

static int
take_number(const struct br_tape *t, uint32_t i, struct br_value *ret)
{
	size_t len;
	const char *p = br_tape_raw(t, i, &len);
	bool is_float = memchr(p, '.', len) != NULL || memchr(p, 'e', len) != NULL ||
			memchr(p, 'E', len) != NULL;

	ret->kind = is_float ? BR_V_FLOAT : BR_V_INT;
	ret->number = br_tape_number(t, i, 0);
	if (is_float)
		return 0;
	if (len == 2 && p[0] == '-' && p[1] == '0') {
		p++;
		len--;
	}
	ret->text = malloc(len + 1); /* copies without strndup(): p may lack a terminating '\0' */
	if (ret->text == NULL)
		return -1;
	memcpy(ret->text, p, len);
	ret->text[len] = '\0';
	ret->len = len;
	return 0;
}

static int
take_items(const struct br_tape *t, uint32_t in, unsigned depth, struct br_value *ret)
{
	struct br_value item = {0};
	uint32_t i;

	ret->kind = br_tape_type(t, in) == BR_TAPE_LIST ? BR_V_LIST : BR_V_DICT;
	if (depth == 0)
		return -1;
	for (i = br_tape_first(t, in); i != BR_TAPE_NONE; i = br_tape_next(t, in, i)) {
		if (br_tape_value(t, i, depth - 1, &item) < 0 || br_value_push(ret, &item) < 0) {
			br_value_done(ret);
			return -1;
		}
	}
	return 0;
}

int
br_tape_value(const struct br_tape *t, uint32_t i, unsigned depth, struct br_value *ret)
{
	struct hr_buf b;

	*ret = (struct br_value){0};
	switch (br_tape_type(t, i)) {
	case BR_TAPE_NOTHING:
	case BR_TAPE_NULL: return 0;
	case BR_TAPE_FALSE: ret->kind = BR_V_FALSE; return 0;
	case BR_TAPE_TRUE: ret->kind = BR_V_TRUE; return 0;
	case BR_TAPE_NUMBER: return take_number(t, i, ret);
	case BR_TAPE_STRING:
		hr_buf_init(&b, BR_TAPE_TEXT_MAX);
		br_tape_str(t, i, &b);
		ret->kind = BR_V_STR;
		ret->len = b.len;
		ret->text = b.p != NULL ? hr_buf_take(&b) : calloc(1, 1);
		return ret->text != NULL ? 0 : -1;
	case BR_TAPE_LIST:
	case BR_TAPE_OBJECT: return take_items(t, i, depth, ret);
	}
	return -1;
}
