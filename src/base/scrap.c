#include "config.h"

#include "base/scrap.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static struct hr_scrap *scrap;

void
hr_scrap_use(struct hr_scrap *s)
{
	scrap = s;
}

void
hr_scrap_note(int dir, const char *name)
{
	size_t name_len = strlen(name), used, room;
	char self[64];
	ssize_t n;

	if (scrap == NULL)
		return;
	used = atomic_load(&scrap->len);
	room = sizeof(scrap->path) - used;
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", dir);
	n = readlink(self, scrap->path + used, room);
	if (n <= 0 || (size_t)n + name_len + 2 > room)
		return;
	scrap->path[used + (size_t)n] = '/';
	memcpy(scrap->path + used + n + 1, name, name_len + 1);
	/* behind the bytes: whoever reads meanwhile sees the paths before it */
	atomic_store(&scrap->len, (uint32_t)(used + (size_t)n + name_len + 2));
}

void
hr_scrap_forget(void)
{
	if (scrap != NULL)
		atomic_store(&scrap->len, 0);
}

/* Whether all of it is names of such files: its writer may have died of writing where it should not
 * have. */
static bool
sound(const char *paths, size_t len)
{
	const char *path, *slash;

	if (len == 0 || paths[len - 1] != '\0')
		return false;
	for (path = paths; path < paths + len; path += strlen(path) + 1) {
		slash = strrchr(path, '/');
		if (path[0] != '/' ||
		    strncmp(slash + 1, HR_SCRAP_PREFIX, sizeof(HR_SCRAP_PREFIX) - 1) != 0)
			return false;
	}
	return true;
}

void
hr_scrap_remove(struct hr_scrap *s)
{
	uint32_t len = atomic_exchange(&s->len, 0);
	char paths[HR_SCRAP_PATH];
	const char *path;

	if (len > sizeof(paths))
		return;
	memcpy(paths, s->path, len);
	if (!sound(paths, len))
		return;
	for (path = paths; path < paths + len; path += strlen(path) + 1)
		(void)unlink(path); /* gone already, as a rule */
}
