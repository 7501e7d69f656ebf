/* Reads the document that describes a box strictly, and explains it. */
#include "config.h"

#include "box/spec.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "proto/json.h"

#define NAME_MAX_BYTES 63 /* maximum bytes of a host name's label */
#define MEMORY_LEAST (16 << 20)

static const char *const members[] = {"name", "storage", "root", "below", "network", "directory",
    "mounts", "limits", "argv", "env", NULL};
static const char *const mount_members[] = {"source", "target", "read_only", NULL};
static const char *const limit_members[] = {"memory_bytes", "processes", "cpus", NULL};

/* Returns 0 if o is an object that has only members of `known`; otherwise -1 with *err. */
static int
only(struct json_object *o, const char *what, const char *const *known, struct hr_err *err)
{
	struct lh_entry *e;
	const char *key;
	size_t i;

	if (hr_json_type(o) != HR_PY_DICT)
		return hr_err_set(err, HR_E_INVAL, "%s must be an object", what);
	for (e = json_object_get_object(o)->head; e != NULL; e = e->next) {
		key = lh_entry_k(e);
		for (i = 0; known[i] != NULL && strcmp(known[i], key) != 0;)
			i++;
		if (known[i] == NULL)
			return hr_err_set(
			    err, HR_E_INVAL, "%s has an unknown member \"%.60s\"", what, key);
	}
	return 0;
}

static bool
has(struct json_object *o, const char *name)
{
	return json_object_object_get_ex(o, name, NULL) != 0;
}

/* Sets *ret to a string of at least one byte. *ret stays NULL where the member is absent. */
static int
text_of(struct json_object *o, const char *name, const char **ret, struct hr_err *err)
{
	if (!has(o, name))
		return 0;
	*ret = hr_json_text_at(o, name);
	if (*ret == NULL || **ret == '\0')
		return hr_err_set(err, HR_E_INVAL,
		    "\"%s\" must be a string that is not empty and has no null character", name);
	return 0;
}

/* Returns true for an absolute path without ".", ".." and superfluous slashes, except "/". */
static bool
is_plain(const char *path)
{
	const char *at = path, *end;

	if (*at != '/' || at[1] == '\0')
		return false;
	for (; *at != '\0'; at = end) {
		at++;
		end = strchrnul(at, '/');
		if (end == at || (end - at == 1 && at[0] == '.') ||
		    (end - at == 2 && at[0] == '.' && at[1] == '.'))
			return false;
	}
	return true;
}

static int
path_of(struct json_object *o, const char *name, const char **ret, struct hr_err *err)
{
	if (text_of(o, name, ret, err) < 0)
		return -1;
	if (*ret != NULL && !is_plain(*ret))
		return hr_err_set(err, HR_E_INVAL,
		    "\"%s\" must be an absolute path below / without \".\", \"..\" and empty "
		    "parts: %.200s",
		    name, *ret);
	return 0;
}

/* Reads the layers below the root, each of which is a directory of its own. */
static int
below_of(struct box_spec *s, struct hr_err *err)
{
	struct json_object *list = hr_json_at(s->tree, "below");
	size_t i, n = hr_json_count(list);

	if (!has(s->tree, "below"))
		return 0;
	if (hr_json_type(list) != HR_PY_LIST || n > BOX_BELOW_MAX)
		return hr_err_set(err, HR_E_INVAL,
		    "\"below\" must be a list of at most %d directories", BOX_BELOW_MAX);
	for (s->nbelow = 0; s->nbelow < n; s->nbelow++) {
		const char *path = hr_json_text(hr_json_entry(list, s->nbelow));

		if (path == NULL || !is_plain(path))
			return hr_err_set(err, HR_E_INVAL,
			    "entry %zu of \"below\" must be an absolute path below / without "
			    "\".\", \"..\" and empty parts",
			    s->nbelow + 1);
		for (i = 0; i < s->nbelow; i++)
			if (strcmp(s->below[i], path) == 0)
				return hr_err_set(
				    err, HR_E_INVAL, "\"below\" has %.200s twice", path);
		s->below[s->nbelow] = path;
	}
	return 0;
}

static int
flag_of(struct json_object *o, const char *name, bool *ret, struct hr_err *err)
{
	if (!has(o, name))
		return 0;
	*ret = hr_json_true_at(o, name);
	return hr_json_type(hr_json_at(o, name)) == HR_PY_BOOL
		   ? 0
		   : hr_err_set(err, HR_E_INVAL, "\"%s\" must be true or false", name);
}

