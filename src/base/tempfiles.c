#include "config.h"

#include "base/tempfiles.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static struct hr_tempfiles *shared;

void
hr_tempfiles_use(struct hr_tempfiles *s)
{
	shared = s;
}

void
hr_tempfiles_note(int dir, const char *name)
{
	size_t name_len = strlen(name), used, room;
	char self[64];
	ssize_t n;

	if (shared == NULL)
		return;
	used = atomic_load(&shared->len);
	room = sizeof(shared->path) - used;
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", dir);
	n = readlink(self, shared->path + used, room);
	if (n <= 0 || (size_t)n + name_len + 2 > room)
		return;
	shared->path[used + (size_t)n] = '/';
	memcpy(shared->path + used + n + 1, name, name_len + 1);
	/* The length is stored after the bytes: a concurrent reader sees the paths before this
	 * one. */
	atomic_store(&shared->len, (uint32_t)(used + (size_t)n + name_len + 2));
}

void
hr_tempfiles_forget(void)
{
	if (shared != NULL)
		atomic_store(&shared->len, 0);
}

/* Returns true if all bytes are valid temporary file names; a writer that crashed may have
 * overwritten them. */
static bool
sound(const char *paths, size_t len)
{
	const char *path, *slash;

	if (len == 0 || paths[len - 1] != '\0')
		return false;
	for (path = paths; path < paths + len; path += strlen(path) + 1) {
		slash = strrchr(path, '/');
		if (path[0] != '/' ||
		    strncmp(slash + 1, HR_TEMPFILE_PREFIX, sizeof(HR_TEMPFILE_PREFIX) - 1) != 0)
			return false;
	}
	return true;
}

void
hr_tempfiles_remove(struct hr_tempfiles *s)
{
	uint32_t len = atomic_exchange(&s->len, 0);
	char paths[HR_TEMPFILES_PATH];
	const char *path;

	if (len > sizeof(paths))
		return;
	memcpy(paths, s->path, len);
	if (!sound(paths, len))
		return;
	for (path = paths; path < paths + len; path += strlen(path) + 1)
		(void)unlink(path); /* most of the files no longer exist */
}
