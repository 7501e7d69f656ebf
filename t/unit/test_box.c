/* The document of a box: what is read from it, and which error names what is wrong; and the files
 * of the kernel that a box does not see. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/random.h"
#include "box/ids.h"
#include "box/mask.h"
#include "box/mount.h"
#include "box/overlay.h"
#include "box/spec.h"
#include "box/table.h"

#define BASE "\"name\":\"a\",\"storage\":\"/s\",\"argv\":[\"/x\"]"

static int
read_it(struct box_spec *s, const char *text, struct hr_err *e)
{
	*e = (struct hr_err){0};
	return box_spec_read(s, text, strlen(text), e);
}

START_TEST(all_members)
{
	struct hr_err e;
	struct box_spec s;

	ck_assert_int_eq(
	    read_it(&s,
		"{\"name\":\"b-1\",\"storage\":\"/s/t\",\"root\":\"/r\",\"network\":\"host\","
		"\"below\":[\"/l/2\",\"/l/1\"],\"directory\":\"/w\",\"argv\":[\"/bin/"
		"sh\",\"-c\",\"\"],\"env\":[\"A=\"],"
		"\"mounts\":[{\"source\":\"/a\",\"target\":\"/b\",\"read_only\":true},"
		"{\"source\":\"/c\",\"target\":\"/b/c\"}],\"limits\":{\"memory_bytes\":"
		"16777216,\"processes\":8,\"cpus\":2}}",
		&e),
	    0);
	ck_assert_str_eq(s.name, "b-1");
	ck_assert_str_eq(s.storage, "/s/t");
	ck_assert_str_eq(s.root, "/r");
	ck_assert_str_eq(s.directory, "/w");
	ck_assert_uint_eq(s.nbelow, 2);
	ck_assert_str_eq(s.below[0], "/l/2");
	ck_assert_str_eq(s.below[1], "/l/1");
	ck_assert(s.host_network);
	ck_assert_uint_eq(s.nmounts, 2);
	ck_assert(s.mounts[0].read_only && !s.mounts[1].read_only);
	ck_assert_str_eq(s.mounts[1].target, "/b/c");
	ck_assert_int_eq(s.limits.memory_bytes, 16777216);
	ck_assert_int_eq(s.limits.processes, 8);
	ck_assert(s.limits.cpus == 2);
	ck_assert_str_eq(s.argv[2], "");
	ck_assert_ptr_null(s.argv[3]);
	ck_assert_str_eq(s.env[0], "A=");
	box_spec_done(&s);
}
END_TEST

START_TEST(least)
{
	struct hr_err e;
	struct box_spec s;

	ck_assert_int_eq(read_it(&s, "{" BASE "}", &e), 0);
	ck_assert(
	    !s.host_network && !s.egress && s.root == NULL && s.nmounts == 0 && s.nbelow == 0);
	ck_assert_str_eq(s.directory, "/");
	ck_assert_ptr_null(s.env[0]);
	ck_assert(s.limits.memory_bytes == 0 && s.limits.processes == 0 && s.limits.cpus == 0);
	box_spec_done(&s);
	ck_assert_int_eq(read_it(&s, "{" BASE ",\"network\":\"egress\"}", &e), 0);
	ck_assert(!s.host_network && s.egress);
	box_spec_done(&s);
}
END_TEST

/* Each with what its error names. */
static const struct {
	const char *text, *named;
} wrong[] = {
    {"", "not JSON, at character 1"},
    {"{\"name\":\"a\",}", "not JSON, at character 13"},
    {"[]", "the document must be an object"},
    {"{" BASE ",\"volumes\":[]}", "unknown member \"volumes\""},
    {"{\"storage\":\"/s\",\"argv\":[\"/x\"]}", "\"name\""},
    {"{" BASE ",\"name\":\"\"}", "\"name\""},
    {"{" BASE ",\"name\":\"a.b\"}", "\"name\""},
    {"{" BASE ",\"name\":\"-a\"}", "\"name\""},
    {"{" BASE ",\"name\":\"a\\u0000b\"}", "\"name\""},
    {"{" BASE ",\"name\":7}", "\"name\""},
    {"{\"name\":\"a\",\"argv\":[\"/x\"]}", "\"storage\" is missing"},
    {"{" BASE ",\"storage\":\"s\"}", "\"storage\""},
    {"{" BASE ",\"storage\":\"/\"}", "\"storage\""},
    {"{" BASE ",\"storage\":\"/s/\"}", "\"storage\""},
    {"{" BASE ",\"storage\":\"/s//t\"}", "\"storage\""},
    {"{" BASE ",\"storage\":\"/s/./t\"}", "\"storage\""},
    {"{" BASE ",\"storage\":\"/s/..\"}", "\"storage\""},
    {"{" BASE ",\"storage\":null}", "\"storage\""},
    {"{" BASE ",\"root\":\"\"}", "\"root\""},
    {"{" BASE ",\"below\":\"/a\"}", "\"below\" must be a list"},
    {"{" BASE ",\"below\":{}}", "\"below\" must be a list"},
    {"{" BASE ",\"below\":[1]}", "entry 1 of \"below\""},
    {"{" BASE ",\"below\":[\"/a\",\"b\"]}", "entry 2 of \"below\""},
    {"{" BASE ",\"below\":[\"/\"]}", "entry 1 of \"below\""},
    {"{" BASE ",\"below\":[\"/a/../b\"]}", "entry 1 of \"below\""},
    {"{" BASE ",\"below\":[\"/a\\u0000\"]}", "entry 1 of \"below\""},
    {"{" BASE ",\"below\":[\"/a\",\"/b\",\"/a\"]}", "\"below\" has /a twice"},
    {"{" BASE ",\"directory\":\"w\"}", "\"directory\""},
    {"{" BASE ",\"directory\":1}", "\"directory\""},
    {"{" BASE ",\"network\":\"bridge\"}", "\"network\" must be"},
    {"{" BASE ",\"network\":false}", "\"network\""},
    {"{" BASE ",\"mounts\":{}}", "\"mounts\" must be a list"},
    {"{" BASE ",\"mounts\":[1]}", "an entry of \"mounts\" must be an object"},
    {"{" BASE ",\"mounts\":[{\"source\":\"/a\"}]}", "must have \"source\" and \"target\""},
    {"{" BASE ",\"mounts\":[{\"source\":\"/a\",\"target\":\"/b\",\"ro\":true}]}", "\"ro\""},
    {"{" BASE ",\"mounts\":[{\"source\":\"/a\",\"target\":\"/b\",\"read_only\":1}]}",
	"\"read_only\" must be true or false"},
    {"{" BASE ",\"mounts\":[{\"source\":\"/a\",\"target\":\"/proc/1\"}]}", "/proc/1"},
    {"{" BASE ",\"mounts\":[{\"source\":\"/a\",\"target\":\"/dev\"}]}", "/dev"},
    {"{" BASE ",\"mounts\":[{\"source\":\"/a\",\"target\":\"/b\"},"
     "{\"source\":\"/c\",\"target\":\"/b\"}]}",
	"two mounts have the target /b"},
    {"{" BASE ",\"limits\":[]}", "\"limits\" must be an object"},
    {"{" BASE ",\"limits\":{\"memory\":1}}", "\"memory\""},
    {"{" BASE ",\"limits\":{\"memory_bytes\":16777215}}", "\"memory_bytes\""},
    {"{" BASE ",\"limits\":{\"memory_bytes\":\"1g\"}}", "\"memory_bytes\""},
    {"{" BASE ",\"limits\":{\"processes\":7}}", "\"processes\""},
    {"{" BASE ",\"limits\":{\"processes\":8.5}}", "\"processes\""},
    {"{" BASE ",\"limits\":{\"cpus\":0}}", "\"cpus\""},
    {"{" BASE ",\"limits\":{\"cpus\":true}}", "\"cpus\""},
    {"{" BASE ",\"argv\":[]}", "\"argv\""},
    {"{" BASE ",\"argv\":[\"x\"]}", "\"argv\" must begin with the absolute path"},
    {"{" BASE ",\"argv\":[\"/x\",1]}", "\"argv\" must be a list of strings"},
    {"{" BASE ",\"argv\":\"/x\"}", "\"argv\""},
    {"{" BASE ",\"argv\":[\"/x\",\"a\\u0000\"]}", "\"argv\""},
    {"{" BASE ",\"env\":[\"A\"]}", "entry 1 of \"env\" must be NAME=VALUE"},
    {"{" BASE ",\"env\":[\"A=\",\"=b\"]}", "entry 2 of \"env\""},
    {"{" BASE ",\"env\":{\"A\":\"b\"}}", "\"env\" must be a list"},
};

