/* Names, hashes and decisions of image builds: the recorded cases, and what they do not reach. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/path.h"
#include "image/dirhash.h"
#include "image/dockerfile.h"
#include "image/kit.h"
#include "image/plan.h"
#include "image/tags.h"
#include "lines.h"

#define CASES_MAX 128

static struct json_object *cases[CASES_MAX];
static size_t ncases;

static struct json_object *
get(struct json_object *o, const char *name)
{
	struct json_object *v = NULL;

	ck_assert_msg(json_object_object_get_ex(o, name, &v), "no field %s", name);
	return v;
}

static const char *
text(struct json_object *o, const char *name)
{
	struct json_object *v = get(o, name);

	return v != NULL ? json_object_get_string(v) : NULL;
}

static bool
yes(struct json_object *o, const char *name)
{
	return json_object_get_boolean(get(o, name));
}

static void
load_cases(void)
{
	FILE *f = lines_open("image/image_tags.jsonl");
	char *line = NULL;
	size_t cap = 0;

	while (ncases < CASES_MAX && lines_next(f, &line, &cap))
		cases[ncases++] = json_tokener_parse(line);
	free(line);
	fclose(f);
}

static void
free_cases(void)
{
	while (ncases > 0)
		json_object_put(cases[--ncases]);
}

/* ---- a place on disk for a case ---- */

struct place {
	char dir[32], tree[40];
	char *files[4];
	size_t nfiles;
};

static size_t
unbase64(const char *s, unsigned char *out)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned bits = 0, n = 0;
	size_t len = 0;

	for (; *s != '\0' && *s != '='; s++) {
		bits = bits << 6 | (unsigned)(strchr(digits, *s) - digits);
		n += 6;
		if (n >= 8) {
			n -= 8;
			out[len++] = (unsigned char)(bits >> n);
		}
	}
	return len;
}

static void
put(const char *path, const void *p, size_t len)
{
	ck_assert_int_eq(hr_path_write(path, p, len, 0644, NULL), 0);
}

static void
make_entry(const struct place *pl, struct json_object *e)
{
	char *path = hr_path_join(pl->tree, text(e, "path")), *slash = strrchr(path, '/');
	unsigned char raw[4096];
	struct json_object *v;

	*slash = '\0';
	ck_assert_int_eq(hr_path_mkdirs(path, 0755, NULL, NULL), 0);
	*slash = '/';
	if (json_object_object_get_ex(e, "symlink", &v)) {
		ck_assert_int_eq(symlink(json_object_get_string(v), path), 0);
	} else if (json_object_object_get_ex(e, "b64", &v)) {
		ck_assert_uint_lt(json_object_get_string_len(v), sizeof(raw));
		put(path, raw, unbase64(json_object_get_string(v), raw));
	} else if (json_object_object_get_ex(e, "text", &v)) {
		put(path, json_object_get_string(v), (size_t)json_object_get_string_len(v));
	} else {
		ck_assert(yes(e, "dir"));
		ck_assert_int_eq(hr_path_mkdirs(path, 0755, NULL, NULL), 0);
	}
	free(path);
}

