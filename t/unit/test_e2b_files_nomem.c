/* The requests of E2B's SDKs about files, with each of their allocations failing in turn: an answer
 * of success is the right one, a refused request has changed no file but its own, and (under a
 * sanitizer or valgrind) nothing is lost. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "fuse.h"
#include "lines.h"
#include "request.h"
#include "scratch.h"
#include "worker/worker.h"

#define FORM                                                                                       \
	"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"%s/wrong\"\r\n\r\n"      \
	"new\r\n--b--\r\n"

static struct hr_scoreboard board;
static struct hr_worker w;
static struct hr_answer ret;
static char *const plain[] = {NULL};
static char metadata[] = "HTTP_X_METADATA_A=b", bad[] = "HTTP_X_METADATA_A=\x01",
	    gzip[] = "HTTP_ACCEPT_ENCODING=gzip";
static char *const with_metadata[] = {metadata, NULL}, *const with_bad[] = {bad, NULL},
		   *const with_gzip[] = {gzip, NULL};

/* In texts, %s is the directory of the test. */
static const struct {
	const char *method, *uri, *type, *body;
	char *const *params;
	int status;
	const char *made; /* a file whose text is "new" afterwards */
	const char *text; /* a part of the answer */
} calls[] = {
    {"GET", "health", "", "", plain, 204, NULL, ""},
    {"GET", "envs", "", "", plain, 200, NULL, "{"},
    {"GET", "metrics", "", "", plain, 200, NULL, "cpu_count"},
    {"GET", "files?path=%s/old", "", "", plain, 200, NULL, ""},
    {"GET", "files?path=%s/old", "", "", with_gzip, 200, NULL, ""},
    {"GET", "files?path=%s/none", "", "", plain, 404, NULL, "does not exist"},
    {"POST", "files?path=%s/a/b", "application/octet-stream", "new", with_metadata, 200, "a/b",
	"a/b"},
    {"POST", "files?path=%s/b", "application/octet-stream", "new", with_bad, 400, NULL, "ASCII"},
    {"POST", "files?path=%s/a/b", "multipart/form-data; boundary=b", FORM, plain, 200, "a/b",
	"a/b"},
    {"POST", "files/compose", "application/json",
	"{\"source_paths\":[\"%s/part\"],\"destination\":\"%s/a/b\"}", plain, 200, "a/b", "a/b"},
    {"POST", "filesystem.Filesystem/Stat", "application/json", "{\"path\":\"%s/below/link\"}",
	plain, 200, NULL, "FILE_TYPE_FILE"},
    {"POST", "filesystem.Filesystem/ListDir", "application/json", "{\"path\":\"%s\",\"depth\":2}",
	plain, 200, NULL, "/old"},
    {"POST", "filesystem.Filesystem/MakeDir", "application/json", "{\"path\":\"%s/c/d\"}", plain,
	200, NULL, "FILE_TYPE_DIRECTORY"},
    {"POST", "filesystem.Filesystem/Move", "application/json",
	"{\"source\":\"%s/part\",\"destination\":\"%s/a/b\"}", plain, 200, "a/b", "a/b"},
    {"POST", "filesystem.Filesystem/Remove", "application/json", "{\"path\":\"%s/part\"}", plain,
	200, NULL, "{}"},
};

static ssize_t
read_body(void *ctx, char *p, size_t len)
{
	const char **rest = ctx;
	size_t n = strlen(*rest) < len ? strlen(*rest) : len;

	memcpy(p, *rest, n);
	*rest += n;
	return (ssize_t)n;
}

static void
fill(char *to, size_t size, const char *text)
{
	const char *at;
	size_t n = 0;

	for (; (at = strstr(text, "%s")) != NULL; text = at + 2)
		n += (size_t)snprintf(
		    to + n, size - n, "%.*s%s/box", (int)(at - text), text, scratch);
	(void)snprintf(to + n, size - n, "%s", text);
}

static void
put(const char *name, const char *text)
{
	char path[128];
	HR_CLOSE int fd = -1;

	fill(path, sizeof(path), name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(hr_fd_write_full(fd, text, strlen(text), NULL), 0);
}

static void
text_of(const char *name, char *to, size_t size)
{
	char path[128];
	HR_CLOSE int fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/box/%s", scratch, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, to, size - 1) : 0;
	to[n > 0 ? n : 0] = '\0';
}

static size_t more_names, names_left; /* that a directory has beside its own */

struct dirent *__real_hr_dir_next(DIR *d);
struct dirent *__wrap_hr_dir_next(DIR *d);

struct dirent *
__wrap_hr_dir_next(DIR *d)
{
	static struct dirent e;

	if (names_left == 0)
		return __real_hr_dir_next(d);
	(void)snprintf(e.d_name, sizeof(e.d_name), "%zu", names_left--);
	return &e;
}

static bool lays_below;            /* there is a directory with entries, too */
static const struct rlimit *limit; /* of the call; NULL: none */

/* Lays the files anew, calls, and returns the status. */
static int
call(size_t i, long n)
{
	static char uri[300], body[512];
	char target[256], path[128];
	const char *rest = body;
	struct hr_request r = request_blank(calls[i].method, uri);

	(void)snprintf(path, sizeof(path), "%s/box", scratch);
	(void)hr_path_remove(path, NULL);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	put("%s/old", "old");
	put("%s/part", "new");
	if (lays_below || strstr(calls[i].body, "below") != NULL) {
		(void)snprintf(path, sizeof(path), "%s/box/below", scratch);
		ck_assert_int_eq(mkdir(path, 0755), 0);
		put("%s/below/file", "file");
		(void)snprintf(path, sizeof(path), "%s/box/below/link", scratch);
		ck_assert_int_eq(symlink("../old", path), 0);
	}
	fill(target, sizeof(target), calls[i].uri);
	(void)snprintf(uri, sizeof(uri), "/handrail/e2b/%s", target);
	fill(body, sizeof(body), calls[i].body);
	r.content_type = calls[i].type;
	r.params = calls[i].params;
	r.body = (struct hr_body){read_body, &rest};
	r.path = &w.path;
	hr_buf_reset(&w.path);
	ck_assert_int_eq(hr_request_split(&r), 0);
	hr_answer_reset(&ret);
	names_left = more_names;
	if (limit != NULL)
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, limit), 0);
	fuse = n;
	hr_handle_e2b(&w, &r, &ret);
	hr_answer_settle(&ret);
	return ret.status;
}

