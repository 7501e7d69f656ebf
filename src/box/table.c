/* The list of mounts of a process. Boxes choose names of directories, which the kernel writes with
 * octal numbers for white space. */
#include "config.h"

#include "box/table.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"

#define TABLE_MAX (16u << 20) /* maximum bytes of a list */

/* Replaces \NNN in place by the byte. */
static const char *
plain(char *text)
{
	char *to = text;
	const char *from;

	for (from = text; *from != '\0'; to++) {
		if (*from == '\\' && strspn(from + 1, "01234567") >= 3) {
			*to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
	return text;
}

/* Reads one line. Returns false if it is not as the kernel writes it. */
static bool
read_line(char *line, struct box_table_mount *ret)
{
	char *fields[5], *tail = strstr(line, " - "), *rest = line;
	size_t i;

	if (tail == NULL)
		return false;
	*tail = '\0';
	tail += 3;
	for (i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if ((fields[i] = strsep(&rest, " ")) == NULL)
			return false;
	ret->id = strtoull(fields[0], NULL, 10);
	ret->parent = strtoull(fields[1], NULL, 10);
	ret->device = fields[2];
	ret->root = plain(fields[3]);
	ret->place = plain(fields[4]);
	ret->type = strsep(&tail, " ");
	ret->source = tail != NULL ? plain(strsep(&tail, " ")) : NULL;
	return ret->source != NULL && *ret->place == '/';
}

int
box_table_read(struct box_table *t, int fd, struct hr_err *err)
{
	char *rest, *line;

	t->text = (struct hr_buf){.cap = TABLE_MAX};
	if (lseek(fd, 0, SEEK_SET) != 0)
		return hr_err_sys(err, errno, "read the mounts of the box");
	if (hr_path_read_fd(fd, "the mounts of the box", &t->text, err) < 0)
		return -1;
	(void)hr_buf_str(&t->text);
	for (rest = t->text.p; rest != NULL && (line = strsep(&rest, "\n")) != NULL;) {
		if (*line == '\0')
			continue;
		if (t->n == BOX_TABLE_MAX)
			return hr_err_set(
			    err, HR_E_TOOLARGE, "the box has more than %d mounts", BOX_TABLE_MAX);
		if (!read_line(line, &t->v[t->n++]))
			return hr_err_set(
			    err, HR_E_RUNTIME, "a line of the box's mounts is not understood");
	}
	return 0;
}

void
box_table_done(struct box_table *t)
{
	hr_buf_done(&t->text);
	t->n = 0;
}

const struct box_table_mount *
box_table_find(const struct box_table *t, uint64_t id)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->v[i].id == id)
			return &t->v[i];
	return NULL;
}

const struct box_table_mount *
box_table_over(const struct box_table *t, const struct box_table_mount *m)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->v[i].parent == m->id && strcmp(t->v[i].place, m->place) == 0)
			return &t->v[i];
	return NULL;
}

void
box_table_name(uint64_t upper, uint64_t work, char ret[BOX_TABLE_SOURCE])
{
	(void)snprintf(ret, BOX_TABLE_SOURCE, "handrail-%" PRIu64 "-%" PRIu64, upper, work);
}

int
box_table_upper(const struct box_table_mount *m, int root, uint64_t *ret_upper, uint64_t *ret_work,
    struct hr_err *err)
{
	struct stat st;

	if (strcmp(m->type, "overlay") == 0)
		return sscanf(m->source, "handrail-%" SCNu64 "-%" SCNu64, ret_upper, ret_work) == 2
			   ? 0
			   : hr_err_set(err, HR_E_INVAL, "the root of the box is not handrail's");
	if (fstat(root, &st) != 0)
		return hr_err_sys(err, errno, "examine the root of the box");
	*ret_upper = st.st_ino;
	*ret_work = 0;
	return 0;
}

const struct box_table_mount *
box_table_of(struct box_table *t, pid_t pid, int *ret_root, struct hr_err *err)
{
	const struct box_table_mount *m;
	HR_CLOSE int table = -1;
	struct statx st;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%ld/root", (long)pid);
	*ret_root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "/proc/%ld/mountinfo", (long)pid);
	table = *ret_root >= 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (table < 0 || statx(*ret_root, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) != 0) {
		(void)hr_err_sys(err, errno, "examine the root of the box");
		return NULL;
	}
	if ((st.stx_mask & STATX_MNT_ID) == 0) {
		(void)hr_err_set(
		    err, HR_E_UNSUPPORTED, "this kernel does not report the mounts of files");
		return NULL;
	}
	if (box_table_read(t, table, err) < 0)
		return NULL;
	m = box_table_find(t, st.stx_mnt_id);
	if (m == NULL)
		(void)hr_err_set(err, HR_E_RUNTIME, "the box has no mount of its root");
	return m;
}
