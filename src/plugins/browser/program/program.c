/* Handles programs: the known functions, binding of arguments to parameters, and the errors of
 * Python and the original's driver for wrong ones. */
#include "config.h"

#include "plugins/browser/program/program.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/span.h"
#include "plugins/browser/program/calls.h"

#define PARAMS_MAX 3
/* line of the first call in the script that the original makes from a program */
#define FIRST_LINE 657

struct function {
	const char *name;
	const char *params[PARAMS_MAX];
	unsigned n, needed;
};

static const struct function functions[BR_FN_COUNT] = {
    [BR_NOOP] = {"noop", {"wait_ms"}, 1, 0},
    [BR_SEND_MSG_TO_USER] = {"send_msg_to_user", {"text"}, 1, 1},
    [BR_REPORT_INFEASIBLE] = {"report_infeasible", {"reason"}, 1, 1},
    [BR_SCROLL] = {"scroll", {"delta_x", "delta_y"}, 2, 2},
    [BR_FILL] = {"fill", {"bid", "value"}, 2, 2},
    [BR_SELECT_OPTION] = {"select_option", {"bid", "options"}, 2, 2},
    [BR_CLICK] = {"click", {"bid", "button", "modifiers"}, 3, 1},
    [BR_DBLCLICK] = {"dblclick", {"bid", "button", "modifiers"}, 3, 1},
    [BR_HOVER] = {"hover", {"bid"}, 1, 1},
    [BR_PRESS] = {"press", {"bid", "key_comb"}, 2, 2},
    [BR_FOCUS] = {"focus", {"bid"}, 1, 1},
    [BR_CLEAR] = {"clear", {"bid"}, 1, 1},
    [BR_DRAG_AND_DROP] = {"drag_and_drop", {"from_bid", "to_bid"}, 2, 2},
    [BR_UPLOAD_FILE] = {"upload_file", {"bid", "file"}, 2, 2},
    [BR_GOTO] = {"goto", {"url"}, 1, 1},
    [BR_GO_BACK] = {"go_back", {NULL}, 0, 0},
    [BR_GO_FORWARD] = {"go_forward", {NULL}, 0, 0},
    [BR_NEW_TAB] = {"new_tab", {NULL}, 0, 0},
    [BR_TAB_CLOSE] = {"tab_close", {NULL}, 0, 0},
    [BR_TAB_FOCUS] = {"tab_focus", {"index"}, 1, 1},
};

struct br_program {
	struct br_calls calls;
	struct hr_span *list; /* list of the call bound last */
	struct hr_buf refused;
	struct hr_buf to_refused;
};

static const struct function *
function_of(const struct br_found *f)
{
	size_t i;

	for (i = 0; i < BR_FN_COUNT; i++)
		if (strcmp(functions[i].name, f->name) == 0)
			return &functions[i];
	return NULL;
}

/* ---- refusals before anything runs ---- */

/* Returns true for a word that cannot name an argument. */
static bool
is_reserved(const char *name)
{
	static const char *const words[] = {"and", "as", "assert", "async", "await", "break",
	    "class", "continue", "def", "del", "elif", "else", "except", "finally", "for", "from",
	    "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass",
	    "raise", "return", "try", "while", "with", "yield", NULL};

	return hr_is_one_of(name, words);
}

static bool
is_constant(const char *name)
{
	return strcmp(name, "None") == 0 || strcmp(name, "True") == 0 || strcmp(name, "False") == 0;
}

static int
check_reserved(const struct br_found *f, size_t line, struct hr_buf *why)
{
	const char *key;
	size_t i;

	for (i = 0; i < f->n; i++) {
		key = f->args[i].key;
		if (key == NULL || !(is_reserved(key) || is_constant(key)))
			continue;
		if (is_constant(key))
			hr_buf_addf(why, "SyntaxError: cannot assign to %s", key);
		else
			hr_buf_adds(why, "SyntaxError: invalid syntax");
		hr_buf_addf(why, " (<string>, line %zu)", line);
		return -1;
	}
	return 0;
}