static void
place_init(struct place *pl, struct json_object *in)
{
	struct json_object *v, *f;
	size_t i;

	memset(pl, 0, sizeof(*pl));
	(void)snprintf(pl->dir, sizeof(pl->dir), "/tmp/test_image.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(pl->dir));
	(void)snprintf(pl->tree, sizeof(pl->tree), "%s/tree", pl->dir);
	ck_assert_int_eq(mkdir(pl->tree, 0755), 0);
	if (json_object_object_get_ex(in, "tree", &v))
		for (i = 0; i < json_object_array_length(v); i++)
			make_entry(pl, json_object_array_get_idx(v, i));
	if (!json_object_object_get_ex(in, "files", &v))
		return;
	for (i = 0; i < json_object_array_length(v); i++) {
		f = json_object_array_get_idx(v, i);
		ck_assert_uint_lt(pl->nfiles, 4);
		pl->files[pl->nfiles] = hr_path_join(pl->dir, text(f, "name"));
		put(pl->files[pl->nfiles++], text(f, "text"),
		    (size_t)json_object_get_string_len(get(f, "text")));
	}
}

static void
place_done(struct place *pl)
{
	size_t i;

	for (i = 0; i < pl->nfiles; i++)
		free(pl->files[i]);
	ck_assert_int_eq(hr_path_remove(pl->dir, NULL), 0);
}

/* ---- the kinds ---- */

static void
check_truncate(struct json_object *in, struct json_object *out)
{
	char hash[HR_IMAGE_HASH];

	ck_assert_int_eq(hr_image_truncate_hash(text(in, "hex"), hash, NULL), 0);
	ck_assert_str_eq(hash, text(out, "hash"));
}

static void
check_versioned(struct json_object *in, struct json_object *out)
{
	struct hr_buf b;

	hr_buf_init(&b, 4096);
	hr_image_versioned_suffix(text(in, "base_image"), &b);
	ck_assert_str_eq(hr_buf_str(&b), text(out, "suffix"));
	hr_buf_done(&b);
}

static void
check_repo_tag(struct json_object *in, struct json_object *out)
{
	struct json_object *error;
	struct hr_buf repo, tag;
	struct hr_err err = {0};
	int r;

	hr_buf_init(&repo, 4096);
	hr_buf_init(&tag, 4096);
	r = hr_image_repo_and_tag(text(in, "base_image"), text(in, "version"), text(in, "repo_env"),
	    false, &repo, &tag, &err);
	if (json_object_object_get_ex(out, "error", &error)) {
		ck_assert_int_eq(r, -1);
		ck_assert_str_eq(err.msg, "too many values to unpack (expected 2)");
	} else {
		ck_assert_int_eq(r, 0);
		ck_assert_str_eq(hr_buf_str(&repo), text(out, "repo"));
		ck_assert_str_eq(hr_buf_str(&tag), text(out, "tag"));
	}
	hr_buf_done(&repo);
	hr_buf_done(&tag);
}

static void
check_lock(struct json_object *in, struct json_object *out)
{
	char md5[HR_DIGEST_HEX], hash[HR_IMAGE_HASH];
	struct place pl;

	place_init(&pl, in);
	ck_assert_int_eq(hr_image_lock_hash(text(in, "base_image"), yes(in, "enable_browser"),
			     (const char *const *)pl.files, pl.nfiles, md5, hash, NULL),
	    0);
	place_done(&pl);
	ck_assert_str_eq(md5, text(out, "md5"));
	ck_assert_str_eq(hash, text(out, "hash"));
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
check_included(struct hr_buf *b, struct json_object *want)
{
	const char *v[64], *p;
	size_t n = 0, i;

	for (p = b->p; p < b->p + b->len; p += strlen(p) + 1) {
		ck_assert_uint_lt(n, 64);
		v[n++] = p;
	}
	qsort(v, n, sizeof(*v), by_text);
	ck_assert_uint_eq(n, json_object_array_length(want));
	for (i = 0; i < n; i++)
		ck_assert_str_eq(v[i], json_object_get_string(json_object_array_get_idx(want, i)));
}

/* What the recorded trees were hashed without. */
static const char *const ignore_python[] = {".*/", "__pycache__/", "*.pyc", NULL};

static void
check_source(struct json_object *in, struct json_object *out)
{
	char md5[HR_DIGEST_HEX], hash[HR_IMAGE_HASH];
	struct hr_buf included;
	struct json_object *v;
	struct hr_err err = {0};
	struct place pl;
	int r;

	place_init(&pl, in);
	hr_buf_init(&included, 1 << 16);
	r = hr_dirhash(pl.tree, ignore_python, &included, md5, &err);
	place_done(&pl);
	if (json_object_object_get_ex(out, "error", &v)) {
		ck_assert_int_eq(r, -1);
		ck_assert_int_eq(err.code, HR_E_INVAL);
	} else {
		ck_assert_msg(r == 0, "%s", err.msg);
		ck_assert_str_eq(md5, text(out, "dirhash"));
		ck_assert_int_eq(hr_image_truncate_hash(md5, hash, NULL), 0);
		ck_assert_str_eq(hash, text(out, "hash"));
		check_included(&included, get(out, "included"));
	}
	hr_buf_done(&included);
}

static int
tags_of(struct place *pl, struct json_object *in, struct hr_image_tags *t)
{
	struct json_object *repo = NULL;
	struct hr_image_inputs i = {
	    .base = text(in, "base_image"),
	    .version = text(in, "version"),
	    .browser = yes(in, "enable_browser"),
	    .lock_files = (const char *const *)pl->files,
	    .lock_files_n = pl->nfiles,
	    .source_dir = pl->tree,
	    .ignore = ignore_python,
	};

	if (json_object_object_get_ex(in, "repo_env", &repo) && repo != NULL)
		i.repo = json_object_get_string(repo);
	return hr_image_tags_init(t, &i, NULL);
}

/* "REPO:TAG" */
static void
check_name(const char *name, struct json_object *out, const char *tag)
{
	char want[512];

	(void)snprintf(want, sizeof(want), "%s:%s", text(out, "repo"), text(out, tag));
	ck_assert_str_eq(name, want);
}

static void
check_tags(struct json_object *in, struct json_object *out)
{
	struct json_object *error;
	struct hr_image_tags t;
	struct place pl;
	int r;

	place_init(&pl, in);
	r = tags_of(&pl, in, &t);
	place_done(&pl);
	if (json_object_object_get_ex(out, "error", &error)) {
		ck_assert_int_eq(r, -1);
		return;
	}
	ck_assert_int_eq(r, 0);
	ck_assert_str_eq(t.source, text(out, "image"));
	ck_assert_str_eq(t.repo, text(out, "repo"));
	check_name(t.source, out, "source_tag");
	check_name(t.lock, out, "lock_tag");
	check_name(t.versioned, out, "versioned_tag");
	hr_image_tags_done(&t);
}

/* ---- plans ---- */

struct builder {
	struct json_object *in, *out;
	const char *local[16];
	size_t nlocal, probe;
	bool prepared, built;
};

static bool
among(struct json_object *list, const char *name)
{
	size_t i;

	for (i = 0; i < json_object_array_length(list); i++)
		if (strcmp(json_object_get_string(json_object_array_get_idx(list, i)), name) == 0)
			return true;
	return false;
}

static int
builder_exists(void *arg, const char *name, bool pull, bool usable, bool *ret, struct hr_err *err)
{
	struct builder *b = arg;
	struct json_object *probes = get(b->out, "probes"), *p;
	size_t i;

	(void)usable;
	(void)err;
	p = json_object_array_get_idx(probes, b->probe++);
	ck_assert_msg(p != NULL, "look-up %zu: %s", b->probe, name);
	ck_assert_str_eq(name, text(p, "image"));
	ck_assert_int_eq(pull, yes(p, "pull"));
	*ret = among(get(b->in, "local"), name);
	for (i = 0; i < b->nlocal; i++)
		*ret |= strcmp(b->local[i], name) == 0;
	if (!*ret && pull && among(get(b->in, "registry"), name)) {
		ck_assert_uint_lt(b->nlocal, 16);
		b->local[b->nlocal++] = name;
		*ret = true;
	}
	return 0;
}

static void
same_text(const char *got, const char *want)
{
	ck_assert_str_eq(got != NULL ? got : "(none)", want != NULL ? want : "(none)");
}

static int
builder_prepare(void *arg, const char *from, enum hr_image_strategy s,
    const struct hr_image_request *req, struct hr_err *err)
{
	struct builder *b = arg;
	struct json_object *want = get(b->out, "prep");

	(void)err;
	ck_assert_ptr_nonnull(want);
	ck_assert_str_eq(from, text(want, "from_image"));
	ck_assert_str_eq(hr_image_strategy_name(s), text(want, "build_from"));
	same_text(req->extra_deps, text(want, "extra_deps"));
	ck_assert_int_eq(req->browser, yes(want, "enable_browser"));
	b->prepared = true;
	return 0;
}

static int
builder_build(void *arg, const char *const *names, size_t n, const struct hr_image_request *req,
    struct hr_err *err)
{
	struct builder *b = arg;
	struct json_object *want = get(b->out, "build"), *tags;
	size_t i;

	(void)err;
	ck_assert_ptr_nonnull(want);
	tags = get(want, "tags");
	ck_assert_uint_eq(n, json_object_array_length(tags));
	for (i = 0; i < n; i++)
		ck_assert_str_eq(
		    names[i], json_object_get_string(json_object_array_get_idx(tags, i)));
	same_text(req->platform, text(want, "platform"));
	b->built = true;
	return 0;
}

static void
check_plan(struct json_object *in, struct json_object *out)
{
	struct builder b = {.in = in, .out = out};
	struct hr_image_builder ops = {&b, builder_exists, builder_prepare, builder_build};
	struct hr_image_request req = {
	    .base = text(in, "base_image"),
	    .platform = text(in, "platform"),
	    .extra_deps = text(in, "extra_deps"),
	    .browser = yes(in, "enable_browser"),
	    .force = yes(in, "force_rebuild"),
	    .dry_run = yes(in, "dry_run"),
	};
	struct json_object *error;
	struct hr_image_tags t;
	struct place pl;
	int r;

	place_init(&pl, in);
	ck_assert_int_eq(tags_of(&pl, in, &t), 0);
	place_done(&pl);
	r = hr_image_build(&ops, &t, &req, NULL);
	if (json_object_object_get_ex(out, "error", &error)) {
		ck_assert_int_eq(r, -1);
	} else {
		ck_assert_int_eq(r, 0);
		ck_assert_str_eq(t.source, text(out, "result"));
		ck_assert_int_eq(b.built, get(out, "build") != NULL);
	}
	ck_assert_uint_eq(b.probe, json_object_array_length(get(out, "probes")));
	ck_assert_int_eq(b.prepared, get(out, "prep") != NULL);
	hr_image_tags_done(&t);
}

static const struct {
	const char *kind;
	void (*check)(struct json_object *in, struct json_object *out);
} kinds[] = {
    {"truncate", check_truncate},
    {"versioned", check_versioned},
    {"repo_tag", check_repo_tag},
    {"lock", check_lock},
    {"source", check_source},
    {"tags", check_tags},
    {"plan", check_plan},
};

#define RECORDED 95 /* the lines before those of kind "reference" */

START_TEST(recorded)
{
	struct json_object *c;
	size_t i;

	ck_assert_uint_gt(ncases, (size_t)_i);
	c = cases[_i];
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(kinds[i].kind, text(c, "kind")) == 0) {
			kinds[i].check(get(c, "in"), get(c, "out"));
			return;
		}
	}
	ck_abort_msg("unknown kind: %s", json_object_to_json_string(c));
}
END_TEST

