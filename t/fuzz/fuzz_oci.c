/* Images that "handrail snapshot import" reads. The first byte chooses the whole file (1) or its
 * layer alone, an ordinary user (2), a root directory (4) and a second layer (8), which is the same
 * one again. Nothing is made outside the directory of the snapshot, and nothing in it has the
 * rights of another account or is a device. */
#include "config.h"

#include <fcntl.h>
#include <ftw.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "box/oci/oci.h"
#include "fuzz.h"

#define WHOLE_FILE 1
#define PLAIN 2
#define ROOT 4
#define OVER 8
#define BLOCK 512u /* bytes of a header, which has its size and its sum at these places */
#define SIZE 124
#define SUM 148

static char top[] = "/tmp/fuzz-oci-XXXXXX";
static int outside = -1;

/* Only this process uses the directory, which is gone after the last input. */
static void
remove_top(void)
{
	must(hr_path_remove(top, NULL) == 0);
}

static int
check_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)path;
	(void)kind;
	must(at->level > 0 || S_ISDIR(st->st_mode));
	must(S_ISDIR(st->st_mode) || S_ISREG(st->st_mode) || S_ISLNK(st->st_mode) ||
	     S_ISFIFO(st->st_mode) || (S_ISCHR(st->st_mode) && st->st_rdev == 0));
	must(
	    (st->st_mode & S_ISUID) == 0 && (S_ISDIR(st->st_mode) || (st->st_mode & S_ISGID) == 0));
	return 0;
}

/* Makes the sums of the headers right, without which no entry would be read. */
static void
mend(uint8_t *tar, size_t len)
{
	char text[13] = "";
	size_t at, i, size;
	unsigned sum;

	for (at = 0; len - at >= BLOCK; at += size) {
		memset(tar + at + SUM, ' ', 8);
		for (i = 0, sum = 0; i < BLOCK; i++)
			sum += tar[at + i];
		(void)snprintf(text, sizeof(text), "%06o", sum);
		memcpy(tar + at + SUM, text, 7);
		memcpy(text, tar + at + SIZE, 12);
		size = strtoul(text, NULL, 8);
		size = size < len ? BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK : BLOCK;
		if (size > len - at)
			break;
	}
}

/* Reads an image in a directory whose neighbour must stay empty. */
static int
take(const uint8_t *data, size_t size, struct hr_err *err)
{
	const bool plain = (data[0] & PLAIN) != 0;
	HR_FREE char *path = hr_path_join(top, "new");
	HR_FREE uint8_t *tar = malloc(size);
	HR_CLOSE int in = memfd_create("image", MFD_CLOEXEC);
	HR_CLOSE int dir = -1;
	int r;

	must(path != NULL && tar != NULL && in >= 0);
	memcpy(tar, data + 1, size - 1);
	mend(tar, size - 1);
	must(hr_fd_pwrite_full(in, tar, size - 1, 0) == 0);
	must(mkdir(path, 0700) == 0 && (dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0);
	if ((data[0] & WHOLE_FILE) != 0)
		r = oci_import(path, "t", plain, in, err);
	else
		r = oci_unpack(dir, false, (data[0] & ROOT) != 0, plain, in, err);
	if (r == 0 && (data[0] & (WHOLE_FILE | OVER)) == OVER)
		must(oci_unpack(dir, true, (data[0] & ROOT) != 0, plain, in, err) == 0);
	must(nftw(path, check_entry, 16, FTW_PHYS) == 0);
	must(hr_path_remove(path, NULL) == 0 && rmdir(top) == 0 && mkdir(top, 0700) == 0);
	return r;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hr_err err = {0};
	int kept, r;

	if (size < 2)
		return 0;
	if (outside < 0) {
		must(setlocale(LC_CTYPE, "C.UTF-8") != NULL && mkdtemp(top) != NULL);
		must(atexit(remove_top) == 0);
		outside = open("/dev/null", O_WRONLY | O_CLOEXEC);
	}
	/* the record of the snapshot goes to standard output */
	kept = dup(STDOUT_FILENO);
	must(fflush(stdout) == 0 && outside >= 0 && kept >= 0 && dup2(outside, STDOUT_FILENO) >= 0);
	r = take(data, size, &err);
	must(dup2(kept, STDOUT_FILENO) >= 0);
	hr_fd_close(&kept);
	must(r == 0 ? err.msg[0] == '\0' : r == -1 && err.msg[0] != '\0');
	return 0;
}
