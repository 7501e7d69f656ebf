/* Handles lists of strings. */
#include "config.h"

#include "base/strv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void
hr_strv_done(struct hr_strv *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
	memset(s, 0, sizeof(*s));
}

void
hr_strv_take(struct hr_strv *s, char *text)
{
	if (text == NULL || s->failed || hr_grow(&s->v, s->n + 1, &s->room, sizeof(*s->v)) < 0) {
		s->failed = true;
		free(text);
		return;
	}
	s->v[s->n++] = text;
	s->v[s->n] = NULL;
}

void
hr_strv_add(struct hr_strv *s, const char *text)
{
	hr_strv_take(s, strdup(text));
}

/* Returns a new string, or NULL without memory. */
static char *
format(const char *fmt, va_list ap)
{
	char *text;

	return vasprintf(&text, fmt, ap) < 0 ? NULL : text;
}

void
hr_strv_addf(struct hr_strv *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	hr_strv_take(s, format(fmt, ap));
	va_end(ap);
}

void
hr_strv_add_all(struct hr_strv *s, const char *const *texts)
{
	for (; texts != NULL && *texts != NULL; texts++)
		hr_strv_add(s, *texts);
}

void
hr_strv_add_words(struct hr_strv *s, const char *text)
{
	const char *end;

	for (;; text = end + 1) {
		end = strchr(text, ' ');
		hr_strv_take(s, end != NULL ? strndup(text, (size_t)(end - text)) : strdup(text));
		if (end == NULL)
			return;
	}
}

static bool
names(const char *entry, const char *name, size_t len)
{
	return strncmp(entry, name, len) == 0 && entry[len] == '=';
}

/* Takes `entry` as hr_strv_take(), replacing an earlier entry of its name. */
static void
take_env(struct hr_strv *s, char *entry)
{
	size_t i, len = entry != NULL ? strcspn(entry, "=") : 0;

	for (i = 0; entry != NULL && i < s->n; i++) {
		if (!names(s->v[i], entry, len))
			continue;
		free(s->v[i]);
		s->v[i] = entry;
		return;
	}
	hr_strv_take(s, entry);
}

void
hr_strv_set_env(struct hr_strv *s, const char *entry)
{
	take_env(s, strdup(entry));
}

void
hr_strv_set_envf(struct hr_strv *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	take_env(s, format(fmt, ap));
	va_end(ap);
}

int
hr_strv_set_vars(struct hr_strv *s, const char *const *vars, struct hr_err *err)
{
	size_t i;

	for (i = 0; vars[i] != NULL; i++)
		if (strchr(vars[i], '=') == NULL || *vars[i] == '=')
			return hr_err_set(err, HR_E_INVAL,
			    "Invalid environment variable name: %.*s", (int)strcspn(vars[i], "="),
			    vars[i]);
	for (; *vars != NULL; vars++)
		hr_strv_set_env(s, *vars);
	return s->failed ? hr_err_nomem(err) : 0;
}

void
hr_strv_unset_env(struct hr_strv *s, const char *name)
{
	size_t to = 0, len = strlen(name);
	size_t i;

	for (i = 0; i < s->n; i++) {
		if (names(s->v[i], name, len))
			free(s->v[i]);
		else
			s->v[to++] = s->v[i];
	}
	s->n = to;
	if (s->v != NULL)
		s->v[to] = NULL;
}

const char *const *
hr_strv_list(const struct hr_strv *s)
{
	static const char *const empty[] = {NULL};

	return s->v != NULL ? (const char *const *)s->v : empty;
}

int
hr_strv_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}
