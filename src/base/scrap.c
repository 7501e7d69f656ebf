#include "config.h"

#include "base/scrap.h"

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
	size_t name_len = strlen(name);
	char self[64];
	ssize_t n;

	if (scrap == NULL)
		return;
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", dir);
	n = readlink(self, scrap->path, sizeof(scrap->path));
	if (n <= 0 || (size_t)n + name_len + 2 > sizeof(scrap->path))
		return;
	scrap->path[n] = '/';
	memcpy(scrap->path + n + 1, name, name_len + 1);
	atomic_store(&scrap->len, (uint32_t)n + 1 + (uint32_t)name_len);
}

void
hr_scrap_forget(void)
{
	if (scrap != NULL)
		atomic_store(&scrap->len, 0);
}

void
hr_scrap_remove(struct hr_scrap *s)
{
	uint32_t len = atomic_exchange(&s->len, 0);
	char path[HR_SCRAP_PATH], *slash;

	if (len == 0 || len >= sizeof(path))
		return;
	memcpy(path, s->path, len);
	path[len] = '\0';
	slash = strrchr(path, '/');
	/* its writer may have died of writing where it should not have */
	if (path[0] == '/' && strlen(path) == len &&
	    strncmp(slash + 1, HR_SCRAP_PREFIX, sizeof(HR_SCRAP_PREFIX) - 1) == 0)
		(void)unlink(path); /* gone already, as a rule */
}
