/* files: what comes and goes whole: uploads, archives in and out, downloads. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "failcalls.h"
#include "fault.h"
#include "files/filebody.h"
#include "files/multipart.h"
#include "files/archive/pack.h"
#include "files/place/spool.h"
#include "files/place/target.h"
#include "files/archive/unpack.h"
#include "tree.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define WHY_MAX 65536
#define ZIP_MAX (1u << 20)

static void
need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(99);
}

/* A text without a code. */
static int
say(const struct hr_buf *why, struct hr_err *err)
{
	return hr_err_set(err, HR_E_SYS, "%s", hr_buf_str(why));
}

/* ---- upload ---- */

struct upload {
	struct hr_spool spool;
	struct hr_target target;
	struct hr_buf *why;
};

static int
part_begin(void *arg, const char *disposition, size_t len)
{
	struct upload *u = arg;

	fault_tell("begin %.*s.", (int)len, disposition);
	if (hr_spool_open(&u->spool, tree_path("up")) == 0)
		return 0;
	hr_buf_addf(u->why, "spool: %s", strerror(errno));
	return -1;
}

static int
part_data(void *arg, const char *p, size_t len)
{
	struct upload *u = arg;

	if (hr_spool_write(&u->spool, p, len) == 0)
		return 0;
	hr_buf_addf(u->why, "spool: %s", strerror(errno));
	return -1;
}

static int
part_end(void *arg)
{
	struct upload *u = arg;

	if (hr_target_open(&u->target, tree_path("up"), "f", tree_path("up"), u->why) != 0)
		return -1;
	return hr_spool_place(&u->spool, &u->target, u->why);
}

static int
upload(struct hr_err *err)
{
	static const struct hr_multipart_ops ops = {part_begin, part_data, part_end};
	static const char body[] =
	    "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n"
	    "new text\r\n--b--\r\n";
	HR_BUF(why, WHY_MAX);
	struct upload u = {.target = {.dir = -1}, .why = &why};
	struct hr_multipart m;
	int r;

	hr_spool_init(&u.spool);
	r = hr_multipart_init(&m, "b", 1, &ops, &u);
	err->code = HR_OK;
	if (r == 0)
		r = hr_multipart_feed(&m, body, sizeof(body) - 1, err);
	if (r != 0 && err->code == HR_OK)
		(void)say(&why, err);
	hr_multipart_done(&m);
	hr_target_close(&u.target);
	hr_spool_close(&u.spool);
	return r;
}

static int
uploading(struct hr_err *err)
{
	static const struct tree_file files[] = {
	    {.name = "up/other", .old = "x"}, {.name = "up/f", .new = "new text"}};
	int r;

	tree_make(files, COUNT(files));
	r = upload(err);
	tree_check(files, COUNT(files));
	return r;
}

static int
uploading_over(struct hr_err *err)
{
	static const struct tree_file files[] = {{"up/f", "old", "new text", 0604, 0}};
	int r;

	tree_make(files, 1);
	r = upload(err);
	tree_check(files, 1);
	return r;
}

/* Which stay, whatever fails, also where the file is the old one. */
static int
uploading_over_attributes(struct hr_err *err)
{
	static const struct tree_file files[] = {{"up/f", "old", "new text", 0604, 0}};
	char value[8] = "";
	int r;

	tree_make(files, 1);
	failcalls_spare(true);
	r = setxattr(tree_path("up/f"), "user.kept", "kept", 4, 0);
	failcalls_spare(false);
	if (r != 0 && errno == ENOTSUP)
		printf("# %s has no attributes: set TMPDIR\n", tree_path("up"));
	else
		need(r == 0, "setxattr");
	r = upload(err);
	failcalls_spare(true);
	if (getxattr(tree_path("up/f"), "user.kept", value, sizeof(value)) != 4 && errno != ENOTSUP)
		fault_wrong("attribute: %s", strerror(errno));
	failcalls_spare(false);
	tree_check(files, 1);
	return r;
}

static int
uploading_into_made(struct hr_err *err)
{
	static const struct tree_file files[] = {{.name = "up/a/b/c", .new = "text"}};
	struct hr_target t;
	struct hr_spool s;
	HR_BUF(why, WHY_MAX);
	size_t made = 0;
	int r;

	hr_spool_init(&s);
	memset(&t, 0, sizeof(t));
	t.dir = -1;
	r = hr_target_mkdirs(tree_path("up/a/b"), &made, &why);
	if (r == 0 &&
	    (hr_spool_open(&s, tree_path("up/a/b")) != 0 || hr_spool_write(&s, "text", 4) != 0)) {
		hr_buf_addf(&why, "spool: %s", strerror(errno));
		r = -1;
	}
	if (r == 0)
		r = hr_target_open(&t, tree_path("up/a/b"), "c", fault_dir(), &why);
	if (r == 0)
		r = hr_spool_place(&s, &t, &why);
	if (r != 0)
		(void)say(&why, err);
	hr_target_close(&t);
	hr_spool_close(&s);
	hr_buf_done(&why);
	tree_check(files, 1);
	return r;
}

/* ---- archives ---- */

struct kept {
	struct hr_sink sink;
	char *p;
	size_t len;
};

static int
keep(struct hr_sink *sink, const void *p, size_t len)
{
	struct kept *k = (struct kept *)(void *)sink;

	if (len > ZIP_MAX - k->len)
		return -1;
	memcpy(k->p + k->len, p, len);
	k->len += len;
	return 0;
}

