/* The host side without a sandbox: TOML, settings, volumes, ports, quoting, the start command. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/text/nearest.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "host/box/crew.h"
#include "host/box/fork.h"
#include "host/client/client.h"
#include "host/command.h"
#include "host/common/envquote.h"
#include "base/err.h"
#include "host/common/recordtext.h"
#include "host/records/namelock.h"
#include "host/records/portlock.h"
#include "host/mask.h"
#include "host/records/record.h"
#include "host/report.h"
#include "host/config/settings.h"
#include "host/config/toml.h"
#include "host/config/volumes.h"
#include "host/sidecar/sidecar.h"
#include "host/transfer/tarfile.h"
#include "host/transfer/zip.h"
#include "proto/json.h"
#include "lines.h"
#include "scratch.h"

static char top[40];

static void
set_up(void)
{
	(void)snprintf(top, sizeof(top), "%s/XXXXXX", scratch);
	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert_int_eq(chdir(top), 0);
}

static void
tear_down(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

static const char *released; /* is removed just before a lock is tried */

int
flock(int fd, int how)
{
	if (released != NULL)
		ck_assert_int_eq(unlink(released), 0);
	released = NULL;
	return (int)syscall(SYS_flock, fd, how);
}

static bool busy; /* no directory can be removed */

int
unlinkat(int dir, const char *name, int flags)
{
	if (busy && (flags & AT_REMOVEDIR) != 0) {
		errno = EBUSY;
		return -1;
	}
	return (int)syscall(SYS_unlinkat, dir, name, flags);
}

/* ---- secrets ---- */

static const struct {
	const char *text, *masked;
} masks[] = {
    {"", ""},
    {"nothing", "nothing"},
    {"abc", "******"},
    {"xabcx abc", "x******x ******"},
    {"abcdef", "******"}, /* the longest */
    {"ab plain default", "ab plain default"},
    {"t0ken of lower", "****** of ******"},
};

START_TEST(masking)
{
	static const char *const env[] = {"A_KEY=abc", "B_SECRET=abcdef", "C_CODE=ab", "D=plain",
	    "E_TOKEN=default", "f_token=lower", "G_KEY=", "HKEY=nothing", NULL};
	struct hr_sandbox s = {.host.env = env};
	struct hr_err e = {.msg = "it was abc"};
	HR_BUF(b, 64);
	char out[64];

	hr_strv_add(&s.tokens, "GITHUB_TOKEN=t0ken");
	hr_mask_text(&s, masks[_i].text, out, sizeof(out));
	ck_assert_str_eq(out, masks[_i].masked);
	/* bytes that end without a NUL, and may have one in them */
	hr_mask_add(&s, &b, masks[_i].text, strlen(masks[_i].text));
	ck_assert_str_eq(hr_buf_str(&b), masks[_i].masked);
	hr_buf_reset(&b);
	hr_mask_add(&s, &b, "ab\0abcdefg", 8);
	ck_assert_int_eq(b.len, 11);
	ck_assert_mem_eq(b.p, "ab\0******de", 11);
	hr_buf_done(&b);
	hr_mask_text(&s, "abc abc abc abc abc abc", out, 16);
	ck_assert_str_eq(out, "****** ****** *");
	hr_mask_error(&s, &e);
	ck_assert_str_eq(e.msg, "it was ******");
	hr_strv_done(&s.tokens);
}
END_TEST

static void
keep_end(void *arg, const char *text)
{
	(void)snprintf(arg, 64, "%s", text + strspn(text, "x"));
}

/* Half a secret would not be known for one. */
START_TEST(masked_before_it_is_cut)
{
	struct hr_sandbox s = {.log = keep_end};
	struct hr_err e = {0};
	char pad[1999], end[64] = "";

	hr_strv_add(&s.tokens, "GITHUB_TOKEN=t0ken");
	memset(pad, 'x', sizeof(pad));
	pad[sizeof(e.msg) - 4] = '\0';
	ck_assert_int_eq(hr_mask_err_set(&s, &e, HR_E_RUNTIME_TIMEOUT, "%st0ken %d", pad, 1), -1);
	ck_assert_str_eq(e.msg + strlen(pad), "***");
	ck_assert_int_eq(e.code, HR_E_RUNTIME_TIMEOUT);
	ck_assert_int_eq(hr_mask_err_set(&s, NULL, HR_E_RUNTIME_TIMEOUT, "t0ken"), -1);
	pad[sizeof(e.msg) - 4] = 'x';
	pad[1998] = '\0';
	s.log_arg = end;
	hr_sandbox_log(&s, "%st0ken", pad);
	ck_assert_str_eq(end, "*");
	hr_strv_done(&s.tokens);
}
END_TEST

/* ---- TOML ---- */

static const struct {
	const char *text, *json; /* NULL: refused */
} tomls[] = {
    {"", "{}"},
    {"a = 1\n", "{\"a\":1}"},
    {"a=1 # c\nb = -0x_1\n", NULL},
    {"a = 0x1F\nb = 0o17\nc = 0b101\nd = 1_000\n", "{\"a\":31,\"b\":15,\"c\":5,\"d\":1000}"},
    {"a = 1.5\nb = 1e3\nc = true\nd = false", "{\"a\":1.5,\"b\":1000.0,\"c\":true,\"d\":false}"},
    {"a = \"x\\n\\u00e9\\\\\"", "{\"a\":\"x\\n\xC3\xA9\\\\\"}"},
    {"a = 'C:\\x'", "{\"a\":\"C:\\\\x\"}"},
    {"a = \"\"\"\nx\ny\"\"\"\n", "{\"a\":\"x\\ny\"}"},
    {"a = \"\"\"x \\\n   y\"\"\"", "{\"a\":\"x y\"}"},
    {"a = '''\n'x''''", "{\"a\":\"'x'\"}"},
    {"a = [1, 2, # two\n 3,\n]", "{\"a\":[1,2,3]}"},
    {"a = {b = 1, c.d = 'e'}", "{\"a\":{\"b\":1,\"c\":{\"d\":\"e\"}}}"},
    {"[a]\nb = 1\n[a.c]\nd = 2\n", "{\"a\":{\"b\":1,\"c\":{\"d\":2}}}"},
    {"[a.b]\nc = 1\n[a]\nd = 2\n", "{\"a\":{\"b\":{\"c\":1},\"d\":2}}"},
    {"[[a]]\nb = 1\n[[a]]\nb = 2\n[a.c]\nd = 3\n", "{\"a\":[{\"b\":1},{\"b\":2,\"c\":{\"d\":3}}]}"},
    {"\"a b\" = 1\n'c.d' = 2\n", "{\"a b\":1,\"c.d\":2}"},
    {"a.b = 1\na.c = 2\n", "{\"a\":{\"b\":1,\"c\":2}}"},
    {"a = 1979-05-27T07:32:00Z\nb = 1979-05-27 07:32:00\nc = 07:32:00\n",
	"{\"a\":\"1979-05-27T07:32:00Z\",\"b\":\"1979-05-27 07:32:00\",\"c\":\"07:32:00\"}"},
    {"a = 1\r\nb = 2\r\n", "{\"a\":1,\"b\":2}"},
    {"a = 1\na = 2\n", NULL},
    {"[a]\n[a]\n", NULL},
    {"a = {b = 1}\n[a]\nc = 2\n", NULL},
    {"a = {b = 1}\na.c = 2\n", NULL},
    {"a = [1]\n[[a]]\n", NULL},
    {"[a]\nb.c = 1\n[a.b]\n", NULL},
    {"a\n", NULL},
    {"a = \n", NULL},
    {"a = \"x", NULL},
    {"a = \"x\ny\"", NULL},
    {"a = \"\\q\"", NULL},
    {"a = \"\\ud800\"", NULL},
    {"a = 01", NULL},
    {"a = 1__0", NULL},
    {"a = 1.", NULL},
    {"a = 99999999999999999999", NULL},
    {"a = [1", NULL},
    {"a = {b = 1,}", NULL},
    {"a = 1 b = 2", NULL},
    {"[a\n", NULL},
    {"a = tru", NULL},
    {"\xFF = 1", NULL},
};