static int
name_of(struct box_spec *s, struct hr_err *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_";
	size_t n;

	if (text_of(s->tree, "name", &s->name, err) < 0)
		return -1;
	n = s->name != NULL ? strlen(s->name) : 0;
	if (n == 0 || n > NAME_MAX_BYTES || strspn(s->name, allowed) != n || s->name[0] == '-')
		return hr_err_set(err, HR_E_INVAL,
		    "\"name\" must be 1 to %d letters, digits, \"-\" and \"_\", and not begin "
		    "with \"-\"",
		    NAME_MAX_BYTES);
	return 0;
}

/* Returns true for targets that the box fills itself. */
static bool
is_taken(const char *target)
{
	static const char *const own[] = {"/proc", "/sys", "/dev"};
	size_t i, n;

	for (i = 0; i < sizeof(own) / sizeof(*own); i++) {
		n = strlen(own[i]);
		if (strncmp(target, own[i], n) == 0 && (target[n] == '\0' || target[n] == '/'))
			return true;
	}
	return false;
}

static int
one_mount(struct box_spec *s, struct json_object *o, struct hr_err *err)
{
	struct box_mount *m = &s->mounts[s->nmounts];
	size_t i, n;

	if (only(o, "an entry of \"mounts\"", mount_members, err) < 0 ||
	    path_of(o, "source", &m->source, err) < 0 ||
	    path_of(o, "target", &m->target, err) < 0 ||
	    flag_of(o, "read_only", &m->read_only, err) < 0)
		return -1;
	if (m->source == NULL || m->target == NULL)
		return hr_err_set(
		    err, HR_E_INVAL, "an entry of \"mounts\" must have \"source\" and \"target\"");
	if (is_taken(m->target))
		return hr_err_set(err, HR_E_INVAL,
		    "nothing can be mounted at %.200s: /proc, /sys and /dev are the box's own",
		    m->target);
	n = strlen(m->source);
	if (s->storage != NULL && strncmp(s->storage, m->source, n) == 0 &&
	    (s->storage[n] == '/' || s->storage[n] == '\0'))
		return hr_err_set(err, HR_E_INVAL,
		    "the mount of %.200s would show the box its own storage", m->source);
	for (i = 0; i < s->nmounts; i++)
		if (strcmp(s->mounts[i].target, m->target) == 0)
			return hr_err_set(
			    err, HR_E_INVAL, "two mounts have the target %.200s", m->target);
	s->nmounts++;
	return 0;
}

static int
mounts_of(struct box_spec *s, struct hr_err *err)
{
	struct json_object *list = hr_json_at(s->tree, "mounts");
	size_t i, n = hr_json_count(list);

	if (!has(s->tree, "mounts"))
		return 0;
	if (hr_json_type(list) != HR_PY_LIST || n > BOX_MOUNTS_MAX)
		return hr_err_set(
		    err, HR_E_INVAL, "\"mounts\" must be a list of at most %d", BOX_MOUNTS_MAX);
	for (i = 0; i < n; i++)
		if (one_mount(s, hr_json_entry(list, i), err) < 0)
			return -1;
	return 0;
}

static int
count_of(struct json_object *o, const char *name, int64_t least, int64_t *ret, struct hr_err *err)
{
	if (!has(o, name))
		return 0;
	*ret = hr_json_int_at(o, name);
	return hr_json_type(hr_json_at(o, name)) == HR_PY_INT && *ret >= least
		   ? 0
		   : hr_err_set(err, HR_E_INVAL, "\"%s\" must be an integer of at least %lld", name,
			 (long long)least);
}

static int
limits_of(struct box_spec *s, struct hr_err *err)
{
	struct json_object *o = hr_json_at(s->tree, "limits");
	enum hr_py_type t = hr_json_type(hr_json_at(o, "cpus"));

	if (!has(s->tree, "limits"))
		return 0;
	if (only(o, "\"limits\"", limit_members, err) < 0 ||
	    count_of(o, "memory_bytes", MEMORY_LEAST, &s->limits.memory_bytes, err) < 0 ||
	    count_of(o, "processes", 8, &s->limits.processes, err) < 0)
		return -1;
	if (!has(o, "cpus"))
		return 0;
	s->limits.cpus = hr_json_number_at(o, "cpus");
	if ((t != HR_PY_INT && t != HR_PY_FLOAT) || s->limits.cpus < 0.01 || s->limits.cpus > 4096)
		return hr_err_set(err, HR_E_INVAL, "\"cpus\" must be a number from 0.01 to 4096");
	return 0;
}

