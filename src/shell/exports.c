/* bash prints one line for each variable, since a value with newlines is printed as $'...'. */
#include "config.h"

#include "shell/exports.h"

#include <stdbool.h>
#include <string.h>

/* Returns the name after "declare -x " and the like, or NULL if the line is of another form. */
static const char *
declared_name(const char *p, const char *end)
{
	static const char *const verbs[] = {"declare ", "export "};
	size_t i, n = 0;

	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		n = strlen(verbs[i]);
		if ((size_t)(end - p) > n && memcmp(p, verbs[i], n) == 0)
			break;
	}
	if (i == sizeof(verbs) / sizeof(verbs[0]))
		return NULL;
	p += n;
	while (p < end && *p == '-') {
		while (p < end && *p != ' ')
			p++;
		while (p < end && *p == ' ')
			p++;
	}
	return p;
}

static bool
is_kept(const char *line, const char *end)
{
	static const char *const dropped[] = {"PROMPT_COMMAND", "PS0", "PS1", "PS2", "PWD", "SHLVL",
	    "TMOUT", "POSIXLY_CORRECT", "__hr_n", "__hr_p", "__hr_a", "__hr_b", "__hr_s"};
	const char *name = declared_name(line, end), *p = name;
	size_t i;

	if (name == NULL)
		return true;
	while (p < end && *p != '=' && *p != '\n')
		p++;
	for (i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++) {
		if (strlen(dropped[i]) == (size_t)(p - name) &&
		    memcmp(name, dropped[i], (size_t)(p - name)) == 0)
			return false;
	}
	return true;
}

void
hr_exports_keep(const char *exports, size_t len, struct hr_buf *out)
{
	static const char fixed[] = "declare -rx ";
	const char *end = exports + len, *line, *next;

	for (line = exports; line < end; line = next) {
		next = memchr(line, '\n', (size_t)(end - line));
		next = next != NULL ? next + 1 : end;
		if (!is_kept(line, next))
			continue;
		if ((size_t)(next - line) >= sizeof(fixed) &&
		    memcmp(line, fixed, sizeof(fixed) - 1) == 0) {
			hr_buf_adds(out, "declare -x ");
			line += sizeof(fixed) - 1;
		}
		hr_buf_add(out, line, (size_t)(next - line));
	}
}