START_TEST(toml)
{
	struct json_object *o = NULL;
	HR_PUT struct json_object *want = NULL;
	struct hr_err err = {0};
	size_t n = strlen(tomls[_i].text);
	HR_FREE char *copy = malloc(n > 0 ? n : 1);
	int r;

	memcpy(copy, tomls[_i].text, n); /* no NUL: a sanitizer sees reads behind the end */
	r = hr_toml_parse(copy, n, &o, &err);
	if (tomls[_i].json == NULL) {
		ck_assert_msg(r == -1, "taken: %s", tomls[_i].text);
		ck_assert_int_eq(err.code, HR_E_INVAL);
		return;
	}
	ck_assert_msg(r == 0, "%s: %s", tomls[_i].text, err.msg);
	want = json_tokener_parse(tomls[_i].json);
	ck_assert_msg(
	    json_object_equal(o, want), "%s: %s", tomls[_i].text, json_object_to_json_string(o));
	json_object_put(o);
}
END_TEST

START_TEST(toml_names_the_line)
{
	struct json_object *o = NULL;
	struct hr_err err = {0};

	ck_assert_int_eq(hr_toml_parse("a = 1\n\nb = ?\n", 13, &o, &err), -1);
	ck_assert_str_eq(err.msg, "line 3: no value");
}
END_TEST

START_TEST(toml_can_be_copied)
{
	static const char text[] = "[a.b]\nc = [{d = 1}, {e.f = 2}]\n[[a.g]]\nh = {}\n";
	HR_PUT struct json_object *o = NULL;
	HR_PUT struct json_object *copy = NULL;

	ck_assert_int_eq(hr_toml_parse(text, sizeof(text) - 1, &o, NULL), 0);
	ck_assert_int_eq(json_object_deep_copy(o, &copy, NULL), 0);
	ck_assert_int_eq(json_object_equal(o, copy), 1);
}
END_TEST

START_TEST(toml_depth)
{
	struct json_object *o = NULL;
	HR_BUF(b, 1 << 20);
	int i;

	hr_buf_adds(&b, "a = ");
	for (i = 0; i < 100000; i++)
		hr_buf_addc(&b, '[');
	ck_assert_int_eq(hr_toml_parse(b.p, b.len, &o, NULL), -1);
}
END_TEST

/* ---- settings ---- */

static char warned[4096];

static void
on_warning(void *arg, const char *text)
{
	size_t n = strlen(warned);

	(void)arg;
	(void)snprintf(warned + n, sizeof(warned) - n, "%s\n", text);
}

static struct hr_config *
load(const char *file, const char *const *env, enum hr_errc want, struct hr_err *err)
{
	struct hr_config *c = hr_config_new(NULL);
	int r;

	warned[0] = '\0';
	if (file != NULL)
		ck_assert_int_eq(hr_path_write("config.toml", file, strlen(file), 0644, NULL), 0);
	r = hr_config_load(c, NULL, env, on_warning, NULL, err);
	ck_assert_msg((want == HR_OK) == (r == 0), "%s", r != 0 ? err->msg : "loaded");
	return c;
}

START_TEST(defaults)
{
	struct hr_err err = {0};
	struct hr_config *c = load(NULL, NULL, HR_OK, &err);

	ck_assert_str_eq(hr_config_text(c, "core.runtime"), "docker");
	ck_assert_str_eq(hr_config_text(c, "core.git_user_name"), "openhands");
	ck_assert_str_eq(hr_config_text(c, "core.git_user_email"), "openhands@all-hands.dev");
	ck_assert_str_eq(hr_config_text(c, "core.workspace_mount_path_in_sandbox"), "/workspace");
	ck_assert_ptr_null(hr_config_text(c, "core.workspace_base"));
	ck_assert_ptr_null(hr_config_text(c, "core.workspace_mount_path"));
	ck_assert_int_eq(hr_config_int(c, "sandbox.timeout"), 120);
	ck_assert_str_eq(hr_config_text(c, "kubernetes.namespace"), "default");
	ck_assert_str_eq(hr_config_text(c, "kubernetes.resource_memory_limit"), "2Gi");
	ck_assert(!hr_config_bool(c, "kubernetes.privileged"));
	hr_config_free(c);
}
END_TEST

/* Environment beats file beats default. */
START_TEST(precedence)
{
	static const char *const env[] = {"SANDBOX_TIMEOUT=30", "GIT_USER_NAME=me",
	    "GIT_USER_EMAIL=", "RUN_AS_OPENHANDS=False", "SANDBOX_LIMITS_CPU_QUOTA=5000",
	    "SANDBOX_USER_ID=x7", "SANDBOX_RUNTIME_EXTRA_BUILD_ARGS=['--a=b', \"c\",]",
	    "SANDBOX_DOCKER_RUNTIME_KWARGS={'mem_limit': '4g', 'n': 3, 'm': {'x': True}}", NULL};
	struct hr_err err = {0};
	struct hr_config *c =
	    load("[core]\nruntime = \"local\"\n[sandbox]\ntimeout = 10\nuser_id = 5\n"
		 "[sandbox.limits]\npids = 9\n",
		env, HR_OK, &err);
	struct json_object *v;

	ck_assert_str_eq(hr_config_text(c, "core.runtime"), "local");
	ck_assert_int_eq(hr_config_int(c, "sandbox.timeout"), 30);
	ck_assert_int_eq(hr_config_int(c, "sandbox.user_id"), 5);
	ck_assert_int_eq(hr_config_int(c, "sandbox.limits.pids"), 9);
	ck_assert_int_eq(hr_config_int(c, "sandbox.limits.cpu_quota"), 5000);
	ck_assert_str_eq(hr_config_text(c, "core.git_user_name"), "me");
	ck_assert_str_eq(hr_config_text(c, "core.git_user_email"), "openhands@all-hands.dev");
	ck_assert(!hr_config_bool(c, "core.run_as_openhands"));
	v = hr_config_value(c, "sandbox.runtime_extra_build_args");
	ck_assert_str_eq(json_object_to_json_string_ext(v, 0), "[\"--a=b\",\"c\"]");
	v = hr_config_value(c, "sandbox.docker_runtime_kwargs");
	ck_assert_str_eq(json_object_to_json_string_ext(v, 0),
	    "{\"mem_limit\":\"4g\",\"n\":3,\"m\":{\"x\":true}}");
	ck_assert_ptr_nonnull(strstr(warned,
	    "Error setting env var SANDBOX_USER_ID=x7: check that the value is of the right type"));
	hr_config_free(c);
}
END_TEST

