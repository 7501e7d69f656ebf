/* The doubling of backslashes, from a list of the words and here-documents that the parser saw. */
#include "config.h"

#include "shell/escape.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "shell/parse.h"
#include "shell/text.h"

struct mark {
	enum { MARK_UNIT, MARK_WORD, MARK_HEREDOC } kind;
	size_t start, end;
	size_t body_end; /* MARK_HEREDOC */
};

struct marks {
	struct mark *v;
	size_t n, room;
	bool nomem;
};

static size_t
marks_add(struct marks *m, int kind, size_t start, size_t end)
{
	if (m->n == m->room) {
		size_t room = m->room ? m->room * 2 : 32;
		struct mark *v = realloc(m->v, room * sizeof *v);

		if (!v) {
			m->nomem = true;
			return 0;
		}
		m->v = v;
		m->room = room;
	}
	m->v[m->n].kind = kind;
	m->v[m->n].start = start;
	m->v[m->n].end = m->v[m->n].body_end = end;
	return m->n++;
}

static void
on_begin(void *arg, size_t start)
{
	(void)marks_add(arg, MARK_UNIT, start, start);
}

static void
on_word(void *arg, size_t start, size_t end)
{
	(void)marks_add(arg, MARK_WORD, start, end);
}

static size_t
on_heredoc(void *arg, size_t start, size_t end)
{
	return marks_add(arg, MARK_HEREDOC, start, end);
}

static void
on_body(void *arg, size_t tag, size_t start, size_t end)
{
	struct marks *m = arg;
	struct mark *k;

	if (m->nomem)
		return;
	k = &m->v[tag];
	k->body_end = end;
	/* An operator directly before its body is taken to reach to the body's end; all others make
	 * the body appear twice. */
	if (k->end + 1 == start)
		k->end = end;
}

static void
add_doubled(struct hr_buf *b, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '\\' && i + 1 < len && s[i + 1] != '\0' && strchr(";&|><", s[i + 1]))
			hr_buf_addc(b, '\\');
		hr_buf_addc(b, s[i]);
	}
}

static bool
is_protected(const char *s, size_t len)
{
	if (len == 0)
		return false;
	if (s[0] == '$')
		return len > 1 && s[1] == '(' && s[len - 1] == ')';
	return (s[0] == '"' || s[0] == '\'' || s[0] == '`') && s[len - 1] == s[0];
}

static void
write_marks(struct hr_buf *b, const struct marks *m, const char *text, size_t len)
{
	size_t last = 0;

	for (size_t i = 0; i < m->n; i++) {
		const struct mark *k = &m->v[i];

		if (k->kind == MARK_HEREDOC) {
			if (k->body_end > last)
				hr_buf_add(b, text + last, k->body_end - last);
			last = k->end;
			continue;
		}
		if (k->start > last)
			add_doubled(b, text + last, k->start - last);
		if (is_protected(text + k->start, k->end - k->start))
			hr_buf_add(b, text + k->start, k->end - k->start);
		else
			add_doubled(b, text + k->start, k->end - k->start);
		last = k->end;
	}
	hr_buf_add(b, text + last, len - last);
}

char *
hr_shell_escape(const char *text, size_t len, size_t *ret_len, struct hr_err *err)
{
	struct hr_shell_state st = {.exact = true};
	struct marks m = {0};
	struct hr_shell_visitor visitor = {
	    .begin = on_begin, .word = on_word, .heredoc = on_heredoc, .body = on_body, .arg = &m};
	struct hr_buf b;

	hr_buf_init(&b, 16 * len + (1u << 20));
	hr_buf_add(&b, "", 0);
	if (hr_shell_rstrip(text, len) > 0) {
		if (hr_shell_units(text, len, &visitor, &st) == 0)
			write_marks(&b, &m, text, len);
		else
			hr_buf_add(&b, text, len);
	}
	free(m.v);
	if (st.nomem || m.nomem) {
		hr_buf_done(&b);
		(void)hr_err_nomem(err);
		return NULL;
	}
	if (hr_buf_check(&b, err)) {
		hr_buf_done(&b);
		return NULL;
	}
	if (ret_len)
		*ret_len = b.len;
	return hr_buf_take(&b);
}
