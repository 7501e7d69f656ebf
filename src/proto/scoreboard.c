/* Implements the shared board: one memfd of fixed size, sealed against resizing, so that no holder
 * of the descriptor can make another process's mapping fault. */
#include "config.h"

#include "proto/scoreboard.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const hr_plugin_states[] = {"not started", "starting", "starting", "ready",
    "restarting", "failed", "unavailable", "stopping", "stopping", NULL};

static struct hr_scoreboard *
scoreboard_map(int fd, struct hr_err *err)
{
	void *p;

	p = mmap(NULL, sizeof(struct hr_scoreboard), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		(void)hr_err_sys(err, errno, "cannot map the scoreboard");
		return NULL;
	}
	return p;
}

struct hr_scoreboard *
hr_scoreboard_create(int *ret_fd, struct hr_err *err)
{
	struct hr_scoreboard *sb = NULL;
	int fd;

	fd = memfd_create("handrail-scoreboard", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0) {
		(void)hr_err_sys(err, errno, "memfd_create");
		return NULL;
	}
	if (ftruncate(fd, sizeof(*sb)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		(void)hr_err_sys(err, errno, "cannot size the scoreboard");
	else
		sb = scoreboard_map(fd, err);
	if (sb == NULL) {
		(void)close(fd); /* the first error is the one to report */
		return NULL;
	}
	atomic_store(&sb->version, HR_SCOREBOARD_VERSION);
	*ret_fd = fd;
	return sb;
}

struct hr_scoreboard *
hr_scoreboard_attach(int fd, struct hr_err *err)
{
	struct hr_scoreboard *sb;
	struct stat st;
	uint32_t version;

	if (fstat(fd, &st) < 0) {
		(void)hr_err_sys(err, errno, "scoreboard");
		return NULL;
	}
	if (st.st_size != (off_t)sizeof(*sb)) {
		(void)hr_err_set(err, HR_E_PROTO, "a scoreboard of %lld bytes, not %zu",
		    (long long)st.st_size, sizeof(*sb));
		return NULL;
	}
	sb = scoreboard_map(fd, err);
	if (sb == NULL)
		return NULL;
	version = atomic_load(&sb->version);
	if (version != HR_SCOREBOARD_VERSION) {
		hr_scoreboard_detach(sb);
		(void)hr_err_set(err, HR_E_PROTO, "scoreboard version %u, not %u", version,
		    HR_SCOREBOARD_VERSION);
		return NULL;
	}
	return sb;
}

void
hr_scoreboard_renew(struct hr_scoreboard *sb)
{
	/* A count that a worker adds at the same time may survive or be lost. */
	memset(&sb->metrics, 0, sizeof(sb->metrics));
	atomic_store(&sb->last_execution_ns, 0);
	atomic_store(&sb->static_sessions, 0);
}

void
hr_scoreboard_detach(struct hr_scoreboard *sb)
{
	if (sb != NULL)
		(void)munmap(sb, sizeof(*sb)); /* munmap() cannot fail on a mapping of mmap() */
}
