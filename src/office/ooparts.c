/* Unpacks an archive's XML files only, and only up to the limits: the sizes that an archive
 * declares are not trusted. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>

#include "office/office_int.h"

#define PARTS_MAX 10000
#define PART_MAX (32u << 20)
#define ALL_MAX (64u << 20)
#define CHUNK 8192

struct part {
	char *name;
	struct hr_buf data;
};

struct parts {
	struct part *part;
	size_t n, room, bytes;
};

void
parts_free(struct parts *ps)
{
	size_t i;

	if (ps == NULL)
		return;
	for (i = 0; i < ps->n; i++) {
		free(ps->part[i].name);
		hr_buf_done(&ps->part[i].data);
	}
	free(ps->part);
	free(ps);
}

static bool
part_is_wanted(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot != NULL && (strcmp(dot, ".xml") == 0 || strcmp(dot, ".rels") == 0);
}

static struct part *
parts_add(struct parts *ps, const char *name)
{
	struct part *p;

	if (ps->n == ps->room) {
		p = realloc(ps->part, (ps->room + 64) * sizeof(*p));
		if (p == NULL)
			return NULL;
		ps->part = p;
		ps->room += 64;
	}
	p = &ps->part[ps->n];
	p->name = strdup(name);
	if (p->name == NULL)
		return NULL;
	hr_buf_init(&p->data, PART_MAX);
	ps->n++;
	return p;
}

static int
parts_unpack(struct parts *ps, struct archive *a, const char *name, struct hr_err *err)
{
	struct part *p = parts_add(ps, name);
	la_ssize_t n;
	char *room;

	if (p == NULL)
		return hr_err_nomem(err);
	for (;;) {
		room = hr_buf_reserve(&p->data, CHUNK);
		if (room == NULL || ps->bytes > ALL_MAX)
			return hr_err_set(err, HR_E_TOOLARGE, "the document is too large");
		n = archive_read_data(a, room, CHUNK);
		if (n < 0)
			return hr_err_set(err, HR_E_INVAL, "the document is damaged: %.100s", name);
		if (n == 0)
			return 0;
		hr_buf_grew(&p->data, (size_t)n);
		ps->bytes += (size_t)n;
	}
}

static int
parts_read(struct parts *ps, struct archive *a, struct hr_err *err)
{
	struct archive_entry *e;
	const char *name;
	unsigned seen = 0;
	int r;

	while ((r = archive_read_next_header(a, &e)) == ARCHIVE_OK || r == ARCHIVE_WARN) {
		if (++seen > PARTS_MAX)
			return hr_err_set(err, HR_E_TOOLARGE, "the document has too many parts");
		name = archive_entry_pathname_utf8(e);
		if (name != NULL && part_is_wanted(name) && parts_unpack(ps, a, name, err) < 0)
			return -1;
	}
	if (r != ARCHIVE_EOF)
		return hr_err_set(err, HR_E_INVAL, "the document is not a ZIP archive");
	return 0;
}

struct parts *
parts_open(const void *bytes, size_t len, struct hr_err *err)
{
	struct parts *ps = calloc(1, sizeof(*ps));
	struct archive *a = archive_read_new();
	int r = -1;

	if (ps == NULL || a == NULL)
		(void)hr_err_nomem(err);
	else if (archive_read_support_format_zip(a) != ARCHIVE_OK ||
		 archive_read_open_memory(a, bytes, len) != ARCHIVE_OK)
		(void)hr_err_set(err, HR_E_INVAL, "the document is not a ZIP archive");
	else
		r = parts_read(ps, a, err);
	if (a != NULL)
		(void)archive_read_free(a);
	if (r == 0)
		return ps;
	parts_free(ps);
	return NULL;
}

const struct hr_buf *
parts_find(const struct parts *ps, const char *name)
{
	size_t i;

	for (i = 0; i < ps->n; i++)
		if (strcmp(ps->part[i].name, name) == 0)
			return &ps->part[i].data;
	return NULL;
}