static const struct {
	const char *toml, *error, *warning;
} mistakes[] = {
    {"[core]\n[sandbox]\ntimeot = 1\n", NULL,
	"Unknown config key \"timeot\" in [sandbox] section; did you mean \"timeout\"?"},
    {"[core]\n[security]\nx = 1\n", NULL, "Unknown config"},
    {"[core]\n[mcp]\nservers = 1\n", NULL, "Unknown config key"},
    {"[core]\n[kubernetes]\nnope = 1\n", NULL, "Unknown config key \"nope\" in [kubernetes]"},
    {"[core]\n[sandbox]\ntimeout = \"x\"\n", "Error in [sandbox] section in config.toml",
	"of the wrong type"},
    {"[core]\nruntme = \"x\"\n", NULL,
	"Unknown config key \"runtme\" in [core] section; did you mean \"runtime\"?"},
    {"[core]\n[sandboxes]\nx = 1\n", NULL, "Unknown section [sandboxes] in config.toml"},
    {"[core]\n[llm]\nmodel = \"x\"\n", NULL, ""},
    {"[core]\n[sandbox.limits]\nmemory = \"1G\"\n", NULL,
	"Unknown config key \"memory\" in [sandbox.limits] section; known are profile, "},
    {"[core]\n[limits]\npids = 9\n", NULL,
	"Unknown section [limits] in config.toml; did you mean [sandbox.limits]?"},
    {"[sandbox]\ntimeout = 1\n", NULL, "add an empty [core] to silence this warning"},
    {"runtime = \"box\"\n[core]\n", NULL,
	"\"runtime\" is in no section of config.toml: write it below [core]"},
    {"[core]\nruntime = box\n",
	"Cannot parse config.toml: line 2: no value: a string must be in quotes", ""},
    {"[core\n", "Cannot parse config.toml: ", ""},
    {"[core]\ngit_user_name = \"a\\u0000b\"\n",
	"\"git_user_name\" in [core] must not have a null character", ""},
    {"[core]\n[sandbox]\nruntime_startup_env_vars = {A = \"b\\u0000\"}\n",
	"\"runtime_startup_env_vars\" in [sandbox] must not have a null character", ""},
};

START_TEST(wrong_files)
{
	struct hr_err err = {0};
	struct hr_config *c =
	    load(mistakes[_i].toml, NULL, mistakes[_i].error != NULL ? HR_E_INVAL : HR_OK, &err);

	if (mistakes[_i].error != NULL)
		ck_assert_msg(strncmp(err.msg, mistakes[_i].error, strlen(mistakes[_i].error)) == 0,
		    "%s", err.msg);
	ck_assert_msg(strstr(warned, mistakes[_i].warning) != NULL, "warned: %s", warned);
	if (mistakes[_i].warning[0] == '\0' && mistakes[_i].error == NULL)
		ck_assert_str_eq(warned, "");
	hr_config_free(c);
}
END_TEST

START_TEST(secrets)
{
	static const char *const env[] = {"SANDBOX_API_KEY=hunter2", NULL};
	struct hr_err err = {0};
	struct hr_config *c = load(NULL, env, HR_OK, &err);
	HR_FREE char *text = hr_config_json(c, NULL);
	HR_PUT struct json_object *o = NULL;

	ck_assert_str_eq(hr_config_text(c, "sandbox.api_key"), "hunter2");
	ck_assert_ptr_null(strstr(text, "hunter2"));
	o = json_tokener_parse(text);
	ck_assert_ptr_nonnull(o);
	ck_assert_int_eq(hr_config_set(c, "sandbox.nothing", "1", &err), -1);
	ck_assert_int_eq(hr_config_set(c, "sandbox.timeout", "one", &err), -1);
	hr_config_free(c);
}
END_TEST

START_TEST(dotenv)
{
	static const char text[] = "# c\nexport SANDBOX_TIMEOUT='7'\nGIT_USER_NAME=file\n";
	static const char *const env[] = {"GIT_USER_NAME=own", NULL};
	struct hr_err err = {0};
	struct hr_config *c;

	ck_assert_int_eq(hr_path_write(".env", text, sizeof(text) - 1, 0600, NULL), 0);
	c = load(NULL, env, HR_OK, &err);
	ck_assert_int_eq(hr_config_int(c, "sandbox.timeout"), 7);
	ck_assert_str_eq(hr_config_text(c, "core.git_user_name"), "own");
	hr_config_free(c);
	/* nowhere above: whoever may write in /tmp is not asked */
	ck_assert_int_eq(mkdir("below", 0700), 0);
	ck_assert_int_eq(chdir("below"), 0);
	c = load(NULL, NULL, HR_OK, &err);
	ck_assert_int_eq(hr_config_int(c, "sandbox.timeout"), 120);
	hr_config_free(c);
}
END_TEST

static char last_warning[1000];

static void
note_warning(void *arg, const char *text)
{
	(void)arg;
	(void)snprintf(last_warning, sizeof(last_warning), "%s", text);
}

/* Left out with a word, or an error where it was named. */
START_TEST(settings_of_others)
{
	int way;

	static const char *const files[] = {".env", "config.toml"};
	static const char *const texts[] = {
	    "SANDBOX_TIMEOUT=7\n", "[core]\n[sandbox]\ntimeout=7\n"};
	struct hr_config *c = hr_config_new(NULL);
	struct hr_err err = {0};

	ck_assert_int_eq(hr_path_write(files[_i], texts[_i], strlen(texts[_i]), 0600, NULL), 0);
	for (way = 0; way < 3; way++) {
		/* anybody may write it, or beside it; it is a link from such a place */
		if (way == 0)
			ck_assert_int_eq(chmod(files[_i], 0666), 0);
		if (way == 1)
			ck_assert_int_eq(chmod(files[_i], 0644) | chmod(top, 01777), 0);
		if (way == 2) {
			ck_assert_int_eq(mkdir("there", 0755) | chmod(top, 0700), 0);
			ck_assert_int_eq(rename(files[_i], "there/f"), 0);
			ck_assert_int_eq(symlink("there/f", files[_i]), 0);
			ck_assert_int_eq(chmod("there", 0777), 0);
		}
		last_warning[0] = '\0';
		ck_assert_int_eq(hr_config_load(c, NULL, NULL, note_warning, NULL, &err), 0);
		ck_assert_int_eq(hr_config_int(c, "sandbox.timeout"), 120);
		ck_assert_ptr_nonnull(strstr(last_warning, files[_i]));
		ck_assert_ptr_nonnull(strstr(last_warning, "is not trusted: others may write it"));
		ck_assert_int_eq(hr_config_load(c, files[_i], NULL, NULL, NULL, &err), -1);
		ck_assert_int_eq(err.code, HR_E_INVAL);
		ck_assert_ptr_nonnull(strstr(err.msg, "is not trusted"));
	}
	ck_assert_int_eq(chmod("there", 0755), 0);
	last_warning[0] = '\0';
	ck_assert_int_eq(hr_config_load(c, NULL, NULL, note_warning, NULL, &err), 0);
	ck_assert_int_eq(hr_config_int(c, "sandbox.timeout"), 7);
	hr_config_free(c);
}
END_TEST

/* A virtual environment of Python may be called so. */
START_TEST(a_directory_is_no_dotenv)
{
	struct hr_config *c = hr_config_new(NULL);

	ck_assert_int_eq(mkdir(".env", 0755), 0);
	last_warning[0] = '\0';
	ck_assert_int_eq(hr_config_load(c, NULL, NULL, note_warning, NULL, NULL), 0);
	ck_assert_str_eq(last_warning, "");
	hr_config_free(c);
}
END_TEST

