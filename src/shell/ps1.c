/* Finding blocks by their markers, and reading what is in them. */
#include "config.h"

#include "shell/ps1.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shell/ps1json.h"
#include "shell/pyfloat.h"
#include "shell/text.h"

#define BEGIN_MARK "###PS1JSON###"
#define END_MARK "###PS1END###"

const char hr_ps1_prompt[] =
    "\n" BEGIN_MARK "\n"
    "{\n"
    "  \\\"pid\\\": \\\"$!\\\",\n"
    "  \\\"exit_code\\\": \\\"$?\\\",\n"
    "  \\\"username\\\": \\\"\\\\u\\\",\n"
    "  \\\"hostname\\\": \\\"\\\\h\\\",\n"
    "  \\\"working_dir\\\": \\\"$(pwd)\\\",\n"
    "  \\\"py_interpreter_path\\\": \\\"$(which python 2>/dev/null || echo \\\\\"\\\\\")\\\"\n"
    "}\n" END_MARK "\n";

/* Offset of `mark` at or behind `from`, or len. */
static size_t
find_mark(const char *text, size_t len, size_t from, const char *mark)
{
	const char *p;

	if (from >= len)
		return len;
	p = memmem(text + from, len - from, mark, strlen(mark));
	return p ? (size_t)(p - text) : len;
}

bool
hr_ps1_find(const char *text, size_t len, size_t from, struct hr_ps1_match *ret)
{
	const size_t begin_len = strlen(BEGIN_MARK), end_len = strlen(END_MARK);

	while ((from = find_mark(text, len, from, BEGIN_MARK)) < len) {
		struct hr_ps1_value v;
		const char *body;
		size_t end, n;

		/* The marker cannot overlap itself, but for its first #. */
		if (from > 0 && text[from - 1] != '\n') {
			from++;
			continue;
		}
		end = find_mark(text, len, from + begin_len, END_MARK);
		if (end == len)
			return false;
		body = hr_shell_strip(text + from + begin_len, end - from - begin_len, &n);
		if (hr_ps1_json_text(body, n, &v)) {
			ret->start = from;
			ret->end = end + end_len;
			ret->body = (size_t)(body - text);
			ret->body_len = n;
			return true;
		}
		from = end + end_len;
	}
	return false;
}

static int
set_string(struct hr_ps1_string *ret, char *p, size_t len, struct hr_err *err)
{
	if (!p)
		return hr_err_nomem(err);
	free(ret->p);
	ret->p = p;
	ret->len = len;
	return 0;
}

int
hr_ps1_meta_init(struct hr_ps1_meta *m, struct hr_err *err)
{
	memset(m, 0, sizeof *m);
	m->exit_code = m->pid = -1;
	if (set_string(&m->prefix, strdup(""), 0, err) ||
	    set_string(&m->suffix, strdup(""), 0, err)) {
		hr_ps1_meta_done(m);
		return -1;
	}
	return 0;
}

void
hr_ps1_meta_done(struct hr_ps1_meta *m)
{
	free(m->username.p);
	free(m->hostname.p);
	free(m->working_dir.p);
	free(m->py_interpreter_path.p);
	free(m->prefix.p);
	free(m->suffix.p);
	memset(m, 0, sizeof *m);
}

/* int(float(text)), -1 for what does not convert. */
static int
set_number(int64_t *ret, const char *text, size_t len, struct hr_err *err)
{
	struct hr_err why = {0};
	double d;

	if (hr_pyfloat_parse(text, len, &d, &why)) {
		if (why.code == HR_E_NOMEM)
			return hr_err_nomem(err);
		d = NAN;
	}
	if (isinf(d))
		return hr_err_set(err, HR_E_INVAL, "cannot convert float infinity to integer");
	if (isnan(d))
		*ret = -1;
	else if (d >= 9223372036854775808.0)
		*ret = INT64_MAX;
	else if (d < -9223372036854775808.0)
		*ret = INT64_MIN;
	else
		*ret = (int64_t)d;
	return 0;
}

