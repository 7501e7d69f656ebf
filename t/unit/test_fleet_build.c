/* Builds of a fleet: the form of a request, and the images that a key may use. */
#include "config.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fleet/build/build.h"
#include "fleet/build/buildform.h"
#include "lines.h"

#define PREFIX "host:5000/a/b"
#define PART(name, text)                                                                           \
	"--B\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n" text "\r\n"
#define FILE_PART(text)                                                                            \
	"--B\r\nContent-Disposition: form-data; name=\"context\"; filename=\"c\"\r\n\r\n" text     \
	"\r\n"
#define TARGET PART("target_image", PREFIX "/x:1")
#define CONTEXT FILE_PART("aGFsbG8=")
#define END "--B--\r\n"

/* Feeds a form in pieces. Returns 0, 1 if the form is refused in parts, 2 if as a whole. */
static int
take(struct hr_fleet_form *f, int fd, const char *p, size_t len, size_t step, struct hr_err *err)
{
	size_t n;

	*err = (struct hr_err){0};
	ck_assert_int_eq(hr_fleet_form_init(f, "multipart/form-data; boundary=B", fd, err), 0);
	for (; len > 0; p += n, len -= n) {
		n = len < step ? len : step;
		if (hr_fleet_form_feed(f, p, n, err) != 0)
			return 1;
	}
	return hr_fleet_form_check(f, PREFIX, err) == 0 ? 0 : 2;
}

static const struct {
	const char *text, *written, *names; /* names: each followed by a blank */
	int result;
	const char *msg;
} forms[] = {
    {TARGET CONTEXT END, "hallo", PREFIX "/x:1 ", 0, NULL},
    {CONTEXT PART("tags", PREFIX "/y:2") TARGET PART("tags", PREFIX "/z:3") END, "hallo",
	PREFIX "/x:1 " PREFIX "/y:2 " PREFIX "/z:3 ", 0, NULL},
    {TARGET PART("other", "text") FILE_PART("\x1f\x8bplain") END, "\x1f\x8bplain", PREFIX "/x:1 ",
	0, NULL},
    {TARGET FILE_PART("a\x7f") END, "a\x7f", PREFIX "/x:1 ", 0, NULL},
    {TARGET FILE_PART("aGFs\r\nbG8=\n") END, "", "", 1, "the build folder is not base64"},
    {TARGET FILE_PART("a~") END, "", "", 1, "the build folder is not base64"},
    {TARGET FILE_PART("aGFsb") END, "hal", "", 1, "the build folder is not base64"},
    {CONTEXT END, "hallo", "", 2, "a build has the parts context and target_image"},
    {TARGET END, "", PREFIX "/x:1 ", 2, "a build has the parts context and target_image"},
    {TARGET FILE_PART("") END, "", PREFIX "/x:1 ", 2,
	"a build has the parts context and target_image"},
    {TARGET TARGET CONTEXT END, "", "", 1, "a build has one context and one target_image"},
    {TARGET CONTEXT CONTEXT END, "hallo", "", 1, "a build has one context and one target_image"},
    {CONTEXT PART("target_image", PREFIX "/x") END, "hallo", PREFIX "/x ", 2,
	"images are built below \"" PREFIX "\", with a tag; see /registry_prefix"},
    {CONTEXT TARGET PART("tags", PREFIX "x/y:1") END, "hallo", PREFIX "/x:1 " PREFIX "x/y:1 ", 2,
	"images are built below \"" PREFIX "\", with a tag; see /registry_prefix"},
};

START_TEST(forms_of_builds)
{
	static const size_t steps[] = {100000, 1, 7};
	const char *text = forms[_i].text;
	char written[100];
	struct hr_fleet_form f;
	struct hr_err err;
	size_t i, j;
	ssize_t n;

	for (i = 0; i < 3; i++) {
		int fd = memfd_create("context", MFD_CLOEXEC);
		HR_BUF(names, 1000);

		ck_assert_int_eq(
		    take(&f, fd, text, strlen(text), steps[i], &err), forms[_i].result);
		if (forms[_i].msg != NULL)
			ck_assert_str_eq(err.msg, forms[_i].msg);
		if (forms[_i].result != 1) {
			for (j = 0; j < f.names.n; j++)
				hr_buf_addf(&names, "%s ", f.names.v[j]);
			ck_assert_str_eq(hr_buf_str(&names), forms[_i].names);
			n = pread(fd, written, sizeof(written) - 1, 0);
			ck_assert_int_ge(n, 0);
			written[n] = '\0';
			ck_assert_str_eq(written, forms[_i].written);
		}
		hr_fleet_form_done(&f);
		(void)close(fd);
	}
}
END_TEST