static void
check(size_t i, long n)
{
	char text[16], value[4] = "", path[128];

	text_of("old", text, sizeof(text));
	ck_assert_msg(strcmp(text, "old") == 0, "call %zu, allocation %ld: %s", i, n, text);
	text_of("wrong", text, sizeof(text));
	ck_assert_msg(text[0] == '\0', "call %zu, allocation %ld: another file", i, n);
	if (calls[i].made != NULL) {
		text_of(calls[i].made, text, sizeof(text));
		ck_assert_msg(strcmp(text, "new") == 0 || (ret.status >= 400 && text[0] == '\0'),
		    "call %zu, allocation %ld: \"%s\"", i, n, text);
	}
	if (ret.status >= 400 && ret.status != calls[i].status)
		return;
	ck_assert_msg(
	    ret.status == calls[i].status, "call %zu, allocation %ld: %d", i, n, ret.status);
	ck_assert_msg(strstr(hr_buf_str(&ret.body), calls[i].text) != NULL,
	    "call %zu, allocation %ld: %s", i, n, hr_buf_str(&ret.body));
	(void)snprintf(path, sizeof(path), "%s/box/a/b", scratch);
	if (calls[i].params == with_metadata && calls[i].made != NULL &&
	    getxattr(path, "user.probe", value, sizeof(value)) < 0 && errno != EOPNOTSUPP)
		ck_assert_msg(getxattr(path, "user.e2b.a", value, sizeof(value)) == 1,
		    "call %zu, allocation %ld: no metadata", i, n);
}

START_TEST(each_allocation)
{
	bool failed = true;
	long n;

	for (n = 0; failed; n++) {
		call((size_t)_i, n);
		failed = fuse < 0;
		fuse = -1;
		check((size_t)_i, n);
	}
	ck_assert_int_eq(ret.status, calls[_i].status);
}
END_TEST

/* A directory whose list is too long is refused before all its names are in memory. */
START_TEST(many_names)
{
	size_t i;

	for (i = 0; strstr(calls[i].uri, "ListDir") == NULL; i++)
		;
	more_names = 2000000;
	call(i, -1);
	ck_assert_int_eq(ret.status, 429);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&ret.body), "the list exceeds 64 MiB"));
	ck_assert_uint_gt(names_left, 1000000);
	more_names = names_left = 0;
}
END_TEST

static const struct {
	const char *method, *parts[3];
} described[] = {
    {"ListDir", {"below/file", "below/link", "/old"}},
    {"Stat", {"below/link", "FILE_TYPE_FILE", "symlinkTarget"}},
};

/* An answer is whole, or refused, however few files the worker may open. */
START_TEST(few_descriptors)
{
	const char *const *part = described[_i].parts;
	struct rlimit was, few;
	size_t i, k, refused = 0;
	bool whole = false;
	int lowest;

	for (i = 0; strstr(calls[i].uri, described[_i].method) == NULL; i++)
		;
	lays_below = true;
	lowest = open("/", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(lowest, 0);
	(void)close(lowest);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	for (few.rlim_cur = (rlim_t)lowest + 1; !whole; few.rlim_cur++) {
		ck_assert_uint_lt(few.rlim_cur, (rlim_t)lowest + 32);
		limit = &few;
		call(i, -1);
		limit = NULL;
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
		whole = ret.status == 200;
		refused += !whole;
		for (k = 0; whole && k < 3; k++)
			ck_assert_msg(strstr(hr_buf_str(&ret.body), part[k]) != NULL,
			    "%d more, no %s: %s", (int)few.rlim_cur - lowest, part[k],
			    hr_buf_str(&ret.body));
	}
	ck_assert_uint_ge(refused, 1);
	lays_below = false;
}
END_TEST

static void
start(void)
{
	static char run_dir[64];

	scratch_make();
	(void)snprintf(run_dir, sizeof(run_dir), "%s/run", scratch);
	ck_assert_int_eq(mkdir(run_dir, 0700), 0);
	hr_worker_init(&w, run_dir, scratch, &board, &board.slots[0]);
	w.user_id = geteuid();
	hr_answer_init(&ret);
}

static void
end(void)
{
	hr_worker_done(&w);
	hr_answer_done(&ret);
	scratch_remove();
}

int
main(void)
{
	Suite *s = suite_create("e2b_files_nomem");
	TCase *t = tcase_create("nomem");

	tcase_add_unchecked_fixture(t, start, end);
	tcase_add_loop_test(t, each_allocation, 0, sizeof(calls) / sizeof(*calls));
	tcase_add_test(t, many_names);
	tcase_add_loop_test(t, few_descriptors, 0, sizeof(described) / sizeof(*described));
	suite_add_tcase(s, t);
	return lines_run(s);
}