/* The same of str(v). Only the text form of strings and numbers is a number's. */
static int
set_number_value(int64_t *ret, const struct hr_ps1_value *v, struct hr_err *err)
{
	size_t len;
	char *s;
	int r;

	if (v->type == HR_PS1_INT || v->type == HR_PS1_FLOAT)
		return set_number(ret, v->raw, v->len, err);
	if (v->type != HR_PS1_STR) {
		*ret = -1;
		return 0;
	}
	s = hr_ps1_json_string(v, &len);
	if (!s)
		return hr_err_nomem(err);
	r = set_number(ret, s, len, err);
	free(s);
	return r;
}

static int
set_text(struct hr_ps1_string *ret, const char *name, bool null_ok, const struct hr_ps1_value *v,
    struct hr_err *err)
{
	size_t len = 0;
	char *p;

	if (v->type == HR_PS1_STR) {
		p = hr_ps1_json_string(v, &len);
		return set_string(ret, p, len, err);
	}
	if (v->type != HR_PS1_NULL || !null_ok)
		return hr_err_set(err, HR_E_INVAL,
		    "1 validation error for CmdOutputMetadata\n%s\n  Input should be a valid "
		    "string",
		    name);
	free(ret->p);
	ret->p = NULL;
	ret->len = 0;
	return 0;
}

/* The value of the last member called `name`. */
static bool
last_member(
    const struct hr_ps1_value *dict, const char *name, struct hr_ps1_value *ret, bool *ret_nomem)
{
	struct hr_ps1_value key, value;
	size_t at = 0, len;
	bool found = false;

	while (hr_ps1_json_member(dict, &at, &key, &value)) {
		char *s = hr_ps1_json_string(&key, &len);

		if (!s) {
			*ret_nomem = true;
			return false;
		}
		if (len == strlen(name) && !memcmp(s, name, len)) {
			*ret = value;
			found = true;
		}
		free(s);
	}
	return found;
}

static int
fill(struct hr_ps1_meta *m, const struct hr_ps1_value *dict, struct hr_err *err)
{
	const struct {
		const char *name;
		int64_t *number; /* or: */
		struct hr_ps1_string *text;
		bool null_ok;
	} fields[] = {
	    {"pid", &m->pid, NULL, false},
	    {"exit_code", &m->exit_code, NULL, false},
	    {"username", NULL, &m->username, true},
	    {"hostname", NULL, &m->hostname, true},
	    {"working_dir", NULL, &m->working_dir, true},
	    {"py_interpreter_path", NULL, &m->py_interpreter_path, true},
	    {"prefix", NULL, &m->prefix, false},
	    {"suffix", NULL, &m->suffix, false},
	};

	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		struct hr_ps1_value v;
		bool nomem = false;
		int r = 0;

		if (last_member(dict, fields[i].name, &v, &nomem)) {
			if (fields[i].number)
				r = set_number_value(fields[i].number, &v, err);
			else
				r = set_text(
				    fields[i].text, fields[i].name, fields[i].null_ok, &v, err);
		}
		if (nomem)
			return hr_err_nomem(err);
		if (r)
			return -1;
	}
	return 0;
}

int
hr_ps1_interpret(const char *body, size_t len, struct hr_ps1_meta *ret, struct hr_err *err)
{
	static const char *const names[] = {
	    [HR_PS1_NULL] = "NoneType",
	    [HR_PS1_BOOL] = "bool",
	    [HR_PS1_INT] = "int",
	    [HR_PS1_FLOAT] = "float",
	    [HR_PS1_STR] = "str",
	};
	struct hr_ps1_value v;
	struct hr_ps1_meta m;

	if (!hr_ps1_json_text(body, len, &v))
		return hr_err_set(err, HR_E_INVAL, "the block is no JSON");
	if (v.type == HR_PS1_LIST)
		return hr_err_set(err, HR_E_INVAL,
		    "openhands.events.observation.commands.CmdOutputMetadata() argument after ** "
		    "must "
		    "be a mapping, not list");
	if (v.type != HR_PS1_DICT)
		return hr_err_set(
		    err, HR_E_INVAL, "'%s' object has no attribute 'copy'", names[v.type]);
	if (hr_ps1_meta_init(&m, err))
		return -1;
	if (fill(&m, &v, err)) {
		hr_ps1_meta_done(&m);
		return -1;
	}
	*ret = m;
	return 0;
}