/* Sets *ret to a copy of a list of strings, whose strings are borrowed. */
static int
strings_of(struct json_object *o, const char *name, char ***ret, struct hr_err *err)
{
	struct json_object *list = hr_json_at(o, name);
	size_t i, n = hr_json_count(list);

	if (has(o, name) && (!hr_json_all_strings(list) || hr_json_type(list) != HR_PY_LIST ||
				hr_json_has_null(list)))
		return hr_err_set(err, HR_E_INVAL,
		    "\"%s\" must be a list of strings without null characters", name);
	*ret = calloc(n + 1, sizeof(**ret));
	if (*ret == NULL)
		return hr_err_nomem(err);
	for (i = 0; i < n; i++)
		(*ret)[i] = (char *)hr_json_text(hr_json_entry(list, i));
	return 0;
}

static int
program_of(struct box_spec *s, struct hr_err *err)
{
	char **e;

	if (strings_of(s->tree, "argv", &s->argv, err) < 0 ||
	    strings_of(s->tree, "env", &s->env, err) < 0)
		return -1;
	if (s->argv[0] == NULL || s->argv[0][0] != '/')
		return hr_err_set(err, HR_E_INVAL,
		    "\"argv\" must begin with the absolute path of a program in the box");
	for (e = s->env; *e != NULL; e++)
		if (**e == '=' || strchr(*e, '=') == NULL)
			return hr_err_set(err, HR_E_INVAL,
			    "entry %zu of \"env\" must be NAME=VALUE", (size_t)(e - s->env) + 1);
	return 0;
}

int
box_spec_read(struct box_spec *s, const char *text, size_t len, struct hr_err *err)
{
	const char *network = "none";
	struct hr_json_error why = {0};

	*s = (struct box_spec){.directory = "/"};
	if (hr_json_decode(text, len, &s->tree, &why) < 0)
		return hr_json_err(err, HR_E_INVAL, &why, "the document is not JSON");
	if (only(s->tree, "the document", members, err) < 0 || name_of(s, err) < 0 ||
	    path_of(s->tree, "storage", &s->storage, err) < 0 ||
	    path_of(s->tree, "root", &s->root, err) < 0 || below_of(s, err) < 0 ||
	    text_of(s->tree, "network", &network, err) < 0 || mounts_of(s, err) < 0 ||
	    limits_of(s, err) < 0 || program_of(s, err) < 0)
		return -1;
	if (s->storage == NULL)
		return hr_err_set(err, HR_E_INVAL,
		    "\"storage\" is missing: the directory for "
		    "all that the box changes");
	s->host_network = strcmp(network, "host") == 0;
	s->egress = strcmp(network, "egress") == 0;
	if (!s->host_network && !s->egress && strcmp(network, "none") != 0)
		return hr_err_set(
		    err, HR_E_INVAL, "\"network\" must be \"none\", \"host\" or \"egress\"");
	if (!has(s->tree, "directory") || hr_json_str_is(hr_json_at(s->tree, "directory"), "/"))
		return 0;
	return path_of(s->tree, "directory", &s->directory, err);
}

void
box_spec_done(struct box_spec *s)
{
	free(s->argv);
	free(s->env);
	json_object_put(s->tree);
	*s = (struct box_spec){0};
}

void
box_spec_explain(const struct box_spec *s, struct hr_buf *b)
{
	size_t i;

	hr_buf_addf(b, "Box %s:\n", s->name);
	if (s->root != NULL)
		hr_buf_addf(b, "It sees the files below %s. ", s->root);
	else
		hr_buf_adds(b, "It sees the host's programs in /usr and its settings in /etc that "
			       "every account can read. ");
	for (i = 0; i < s->nbelow; i++)
		hr_buf_addf(b, "%s %s%s", i == 0 ? "Its own files lie on" : ", then", s->below[i],
		    i + 1 == s->nbelow ? ". " : "");
	hr_buf_addf(b, "What it changes is kept in %s.\n", s->storage);
	for (i = 0; i < s->nmounts; i++)
		hr_buf_addf(b, "It %s %s as %s.\n", s->mounts[i].read_only ? "reads" : "changes",
		    s->mounts[i].source, s->mounts[i].target);
	hr_buf_adds(b, s->host_network ? "It uses the host's network.\n"
		       : s->egress ? "Its loopback interface has every IPv4 address, and no other "
				     "network.\n"
				   : "It has no network.\n");
	if (s->limits.memory_bytes > 0)
		hr_buf_addf(
		    b, "It has at most %lld bytes of memory.\n", (long long)s->limits.memory_bytes);
	if (s->limits.processes > 0)
		hr_buf_addf(b, "It has at most %lld processes.\n", (long long)s->limits.processes);
	if (s->limits.cpus > 0)
		hr_buf_addf(b, "It has at most the time of %g processors.\n", s->limits.cpus);
	hr_buf_addf(b, "It runs %s in %s.\n", s->argv[0], s->directory);
}