/* A shared object is the caller's word; a file's, a variable's or a record's is none. */
START_TEST(who_names_an_object)
{
	static const char toml_text[] = "[core]\nruntime = \"/nonexistent/evil.so\"\n";
	static const char dotenv_text[] = "RUNTIME=/nonexistent/evil.so\n";
	static const char record[] = "{\"sid\":\"x\",\"runtime\":\"/nonexistent/evil.so\"}";
	static const char *const env[] = {"RUNTIME=/nonexistent/evil.so", NULL};
	struct hr_sandbox_options o = {.sid = "x", .attach = _i == 3, .state_dir = "state"};
	struct hr_config *c = hr_config_new(NULL);
	struct hr_err err = {0};

	ck_assert_int_eq(mkdir("state", 0700), 0);
	if (_i == 0)
		ck_assert_int_eq(
		    hr_path_write("config.toml", toml_text, sizeof(toml_text) - 1, 0600, NULL), 0);
	if (_i == 1)
		ck_assert_int_eq(
		    hr_path_write(".env", dotenv_text, sizeof(dotenv_text) - 1, 0600, NULL), 0);
	if (_i == 3)
		ck_assert_int_eq(
		    hr_path_write("state/x.json", record, sizeof(record) - 1, 0600, NULL), 0);
	/* what a file says comes behind, so that an earlier word of the caller's does not count */
	ck_assert_int_eq(hr_config_set(c, "core.runtime", "/nonexistent/evil.so", NULL), 0);
	ck_assert_int_eq(hr_config_load(c, NULL, _i == 2 ? env : NULL, NULL, NULL, &err), 0);
	ck_assert_ptr_null(hr_sandbox_open(c, &o, &err));
	ck_assert_ptr_nonnull(strstr(err.msg, "taken from the command line only"));
	ck_assert_ptr_nonnull(strstr(err.msg, "use \"-r /nonexistent/evil.so\""));
	if (_i < 3) {
		ck_assert_int_eq(hr_config_set(c, "core.runtime", "/nonexistent/evil.so", NULL), 0);
		ck_assert_ptr_null(hr_sandbox_open(c, &o, &err));
		ck_assert_ptr_nonnull(strstr(err.msg, "Failed to import third-party runtime"));
	}
	hr_config_free(c);
}
END_TEST

START_TEST(state_of_others)
{
	struct hr_config *c = hr_config_new(NULL);
	struct hr_sandbox_options o = {.sid = "x", .state_dir = "state"};
	struct hr_err err = {0};

	ck_assert_int_eq(hr_config_set(c, "core.runtime", "local", NULL), 0);
	ck_assert_int_eq(mkdir("state", 0700) | chmod("state", 01777), 0);
	ck_assert_ptr_null(hr_sandbox_open(c, &o, &err));
	ck_assert_ptr_nonnull(strstr(err.msg, "state is not trusted: others may write it"));
	ck_assert_ptr_null(hr_sandbox_list("state", &err));
	ck_assert_ptr_nonnull(strstr(err.msg, "is not trusted"));
	hr_config_free(c);
}
END_TEST

static const struct {
	const char *env[4];
	const char *base, *mount, *inside;
} workspaces[] = {
    {{"SANDBOX_VOLUMES=/h/w:/workspace:rw"}, "/h/w", "/h/w", "/workspace"},
    {{"SANDBOX_VOLUMES=/h/a:/data,/h/w:/workspace"}, "/h/w", "/h/w", "/workspace"},
    {{"SANDBOX_VOLUMES=/h/a:/data:ro", "WORKSPACE_BASE=/x"}, NULL, NULL, "/workspace"},
    {{"WORKSPACE_BASE=/x"}, "/x", "/x", "/workspace"},
    {{"WORKSPACE_BASE=/home/user/project", "WORKSPACE_MOUNT_REWRITE=/home/user:/sandbox"},
	"/home/user/project", "/sandbox/project", "/workspace"},
};

START_TEST(workspace)
{
	struct hr_err err = {0};
	struct hr_config *c = load(NULL, workspaces[_i].env, HR_OK, &err);
	const char *base = hr_config_text(c, "core.workspace_base");
	const char *mount = hr_config_text(c, "core.workspace_mount_path");

	ck_assert_str_eq(
	    base != NULL ? base : "-", workspaces[_i].base != NULL ? workspaces[_i].base : "-");
	ck_assert_str_eq(
	    mount != NULL ? mount : "-", workspaces[_i].mount != NULL ? workspaces[_i].mount : "-");
	ck_assert_str_eq(
	    hr_config_text(c, "core.workspace_mount_path_in_sandbox"), workspaces[_i].inside);
	hr_config_free(c);
}
END_TEST

/* ---- settings that a back-end heeds ---- */

static void
count_warnings(void *arg, const char *text)
{
	ck_assert_ptr_nonnull(strstr(text, " is set but has no effect"));
	++*(int *)arg;
}

/* A back-end names settings, beginnings of settings, and settings with their only value. */
START_TEST(heeded_settings)
{
	static const struct {
		const char *heed;
		int warnings;
	} rows[] = {{NULL, 1}, {"sandbox.limits.", 0}, {"sandbox.limits.mem_limit=2g", 0},
	    {"sandbox.limits.mem_limit=3g", 1}, {"sandbox.limits.mem=2g", 1}};
	struct hr_config *c = hr_config_new(NULL);
	struct hr_err err = {0};
	size_t i;

	ck_assert_msg(hr_config_set(c, "sandbox.limits.mem_limit", "2g", &err) == 0, "%s", err.msg);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *const heeds[] = {rows[i].heed, NULL};
		int n = 0;

		ck_assert_int_eq(hr_config_heeded(c, "k", heeds, count_warnings, &n, &err), 0);
		ck_assert_msg(n == rows[i].warnings, "%zu: %d", i, n);
	}
	hr_config_free(c);
}
END_TEST

/* ---- volumes ---- */

static const struct {
	const char *text, *parts; /* NULL: refused */
} volumes[] = {
    {"/h:/c", "/h|/c|rw|path"},
    {"/h:/c:ro", "/h|/c|ro|path"},
    {"/h:/c:ro,/i:/d", "/h|/c|ro|path /i|/d|rw|path"},
    {"/h:/c,/h:/d", "/h|/c|rw|path /h|/d|rw|path"},
    {"cache:/c", "cache|/c|rw|name"},
    {"volume:cache:/c", "cache|/c|rw|name"},
    {"volume:cache:/c:ro", "cache|/c|ro|name"},
    {"./d:/c", "./d|/c|rw|path"},
    {"~/d:/c:overlay", "~/d|/c|overlay|path"},
    {"/h", NULL},
    {"/h:/c:ro:x", NULL},
    {":/c", NULL},
    {"/h:/c,", NULL},
};

START_TEST(volume_texts)
{
	struct hr_err err = {0};
	struct hr_volumes v;
	HR_BUF(b, 4096);
	int r = hr_volumes_parse(volumes[_i].text, &v, &err);
	size_t i;

	if (volumes[_i].parts == NULL) {
		ck_assert_int_eq(r, -1);
		ck_assert_ptr_nonnull(strstr(err.msg, "Invalid mount format in sandbox.volumes: "));
		return;
	}
	ck_assert_int_eq(r, 0);
	for (i = 0; i < v.n; i++)
		hr_buf_addf(&b, "%s%s|%s|%s|%s", i > 0 ? " " : "", v.v[i].source, v.v[i].target,
		    v.v[i].mode, v.v[i].named ? "name" : "path");
	ck_assert_str_eq(hr_buf_str(&b), volumes[_i].parts);
	hr_volumes_done(&v);
}
END_TEST

