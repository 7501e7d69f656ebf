/* Implements git views for people: a work tree's branch, changes, and both sides of a file
 * (doc/host.md, "Git views"). handrail-git does the work in the sandbox; a sandbox without it gets
 * it temporarily. */
#include "config.h"

#include <link.h>
#include <string.h>

#include <json-c/json.h>

#include "base/err.h"
#include "host/common/module.h"
#include "host/life/action.h"
#include "host/mask.h"
#include "proto/json.h"
#include "shell/quote.h"

#define HELPER "handrail-git"
#define UTILS "/openhands/code/openhands/runtime/utils/"
#define TIMEOUT_S 120
#define TEXT_MAX (1u << 20)
#define OUTPUT_MAX (64u << 20)

/* the ways to start the helper; if one fails the next one is tried */
enum way { KNOWN, UPLOADED, WITH_LIBRARIES };

/* A query: the helper's subcommand and a file. */
struct view {
	struct hr_sandbox *s;
	const char *what, *script; /* such as "diff" and "git_diff.py" */
	const char *option; /* option of the helper, which a foreign script ignores; NULL: none */
	const char *directory; /* work tree; NULL: the first directory */
	const char *file;      /* file to view; NULL: none */
};

/* Appends "cd DIRECTORY &&"; the directory is relative to the first one. */
static void
put_cd(struct hr_buf *b, const struct view *v)
{
	const char *root = hr_sandbox_workspace(v->s);

	hr_buf_adds(b, "cd -- ");
	hr_shell_quote(b, root, strlen(root));
	if (v->directory != NULL) {
		hr_buf_adds(b, " && cd -- ");
		hr_shell_quote(b, v->directory, strlen(v->directory));
	}
	hr_buf_adds(b, " && ");
}

/* Appends the arguments after the helper's name; `to` is the file for its output; NULL: stdout. */
static void
put_words(struct hr_buf *b, const struct view *v, bool what, const char *to)
{
	if (what)
		hr_buf_addf(b, " %s", v->what);
	if (v->option != NULL)
		hr_buf_addf(b, " %s", v->option);
	if (v->file != NULL) {
		hr_buf_addc(b, ' ');
		hr_shell_quote(b, v->file, strlen(v->file));
	}
	if (to != NULL)
		hr_buf_addf(b, " >%s", to);
}

/* Appends the installed helper: the one for unmodified clients, or the one on this machine. */
static int
put_known(struct hr_buf *b, const struct view *v, const char *to, struct hr_err *err)
{
	HR_FREE char *path = NULL;

	put_cd(b, v);
	if ((v->s->ops->flags & HR_KIND_HERE) == 0) {
		hr_buf_addf(b, "python3 " UTILS "%s", v->script);
		put_words(b, v, false, to);
		return 0;
	}
	path = hr_module_path(HELPER, err);
	if (path == NULL)
		return -1;
	hr_shell_quote(b, path, strlen(path));
	put_words(b, v, true, to);
	return 0;
}

/* Creates a temporary file in the sandbox and appends its name to b. */
static int
make_temporary(struct hr_sandbox *s, const char *command, struct hr_buf *b, struct hr_err *err)
{
	int status = 0, r = hr_sandbox_run(s, command, TIMEOUT_S, &status, b, err);

	while (r == 0 && b->len > 0 && strchr("\r\n", b->p[b->len - 1]) != NULL)
		b->p[--b->len] = '\0';
	if (r == 0 && (status != 0 || b->len == 0 || *b->p != '/'))
		r = hr_mask_err_set(s, err, HR_E_RUNTIME, "%s failed: %s", command, hr_buf_str(b));
	return r;
}

static int
note_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	static const char *const needed[] = {"/libjson-c.so", "/libutf8proc.so"};
	size_t i;

	(void)size;
	for (i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		if (strstr(info->dlpi_name, needed[i]) != NULL)
			hr_strv_add(arg, info->dlpi_name);
	return 0;
}