/* Refuses the first name that Python refuses. */
static int
check_names(const struct br_found *f, size_t line, struct hr_buf *why)
{
	HR_FREE struct br_key *keys = calloc(f->n + 1, sizeof(*keys));
	size_t i, bad = f->n, n = 0;
	const char *key;

	if (keys == NULL)
		return -1;
	for (i = 0; i < f->n; i++) {
		key = f->args[i].key;
		if (key != NULL && strcmp(key, "__debug__") == 0 && bad == f->n)
			bad = i;
		if (key != NULL)
			keys[n++] = (struct br_key){.p = key, .len = strlen(key)};
	}
	br_keys_find_first(keys, n);
	for (i = 0; i < n; i++)
		if (keys[i].first != i && keys[i].first + f->n - n < bad)
			bad = keys[i].first + f->n - n; /* the first ones have no names */
	if (bad == f->n)
		return 0;
	key = f->args[bad].key;
	if (strcmp(key, "__debug__") == 0)
		hr_buf_addf(
		    why, "SyntaxError: cannot assign to __debug__ (<string>, line %zu)", line);
	else
		hr_buf_addf(why, "SyntaxError: keyword argument repeated: %s (<string>, line %zu)",
		    key, line);
	return -1;
}

int
br_calls_check(const struct br_calls *c, struct hr_buf *why)
{
	size_t i;

	if (c->n == 0)
		hr_buf_adds(why, "ValueError: Received an empty action.");
	for (i = 0; i < c->n; i++)
		if (function_of(&c->v[i]) == NULL) {
			hr_buf_addf(why, "NameError: Invalid action type '%s'.", c->v[i].name);
			return -1;
		}
	return c->n == 0 ? -1 : 0;
}

/* Checks the names of arguments as Python's compiler does. Returns -1 with *why set. */
static int
compile(const struct br_calls *c, struct hr_buf *why)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (check_reserved(&c->v[i], FIRST_LINE + i, why) < 0)
			return -1;
	for (i = 0; i < c->n; i++)
		if (check_names(&c->v[i], FIRST_LINE + i, why) < 0)
			return -1;
	return 0;
}

struct br_program *
br_program_parse(const char *text, size_t len, struct hr_buf *why)
{
	struct br_program *p = calloc(1, sizeof(*p));
	int done;

	if (p == NULL)
		return NULL;
	hr_buf_init(&p->refused, 4096);
	hr_buf_init(&p->to_refused, SIZE_MAX);
	done = br_calls_find(&p->calls, text, len, why);
	if (done == 0 && br_calls_check(&p->calls, why) == 0 && compile(&p->calls, why) == 0)
		return p;
	if (done < 0)
		hr_buf_reset(why);
	br_program_free(p);
	return NULL;
}

void
br_program_free(struct br_program *p)
{
	if (p == NULL)
		return;
	br_calls_done(&p->calls);
	free(p->list);
	hr_buf_done(&p->refused);
	hr_buf_done(&p->to_refused);
	free(p);
}

size_t
br_program_calls(const struct br_program *p)
{
	return p->calls.n;
}

/* ---- arguments ---- */

static int
bind_named(const struct function *fn, const struct br_argument *a, const struct br_value **to,
    struct hr_buf *why)
{
	unsigned i;

	for (i = 0; i < fn->n && strcmp(fn->params[i], a->key) != 0;)
		i++;
	if (i == fn->n)
		hr_buf_addf(why, "TypeError: %s() got an unexpected keyword argument '%s'",
		    fn->name, a->key);
	else if (to[i] != NULL)
		hr_buf_addf(
		    why, "TypeError: %s() got multiple values for argument '%s'", fn->name, a->key);
	else
		to[i] = &a->value;
	return why->len > 0 ? -1 : 0;
}

static void
say_too_many(const struct function *fn, size_t given, struct hr_buf *why)
{
	hr_buf_addf(why, "TypeError: %s() takes ", fn->name);
	if (fn->needed < fn->n)
		hr_buf_addf(why, "from %u to ", fn->needed);
	hr_buf_addf(why, "%u positional argument%s but %zu %s given", fn->n,
	    fn->n == 1 && fn->needed == 1 ? "" : "s", given, given == 1 ? "was" : "were");
}