START_TEST(errors)
{
	struct hr_err e;
	struct box_spec s;

	ck_assert_msg(read_it(&s, wrong[_i].text, &e) < 0, "taken: %s", wrong[_i].text);
	ck_assert_int_eq(e.code, HR_E_INVAL);
	ck_assert_msg(strstr(e.msg, wrong[_i].named) != NULL, "%s\nnot named: %s\n%s",
	    wrong[_i].text, wrong[_i].named, e.msg);
	box_spec_done(&s);
}
END_TEST

START_TEST(too_many_mounts)
{
	struct hr_err e;
	struct box_spec s;
	HR_BUF(b, 1 << 20);
	int i;

	hr_buf_adds(&b, "{" BASE ",\"mounts\":[");
	for (i = 0; i <= BOX_MOUNTS_MAX; i++)
		hr_buf_addf(&b, "%s{\"source\":\"/a\",\"target\":\"/t/%d\"}", i > 0 ? "," : "", i);
	hr_buf_adds(&b, "]}");
	ck_assert_int_eq(read_it(&s, hr_buf_str(&b), &e), -1);
	ck_assert_ptr_nonnull(strstr(e.msg, "at most 256"));
	box_spec_done(&s);
}
END_TEST

START_TEST(layers_below)
{
	struct hr_err e;
	struct box_spec s;
	int n, i;

	for (n = BOX_BELOW_MAX; n <= BOX_BELOW_MAX + 1; n++) {
		HR_BUF(b, 1 << 20);

		hr_buf_adds(&b, "{" BASE ",\"below\":[");
		for (i = 0; i < n; i++)
			hr_buf_addf(&b, "%s\"/l/%d\"", i > 0 ? "," : "", i);
		hr_buf_adds(&b, "]}");
		ck_assert_int_eq(read_it(&s, hr_buf_str(&b), &e), n > BOX_BELOW_MAX ? -1 : 0);
		ck_assert_int_eq(strstr(e.msg, "at most 40") != NULL, n > BOX_BELOW_MAX);
		box_spec_done(&s);
	}
}
END_TEST

