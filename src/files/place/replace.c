/* Renaming, and what to do where it is not possible. */
#include "config.h"

#include "files/place/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fd.h"

#define COPY_MAX (128u << 20) /* in one call */
#define COPY_CHUNK (64u << 10)

int
hr_replace_name(char name[HR_REPLACE_NAME_MAX], const char *kind)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
		errno = EIO;
		return -1;
	}
	(void)snprintf(name, HR_REPLACE_NAME_MAX, HR_REPLACE_PREFIX "%s-%016llx", kind,
	    (unsigned long long)random);
	return 0;
}

static int
copy_by_hand(int from, int to)
{
	char chunk[COPY_CHUNK];
	ssize_t n, done, w;

	while ((n = hr_fd_read(from, chunk, sizeof(chunk))) > 0) {
		for (done = 0; done < n; done += w) {
			w = write(to, chunk + done, (size_t)(n - done));
			if (w < 0 && errno != EINTR)
				return -1;
			if (w < 0)
				w = 0;
		}
	}
	return n < 0 ? -1 : 0;
}

int
hr_replace_copy(int from, int to)
{
	ssize_t n;

	if (lseek(from, 0, SEEK_SET) < 0)
		return -1;
	do
		n = copy_file_range(from, NULL, to, NULL, COPY_MAX, 0);
	while (n > 0 || (n < 0 && errno == EINTR));
	if (n == 0)
		return 0;
	/* not between these file systems, or not there at all; a full disk is told again */
	return copy_by_hand(from, to);
}

/* Gives fd the mode and the owner of another file. EPERM: we may not give files away. */
static int
take_mode(int fd, const struct stat *old)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	/* the owner comes first: changing it clears the set-user-id bit */
	if ((st.st_uid != old->st_uid || st.st_gid != old->st_gid) &&
	    fchown(fd, old->st_uid, old->st_gid) < 0)
		return -1;
	return fchmod(fd, old->st_mode & 07777);
}

int
hr_replace_content(int from, int dir, const char *leaf)
{
	struct stat st, now;
	int to, r = -1;

	to = openat(dir, leaf, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (to < 0)
		return -1;
	if (fstat(from, &st) == 0 && fstat(to, &now) == 0) {
		errno = EINVAL;
		if (S_ISREG(now.st_mode) &&
		    (st.st_size <= now.st_size ||
			fallocate(to, FALLOC_FL_KEEP_SIZE, 0, st.st_size) == 0 ||
			errno == EOPNOTSUPP) &&
		    hr_replace_copy(from, to) == 0)
			r = ftruncate(to, st.st_size);
	}
	hr_fd_close(&to);
	return r;
}

/* from's content under a new name in dir, then as leaf. old may be NULL: there is none. */
static int
copy_beside(int from, int dir, const char *leaf, const struct stat *old)
{
	char name[HR_REPLACE_NAME_MAX];
	int to, r = -1, sys;

	if (hr_replace_name(name, "upload") < 0)
		return -1;
	to = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (to < 0)
		return -1;
	if (hr_replace_copy(from, to) == 0)
		r = old != NULL ? hr_replace(dir, name, dir, leaf, old)
				: hr_replace_none(dir, name, dir, leaf);
	sys = errno;
	if (r < 0 || (old != NULL && old->st_nlink > 1))
		(void)unlinkat(dir, name, 0);
	hr_fd_close(&to);
	errno = sys;
	return r;
}

static int
open_from(int from_dir, const char *from)
{
	return openat(from_dir, from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

int
hr_replace(int from_dir, const char *from, int dir, const char *leaf, const struct stat *old)
{
	int fd = open_from(from_dir, from), r = -1;

	if (fd < 0)
		return -1;
	if (old->st_nlink > 1) {
		r = hr_replace_content(fd, dir, leaf);
	} else if (take_mode(fd, old) == 0) {
		r = renameat(from_dir, from, dir, leaf);
		if (r < 0 && errno == EXDEV && from_dir != dir)
			r = copy_beside(fd, dir, leaf, old);
		else if (r < 0 && errno == EBUSY)
			r = hr_replace_content(fd, dir, leaf);
	} else if (errno == EPERM) {
		r = hr_replace_content(fd, dir, leaf);
	}
	if (r == 0)
		(void)unlinkat(from_dir, from, 0); /* gone already if it was renamed */
	hr_fd_close(&fd);
	return r;
}

int
hr_replace_none(int from_dir, const char *from, int dir, const char *leaf)
{
	struct stat st;
	int fd, r = renameat2(from_dir, from, dir, leaf, RENAME_NOREPLACE);

	if (r < 0 && (errno == EINVAL || errno == ENOSYS)) { /* not every file system can */
		if (fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			errno = EEXIST;
			return -1;
		}
		r = renameat(from_dir, from, dir, leaf);
	}
	if (r < 0 && errno == EXDEV && from_dir != dir) {
		fd = open_from(from_dir, from);
		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
			r = copy_beside(fd, dir, leaf, NULL);
		else
			errno = EXDEV; /* a directory: its files one by one */
		hr_fd_close(&fd);
		if (r == 0)
			(void)unlinkat(from_dir, from, 0);
	}
	return r;
}