/* ---- ports ---- */

/* A holder removes the file and then releases the lock; between the two another process fails to
 * lock the removed file. */
START_TEST(name_lock_that_is_released)
{
	struct hr_namelock a, b, c;
	struct hr_err e = {0};
	HR_FREE char *path = NULL;

	ck_assert_int_eq(hr_namelock_take(&a, top, "s", &e), 0);
	ck_assert_int_eq(hr_namelock_take(&b, top, "s", &e), -1);
	path = strdup(a.path);
	released = path;
	ck_assert_int_eq(hr_namelock_take(&b, top, "s", &e), 0);
	ck_assert_int_eq(hr_namelock_take(&c, top, "s", &e), -1);
	ck_assert(!hr_namelock_take_left(&c, top, "s"));
	hr_namelock_drop(&b);
	hr_namelock_drop(&a);
}
END_TEST

START_TEST(one_lock_each)
{
	struct hr_portlock a = HR_PORTLOCK_NONE, b = HR_PORTLOCK_NONE;
	struct hr_err err = {0};

	ck_assert_int_eq(hr_portlock_acquire(&a, top, 30001, &err), 0);
	ck_assert_int_eq(hr_portlock_acquire(&a, top, 30001, &err), 0);
	ck_assert_int_eq(hr_portlock_acquire(&b, top, 30001, &err), -1);
	ck_assert_str_eq(err.msg, "Could not acquire lock for port 30001");
	hr_portlock_release(&a);
	hr_portlock_release(&a);
	ck_assert_int_eq(hr_portlock_acquire(&b, top, 30001, &err), 0);
	hr_portlock_release(&b);
	ck_assert_int_eq(access("port_30001.lock", F_OK), -1);
}
END_TEST

static const struct {
	int n, min, max;
} crowds[] = {{8, 7100, 7110}, {15, 7120, 7140}};

/* Children that hold what they found until all have found something. The range lies below what the
 * kernel and other tests give to their connections, of which a few would use it up. */
/* Neither a file nor a directory of somebody else's choice is written into. */
START_TEST(port_locks_of_others)
{
	struct hr_portlock l = HR_PORTLOCK_NONE;
	struct hr_err err = {0};
	struct stat st;

	ck_assert_int_eq(mkdir("locks", 0777) | mkdir("mine", 0700), 0);
	ck_assert_int_eq(symlink("mine", "link"), 0);
	ck_assert_int_eq(hr_portlock_acquire(&l, "link", 30001, &err), -1);
	ck_assert_int_eq(access("mine/port_30001.lock", F_OK), -1);
	ck_assert_int_eq(hr_path_write("mine/f", "precious", 8, 0600, NULL), 0);
	ck_assert_int_eq(link("mine/f", "locks/port_30001.lock"), 0);
	ck_assert_int_eq(hr_portlock_acquire(&l, "locks", 30001, &err), 0);
	ck_assert_int_eq(stat("mine/f", &st), 0);
	ck_assert_int_eq(st.st_size, 8);
	hr_portlock_release(&l);
	ck_assert_int_eq(symlink("../mine/f", "locks/port_30002.lock"), 0);
	ck_assert_int_eq(hr_portlock_acquire(&l, "locks", 30002, &err), -1);
	ck_assert_int_eq(err.code, HR_E_UNAVAILABLE);
	ck_assert_int_eq(mkfifo("locks/port_30003.lock", 0666), 0);
	ck_assert_int_eq(hr_portlock_acquire(&l, "locks", 30003, &err), 0);
	hr_portlock_release(&l);
}
END_TEST

/* Whatever another account puts in the place of a lock is that of a port that is taken: the search
 * tries the next one. */
START_TEST(port_locks_that_do_not_open)
{
	struct hr_portlock l = HR_PORTLOCK_NONE;
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "locks/port_7193.lock"};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), leased, port;
	struct hr_err err;

	ck_assert_int_eq(mkdir("locks", 0777) | mkdir("locks/port_7191.lock", 0777), 0);
	ck_assert_int_eq(symlink("port_7192.lock", "locks/port_7192.lock"), 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	leased = open("locks/port_7194.lock", O_RDONLY | O_CREAT | O_CLOEXEC, 0666);
	ck_assert_int_ge(leased, 0);
	ck_assert_ptr_ne(signal(SIGIO, SIG_IGN), SIG_ERR);
	ck_assert_int_eq(fcntl(leased, F_SETLEASE, F_RDLCK), 0);
	for (port = 7191; port <= 7194; port++) {
		err = (struct hr_err){0};
		ck_assert_int_eq(hr_portlock_acquire(&l, "locks", port, &err), -1);
		ck_assert_msg(err.code == HR_E_UNAVAILABLE, "port %d: %s", port, err.msg);
	}
	ck_assert_int_eq(hr_portlock_find(&l, "locks", 7191, 7199, 80, "127.0.0.1", NULL, &err), 0);
	ck_assert_int_gt(l.port, 7194);
	hr_portlock_release(&l);
	(void)close(leased);
	(void)close(fd);
}
END_TEST

START_TEST(no_port_twice)
{
	int n = crowds[_i].n, min = crowds[_i].min, max = crowds[_i].max;
	int found[2], go[2], ports[15], port, i;
	char c;

	ck_assert(pipe(found) == 0 && pipe(go) == 0);
	for (i = 0; i < n; i++) {
		if (fork() == 0) {
			struct hr_portlock l = HR_PORTLOCK_NONE;

			(void)close(go[1]);
			/* enough attempts to come by each of them */
			port = hr_portlock_find(&l, top, min, max, 80, "127.0.0.1", NULL, NULL) == 0
				   ? l.port
				   : -1;
			(void)!write(found[1], &port, sizeof(port));
			(void)!read(go[0], &c, 1);
			hr_portlock_release(&l);
			_exit(0);
		}
	}
	for (i = 0; i < n; i++) {
		int k;

		ck_assert_int_eq(read(found[0], &ports[i], sizeof(ports[i])), sizeof(ports[i]));
		ck_assert_int_ge(ports[i], min);
		for (k = 0; k < i; k++)
			ck_assert_int_ne(ports[k], ports[i]);
	}
	(void)close(go[0]);
	(void)close(go[1]);
	while (wait(NULL) > 0)
		;
}
END_TEST

/* The kernel gives connect() the ports at an even distance from the first of its range. */
START_TEST(ports_that_no_client_gets)
{
	struct hr_portlock l = HR_PORTLOCK_NONE;
	HR_BUF(b, 64);
	int min, max, i;

	ck_assert_int_eq(hr_path_read("/proc/sys/net/ipv4/ip_local_port_range", &b, NULL), 0);
	ck_assert_int_eq(sscanf(hr_buf_str(&b), "%d %d", &min, &max), 2);
	for (i = 0; i < 50; i++) {
		ck_assert_int_eq(
		    hr_portlock_find(&l, top, min, max, 20, "127.0.0.1", NULL, NULL), 0);
		ck_assert_int_eq((l.port - min) % 2, 1);
		hr_portlock_release(&l);
		if (min <= 2048)
			continue; /* ports below the range are the superuser's */
		ck_assert_int_eq(
		    hr_portlock_find(&l, top, min - 1000, max, 20, "127.0.0.1", NULL, NULL), 0);
		ck_assert_int_lt(l.port, min);
		hr_portlock_release(&l);
	}
}
END_TEST