START_TEST(explained_below)
{
	struct hr_err e;
	struct box_spec s;
	HR_BUF(b, 1 << 16);

	ck_assert_int_eq(read_it(&s, "{" BASE ",\"below\":[\"/l/2\",\"/l/1\"]}", &e), 0);
	box_spec_explain(&s, &b);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&b), "lie on /l/2, then /l/1. What"));
	box_spec_done(&s);
}
END_TEST

START_TEST(subordinate_ids)
{
	static const struct {
		const char *text;
		long start, count; /* 0: no range */
	} rows[] = {{"", 0, 0}, {"other:1:2\n", 0, 0}, {"me:100000:65536\n", 100000, 65536},
	    {"other:1:2\nme:3:4", 3, 4}, {"1000:5:6\nme:7:8\n", 5, 6}, {"me:0:4\nme:5:4", 5, 4},
	    {"me:-5:4\n", 0, 0}, {"me:5:-4\n", 0, 0}, {"me:5 :4\n", 0, 0}, {"me:5:4 \n", 0, 0},
	    {"me:5\n:4\n", 0, 0}, {"me:4294967295:1\n", 0, 0},
	    {"me:99999999999999999999:1\n", 0, 0}, {"me\n:1:2\n1000x:1:2\n", 0, 0}};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		long start = 0, count = 0;
		bool found = box_ids_range(rows[i].text, "me", 1000, &start, &count);

		ck_assert_msg(found == (rows[i].start > 0), "%s", rows[i].text);
		ck_assert_msg(!found || (start == rows[i].start && count == rows[i].count), "%s",
		    rows[i].text);
	}
}
END_TEST