START_TEST(names_of_targets)
{
	static const struct {
		const char *name;
		bool fits;
	} rows[] = {
	    {PREFIX "/x:1", true},
	    {PREFIX "/x/y:1", true},
	    {PREFIX "/x_Y-9.z:a.b", true},
	    {PREFIX "/x:", false},
	    {PREFIX "/:1", false},
	    {PREFIX "/x:1/y", false},
	    {PREFIX "/x y:1", false},
	    {PREFIX "/x@1:1", false},
	    {PREFIX "/../y:1", false},
	    {PREFIX ":1", false},
	    {"x:1", false},
	    {"", false},
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int fd = memfd_create("context", MFD_CLOEXEC);
		struct hr_fleet_form f;
		struct hr_err err;
		HR_BUF(b, 1000);

		hr_buf_addf(&b, CONTEXT PART("target_image", "%s") END, rows[i].name);
		ck_assert_msg(take(&f, fd, b.p, b.len, 1000, &err) == (rows[i].fits ? 0 : 2), "%s",
		    rows[i].name);
		hr_fleet_form_done(&f);
		(void)close(fd);
	}
}
END_TEST

START_TEST(bounds)
{
	int fd = memfd_create("context", MFD_CLOEXEC);
	struct hr_fleet_form f;
	struct hr_err err;
	HR_BUF(b, 10000);
	char name[257];
	int i;

	hr_buf_adds(&b, CONTEXT TARGET);
	for (i = 1; i < HR_FLEET_NAMES_MAX; i++)
		hr_buf_addf(&b, PART("tags", PREFIX "/x:%d"), i);
	hr_buf_adds(&b, END);
	ck_assert_int_eq(take(&f, fd, b.p, b.len, 1000, &err), 0);
	ck_assert_uint_eq(f.names.n, HR_FLEET_NAMES_MAX);
	hr_fleet_form_done(&f);
	b.len -= strlen(END);
	hr_buf_adds(&b, PART("tags", PREFIX "/y:1") END);
	ck_assert_int_eq(take(&f, fd, b.p, b.len, 1000, &err), 1);
	ck_assert_str_eq(err.msg, "a build has up to 16 names");
	hr_fleet_form_done(&f);

	memset(name, 'a', sizeof(name));
	for (i = 255; i <= 256; i++) {
		hr_buf_reset(&b);
		hr_buf_addf(&b, PART("tags", "%.*s"), i, name);
		ck_assert_int_eq(take(&f, fd, b.p, b.len, 100, &err), i == 255 ? 2 : 1);
		ck_assert(i == 255 || strcmp(err.msg, "the name of an image is too long") == 0);
		hr_fleet_form_done(&f);
	}
	(void)close(fd);
	ck_assert_int_eq(hr_fleet_form_init(&f, "text/plain; boundary=B", 0, &err), -1);
	hr_fleet_form_done(&f);
	ck_assert_int_eq(hr_fleet_form_init(&f, "multipart/form-data", 0, &err), -1);
	hr_fleet_form_done(&f);
}
END_TEST

/* A folder of more than one block, whose first block decides, in base64 and as it is. */
START_TEST(long_folders)
{
	static char plain[200000];
	static const char b64[] = "YWFhYWFh"; /* 6 times "a" */
	struct hr_fleet_form f;
	struct hr_err err;
	HR_BUF(b, 1000000);
	size_t i;
	int fd = memfd_create("context", MFD_CLOEXEC);

	hr_buf_adds(&b, TARGET "--B\r\nContent-Disposition: form-data; name=\"context\"\r\n\r\n");
	for (i = 0; i < 30000; i++)
		hr_buf_adds(&b, b64);
	hr_buf_adds(&b, "\r\n" END);
	ck_assert_int_eq(take(&f, fd, b.p, b.len, 65000, &err), 0);
	ck_assert_uint_eq(f.written, 180000);
	ck_assert_int_eq(pread(fd, plain, sizeof(plain), 0), 180000);
	for (i = 0; i < 180000; i++)
		ck_assert_int_eq(plain[i], 'a');
	hr_fleet_form_done(&f);
	(void)close(fd);

	fd = memfd_create("context", MFD_CLOEXEC);
	hr_buf_reset(&b);
	hr_buf_adds(&b, TARGET "--B\r\nContent-Disposition: form-data; name=\"context\"\r\n\r\n");
	memset(plain, 'b', sizeof(plain));
	plain[511] = '\0';
	hr_buf_add(&b, plain, sizeof(plain));
	hr_buf_adds(&b, "\r\n" END);
	ck_assert_int_eq(take(&f, fd, b.p, b.len, 300, &err), 0);
	ck_assert_uint_eq(f.written, sizeof(plain));
	hr_fleet_form_done(&f);
	(void)close(fd);
}
END_TEST