static void
say_missing(const struct function *fn, const struct br_value **to, struct hr_buf *why)
{
	unsigned i, many = 0;
	const char *sep = "";

	for (i = 0; i < fn->needed; i++)
		many += to[i] == NULL;
	if (many == 0)
		return;
	hr_buf_addf(why, "TypeError: %s() missing %u required positional argument%s: ", fn->name,
	    many, many == 1 ? "" : "s");
	for (i = 0; i < fn->needed; i++)
		if (to[i] == NULL) { /* there are never more than two */
			hr_buf_addf(why, "%s'%s'", sep, fn->params[i]);
			sep = " and ";
		}
}

static int
bind(const struct function *fn, const struct br_found *f, const struct br_value **to,
    struct hr_buf *why)
{
	size_t i, positional = 0;

	for (i = 0; i < f->n; i++)
		if (br_value_has_inf(&f->args[i].value)) {
			hr_buf_adds(why, "NameError: name 'inf' is not defined");
			return -1;
		}
	for (i = 0; i < f->n && f->args[i].key == NULL; i++, positional++)
		if (i < fn->n)
			to[i] = &f->args[i].value;
	for (; i < f->n; i++)
		if (bind_named(fn, &f->args[i], to, why) < 0)
			return -1;
	if (positional > fn->n)
		say_too_many(fn, positional, why);
	else
		say_missing(fn, to, why);
	return why->len > 0 ? -1 : 0;
}

/* ---- the driver's types ---- */

static const char *
js_type(const struct br_value *v)
{
	switch (v->kind) {
	case BR_V_NONE: return "undefined";
	case BR_V_FALSE:
	case BR_V_TRUE: return "boolean";
	case BR_V_INT:
	case BR_V_FLOAT: return "number";
	case BR_V_STR: return "string";
	default: return "object";
	}
}

/* Returns the type's name for an element of a list. */
static const char *
js_type_inside(const struct br_value *v)
{
	return v->kind == BR_V_NONE ? "object" : js_type(v);
}

static struct hr_span
span_of(const struct br_value *v)
{
	return (struct hr_span){v->text, v->len};
}

static bool
is_list(const struct br_value *v)
{
	return v->kind == BR_V_LIST || v->kind == BR_V_TUPLE;
}

static int
take_bid(const struct br_value *v, struct hr_span *ret, struct hr_buf *why)
{
	if (v->kind == BR_V_STR) {
		*ret = span_of(v);
		return 0;
	}
	hr_buf_adds(why, "ValueError: expected a string, got ");
	br_value_repr(why, v);
	return -1;
}

static int
take_message(const struct br_value *v, struct hr_span *ret, struct hr_buf *why)
{
	if (v->kind == BR_V_STR) {
		*ret = span_of(v);
		return 0;
	}
	hr_buf_adds(why, "ValueError: Forbidden value: ");
	br_value_repr(why, v);
	hr_buf_adds(why, " is not a string");
	return -1;
}

/* Takes an argument of Frame.<frame>, named `what` in errors. */
static void
take_text(struct br_program *p, const struct br_value *v, const char *driver, const char *frame,
    const char *what, struct hr_span *ret)
{
	if (v->kind == BR_V_STR)
		*ret = span_of(v);
	else if (v->kind == BR_V_NONE)
		hr_buf_addf(&p->refused,
		    "TypeError: Frame.%s() missing 1 required positional argument: '%s'", frame,
		    what);
	else
		hr_buf_addf(&p->refused, "Error: %s.%s: %s: expected string, got %s", driver, frame,
		    what, js_type(v));
}

static void
take_float(
    struct br_program *p, const struct br_value *v, const char *path, double otherwise, double *ret)
{
	if (v == NULL)
		*ret = otherwise;
	else if (v->kind == BR_V_INT || v->kind == BR_V_FLOAT)
		*ret = v->number;
	else if (p->refused.len == 0)
		hr_buf_addf(&p->refused, "Error: %s: expected float, got %s", path, js_type(v));
}