/* ---- the list of mounts ---- */

static int
read_table(struct box_table *t, const char *text, struct hr_err *e)
{
	int fd = memfd_create("mountinfo", MFD_CLOEXEC), r;

	*e = (struct hr_err){0};
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	r = box_table_read(t, fd, e);
	(void)close(fd);
	return r;
}

START_TEST(mounts_of_a_process)
{
	static struct box_table t;
	struct box_table_mount m;
	struct hr_err e;
	uint64_t upper, work;

	ck_assert_int_eq(
	    read_table(&t,
		"21 1 0:40 / / rw,nosuid - overlay handrail-77-78 rw,lowerdir=5:6\n"
		"30 21 8:1 /a\\040b /w\\134\\011x rw shared:1 master:2 - ext4 /dev/a\\040b rw\n"
		"31 30 8:1 /c /w\\134\\011x ro - ext4 /dev/vda rw\n",
		&e),
	    0);
	ck_assert_uint_eq(t.n, 3);
	ck_assert_str_eq(t.v[0].source, "handrail-77-78");
	ck_assert_str_eq(t.v[1].device, "8:1");
	ck_assert_str_eq(t.v[1].root, "/a b");
	ck_assert_str_eq(t.v[1].place, "/w\\\tx");
	ck_assert_str_eq(t.v[1].type, "ext4");
	ck_assert_str_eq(t.v[1].source, "/dev/a b");
	ck_assert_ptr_eq(box_table_find(&t, 30), &t.v[1]);
	ck_assert_ptr_null(box_table_find(&t, 1));
	ck_assert_ptr_eq(box_table_over(&t, &t.v[1]), &t.v[2]);
	ck_assert_ptr_null(box_table_over(&t, &t.v[0]));
	ck_assert_int_eq(box_table_upper(&t.v[0], -1, &upper, &work, &e), 0);
	ck_assert(upper == 77 && work == 78);
	m = t.v[0];
	m.source = "handrail-7";
	ck_assert_int_eq(box_table_upper(&m, -1, &upper, &work, &e), -1);
	m.source = "overlay";
	ck_assert_int_eq(box_table_upper(&m, -1, &upper, &work, &e), -1);
	box_table_done(&t);
	ck_assert_int_eq(read_table(&t, "21 1 0:40 / / rw\n", &e), -1);
	box_table_done(&t);
	ck_assert_int_eq(read_table(&t, "21 1 - overlay\n", &e), -1);
	box_table_done(&t);
}
END_TEST

START_TEST(too_many_mounts_of_a_process)
{
	static struct box_table t;
	struct hr_err e;
	HR_BUF(b, 1 << 20);
	int i;

	for (i = 0; i <= BOX_TABLE_MAX; i++)
		hr_buf_addf(&b, "%d 1 0:1 / /%d rw - tmpfs none rw\n", i + 2, i);
	ck_assert_int_eq(read_table(&t, hr_buf_str(&b), &e), -1);
	ck_assert_ptr_nonnull(strstr(e.msg, "more than 2048 mounts"));
	box_table_done(&t);
}
END_TEST

/* ---- the mask; no mount is made ---- */

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

enum refusal { REFUSES_COPY, REFUSES_FLAGS, REFUSES_MOVE, REFUSES_NOTHING };

static bool hides_others, has_boot_id;
static int put = -1;  /* the file that is to replace the boot ID */
static int copy = -1; /* the mount of that file; the mask closes it */
static enum refusal refusal = REFUSES_NOTHING;

int __wrap_access(const char *path, int mode);
int __wrap_open(const char *path, int flags, ...);
int __real_open(const char *path, int flags, ...);
int __wrap_hr_random_uuid(char *ret, struct hr_err *err);
int __wrap_box_mount_copy(int at, const char *path, unsigned flags);
int __wrap_box_mount_flags(int fd, unsigned flags, uint64_t attributes);
int __wrap_box_mount_move(int from, const char *to);
int __wrap_box_mount_new(const char *type, const char *const *options, unsigned attributes);

