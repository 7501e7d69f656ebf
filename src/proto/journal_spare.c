/* The file that is to be the next entry of the journal. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "proto/journal_int.h"

void
journal_count(struct hr_journal *j, int64_t entries, int64_t bytes)
{
	if (j->counts == NULL)
		return;
	atomic_fetch_add(&j->counts->entries, entries);
	atomic_fetch_add(&j->counts->bytes, bytes);
}

void
journal_spare_name(char *name)
{
	(void)snprintf(name, JOURNAL_NAME, JOURNAL_SPARE "%ld", (long)getpid());
}

bool
journal_has_name(const struct hr_journal *j, const char *name, ino_t ino)
{
	struct stat st;

	return fstatat(j->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == ino;
}

bool
journal_spare_take(struct hr_journal *j, char *name)
{
	if (j->spare < 0)
		return false;
	if (!j->spare_named) {
		journal_spare_name(name);
		return true;
	}
	journal_name(name, j->spare_digest);
	if (flock(j->spare, LOCK_EX | LOCK_NB) == 0 && journal_has_name(j, name, j->spare_ino))
		return true;
	hr_fd_close(&j->spare);
	return false;
}

void
journal_spare_drop(struct hr_journal *j, const char *name)
{
	int sys = errno;

	if (unlinkat(j->dir, name, 0) == 0 && j->spare_named)
		journal_count(j, -1, -(JOURNAL_ENTRY_BYTES + j->spare_more));
	hr_fd_close(&j->spare);
	errno = sys;
}
