/* Parses entries of volume settings. */
#include "config.h"

#include "host/config/volumes.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define PARTS_MAX 4

static bool
is_path(const char *s)
{
	return *s == '/' || strncmp(s, "./", 2) == 0 || strncmp(s, "../", 3) == 0 ||
	       strncmp(s, "~/", 2) == 0;
}

static int
invalid(const char *entry, struct hr_err *err)
{
	return hr_err_set(err, HR_E_INVAL,
	    "Invalid mount format in sandbox.volumes: %s. Expected format: "
	    "'host_path:container_path[:mode]', e.g. '/my/host/dir:/workspace:rw'",
	    entry);
}

/* Splits a copy of the entry. */
static int
volume_init(struct hr_volume *v, char *copy, const char *entry, struct hr_err *err)
{
	char *part[PARTS_MAX], *p = copy, *next;
	size_t n = 0, first = 0;

	memset(v, 0, sizeof(*v));
	for (; p != NULL; p = next) {
		next = strchr(p, ':');
		if (next != NULL)
			*next++ = '\0';
		if (n == PARTS_MAX)
			return invalid(entry, err);
		part[n++] = p;
	}
	if (n >= 3 && strcmp(part[0], "volume") == 0)
		first = 1;
	if (n - first < 2 || n - first > 3 || *part[first] == '\0' || *part[first + 1] == '\0')
		return invalid(entry, err);
	v->named = first == 1 || !is_path(part[first]);
	v->source = strdup(part[first]);
	v->target = strdup(part[first + 1]);
	v->mode = strdup(n - first == 3 ? part[first + 2] : "rw");
	if (v->source == NULL || v->target == NULL || v->mode == NULL)
		return hr_err_nomem(err);
	return 0;
}

int
hr_volumes_parse(const char *text, struct hr_volumes *ret, struct hr_err *err)
{
	struct hr_volume *v;
	const char *end;
	char *copy, *entry;
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	for (; r == 0; text = end + 1) {
		end = strchr(text, ',');
		end = end != NULL ? end : text + strlen(text);
		entry = strndup(text, (size_t)(end - text));
		copy = strndup(text, (size_t)(end - text));
		v = reallocarray(ret->v, ret->n + 1, sizeof(*v));
		if (v != NULL)
			ret->v = v;
		if (entry == NULL || copy == NULL || v == NULL)
			r = hr_err_nomem(err);
		else
			r = volume_init(&ret->v[ret->n++], copy, entry, err);
		free(entry);
		free(copy);
		if (*end == '\0')
			break;
	}
	if (r != 0)
		hr_volumes_done(ret);
	return r;
}

void
hr_volumes_done(struct hr_volumes *v)
{
	size_t i;

	for (i = 0; i < v->n; i++) {
		free(v->v[i].source);
		free(v->v[i].target);
		free(v->v[i].mode);
	}
	free(v->v);
	memset(v, 0, sizeof(*v));
}