int
__wrap_access(const char *path, int mode)
{
	(void)mode;
	ck_assert_str_eq(path, BOOT_ID);
	errno = has_boot_id ? 0 : ENOENT;
	return has_boot_id ? 0 : -1;
}

int
__wrap_open(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	if (strcmp(path, "/dev/boot_id") == 0)
		return dup(put);
	va_start(ap, flags);
	mode = (flags & O_CREAT) != 0 ? va_arg(ap, int) : 0;
	va_end(ap);
	return __real_open(path, flags, mode);
}

int
__wrap_hr_random_uuid(char *ret, struct hr_err *err)
{
	(void)err;
	ck_assert_msg(has_boot_id, "a boot ID was made");
	memset(ret, 'a', HR_UUID_TEXT - 1);
	ret[HR_UUID_TEXT - 1] = '\0';
	return 0;
}

static int
refuse(enum refusal at)
{
	errno = refusal == at ? EPERM : 0;
	return refusal == at ? -1 : 0;
}

int
__wrap_box_mount_copy(int at, const char *path, unsigned flags)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)at, (void)flags;
	if (strcmp(path, "/dev/boot_id") != 0)
		return fd;
	copy = fd;
	if (refuse(REFUSES_COPY) == 0)
		return fd;
	(void)close(fd);
	errno = EPERM;
	return -1;
}

int
__wrap_box_mount_flags(int fd, unsigned flags, uint64_t attributes)
{
	(void)flags, (void)attributes;
	return fd == copy ? refuse(REFUSES_FLAGS) : 0;
}

int
__wrap_box_mount_move(int from, const char *to)
{
	(void)from;
	if (strcmp(to, BOOT_ID) == 0)
		return refuse(REFUSES_MOVE);
	hides_others = true;
	return 0;
}

int
__wrap_box_mount_new(const char *type, const char *const *options, unsigned attributes)
{
	(void)type, (void)options, (void)attributes;
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

START_TEST(no_boot_id)
{
	struct hr_err e = {0};

	has_boot_id = false;
	ck_assert_msg(box_mask(&e) == 0, "%s", e.msg);
	ck_assert(hides_others);
}
END_TEST

/* A box with the host's boot ID does not start. */
START_TEST(boot_id)
{
	struct hr_err e = {0};
	char text[HR_UUID_TEXT + 1] = "";

	has_boot_id = true;
	refusal = (enum refusal)_i;
	copy = -1;
	put = memfd_create("boot_id", MFD_CLOEXEC);
	ck_assert_int_ge(put, 0);
	if (refusal == REFUSES_NOTHING) {
		ck_assert_msg(box_mask(&e) == 0, "%s", e.msg);
	} else {
		ck_assert_int_lt(box_mask(&e), 0);
		ck_assert_str_eq(e.msg, "replace " BOOT_ID ": Operation not permitted");
	}
	ck_assert_int_eq(pread(put, text, sizeof(text), 0), HR_UUID_TEXT);
	ck_assert_str_eq(text, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n");
	(void)close(put);
	has_boot_id = false;
	refusal = REFUSES_NOTHING;
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("box");
	TCase *t = tcase_create("document");
	SRunner *r;
	int failed;

	tcase_add_test(t, all_members);
	tcase_add_test(t, least);
	tcase_add_loop_test(t, errors, 0, (int)(sizeof(wrong) / sizeof(*wrong)));
	tcase_add_test(t, too_many_mounts);
	tcase_add_test(t, layers_below);
	tcase_add_test(t, explained_below);
	tcase_add_test(t, subordinate_ids);
	tcase_add_test(t, mounts_of_a_process);
	tcase_add_test(t, too_many_mounts_of_a_process);
	tcase_add_test(t, no_boot_id);
	tcase_add_loop_test(t, boot_id, REFUSES_COPY, REFUSES_NOTHING + 1);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