/* Only what tells about the real release is left over. */
START_TEST(all_are_recorded)
{
	size_t i;

	ck_assert_uint_eq(ncases, 109);
	for (i = RECORDED; i < ncases; i++)
		ck_assert_str_eq(text(cases[i], "kind"), "reference");
}
END_TEST

/* ---- what the corpus does not reach ---- */

START_TEST(registry_ports)
{
	static const struct {
		const char *base, *tag;
	} rows[] = {
	    {"localhost:5000/team/img:1.0", "oh_v1_image_localhost:5000_s_team_s_img_tag_1.0"},
	    {"localhost:5000/img", "oh_v1_image_localhost:5000_s_img_tag_latest"},
	    {"debian:12", "oh_v1_image_debian_tag_12"},
	    {"debian", "oh_v1_image_debian_tag_latest"},
	};
	struct hr_buf repo, tag;

	hr_buf_init(&repo, 256);
	hr_buf_init(&tag, 256);
	ck_assert_int_eq(
	    hr_image_repo_and_tag(rows[_i].base, "1", NULL, true, &repo, &tag, NULL), 0);
	ck_assert_str_eq(tag.p, rows[_i].tag);
	hr_buf_done(&repo);
	hr_buf_done(&tag);
}
END_TEST

START_TEST(bad_hashes)
{
	char hash[HR_IMAGE_HASH];

	ck_assert_int_eq(hr_image_truncate_hash("", hash, NULL), -1);
	ck_assert_int_eq(hr_image_truncate_hash("xyz", hash, NULL), -1);
	ck_assert_int_eq(
	    hr_image_truncate_hash("000000000000000000000000000000000", hash, NULL), -1);
}
END_TEST

