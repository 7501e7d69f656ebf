/* Splits header parameters at semicolons as email.message does: a semicolon inside quotes is text,
 * and so is a quote after a backslash. */
#include "config.h"

#include "files/params.h"

#include <string.h>
#include <strings.h>

#include "base/text/percent.h"

static bool
is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F);
}

static void
strip(const char **p, size_t *len)
{
	while (*len > 0 && is_blank((*p)[*len - 1]))
		--*len;
	while (*len > 0 && is_blank(**p)) {
		++*p;
		--*len;
	}
}

/* Returns the length up to the semicolon that ends this parameter. */
static size_t
param_len(const char *p, size_t len)
{
	bool quoted = false;
	size_t i;

	for (i = 0; i < len; i++) {
		/* an escaped quote is counted twice, which cancels out */
		if (p[i] == '"' && (i == 0 || p[i - 1] != '\\'))
			quoted = !quoted;
		else if (p[i] == ';' && !quoted)
			break;
	}
	return i;
}

/* Decodes charset'language'%xx to bytes; the caller decides how to read their charset. */
static void
put_extended(struct hr_buf *b, const char *p, size_t len)
{
	const char *first = memchr(p, '\'', len), *second = NULL;

	if (first != NULL)
		second = memchr(first + 1, '\'', len - (size_t)(first + 1 - p));
	if (second != NULL) {
		len -= (size_t)(second + 1 - p);
		p = second + 1;
	}
	hr_percent_decode(b, p, len, false);
}

static void
put_value(struct hr_buf *b, const char *p, size_t len)
{
	bool quoted = len > 1 && p[0] == '"' && p[len - 1] == '"';
	size_t i;

	if (quoted || (len > 1 && p[0] == '<' && p[len - 1] == '>')) {
		p++;
		len -= 2;
	}
	for (i = 0; i < len; i++) {
		if (quoted && p[i] == '\\' && i + 1 < len && (p[i + 1] == '\\' || p[i + 1] == '"'))
			i++;
		hr_buf_addc(b, p[i]);
	}
}

bool
hr_params_get(const char *header, size_t len, const char *name, struct hr_buf *ret)
{
	size_t n = param_len(header, len), key, name_len = strlen(name);
	bool found = false, found_extended = false, extended;
	const char *p, *equals, *value;
	size_t one, value_len;

	while (n < len) { /* the first part is the header's value itself */
		header += n + 1;
		len -= n + 1;
		n = param_len(header, len);
		p = header;
		one = n;
		strip(&p, &one);
		equals = memchr(p, '=', one);
		key = equals != NULL ? (size_t)(equals - p) : one;
		value = equals != NULL ? equals + 1 : p + one;
		value_len = one - (size_t)(value - p);
		strip(&value, &value_len);
		strip(&p, &key);
		extended = key == name_len + 1 && p[name_len] == '*';
		if ((key != name_len && !extended) || strncasecmp(p, name, name_len) != 0 ||
		    (found_extended && !extended))
			continue;
		hr_buf_reset(ret);
		if (extended)
			put_extended(ret, value, value_len);
		else
			put_value(ret, value, value_len);
		found = true;
		found_extended = extended;
	}
	return found;
}
