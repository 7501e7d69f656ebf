/* Keeps the journal within its bounds: removes the oldest entries and leftovers of dead
 * processes. */
#include "config.h"

#include "proto/journal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/grow.h"
#include "proto/journal_int.h"

#define TIDY_MIN_MS 60000 /* minimum interval between checks of age */

struct old {
	int64_t at; /* CLOCK_REALTIME of the last change */
	int64_t bytes;
	uint64_t digest;
};

static int
old_compare(const void *a, const void *b)
{
	const struct old *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Removes the file unless a process holds it. */
static bool
drop_unlocked(struct hr_journal *j, const char *name)
{
	HR_CLOSE int fd = openat(j->dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	/* Another process may have replaced the file meanwhile. */
	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 &&
	       journal_has_name(j, name, st.st_ino) && unlinkat(j->dir, name, 0) == 0;
}

/* Lists all entries, oldest first; the caller frees. Returns NULL if there are none, or no memory
 * for them. */
static struct old *
list_entries(struct hr_journal *j, size_t *ret_n)
{
	DIR *d = hr_dir_take(openat(j->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct old *v = NULL;
	size_t n = 0, room = 0;
	struct dirent *e;
	struct stat st;
	char *end;

	while (d != NULL && (e = hr_dir_next(d)) != NULL) {
		uint64_t digest = strtoull(e->d_name, &end, 16);

		if (end != e->d_name + 16 || *end != '\0' ||
		    fstatat(j->dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		if (hr_grow(&v, n, &room, sizeof(*v)) < 0)
			break; /* the entries listed so far are enough */
		v[n++] =
		    (struct old){(int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000,
			(int64_t)st.st_blocks * 512, digest};
	}
	if (d != NULL)
		(void)closedir(d);
	*ret_n = n;
	if (n > 0)
		qsort(v, n, sizeof(*v), old_compare);
	return v;
}

void
journal_drop_oldest(struct hr_journal *j, int64_t entries_max, int64_t bytes_max, int64_t age_ms)
{
	int64_t entries = 0, bytes = 0, had_entries = 0, had_bytes = 0, now;
	char name[JOURNAL_NAME];
	HR_FREE struct old *v = NULL;
	size_t n, i;

	now = hr_wall_ms(); /* file time stamps use this clock */
	if (j->counts != NULL) {
		had_entries = atomic_load(&j->counts->entries);
		had_bytes = atomic_load(&j->counts->bytes);
	}
	v = list_entries(j, &n);
	for (i = 0; i < n; i++)
		bytes += v[i].bytes;
	entries = (int64_t)n;
	if (entries_max == JOURNAL_HALF)
		entries_max = entries / 2;
	for (i = 0; i < n; i++) {
		if (entries <= entries_max && bytes <= bytes_max && now - v[i].at <= age_ms)
			break;
		journal_name(name, v[i].digest);
		if (!drop_unlocked(j, name))
			continue;
		entries--;
		bytes -= v[i].bytes;
	}
	/* Entries that other processes add meanwhile stay counted, perhaps twice for now. */
	if (j->counts != NULL) {
		atomic_fetch_add(&j->counts->entries, entries - had_entries);
		atomic_fetch_add(&j->counts->bytes, bytes - had_bytes);
	}
}

static bool
is_over(const struct hr_journal *j)
{
	return atomic_load(&j->counts->entries) > j->entries_max ||
	       atomic_load(&j->counts->bytes) > j->bytes_max;
}

void
hr_journal_tidy(struct hr_journal *j, int64_t now_ms)
{
	int64_t wait = j->age_max_ms / 4 > TIDY_MIN_MS ? j->age_max_ms / 4 : TIDY_MIN_MS, last, had;

	if (j->dir < 0 || j->counts == NULL)
		return;
	last = atomic_load(&j->counts->tidied_ms);
	if (last != 0 && now_ms - last < wait && !is_over(j))
		return;
	do {
		/* One process tidies at a time; the lock is the directory's, not an entry's. */
		if (flock(j->dir, LOCK_EX | LOCK_NB) != 0)
			return;
		atomic_store(&j->counts->tidied_ms, now_ms);
		had = atomic_load(&j->counts->entries);
		/* stops a quarter below the limits, so that the next run is not due at once */
		if (last != 0 && is_over(j))
			journal_drop_oldest(
			    j, j->entries_max / 4 * 3, j->bytes_max / 4 * 3, j->age_max_ms);
		else
			journal_drop_oldest(j, j->entries_max, j->bytes_max, j->age_max_ms);
		(void)flock(j->dir, LOCK_UN);
		/* another process may have added an entry and returned because of the lock */
	} while (is_over(j) && atomic_load(&j->counts->entries) < had);
}