START_TEST(missing_lock_file)
{
	const char *const files[] = {"/nonexistent/deps.conf"};
	char hash[HR_IMAGE_HASH];
	struct hr_err err = {0};

	ck_assert_int_eq(hr_image_lock_hash("b", true, files, 1, NULL, hash, &err), -1);
	ck_assert_int_eq(err.sys, ENOENT);
}
END_TEST

static int
retag_exists(void *arg, const char *name, bool pull, bool usable, bool *ret, struct hr_err *err)
{
	(void)arg;
	(void)name;
	(void)pull;
	(void)usable;
	(void)err;
	*ret = true;
	return 0;
}

static int
retag_prepare(void *arg, const char *from, enum hr_image_strategy s,
    const struct hr_image_request *req, struct hr_err *err)
{
	(void)arg;
	(void)from;
	(void)req;
	(void)err;
	ck_assert_int_eq(s, HR_IMAGE_SCRATCH);
	return 0;
}

static int
retag_build(void *arg, const char *const *names, size_t n, const struct hr_image_request *req,
    struct hr_err *err)
{
	(void)names;
	(void)req;
	(void)err;
	*(size_t *)arg = n;
	return 0;
}

/* With every name taken, a forced build has nothing to call its result, unless it takes them over.
 */
START_TEST(force_with_all_names)
{
	char repo[] = "r", source[] = "r:s", lock[] = "r:l", versioned[] = "r:v";
	struct hr_image_tags t = {repo, source, lock, versioned};
	struct hr_image_request req = {.base = "b", .force = true};
	size_t n = 0;
	struct hr_image_builder b = {&n, retag_exists, retag_prepare, retag_build};
	struct hr_err err = {0};

	ck_assert_int_eq(hr_image_build(&b, &t, &req, &err), -1);
	ck_assert_str_eq(err.msg, "Build failed for image []");
	req.retag = true;
	ck_assert_int_eq(hr_image_build(&b, &t, &req, &err), 0);
	ck_assert_uint_eq(n, 3);
}
END_TEST

