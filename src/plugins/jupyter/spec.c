/* Reads NAME/kernel.json in Jupyter's directories, which are the user's own or the system's. */
#include "config.h"

#include "plugins/jupyter/spec.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <json-c/json.h>

#include "base/clean.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text/quote.h"
#include "proto/json.h"

#define FILE_MAX (256u << 10)
#define CONNECTION "{connection_file}"
#define RESOURCES "{resource_dir}"

void
hr_spec_done(struct hr_spec *s)
{
	hr_strv_done(&s->argv);
	hr_strv_done(&s->env);
}

/* Appends text with every `name` replaced by `value`. */
static void
add_replaced(struct hr_strv *to, const char *text, const char *name, const char *value)
{
	HR_BUF(b, FILE_MAX);
	const char *at;

	for (; (at = strstr(text, name)) != NULL; text = at + strlen(name)) {
		hr_buf_add(&b, text, (size_t)(at - text));
		hr_buf_adds(&b, value);
	}
	hr_buf_adds(&b, text);
	hr_strv_take(to, hr_buf_end(&b, NULL));
}

void
hr_spec_argv(struct hr_strv *ret, const struct hr_spec *s, const char *file)
{
	size_t i;

	for (i = 0; i < s->argv.n; i++)
		add_replaced(ret, s->argv.v[i], CONNECTION, file);
}

static int
take(struct hr_spec *ret, struct json_object *o, const char *dir, struct hr_err *err)
{
	struct json_object *argv = hr_json_typed_at(o, "argv", HR_PY_LIST),
			   *env = hr_json_typed_at(o, "env", HR_PY_DICT);
	size_t i;

	for (i = 0; hr_json_all_strings(argv) && i < hr_json_count(argv); i++)
		add_replaced(
		    &ret->argv, json_object_get_string(hr_json_entry(argv, i)), RESOURCES, dir);
	if (ret->argv.n == 0)
		return hr_err_set(err, HR_E_INVAL, "%s/kernel.json has no argv", dir);
	if (env != NULL) {
		json_object_object_foreach(env, name, v)
		{
			if (hr_json_text(v) != NULL)
				hr_strv_set_envf(&ret->env, "%s=%s", name, hr_json_text(v));
		}
	}
	ret->asks_interrupt = hr_json_str_is(hr_json_at(o, "interrupt_mode"), "message");
	return ret->argv.failed || ret->env.failed ? hr_err_nomem(err) : 0;
}

/* Reads a file; the user may have made anything of that name. */
static int
read_file(const char *path, struct hr_buf *b)
{
	HR_CLOSE int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	return hr_path_read_fd(fd, path, b, NULL);
}

/* Tries DIR/name. Returns 1 if it was taken, 0 if it is none for this language, or -1. */
static int
try(struct hr_spec *ret, const char *dir, const char *name, const char *language, bool by_name,
    struct hr_err *err)
{
	HR_FREE char *own = hr_path_join(dir, name);
	HR_FREE char *path = own != NULL ? hr_path_join(own, "kernel.json") : NULL;
	HR_PUT struct json_object *o = NULL;
	HR_BUF(text, FILE_MAX);

	if (path == NULL)
		return hr_err_nomem(err);
	if ((by_name && strcasecmp(name, language) != 0) || read_file(path, &text) < 0 ||
	    hr_json_decode(text.p, text.len, &o, NULL) < 0)
		return 0;
	if (!by_name && strcasecmp(hr_json_text_or(o, "language", ""), language) != 0)
		return 0;
	return take(ret, o, own, err) == 0 ? 1 : -1;
}

static int
search(struct hr_spec *ret, const char *dir, const char *language, bool by_name, struct hr_err *err)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	int r = 0;

	while (d != NULL && r == 0 && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.')
			r = try(ret, dir, e->d_name, language, by_name, err);
	if (d != NULL)
		(void)closedir(d);
	return r;
}

