/* Fills the @name@ places of a text. */
#include "config.h"

#include "base/text/template.h"

#include <string.h>

static size_t
name_len(const char *p, size_t len)
{
	size_t n = 0;

	while (n < len && ((p[n] >= 'a' && p[n] <= 'z') || p[n] == '_'))
		n++;
	return n;
}

static int
value_add(struct hr_buf *out, const struct hr_place *place, struct hr_err *err)
{
	const unsigned char *p = (const unsigned char *)place->value;

	for (; !place->whole && *p != '\0'; p++) {
		if (*p <= ' ' || *p == 0x7F || strchr("\"';{}$#\\", *p) != NULL)
			return hr_err_set(err, HR_E_INVAL,
			    "%s: \"%.120s\" holds a character that nginx's configuration cannot",
			    place->name, place->value);
	}
	hr_buf_adds(out, place->value);
	return 0;
}

static int
place_fill(struct hr_buf *out, const char *name, size_t n, const struct hr_place *places,
    size_t nplaces, struct hr_err *err)
{
	size_t i;

	for (i = 0; i < nplaces; i++) {
		if (strlen(places[i].name) == n && memcmp(places[i].name, name, n) == 0)
			return value_add(out, &places[i], err);
	}
	return hr_err_set(err, HR_E_NOTFOUND, "no value for @%.*s@", (int)n, name);
}

int
hr_template_fill(struct hr_buf *out, const char *text, size_t len, const struct hr_place *places,
    size_t nplaces, struct hr_err *err)
{
	size_t i = 0, n;

	while (i < len) {
		const char *at = memchr(text + i, '@', len - i);
		size_t plain = at != NULL ? (size_t)(at - text) - i : len - i;

		hr_buf_add(out, text + i, plain);
		i += plain;
		if (i == len)
			break;
		n = name_len(text + i + 1, len - i - 1);
		if (i + 1 + n < len && text[i + 1 + n] == '@') {
			if (n == 0)
				hr_buf_addc(out, '@');
			else if (place_fill(out, text + i + 1, n, places, nplaces, err) < 0)
				return -1;
			i += n + 2;
		} else {
			hr_buf_addc(out, '@');
			i++;
		}
	}
	return hr_buf_check(out, err);
}