/* ---- the Dockerfile ---- */

static char *
dockerfile(const struct hr_dockerfile *d)
{
	const char *dir = getenv("srcdir");
	char path[512];
	struct hr_buf text_b, b;
	struct hr_err err = {0};
	char *out;

	(void)snprintf(
	    path, sizeof(path), "%s/runtime-image/Dockerfile.in", dir != NULL ? dir : ".");
	hr_buf_init(&text_b, 1 << 20);
	hr_buf_init(&b, 1 << 20);
	ck_assert_int_eq(hr_path_read(path, &text_b, NULL), 0);
	ck_assert_msg(hr_dockerfile_put(&b, text_b.p, text_b.len, d, &err) == 0, "%s", err.msg);
	hr_buf_done(&text_b);
	out = hr_buf_take(&b);
	hr_buf_done(&b);
	return out;
}

#define COPY_LINE "COPY --chown=openhands:openhands ./code/runtime /openhands/code/runtime\n"

START_TEST(dockerfiles)
{
	static const enum hr_image_strategy all[] = {
	    HR_IMAGE_SCRATCH, HR_IMAGE_VERSIONED, HR_IMAGE_LOCK};
	struct hr_dockerfile d = {
	    .from = "some/base:1",
	    .strategy = all[_i],
	    .extra_deps = "echo 'a b' && \\\n    echo c",
	    .browser = true,
	    .version = "1.2",
	    .lock = "l",
	    .source = "s",
	};
	char *with = dockerfile(&d), *without, *user, *deps, *v1;

	d.browser = false;
	d.extra_deps = NULL;
	without = dockerfile(&d);
	ck_assert_ptr_nonnull(strstr(with, "FROM some/base:1\n"));
	ck_assert_ptr_nonnull(strstr(with, COPY_LINE));
	ck_assert_ptr_nonnull(strstr(with, "make install"));
	ck_assert_int_eq(strstr(with, "install-deps.sh") != NULL, d.strategy != HR_IMAGE_LOCK);
	ck_assert_int_eq(strstr(with, "--with-browser") != NULL, d.strategy != HR_IMAGE_LOCK);
	ck_assert_ptr_null(strstr(without, "--with-browser"));
	/* verbatim, by the user, behind the source */
	user = strstr(with, "USER openhands\n");
	deps = strstr(with, "RUN echo 'a b' && \\\n    echo c\n");
	ck_assert(user != NULL && deps > user && user > strstr(with, COPY_LINE));
	ck_assert_ptr_null(strstr(without, "USER openhands"));
	ck_assert_ptr_null(strchr(without, '@'));
	ck_assert_ptr_nonnull(strstr(with, "org.openhands.runtime=\"c\""));
	/* only the image for OpenHands V1 starts by itself */
	d.v1 = true;
	v1 = dockerfile(&d);
	ck_assert_ptr_nonnull(
	    strstr(v1, "\nENTRYPOINT [\"/usr/local/bin/openhands-agent-server\"]\n"));
	ck_assert_ptr_nonnull(strstr(v1, "\nEXPOSE 8000\n"));
	ck_assert_int_eq(
	    strstr(v1, "install-deps.sh build run agent\n") != NULL, d.strategy != HR_IMAGE_LOCK);
	ck_assert_ptr_null(strstr(without, "ENTRYPOINT"));
	ck_assert_ptr_null(strstr(without, "run agent"));
	free(v1);
	free(with);
	free(without);
}
END_TEST