/* Lists the directories as jupyter_core does: JUPYTER_PATH, the user's, the system's. */
static void
directories(struct hr_strv *ret)
{
	const char *path = getenv("JUPYTER_PATH"), *home = getenv("HOME");
	size_t len;

	for (; path != NULL && path[0] != '\0'; path += len + (path[len] == ':')) {
		len = strcspn(path, ":");
		if (len > 0)
			hr_strv_addf(ret, "%.*s/kernels", (int)len, path);
	}
	if (home != NULL)
		hr_strv_addf(ret, "%s/.local/share/jupyter/kernels", home);
	hr_strv_add(ret, "/usr/local/share/jupyter/kernels");
	hr_strv_add(ret, "/usr/share/jupyter/kernels");
}

int
hr_spec_find(struct hr_spec *ret, const char *language, const char *python, struct hr_err *err)
{
	const char *const ipykernel[] = {
	    python, "-m", "ipykernel_launcher", "-f", CONNECTION, NULL};
	HR_CLEAN(hr_strv_done) struct hr_strv dirs = {0};
	int r = 0, by_name;
	size_t i;

	memset(ret, 0, sizeof(*ret));
	if (strcmp(language, "python") == 0) {
		hr_strv_add_all(&ret->argv, ipykernel);
		return ret->argv.failed ? hr_err_nomem(err) : 0;
	}
	directories(&dirs);
	if (dirs.failed)
		return hr_err_nomem(err);
	for (by_name = 1; by_name >= 0; by_name--)
		for (i = 0; r == 0 && i < dirs.n; i++)
			r = search(ret, dirs.v[i], language, by_name == 1, err);
	if (r == 0)
		return hr_err_set(err, HR_E_NOTFOUND, "there is no kernel of this language");
	return r > 0 ? 0 : -1;
}

/* ---- variables ---- */

/* The code of each language that sets and unsets a variable: name and value stand between its
 * parts. They are JSON strings, which are strings of Python, JavaScript and R, too. */
static const struct {
	const char *language, *set[3], *unset[2];
	bool shell; /* quoted for a shell */
} codes[] = {
    {"python", {"__import__('os').environ[", "] = ", "\n"},
	{"__import__('os').environ.pop(", ", None)\n"}, false},
    {"javascript", {"process.env[", "] = ", ";\n"}, {"delete process.env[", "];\n"}, false},
    {"typescript", {"process.env[", "] = ", ";\n"}, {"delete process.env[", "];\n"}, false},
    {"deno", {"Deno.env.set(", ", ", ");\n"}, {"Deno.env.delete(", ");\n"}, false},
    {"r", {"(function(n, v) do.call(Sys.setenv, setNames(list(v), n)))(", ", ", ")\n"},
	{"Sys.unsetenv(", ")\n"}, false},
    {"bash", {"export ", "=", "\n"}, {"unset ", "\n"}, true},
};

static void
put_code(struct hr_buf *b, const char *language, const char *name, struct hr_span value)
{
	size_t i, n = sizeof(codes) / sizeof(codes[0]);
	void (*quote)(struct hr_buf *, const char *, size_t);

	for (i = 0; i < n && strcmp(codes[i].language, language) != 0; i++)
		;
	if (i == n)
		return;
	quote = codes[i].shell ? hr_quote_shell : hr_quote_json;
	hr_buf_adds(b, value.p != NULL ? codes[i].set[0] : codes[i].unset[0]);
	quote(b, name, strlen(name));
	hr_buf_adds(b, value.p != NULL ? codes[i].set[1] : codes[i].unset[1]);
	if (value.p != NULL) {
		quote(b, value.p, value.len);
		hr_buf_adds(b, codes[i].set[2]);
	}
}

void
hr_spec_set(struct hr_buf *b, const char *language, struct json_object *vars)
{
	struct hr_span value;

	json_object_object_foreach(vars, name, v)
	{
		value.p = hr_json_str(v, &value.len);
		put_code(b, language, name, value);
	}
}

void
hr_spec_take_back(
    struct hr_buf *b, const char *language, struct json_object *vars, char *const *envp)
{
	struct hr_span value;
	size_t i, len;

	json_object_object_foreach(vars, name, v)
	{
		(void)v;
		len = strlen(name);
		value = (struct hr_span){.p = NULL};
		for (i = 0; envp[i] != NULL; i++)
			if (strncmp(envp[i], name, len) == 0 && envp[i][len] == '=')
				value = hr_span_of(envp[i] + len + 1);
		put_code(b, language, name, value);
	}
}