/* ---- images that a key may use ---- */

START_TEST(images_of_keys)
{
	char one[HR_FLEET_PREFIX], two[HR_FLEET_PREFIX], same[HR_FLEET_PREFIX];
	HR_BUF(b, 1000);
	size_t i;
	static const char *const all[] = {"debian", "debian:12", "docker.io/library/debian",
	    "other/k0123456789abcdef0123/x:1", "reg/kx/y:1", "reg/k0123/x:1", "beef/x",
	    "reg/x@sha256:1", "reg/k0123456789abcdef0123:1"};
	static const char *const none[] = {"sha256:beef", "beef", "BEEF", "0", "docker.io/beef",
	    "library/beef", "a b", "a\nb", "reg/k0123456789abcdef0123/x:1",
	    "docker.io/reg/k0123456789abcdef0123/x:1",
	    "index.docker.io/reg/k0123456789abcdef0123/x:1"};

	hr_fleet_build_prefix("reg", "one", one);
	hr_fleet_build_prefix("reg", "two", two);
	hr_fleet_build_prefix("reg//", "one", same);
	ck_assert_str_eq(one, same);
	ck_assert_str_ne(one, two);
	ck_assert_int_eq(strncmp(one, "reg/k", 5), 0);
	ck_assert_uint_eq(strspn(one + 5, "0123456789abcdef"), 20);
	ck_assert_uint_eq(strlen(one), 25);
	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		ck_assert_msg(hr_fleet_build_allows("reg", "one", all[i]), "%s", all[i]);
	for (i = 0; i < sizeof(none) / sizeof(*none); i++)
		ck_assert_msg(!hr_fleet_build_allows("reg", "one", none[i]), "%s", none[i]);
	hr_buf_addf(&b, "%s/x:1", one);
	ck_assert(hr_fleet_build_allows("reg", "one", b.p));
	ck_assert(hr_fleet_build_allows("reg/", "one", b.p));
	ck_assert(!hr_fleet_build_allows("reg", "two", b.p));
	hr_buf_reset(&b);
	hr_fleet_build_prefix("docker.io/reg", "one", one);
	hr_buf_addf(&b, "%s/x:1", one + strlen("docker.io/"));
	ck_assert(hr_fleet_build_allows("docker.io/reg", "one", b.p));
	ck_assert(!hr_fleet_build_allows("docker.io/reg", "two", b.p));
}
END_TEST

START_TEST(registry_in_other_spellings)
{
	static const char *const prefixes[] = {
	    "reg.example/a", "Reg.Example/a", "reg.example:443/a", "reg.example:80/a"};
	static const char *const hosts[] = {
	    "reg.example", "REG.example", "reg.example:443", "reg.Example:80"};
	char own[HR_FLEET_PREFIX], image[1000];
	const char *key;
	size_t i, k;

	for (i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		for (k = 0; k < sizeof(hosts) / sizeof(*hosts); k++) {
			hr_fleet_build_prefix(prefixes[i], "one", own);
			key = strrchr(own, '/');
			(void)snprintf(image, sizeof(image), "%s/a%s/x:1", hosts[k], key);
			ck_assert_msg(
			    hr_fleet_build_allows(prefixes[i], "one", image), "%s", image);
			ck_assert_msg(
			    !hr_fleet_build_allows(prefixes[i], "two", image), "%s", image);
			/* another port is another registry */
			(void)snprintf(image, sizeof(image), "reg.example:5000/a%s/x:1", key);
			ck_assert_msg(
			    hr_fleet_build_allows(prefixes[i], "two", image), "%s", image);
		}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("fleet_build");
	TCase *t = tcase_create("fleet_build");

	tcase_add_loop_test(t, forms_of_builds, 0, (int)(sizeof(forms) / sizeof(*forms)));
	tcase_add_test(t, names_of_targets);
	tcase_add_test(t, bounds);
	tcase_add_test(t, long_folders);
	tcase_add_test(t, images_of_keys);
	tcase_add_test(t, registry_in_other_spellings);
	suite_add_tcase(s, t);
	return lines_run(s);
}