START_TEST(port_kept_for_its_server)
{
	struct hr_portlock l = HR_PORTLOCK_NONE;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int bound = -1, on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(hr_portlock_find(&l, top, 7150, 7199, 80, "127.0.0.1", &bound, NULL), 0);
	a.sin_port = htons((uint16_t)l.port);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), -1);
	ck_assert_int_eq(errno, EADDRINUSE);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	(void)close(bound);
	(void)close(fd);
	hr_portlock_release(&l);
}
END_TEST

/* ---- quoting: read back by a real bash ---- */

static const char *const values[] = {"plain", "abc\"def", "a b", "x$HOME", "a`echo hi`b",
    "\xC3\xA9", "line\nfeed", "it's", "back\\slash", "", "'", "\t\001\1777", "\\n'\n", "!x", "~",
    "a;b&c|d>e"};

START_TEST(quoting)
{
	char path[64], text[256] = "";
	const char *argv[] = {"bash", "-c", NULL, NULL};
	HR_BUF(b, 4096);
	HR_BUF(got, 4096);

	(void)snprintf(path, sizeof(path), "%s/out", top);
	hr_buf_adds(&b, "K=");
	hr_env_quote(&b, values[_i]);
	ck_assert_ptr_null(strchr(hr_buf_str(&b), '\n'));
	hr_buf_addf(&b, "; printf %%s \"$K\" >%s", path);
	argv[2] = hr_buf_str(&b);
	ck_assert_int_eq(hr_spawn_wait(argv, text, sizeof(text), NULL), 0);
	ck_assert_int_eq(hr_path_read(path, &got, NULL), 0);
	ck_assert_str_eq(hr_buf_str(&got), values[_i]);
}
END_TEST

/* ---- the start command ---- */

static void
check_command(
    struct hr_config *c, const struct hr_command *cmd, const char *const *env, const char *want)
{
	HR_BUF(b, 4096);
	HR_CLEAN(hr_strv_done) struct hr_strv v = {0};
	size_t i;

	ck_assert_int_eq(hr_command_build(&v, cmd, c, env, NULL), 0);
	for (i = 0; i < v.n; i++)
		hr_buf_addf(&b, "%s%s", i > 0 ? " " : "", v.v[i]);
	ck_assert_str_eq(hr_buf_str(&b), want);
}

START_TEST(start_command)
{
	static const char *const prefix[] = {"server", NULL};
	static const char *const plugins[] = {"agent_skills", "jupyter", "vscode", NULL};
	static const char *const one[] = {"jupyter", NULL};
	static const char *const env[] = {"RUNTIME_USERNAME=me", "RUNTIME_UID=77", NULL};
	struct hr_command cmd = {.prefix = prefix,
	    .port = 30131,
	    .working_dir = "/workspace",
	    .plugins = plugins,
	    .user_id = -1};
	struct hr_config *c = hr_config_new(NULL);

	ck_assert_int_eq(hr_config_set(c, "core.git_user_name", "git name", NULL), 0);
	check_command(c, &cmd, NULL,
	    "server 30131 --working-dir /workspace --plugins agent_skills jupyter vscode "
	    "--username openhands --user-id 1000");
	cmd.port = 60000;
	cmd.plugins = one;
	ck_assert_int_eq(hr_config_set(c, "core.enable_browser", "false", NULL), 0);
	check_command(c, &cmd, NULL,
	    "server 60000 --working-dir /workspace --plugins jupyter "
	    "--username openhands --user-id 1000 --no-enable-browser");
	cmd.plugins = NULL;
	ck_assert_int_eq(hr_config_set(c, "sandbox.browsergym_eval_env", "a b", NULL), 0);
	ck_assert_int_eq(hr_config_set(c, "core.enable_browser", "true", NULL), 0);
	check_command(c, &cmd, env,
	    "server 60000 --working-dir /workspace --username me --user-id 77 "
	    "--browsergym-eval-env a b");
	cmd.username = "root";
	cmd.user_id = 0;
	check_command(c, &cmd, env,
	    "server 60000 --working-dir /workspace --username root --user-id 0 "
	    "--browsergym-eval-env a b");
	hr_config_free(c);
}
END_TEST

/* ---- small things ---- */

START_TEST(sids)
{
	ck_assert(hr_sid_valid("a1-b_c.d"));
	ck_assert(!hr_sid_valid(""));
	ck_assert(!hr_sid_valid("../x"));
	ck_assert(!hr_sid_valid("a/b"));
	ck_assert(!hr_sid_valid("-x"));
	ck_assert(!hr_sid_valid("a b"));
}
END_TEST

static const struct {
	const char *name, *secret, *id;
} ids[] = {
    {"a", NULL, "a-f6653249add5958550052efe4c1202"},
    {"a", "key", "a-4dd6aaec57aefa5e53ab08c8c9f03e"},
    {"exactly-16-chars", NULL, "exactly-16-chars-9c2831a7cab8c54"},
    {"seventeen-chars-x", "key", "seventeen-chars--df7501384b83d19"},
    {"0b9c4c1e-3d39-4f0a-9d0c-1f6f2a1b7c11", "s", "0b9c4c1e-3d39-4f-f34a371a6812582"},
    {"", NULL, NULL},
    {"a/b", "key", NULL},
};

START_TEST(session_ids)
{
	struct hr_config *c = hr_config_new(NULL);
	struct hr_err e = {0};
	HR_FREE char *id = NULL;

	if (ids[_i].secret != NULL)
		ck_assert_int_eq(hr_config_set(c, "core.jwt_secret", ids[_i].secret, NULL), 0);
	id = hr_session_id(c, ids[_i].name, &e);
	if (ids[_i].id != NULL)
		ck_assert_str_eq(id, ids[_i].id);
	else
		ck_assert_int_eq(e.code, HR_E_INVAL);
	hr_config_free(c);
}
END_TEST

START_TEST(random_session_ids)
{
	struct hr_config *c = hr_config_new(NULL);
	HR_FREE char *one = hr_session_id(c, NULL, NULL);
	HR_FREE char *two = hr_session_id(c, NULL, NULL);

	ck_assert_uint_eq(strlen(one), 32);
	ck_assert_int_eq(one[14], '4'); /* of a UUID */
	ck_assert_str_ne(one, two);
	hr_config_free(c);
}
END_TEST

START_TEST(nearest)
{
	static const char *const words[] = {"timeout", "platform", "volumes"};

	ck_assert_str_eq(hr_nearest("timout", words, 3), "timeout");
	ck_assert_str_eq(hr_nearest("volume", words, 3), "volumes");
	ck_assert_ptr_null(hr_nearest("zzzzzz", words, 3));
}
END_TEST

/* From the build tree. */
static void
find_module(void)
{
	const char *built = getenv("abs_top_builddir");

	ck_assert_ptr_nonnull(built);
	ck_assert_int_eq(setenv("HANDRAIL_LIBEXECDIR", built, 1), 0);
}

/* The files of another sandbox stay, whatever the names are. */
START_TEST(records_beside)
{
	static const char *const left[] = {
	    "a.json.x.json", "a.json.x.json~", "a.json.12.log", "ab.json"};
	static const char *const gone[] = {"a.json", "a.log", "a.json~"};
	struct hr_sandbox s = {.sid = strdup("a"), .state_dir = strdup(".")};
	size_t i;

	for (i = 0; i < sizeof(left) / sizeof(*left); i++)
		ck_assert_int_eq(hr_path_write(left[i], "{}", 2, 0600, NULL), 0);
	for (i = 0; i < sizeof(gone) / sizeof(*gone); i++)
		ck_assert_int_eq(hr_path_write(gone[i], "{}", 2, 0600, NULL), 0);
	hr_record_remove(&s);
	for (i = 0; i < sizeof(left) / sizeof(*left); i++)
		ck_assert_msg(access(left[i], F_OK) == 0, "%s is gone", left[i]);
	for (i = 0; i < sizeof(gone) / sizeof(*gone); i++)
		ck_assert_msg(access(gone[i], F_OK) != 0, "%s is left", gone[i]);
	free(s.sid);
	free(s.state_dir);
}
END_TEST