START_TEST(bad_templates)
{
	static const char *const rows[] = {"@if nowhere\n@end\n", "@if lock\nx\n", "@end\n",
	    "a @nothing@ b\n", "a @from b\n", "@if lock\n@if lock\n@end\n@end\n"};
	struct hr_dockerfile d = {.from = "b", .version = "", .lock = "", .source = ""};
	struct hr_err err = {0};
	struct hr_buf b;

	hr_buf_init(&b, 4096);
	ck_assert_int_eq(hr_dockerfile_put(&b, rows[_i], strlen(rows[_i]), &d, &err), -1);
	ck_assert_int_eq(err.code, HR_E_INVAL);
	hr_buf_done(&b);
}
END_TEST

/* A name with a line feed would be a second instruction. */
START_TEST(base_with_line_feed)
{
	struct hr_dockerfile d = {.from = "b\nRUN x", .version = "", .lock = "", .source = ""};
	struct hr_buf b;

	hr_buf_init(&b, 4096);
	ck_assert_int_eq(hr_dockerfile_put(&b, "FROM @from@\n", 12, &d, NULL), -1);
	hr_buf_done(&b);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("image");
	TCase *tc = tcase_create("image");

	tcase_add_unchecked_fixture(tc, load_cases, free_cases);
	tcase_add_loop_test(tc, recorded, 0, RECORDED);
	tcase_add_test(tc, all_are_recorded);
	tcase_add_loop_test(tc, registry_ports, 0, 4);
	tcase_add_test(tc, bad_hashes);
	tcase_add_test(tc, missing_lock_file);
	tcase_add_test(tc, force_with_all_names);
	tcase_add_loop_test(tc, dockerfiles, 0, 3);
	tcase_add_loop_test(tc, bad_templates, 0, 6);
	tcase_add_test(tc, base_with_line_feed);
	suite_add_tcase(s, tc);
	return lines_run(s);
}