static int
pack(const char *name, struct kept *k, struct hr_err *err)
{
	HR_BUF(why, WHY_MAX);
	struct hr_pack *p;
	int r = -1;

	need(setlocale(LC_CTYPE, "C.UTF-8") != NULL, "C.UTF-8"); /* names are UTF-8 */
	p = hr_pack_open(tree_path(name), true, &why);
	if (p == NULL)
		(void)say(&why, err);
	else
		r = hr_pack_send(p, &k->sink, err);
	hr_pack_free(p);
	return r;
}

/* A file without a name. Spared. */
static int
file_of(const struct kept *k)
{
	const char *path = tree_path("zip");
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	need(fd >= 0 && unlink(path) == 0, path);
	need(hr_fd_write_full(fd, k->p, k->len, NULL) == 0, path);
	return fd;
}

static char room[ZIP_MAX];

static int
unpacking(struct hr_err *err)
{
	static const struct tree_file packed[] = {{.name = "from/made/deep/a", .old = "text a"},
	    {.name = "from/there", .old = "new"}, {.name = "from/made/b", .old = "text b"}};
	static const struct tree_file files[] = {{"up/there", "old", "new", 0640, 0},
	    {.name = "up/stays", .old = "x"}, {.name = "up/made/deep/a", .new = "text a"},
	    {.name = "up/made/b", .new = "text b"}};
	const struct hr_unpack_limits limits = {.bytes = 1000, .entries = 10};
	const struct hr_unpack_limits too_few = {.entries = 1};
	struct kept k = {.sink = {keep, -1}, .p = room};
	HR_BUF(why, WHY_MAX);
	bool too_large;
	int zip, r;

	failcalls_spare(true);
	tree_make(packed, COUNT(packed));
	need(pack("from", &k, err) == 0, "zip");
	need(hr_path_remove(tree_path("from"), err) == 0, "from");
	zip = file_of(&k);
	tree_make(files, COUNT(files));
	failcalls_spare(false);
	r = hr_unpack(zip, "x.zip", tree_path("up"), &limits, NULL, &too_large, &why);
	if (r != 0)
		(void)say(&why, err);
	fault_tell("%d", too_large);
	/* a staging directory that could not be removed is removed by the next one, whatever comes
	 * of that: this one is refused */
	failcalls_spare(true);
	(void)hr_unpack(zip, "x.zip", tree_path("up"), &too_few, NULL, &too_large, &why);
	failcalls_spare(false);
	hr_buf_done(&why);
	hr_fd_close(&zip);
	tree_check(files, COUNT(files));
	return r;
}

/* What is in an archive that was sent is seen when it is unpacked. */
static int
packing(struct hr_err *err)
{
	static const struct tree_file files[] = {{.name = "up/a", .old = "text a"},
	    {.name = "up/d/b", .old = "text b"}, {.name = "up/d/e/c", .old = "text c"},
	    {.name = "out/a", .new = "text a"}, {.name = "out/d/b", .new = "text b"},
	    {.name = "out/d/e/c", .new = "text c"}};
	const struct hr_unpack_limits limits = {.entries = 10};
	struct kept k = {.sink = {keep, -1}, .p = room};
	struct hr_buf why;
	bool too_large;
	int zip, r;

	tree_make(files, COUNT(files));
	r = pack("up", &k, err);
	failcalls_spare(true);
	if (r == 0) {
		hr_buf_init(&why, WHY_MAX);
		zip = file_of(&k);
		need(mkdir(tree_path("out"), 0755) == 0, "out");
		if (hr_unpack(zip, "x.zip", tree_path("out"), &limits, NULL, &too_large, &why) != 0)
			fault_wrong("sent: %.100s", hr_buf_str(&why));
		hr_fd_close(&zip);
		hr_buf_done(&why);
	}
	tree_check(files, COUNT(files));
	failcalls_spare(false);
	return r;
}

/* The reader leaves after the first bytes: nothing is kept of the archive. */
static int
leave(struct hr_sink *sink, const void *p, size_t len)
{
	(void)sink;
	(void)p;
	(void)len;
	return -1;
}

static int
packing_for_nobody(struct hr_err *err)
{
	static const struct tree_file files[] = {{.name = "up/a", .old = "text a"}};
	struct kept k = {.sink = {leave, -1}};
	struct hr_err why = {.code = HR_OK};

	tree_make(files, 1);
	if (pack("up", &k, &why) == 0)
		fault_wrong("it went to nobody");
	if (why.code == HR_OK)
		return 0; /* the reader's doing */
	*err = why;
	return -1;
}

/* ---- download ---- */

static int
downloading(struct hr_err *err)
{
	static const struct tree_file files[] = {{.name = "up/f", .old = "a few bytes"}};
	struct kept k = {.sink = {keep, -1}, .p = room};
	void *body;
	int fd, r = -1;

	tree_make(files, 1);
	fd = open(tree_path("up/f"), O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return hr_err_sys(err, errno, "open");
	body = hr_filebody_new(fd, 2, 3);
	if (body == NULL)
		(void)hr_err_nomem(err);
	else
		r = hr_filebody_send(body, &k.sink, err);
	hr_filebody_free(body);
	fault_tell_bytes(k.p, k.len);
	return r;
}

const struct fault_scenario fault_scenarios[] = {{"upload", uploading, 0},
    {"upload over", uploading_over, 0}, {"upload over attributes", uploading_over_attributes, 0},
    {"upload into a new directory", uploading_into_made, 0}, {"unpack", unpacking, 0},
    {"pack", packing, 0}, {"pack for nobody", packing_for_nobody, 0}, {"download", downloading, 0},
    {NULL, NULL, 0}};
