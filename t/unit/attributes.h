/* Extended attributes and an access list on a file, for tests of what is to keep them. No program
 * is needed: the list is written as the kernel stores it. */
#ifndef HR_T_ATTRIBUTES_H
#define HR_T_ATTRIBUTES_H

#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#define ATTRIBUTES_LIST "system.posix_acl_access"
#define ATTRIBUTES_DEFAULT "system.posix_acl_default"
#define ATTRIBUTES_NOBODY 65534

struct attributes_list {
	uint32_t version;
	struct {
		uint16_t tag, rights;
		uint32_t id;
	} entries[5];
};

/* rw for the owner and for nobody, r for the group, nothing for others. */
static const struct attributes_list attributes_list = {
    2, {{1, 6, UINT32_MAX}, {2, 6, ATTRIBUTES_NOBODY}, {4, 4, UINT32_MAX}, {16, 6, UINT32_MAX},
	   {32, 0, UINT32_MAX}}};

static char attributes_big[2000];

/* Whether the file system of that directory has both; tells if not. */
static inline bool
attributes_work(const char *dir)
{
	const char *const names[] = {"user.try", ATTRIBUTES_DEFAULT};
	const void *const values[] = {"1", &attributes_list};
	const size_t sizes[] = {1, sizeof(attributes_list)};
	size_t i;

	for (i = 0; i < 2; i++) {
		if (setxattr(dir, names[i], values[i], sizes[i], 0) < 0) {
			ck_assert_int_eq(errno, ENOTSUP);
			printf("%s has no %s: nothing to keep. Set TMPDIR to a directory of ext4, "
			       "xfs or btrfs.\n",
			    dir, names[i]);
			return false;
		}
		ck_assert_int_eq(removexattr(dir, names[i]), 0);
	}
	return true;
}

static inline void
attributes_give(const char *path)
{
	memset(attributes_big, 'x', sizeof(attributes_big));
	ck_assert_int_eq(setxattr(path, "user.one", "1", 1, 0), 0);
	ck_assert_int_eq(setxattr(path, "user.big", attributes_big, sizeof(attributes_big), 0), 0);
	ck_assert_int_eq(
	    setxattr(path, ATTRIBUTES_LIST, &attributes_list, sizeof(attributes_list), 0), 0);
}

static inline void
attributes_give_default(const char *dir)
{
	ck_assert_int_eq(
	    setxattr(dir, ATTRIBUTES_DEFAULT, &attributes_list, sizeof(attributes_list), 0), 0);
}

static inline void
attributes_are_there(const char *path)
{
	char got[sizeof(attributes_big) + 1];

	ck_assert_int_eq(getxattr(path, "user.one", got, sizeof(got)), 1);
	ck_assert_int_eq(got[0], '1');
	ck_assert_int_eq(getxattr(path, "user.big", got, sizeof(got)), sizeof(attributes_big));
	ck_assert_mem_eq(got, attributes_big, sizeof(attributes_big));
	ck_assert_int_eq(
	    getxattr(path, ATTRIBUTES_LIST, got, sizeof(got)), sizeof(attributes_list));
	ck_assert_mem_eq(got, &attributes_list, sizeof(attributes_list));
}

static inline void
attributes_are_none(const char *path)
{
	ck_assert_int_eq(getxattr(path, "user.one", NULL, 0), -1);
	ck_assert_int_eq(errno, ENODATA);
	ck_assert_int_eq(getxattr(path, ATTRIBUTES_LIST, NULL, 0), -1);
	ck_assert_int_eq(errno, ENODATA);
}

#endif