/* A list has the records alone, in order, under the names of their files. */
START_TEST(records_in_a_list)
{
	static const char record[] = "{\"sid\":\"x\",\"runtime\":\"local\"}";
	static const char *const files[] = {
	    "b.json", "a.json", ".json", ".c.json", "d.json~", "e.log", "f.jso", "g.jsonx"};
	struct hr_err err = {0};
	HR_FREE char *text = NULL;
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(*files); i++)
		ck_assert_int_eq(
		    hr_path_write(files[i], record, sizeof(record) - 1, 0600, NULL), 0);
	text = hr_sandbox_list(".", &err);
	ck_assert_msg(text != NULL, "%s", err.msg);
	ck_assert_str_eq(
	    text, "[{\"sid\":\"a\",\"runtime\":\"local\"},{\"sid\":\"b\",\"runtime\":\"local\"}]");
	for (i = 0; i < sizeof(files) / sizeof(*files); i++)
		ck_assert_int_eq(unlink(files[i]), 0);
}
END_TEST

/* No value ends the text it stands in. */
START_TEST(record_texts)
{
	struct hr_strv list = {0};
	struct hr_err err = {0};
	struct hr_buf b;
	char *text;

	hr_strv_add(&list, "A=\"1\"");
	hr_strv_add(&list, "B=\377");
	hr_buf_init(&b, 4096);
	hr_record_put_text(&b, "id", "x\",\"key\":\"stolen");
	hr_record_put_text(&b, "key", NULL);
	hr_record_put_int(&b, "port", -1);
	hr_record_put_bool(&b, "own", true);
	hr_record_put_list(&b, "env", &list);
	text = hr_record_take(&b, &err);
	ck_assert_msg(text != NULL, "%s", err.msg);
	ck_assert_str_eq(text,
	    "{\"id\":\"x\\\",\\\"key\\\":\\\"stolen\",\"key\":null,\"port\":-1,\"own\":true,"
	    "\"env\":[\"A=\\\"1\\\"\",\"B=\357\277\275\"]}");
	free(text);
	hr_strv_done(&list);
	hr_buf_init(&b, 8);
	text = hr_record_take(&b, &err);
	ck_assert_str_eq(text, "{}");
	free(text);
	hr_buf_init(&b, 8);
	hr_record_put_text(&b, "longer", "than its cap");
	ck_assert_ptr_null(hr_record_take(&b, &err));
}
END_TEST

START_TEST(module_that_is_not_there)
{
	struct hr_err err = {0};

	ck_assert_int_eq(setenv("HANDRAIL_LIBEXECDIR", top, 1), 0);
	ck_assert_ptr_null(hr_zip_directory(".", true, false, &err));
	ck_assert_int_eq(err.code, HR_E_RUNTIME);
	ck_assert_int_eq(strncmp(err.msg, "no archives: ", 13), 0);
	ck_assert_int_eq(hr_zip_extract("x", "out", 0, &err), -1);
	ck_assert_int_eq(access("out", F_OK), -1);
}
END_TEST

START_TEST(zips)
{
	/* of one directory, "f/." */
	static const char dot[] =
	    "\120\113\003\004\024\000\000\000\000\000\000\000\041\000\000\000\000\000\000\000\000"
	    "\000\000\000\000\000\003\000\000\000\146\057\056\120\113\001\002\024\003\024\000\000"
	    "\000\000\000\000\000\041\000\000\000\000\000\000\000\000\000\000\000\000\000\003\000"
	    "\000\000\000\000\000\000\000\000\020\000\355\101\000\000\000\000\146\057\056\120\113"
	    "\005\006\000\000\000\000\001\000\001\000\061\000\000\000\041\000\000\000\000\000";
	struct hr_err err = {0};
	struct stat st;
	HR_BUF(b, 4096);
	HR_FREE char *zip = NULL;

	find_module();
	ck_assert_int_eq(hr_path_mkdirs("d/sub/empty", 0755, NULL, NULL), 0);
	ck_assert_int_eq(chmod("d/sub/empty", 0755), 0); /* whatever the umask */
	ck_assert_int_eq(hr_path_write("d/a", "1", 1, 0644, NULL), 0);
	ck_assert_int_eq(hr_path_write("d/sub/\xC3\xA9", "22", 2, 0755, NULL), 0);
	ck_assert_int_eq(symlink("a", "d/link"), 0);
	ck_assert_int_eq(symlink("..", "d/sub/up"), 0);
	ck_assert_int_eq(symlink("nothing", "d/dangling"), 0);
	ck_assert_int_eq(symlink("round", "d/round"), 0);
	ck_assert_int_eq(symlink("a/below", "d/through"), 0);
	ck_assert_int_eq(mkfifo("d/fifo", 0600), 0);
	zip = hr_zip_directory("d", true, false, NULL);
	ck_assert_ptr_nonnull(zip);
	ck_assert_int_eq(hr_zip_extract(zip, "small", 4 * 4096 + 3, &err), -1);
	ck_assert_str_eq(err.msg, "the archive holds more than 0 MiB");
	ck_assert_int_eq(hr_zip_extract(zip, "out", 4 * 4096 + 4, NULL), 0);
	ck_assert_int_eq(hr_path_read("out/d/sub/\xC3\xA9", &b, NULL), 0);
	ck_assert_str_eq(hr_buf_str(&b), "22");
	hr_buf_reset(&b);
	ck_assert_int_eq(hr_path_read("out/d/link", &b, NULL), 0);
	ck_assert_str_eq(hr_buf_str(&b), "1");
	ck_assert_int_eq(access("out/d/sub/up", F_OK), -1);
	ck_assert_int_eq(stat("out/d/sub/empty", &st), 0);
	ck_assert_int_eq(st.st_mode, S_IFDIR | 0755);
	ck_assert_int_eq(chmod("out/d/sub/empty", 0700), 0);
	ck_assert_int_eq(hr_zip_extract(zip, "out", 0, NULL), 0);
	ck_assert_int_eq(stat("out/d/sub/empty", &st), 0);
	ck_assert_int_eq(st.st_mode, S_IFDIR | 0700); /* as it was */
	ck_assert_int_eq(rmdir("out/d/sub/empty"), 0);
	ck_assert_int_eq(hr_path_write("out/d/sub/empty", "mine", 4, 0644, NULL), 0);
	ck_assert_int_eq(hr_zip_extract(zip, "out", 0, &err), -1);
	ck_assert_ptr_nonnull(
	    strstr(err.msg, "/out/d/sub/empty is not a directory: a directory cannot replace it"));
	hr_buf_reset(&b);
	ck_assert_int_eq(hr_path_read("out/d/sub/empty", &b, NULL), 0);
	ck_assert_str_eq(hr_buf_str(&b), "mine");
	ck_assert_int_eq(unlink("out/d/sub/empty"), 0);
	ck_assert_int_eq(symlink("nothing", "out/d/sub/empty"), 0);
	ck_assert_int_eq(hr_zip_extract(zip, "out", 0, &err), -1);
	ck_assert_int_eq(lstat("out/d/sub/empty", &st), 0);
	ck_assert(S_ISLNK(st.st_mode));
	ck_assert_int_eq(hr_path_write("out/f", "mine", 4, 0644, NULL), 0);
	ck_assert_int_eq(hr_path_write("dot.zip", dot, sizeof(dot) - 1, 0600, NULL), 0);
	ck_assert_int_eq(hr_zip_extract("dot.zip", "out", 0, &err), -1);
	ck_assert_int_eq(lstat("out/f", &st), 0);
	ck_assert(S_ISREG(st.st_mode));
	ck_assert_int_eq(access("out/d/dangling", F_OK), -1);
	ck_assert_int_eq(access("out/d/fifo", F_OK), -1);
	ck_assert_int_eq(access("out/d/round", F_OK), -1);
	(void)unlink(zip);
	ck_assert_ptr_null(hr_zip_directory("nothing", true, false, NULL));
}
END_TEST