/* Copies the shared libraries of this program that the helper needs, too. */
static int
copy_libraries(struct hr_sandbox *s, const char *to, struct hr_err *err)
{
	HR_CLEAN(hr_strv_done) struct hr_strv names = {0};
	int r = 0;
	size_t i;

	/* collects the list first: copying may load more libraries */
	(void)dl_iterate_phdr(note_library, &names);
	if (names.failed)
		r = hr_err_nomem(err);
	for (i = 0; r == 0 && i < names.n; i++)
		r = hr_sandbox_copy_to(s, names.v[i], to, false, err);
	return r;
}

/* Copies handrail's helper into a temporary directory, which is then removed. */
static int
put_uploaded(
    struct hr_buf *b, const struct view *v, enum way way, const char *to, struct hr_err *err)
{
	HR_BUF(dir, TEXT_MAX);
	HR_BUF(quoted, TEXT_MAX);
	HR_FREE char *helper = hr_module_path(HELPER, err);

	if (helper == NULL || make_temporary(v->s, "mktemp -d", &dir, err) != 0 ||
	    hr_sandbox_copy_to(v->s, helper, dir.p, false, err) != 0)
		return -1;
	if (way == WITH_LIBRARIES && copy_libraries(v->s, dir.p, err) != 0)
		return -1;
	hr_shell_quote(&quoted, dir.p, dir.len);
	/* the server may be another account than the shell, and the copied file its own */
	hr_buf_addf(b, "(d=%s; cp \"$d/" HELPER "\" \"$d/run\" && chmod +x \"$d/run\" && ",
	    hr_buf_str(&quoted));
	put_cd(b, v);
	hr_buf_addf(b, "%s\"$d/run\"", way == WITH_LIBRARIES ? "LD_LIBRARY_PATH=$d " : "");
	put_words(b, v, true, to);
	hr_buf_adds(b, "; s=$?; rm -rf -- \"$d\"; exit $s)");
	return 0;
}

/* Returns true if the shell or Python did not find the helper; the helper itself exits with 1 on an
 * error. */
static bool
is_missing(int status)
{
	return status == 2 || status == 126 || status == 127;
}

static int
run(const struct view *v, enum way way, const char *to, int *ret_status, struct hr_buf *out,
    struct hr_err *err)
{
	HR_BUF(command, TEXT_MAX);

	if ((way != KNOWN ? put_uploaded(&command, v, way, to, err)
			  : put_known(&command, v, to, err)) != 0)
		return -1;
	if (hr_buf_check(&command, NULL) != 0)
		return hr_err_nomem(err);
	hr_buf_reset(out);
	return hr_sandbox_run_static(v->s, command.p, TIMEOUT_S, ret_status, out, err);
}

/* Sends the output to a file, because the output of an action is shortened if it is long. */
static int
run_to_file(const struct view *v, enum way way, struct hr_buf *out, struct hr_err *err)
{
	HR_BUF(file, TEXT_MAX);
	HR_BUF(quoted, TEXT_MAX);
	HR_BUF(command, TEXT_MAX);
	int status = 0, r;

	r = make_temporary(v->s, "mktemp", &file, err);
	if (r == 0) {
		hr_shell_quote(&quoted, file.p, file.len);
		r = run(v, way, hr_buf_str(&quoted), &status, out, err);
		if (r == 0 && status != 0)
			r = hr_mask_err_set(v->s, err, HR_E_RUNTIME, "%s", hr_buf_str(out));
		hr_buf_reset(out);
		if (r == 0 && (r = hr_sandbox_file(v->s, file.p, NULL, out, err)) == 0)
			r = hr_err_set(err, HR_E_RUNTIME, "%s cannot be read", file.p);
		hr_buf_addf(&command, "rm -f -- %s", hr_buf_str(&quoted));
		(void)hr_sandbox_run(v->s, hr_buf_str(&command), TIMEOUT_S, &status, NULL, NULL);
	}
	return r < 0 ? -1 : 0;
}

static struct json_object *
parse(const struct hr_buf *out)
{
	struct json_object *o = NULL;

	if (hr_json_decode(hr_buf_str(out), out->len, &o, NULL) == 0 &&
	    (json_object_is_type(o, json_type_object) || json_object_is_type(o, json_type_array)))
		return o;
	json_object_put(o);
	return NULL;
}

