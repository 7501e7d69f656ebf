/* Stores literals of programs. calls.c bounds the depth, and thus the recursion. */
#include "config.h"

#include "plugins/browser/program/value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/floatrepr.h"
#include "proto/python/repr.h"

void
br_value_done(struct br_value *v)
{
	size_t i;

	for (i = 0; i < v->n; i++)
		br_value_done(&v->items[i]);
	free(v->items);
	free(v->text);
	*v = (struct br_value){0};
}

int
br_value_push(struct br_value *v, struct br_value *item)
{
	struct br_value *grown = v->items;

	if ((v->n & (v->n - 1)) == 0) /* the list is full at each power of two */
		grown = reallocarray(v->items, v->n == 0 ? 1 : v->n * 2, sizeof(*grown));
	if (grown == NULL) {
		br_value_done(item);
		return -1;
	}
	v->items = grown;
	v->items[v->n++] = *item;
	*item = (struct br_value){0};
	return 0;
}

static int
compare_names(const struct br_key *x, const struct br_key *y)
{
	return x->len != y->len ? (x->len < y->len ? -1 : 1) : memcmp(x->p, y->p, x->len);
}

static int
compare_at(const void *a, const void *b)
{
	const struct br_key *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static int
compare_keys(const void *a, const void *b)
{
	int c = compare_names(a, b);

	return c != 0 ? c : compare_at(a, b);
}

void
br_keys_find_first(struct br_key *keys, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		keys[i].at = i;
	qsort(keys, n, sizeof(*keys), compare_keys);
	for (i = 0; i < n; i++)
		keys[i].first = i > 0 && compare_names(&keys[i - 1], &keys[i]) == 0
				    ? keys[i - 1].first
				    : keys[i].at;
	qsort(keys, n, sizeof(*keys), compare_at);
}

static void
repr_items(struct hr_buf *b, const struct br_value *v)
{
	size_t i, step = v->kind == BR_V_DICT ? 2 : 1;

	for (i = 0; i < v->n; i += step) {
		hr_buf_adds(b, i > 0 ? ", " : "");
		br_value_repr(b, &v->items[i]);
		if (step == 2) {
			hr_buf_adds(b, ": ");
			br_value_repr(b, &v->items[i + 1]);
		}
	}
}

void
br_value_repr(struct hr_buf *b, const struct br_value *v)
{
	static const char *const marks[] = {
	    [BR_V_LIST] = "[]", [BR_V_TUPLE] = "()", [BR_V_DICT] = "{}"};

	switch (v->kind) {
	case BR_V_NONE: hr_buf_adds(b, "None"); break;
	case BR_V_FALSE: hr_buf_adds(b, "False"); break;
	case BR_V_TRUE: hr_buf_adds(b, "True"); break;
	case BR_V_INT: hr_buf_add(b, v->text, v->len); break;
	case BR_V_FLOAT: hr_float_repr(b, v->number); break;
	case BR_V_STR: hr_pyrepr_str(b, v->text, v->len); break;
	case BR_V_LIST:
	case BR_V_TUPLE:
	case BR_V_DICT:
		hr_buf_addc(b, marks[v->kind][0]);
		repr_items(b, v);
		if (v->kind == BR_V_TUPLE && v->n == 1)
			hr_buf_addc(b, ',');
		hr_buf_addc(b, marks[v->kind][1]);
		break;
	}
}

const char *
br_value_type(const struct br_value *v)
{
	static const char *const names[] = {
	    "NoneType", "bool", "bool", "int", "float", "str", "list", "tuple", "dict"};

	return names[v->kind];
}

bool
br_value_is(const struct br_value *v, const char *text)
{
	return v->kind == BR_V_STR && strlen(text) == v->len && memcmp(v->text, text, v->len) == 0;
}

bool
br_value_has_inf(const struct br_value *v)
{
	size_t i;

	for (i = 0; i < v->n; i++)
		if (br_value_has_inf(&v->items[i]))
			return true;
	return v->kind == BR_V_FLOAT && isinf(v->number);
}