/* Archives of t, and of u with links as their files, are the same. */
static void
same_archives(void)
{
	int fd = hr_tarfile_make("t", false, false, NULL);
	int other = hr_tarfile_make("u", false, true, NULL);
	char one[10240], two[10240];
	ssize_t n;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_ge(other, 0);
	n = read(fd, one, sizeof(one));
	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(read(other, two, sizeof(two)), n);
	ck_assert_mem_eq(one, two, (size_t)n);
	(void)close(fd);
	(void)close(other);
}

/* The same content makes the same bytes, whatever made the files; a link makes none, or those of
 * its file. */
START_TEST(tars)
{
	struct hr_err err = {0};

	find_module();
	ck_assert_int_eq(hr_path_mkdirs("t/b", 0755, NULL, NULL), 0);
	ck_assert_int_eq(hr_path_write("t/b/z", "1", 1, 0600, NULL), 0);
	ck_assert_int_eq(hr_path_write("t/b/y", "2", 1, 0700, NULL), 0);
	ck_assert_int_eq(hr_path_mkdirs("u/b", 0700, NULL, NULL), 0);
	ck_assert_int_eq(hr_path_write("u/b/y", "2", 1, 0711, NULL), 0);
	ck_assert_int_eq(hr_path_write("u/b/z", "1", 1, 0666, NULL), 0);
	same_archives();
	ck_assert_int_eq(hr_tarfile_make("t/b/z", false, false, NULL), -1);
	ck_assert_int_eq(symlink("z", "u/b/link"), 0);
	ck_assert_int_eq(hr_tarfile_make("u", false, false, &err), -1);
	ck_assert_int_eq(strncmp(err.msg, "open b/link: ", 13), 0);
	/* as the file where that is wanted */
	ck_assert_int_eq(hr_path_write("t/b/link", "1", 1, 0600, NULL), 0);
	same_archives();
}
END_TEST

#define TASKS 8

static int
note_process(void *arg, size_t i, struct hr_err *err)
{
	pid_t *of = arg;

	of[i] = getpid();
	return i + 1 < TASKS ? 0 : hr_err_set(err, HR_E_INVAL, "the last task");
}

/* Each task from the first one on is done, and its failure is reported. */
START_TEST(directory_of_a_socket)
{
	struct hr_err err = {0};

	ck_assert_int_eq(hr_sidecar_make_edge("edge", &err), 0);
	ck_assert_int_eq(mkdir("edge/old", 0700), 0);
	busy = true;
	ck_assert_int_eq(hr_sidecar_make_edge("edge", &err), 0);
	busy = false;
	ck_assert_int_eq(rmdir("edge"), 0); /* the new one, which is empty */
}
END_TEST

START_TEST(tasks_of_a_crew)
{
	const size_t size = TASKS * sizeof(pid_t);
	pid_t *of = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct hr_err err = {0};
	size_t i;

	ck_assert_ptr_ne(of, MAP_FAILED);
	ck_assert_int_eq(hr_crew_run(1, TASKS, note_process, of, &err), -1);
	ck_assert_str_eq(err.msg, "the last task");
	ck_assert_int_eq(of[0], 0);
	for (i = 1; i < TASKS; i++)
		ck_assert_int_ne(of[i], 0);
	ck_assert_int_eq(munmap(of, size), 0);
}
END_TEST

START_TEST(branches_with_one_name)
{
	const char *const names[] = {"a", "b", "a", NULL};
	const struct hr_box_fork how = {.names = names};
	struct hr_sandbox s = {.state_dir = top}; /* without a back-end, which is not asked */
	struct hr_err err = {0};
	char *json;

	ck_assert_int_eq(hr_box_fork(&s, &how, &json, &err), -1);
	ck_assert_ptr_null(strstr(err.msg, "\"b\""));
	ck_assert_ptr_nonnull(strstr(err.msg, "\"a\""));
	ck_assert_ptr_null(json);
}
END_TEST

#define N(a) (int)(sizeof(a) / sizeof(*(a)))

int
main(void)
{
	Suite *s = suite_create("host");
	TCase *tc = tcase_create("host");

	tcase_add_unchecked_fixture(tc, scratch_make, scratch_remove);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_loop_test(tc, toml, 0, N(tomls));
	tcase_add_test(tc, toml_names_the_line);
	tcase_add_test(tc, toml_can_be_copied);
	tcase_add_test(tc, toml_depth);
	tcase_add_test(tc, defaults);
	tcase_add_test(tc, precedence);
	tcase_add_loop_test(tc, wrong_files, 0, N(mistakes));
	tcase_add_test(tc, secrets);
	tcase_add_test(tc, dotenv);
	tcase_add_loop_test(tc, settings_of_others, 0, 2);
	tcase_add_test(tc, a_directory_is_no_dotenv);
	tcase_add_loop_test(tc, who_names_an_object, 0, 4);
	tcase_add_test(tc, state_of_others);
	tcase_add_loop_test(tc, workspace, 0, N(workspaces));
	tcase_add_test(tc, heeded_settings);
	tcase_add_loop_test(tc, volume_texts, 0, N(volumes));
	tcase_add_test(tc, name_lock_that_is_released);
	tcase_add_test(tc, one_lock_each);
	tcase_add_loop_test(tc, no_port_twice, 0, N(crowds));
	tcase_add_test(tc, ports_that_no_client_gets);
	tcase_add_test(tc, port_kept_for_its_server);
	tcase_add_test(tc, port_locks_of_others);
	tcase_add_test(tc, port_locks_that_do_not_open);
	tcase_add_loop_test(tc, quoting, 0, N(values));
	tcase_add_test(tc, start_command);
	tcase_add_test(tc, sids);
	tcase_add_loop_test(tc, session_ids, 0, N(ids));
	tcase_add_test(tc, random_session_ids);
	tcase_add_test(tc, nearest);
	tcase_add_loop_test(tc, masking, 0, N(masks));
	tcase_add_test(tc, masked_before_it_is_cut);
	tcase_add_test(tc, zips);
	tcase_add_test(tc, tars);
	tcase_add_test(tc, records_beside);
	tcase_add_test(tc, records_in_a_list);
	tcase_add_test(tc, record_texts);
	tcase_add_test(tc, module_that_is_not_there);
	tcase_add_test(tc, directory_of_a_socket);
	tcase_add_test(tc, tasks_of_a_crew);
	tcase_add_test(tc, branches_with_one_name);
	suite_add_tcase(s, tc);
	return lines_run(s);
}