static unsigned
modifier(const struct br_value *v)
{
	static const char *const names[] = {"Alt", "Control", "ControlOrMeta", "Meta", "Shift"};
	static const unsigned bits[] = {BR_ALT, BR_CONTROL, BR_CONTROL, BR_META, BR_SHIFT};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (br_value_is(v, names[i]))
			return bits[i];
	return 0;
}

static void
take_modifiers(struct br_program *p, const struct br_value *v, struct br_call *ret)
{
	size_t i;

	if (v == NULL || v->kind == BR_V_NONE)
		return;
	if (!is_list(v)) {
		hr_buf_addf(&p->refused, "Error: Locator.click: modifiers: expected array, got %s",
		    js_type(v));
		return;
	}
	for (i = 0; i < v->n; i++) {
		if (modifier(&v->items[i]) == 0) {
			hr_buf_addf(&p->refused,
			    "Error: Locator.click: modifiers[%zu]: expected one of "
			    "(Alt|Control|ControlOrMeta|Meta|Shift)",
			    i);
			return;
		}
		ret->modifiers |= modifier(&v->items[i]);
	}
}

static void
take_button(struct br_program *p, const struct br_value *v, struct br_call *ret)
{
	static const char *const names[] = {
	    [BR_LEFT] = "left", [BR_MIDDLE] = "middle", [BR_RIGHT] = "right"};
	unsigned i;

	if (v == NULL || v->kind == BR_V_NONE)
		return;
	for (i = 0; i < 3; i++)
		if (br_value_is(v, names[i])) {
			ret->button = (enum br_button)i;
			return;
		}
	if (p->refused.len == 0)
		hr_buf_adds(&p->refused,
		    "Error: Locator.click: button: expected one of (left|right|middle)");
}

/* Lists every step-th value as a string; *ret_other is the first that is not a string. Returns -1
 * without memory. */
static int
list_strings(struct br_program *p, const struct br_value *v, size_t step, struct br_call *ret,
    const struct br_value **ret_other, size_t *ret_at)
{
	struct hr_span *list = reallocarray(p->list, v->n / step + 1, sizeof(*list));
	size_t i;

	if (list == NULL)
		return -1;
	p->list = list;
	*ret_other = NULL;
	for (i = 0; i < v->n; i += step) {
		if (v->items[i].kind != BR_V_STR && *ret_other == NULL) {
			*ret_other = &v->items[i];
			*ret_at = i / step;
		}
		list[i / step] = span_of(&v->items[i]);
	}
	ret->list = list;
	ret->nlist = v->n / step;
	return 0;
}

static int
list_of_one(struct br_program *p, const struct br_value *v, struct br_call *ret)
{
	struct hr_span *list = reallocarray(p->list, 1, sizeof(*list));

	if (list == NULL)
		return -1;
	p->list = list;
	list[0] = span_of(v);
	ret->list = list;
	ret->nlist = 1;
	return 0;
}

static int
take_options(struct br_program *p, const struct br_value *v, struct br_call *ret)
{
	const struct br_value *other;
	size_t at;

	if (v->kind == BR_V_STR)
		return list_of_one(p, v, ret);
	if (v->kind == BR_V_NONE)
		return 0; /* the value counts as an empty list */
	if (v->kind < BR_V_LIST) {
		hr_buf_addf(
		    &p->refused, "TypeError: '%s' object is not iterable", br_value_type(v));
		return 0;
	}
	if (list_strings(p, v, v->kind == BR_V_DICT ? 2 : 1, ret, &other, &at) < 0)
		return -1;
	if (other != NULL)
		hr_buf_addf(&p->refused,
		    "Error: Locator.select_option: options[%zu].value_or_label: expected string, "
		    "got %s",
		    at, js_type_inside(other));
	return 0;
}

/* Takes paths of files. A file given by content would be a dictionary with bytes, which no program
 * text can express. */