/* Returns true if the helper reports that a path does not exist. */
static bool
ends_as_missing(const struct hr_buf *out)
{
	static const char text[] = "No such file or directory";
	size_t n = out->len;

	while (n > 0 && out->p[n - 1] == '\n')
		n--;
	return n >= sizeof(text) - 1 &&
	       memcmp(out->p + n - (sizeof(text) - 1), text, sizeof(text) - 1) == 0;
}

static struct json_object *
ask(const struct view *v, struct hr_err *err)
{
	struct json_object *o = NULL;
	enum way way = KNOWN;
	HR_BUF(out, OUTPUT_MAX);
	int status = 0, r;

	r = run(v, way, NULL, &status, &out, err);
	while (r == 0 && is_missing(status) && way != WITH_LIBRARIES)
		r = run(v, ++way, NULL, &status, &out, err);
	if (r == 0 && is_missing(status))
		r = hr_mask_err_set(v->s, err, HR_E_RUNTIME,
		    "error_in_git_%s: the image has no " UTILS "%s, and " HELPER
		    " of this machine cannot run there, which needs git, libjson-c and "
		    "libutf8proc: %s",
		    v->what, v->script, hr_buf_str(&out));
	else if (r == 0 && status != 0)
		r = hr_mask_err_set(v->s, err, ends_as_missing(&out) ? HR_E_NOTFOUND : HR_E_RUNTIME,
		    "error_in_git_%s: %s", v->what, hr_buf_str(&out));
	if (r == 0 && (o = parse(&out)) == NULL) {
		r = run_to_file(v, way, &out, err);
		if (r == 0 && (o = parse(&out)) == NULL)
			(void)hr_err_set(err, HR_E_RUNTIME, "the answer of " HELPER " is not JSON");
	}
	return o;
}

int
hr_sandbox_git_changes(
    struct hr_sandbox *s, const char *directory, char **ret_json, struct hr_err *err)
{
	const struct view v = {.s = s,
	    .what = "changes",
	    .script = "git_changes.py",
	    .option = "--any",
	    .directory = directory};
	HR_PUT struct json_object *o = ask(&v, err);

	if (o == NULL)
		return -1;
	if (json_object_is_type(o, json_type_array))
		return (*ret_json = hr_json_string(o, OUTPUT_MAX, err)) != NULL ? 0 : -1;
	return hr_mask_err_set(s, err, HR_E_RUNTIME, "error_in_git_changes: %s",
	    hr_json_text_or(o, "error", "unexpected answer"));
}

int
hr_sandbox_git_diff(struct hr_sandbox *s, const char *file, char **ret_json, struct hr_err *err)
{
	struct view v = {.s = s, .what = "diff", .script = "git_diff.py", .file = file};
	HR_PUT struct json_object *o = NULL;

	if (*file == '\0')
		return hr_err_set(err, HR_E_INVAL, "the name of the file must not be empty");
	o = ask(&v, err);
	return o != NULL && (*ret_json = hr_json_string(o, OUTPUT_MAX, err)) != NULL ? 0 : -1;
}

int
hr_sandbox_git_branch(
    struct hr_sandbox *s, const char *directory, char **ret_branch, struct hr_err *err)
{
	struct view v = {.s = s, .directory = directory};
	HR_BUF(command, TEXT_MAX);
	HR_BUF(out, TEXT_MAX);
	int status = 0, r;

	put_cd(&command, &v);
	hr_buf_adds(&command, "git branch --show-current");
	r = hr_buf_check(&command, NULL) != 0
		? hr_err_nomem(err)
		: hr_sandbox_run_static(s, command.p, TIMEOUT_S, &status, &out, err);
	while (r == 0 && out.len > 0 && strchr("\r\n", out.p[out.len - 1]) != NULL)
		out.p[--out.len] = '\0';
	*ret_branch = NULL;
	if (r == 0 && status == 0 && out.len > 0 && (*ret_branch = strdup(out.p)) == NULL)
		r = hr_err_nomem(err);
	return r;
}