static int
take_files(struct br_program *p, const struct br_value *v, struct br_call *ret)
{
	const struct br_value *other = v;
	size_t at, i;

	if (v->kind == BR_V_STR)
		return list_of_one(p, v, ret);
	if (is_list(v) && list_strings(p, v, 1, ret, &other, &at) < 0)
		return -1;
	if (other == NULL)
		return 0;
	for (i = 0; is_list(v) && i < v->n; i++)
		if (v->items[i].kind == BR_V_STR) {
			hr_buf_adds(&p->refused, "Error: FileChooser.set_files: File paths cannot "
						 "be mixed with buffers");
			return 0;
		}
	if (other->kind == BR_V_DICT)
		hr_buf_adds(&p->refused, "KeyError: 'name'");
	else
		hr_buf_addf(&p->refused, "AttributeError: '%s' object has no attribute 'get'",
		    br_value_type(other));
	return 0;
}

static int
take_index(const struct br_value *v, struct br_call *ret, struct hr_buf *why)
{
	switch (v->kind) {
	case BR_V_FALSE:
	case BR_V_TRUE: ret->index = v->kind == BR_V_TRUE; return 0;
	case BR_V_INT:
		errno = 0;
		ret->index = strtoll(v->text, NULL, 10);
		if (errno == 0)
			return 0;
		hr_buf_adds(why, "IndexError: cannot fit 'int' into an index-sized integer");
		return -1;
	default:
		hr_buf_addf(why, "TypeError: list indices must be integers or slices, not %s",
		    br_value_type(v));
		return -1;
	}
}

static int
take_arguments(
    struct br_program *p, const struct br_value *const *a, struct br_call *ret, struct hr_buf *why)
{
	switch (ret->fn) {
	case BR_NOOP:
		take_float(p, a[0], "Page.wait_for_timeout: wait_timeout", 1000, &ret->x);
		return 0;
	case BR_SEND_MSG_TO_USER:
	case BR_REPORT_INFEASIBLE: return take_message(a[0], &ret->text, why);
	case BR_SCROLL:
		take_float(p, a[0], "Mouse.wheel: delta_x", 0, &ret->x);
		take_float(p, a[1], "Mouse.wheel: delta_y", 0, &ret->y);
		return 0;
	case BR_GOTO: take_text(p, a[0], "Page", "goto", "url", &ret->text); return 0;
	case BR_TAB_FOCUS: return take_index(a[0], ret, why);
	case BR_GO_BACK:
	case BR_GO_FORWARD:
	case BR_NEW_TAB:
	case BR_TAB_CLOSE:
	case BR_FN_COUNT: return 0;
	default: break;
	}
	if (take_bid(a[0], &ret->bid, why) < 0)
		return -1;
	switch (ret->fn) {
	case BR_FILL: take_text(p, a[1], "Locator", "fill", "value", &ret->text); return 0;
	case BR_PRESS: take_text(p, a[1], "Locator", "press", "key", &ret->text); return 0;
	case BR_SELECT_OPTION: return take_options(p, a[1], ret);
	case BR_UPLOAD_FILE: return take_files(p, a[1], ret);
	case BR_CLICK:
	case BR_DBLCLICK:
		take_modifiers(p, a[2], ret);
		take_button(p, a[1], ret);
		return 0;
	case BR_DRAG_AND_DROP:
		if (take_bid(a[1], &ret->to_bid, &p->to_refused) < 0)
			ret->to_refused = hr_buf_str(&p->to_refused);
		return 0;
	default: return 0;
	}
}

int
br_program_bind(struct br_program *p, size_t i, struct br_call *ret, struct hr_buf *why)
{
	const struct br_value *args[PARAMS_MAX] = {NULL};
	const struct br_found *f = &p->calls.v[i];
	const struct function *fn = function_of(f);

	*ret = (struct br_call){.fn = (enum br_fn)(fn - functions)};
	hr_buf_reset(&p->refused);
	hr_buf_reset(&p->to_refused);
	if (bind(fn, f, args, why) < 0 || take_arguments(p, args, ret, why) < 0)
		return -1;
	if (p->refused.fail != HR_OK || p->to_refused.fail != HR_OK)
		return -1;
	if (p->refused.len > 0)
		ret->refused = hr_buf_str(&p->refused);
	return 0;
}
