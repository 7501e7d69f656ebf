/* Handles TASKS.md of a session. */
#include "config.h"

#include "host/life/tasks.h"

#include <errno.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/path.h"
#include "base/err.h"
#include "proto/json.h"

#define TASKS_MAX (4u << 20)

static const char *
icon(const char *status)
{
	if (strcmp(status, "in_progress") == 0)
		return "\xF0\x9F\x94\x84";
	if (strcmp(status, "done") == 0)
		return "\xE2\x9C\x85";
	return "\xE2\x8F\xB3";
}

static struct json_object *
observation(const char *type, const char *content, const char *command, struct json_object *list,
    struct hr_err *err)
{
	struct json_object *extras;

	if (command == NULL)
		extras = json_object_new_object();
	else
		extras =
		    hr_json_object(err, "command", json_object_new_string(command), "task_list",
			list != NULL ? json_object_get(list) : json_object_new_array(), NULL);
	return hr_json_object(err, "observation", json_object_new_string(type), "content",
	    json_object_new_string(content), "extras", extras, NULL);
}

/* Returns the file's path, and its name for messages in *shown. */
static char *
tasks_path(struct hr_sandbox *s, struct hr_buf *shown)
{
	const char *store = hr_config_text(s->config, "core.file_store_path");
	const char *home = hr_env_get(s->host.environ, "HOME");
	HR_BUF(b, 1 << 16);

	hr_buf_addf(shown, "sessions/%s/TASKS.md", s->sid);
	if (store != NULL && store[0] == '~' && home != NULL)
		hr_buf_addf(&b, "%s%s", home, store + 1);
	else
		hr_buf_adds(&b, store != NULL ? store : ".");
	hr_buf_addf(&b, "/%s", hr_buf_str(shown));
	return hr_buf_end(&b, NULL);
}

static int
save(const char *path, const struct hr_buf *text, struct hr_err *e)
{
	HR_FREE char *dir = strdup(path);
	int r;

	if (dir == NULL)
		return hr_err_nomem(e);
	*strrchr(dir, '/') = '\0';
	r = hr_path_mkdirs(dir, 0755, NULL, e);
	return r == 0 ? hr_path_write(path, hr_buf_str(text), text->len, 0644, e) : -1;
}

static struct json_object *
plan(const char *path, const char *shown, struct json_object *list, struct hr_err *err)
{
	struct json_object *o;
	struct hr_err e = {0};
	HR_BUF(b, TASKS_MAX);
	HR_BUF(say, 4096);
	size_t n = hr_json_count(list);
	int r;
	size_t i;

	hr_buf_adds(&b, "# Task List\n\n");
	for (i = 0; i < n; i++) {
		struct json_object *t = hr_json_entry(list, i);

		hr_buf_addf(&b, "%zu. %s %s\n%s\n", i + 1, icon(hr_json_text_or(t, "status", "")),
		    hr_json_text_or(t, "title", ""), hr_json_text_or(t, "notes", ""));
	}
	r = hr_buf_check(&b, &e);
	if (r == 0)
		r = save(path, &b, &e);
	if (r != 0) {
		hr_buf_addf(
		    &say, "Failed to write task list to session directory %s: %s", shown, e.msg);
		o = observation("error", hr_buf_str(&say), NULL, NULL, err);
	} else {
		hr_buf_addf(&say,
		    "Task list has been updated with %zu items. Stored in session directory: %s", n,
		    shown);
		o = observation("task_tracking", hr_buf_str(&say), "plan", list, err);
	}
	return o;
}

static struct json_object *
view(const char *path, const char *shown, struct hr_err *err)
{
	struct hr_err e = {0};
	HR_BUF(b, TASKS_MAX);

	if (hr_path_read(path, &b, &e) != 0) {
		hr_buf_reset(&b);
		if (e.sys == ENOENT)
			hr_buf_adds(
			    &b, "No task list found. Use the \"plan\" command to create one.");
		else
			hr_buf_addf(&b,
			    "Failed to read the task list from session directory %s. Error: %s",
			    shown, e.msg);
	}
	return observation("task_tracking", hr_buf_str(&b), "view", NULL, err);
}

struct json_object *
hr_tasks_act(struct hr_sandbox *s, struct json_object *args, struct hr_err *err)
{
	const char *command = hr_json_text_or(args, "command", "");
	struct json_object *list = NULL, *o = NULL;
	HR_BUF(say, 4096);
	HR_BUF(shown, 4096);
	HR_FREE char *path = tasks_path(s, &shown);

	if (path == NULL) {
		(void)hr_err_nomem(err);
	} else if (strcmp(command, "plan") == 0) {
		list = hr_json_at(args, "task_list");
		o = plan(path, hr_buf_str(&shown), list, err);
	} else if (strcmp(command, "view") == 0) {
		o = view(path, hr_buf_str(&shown), err);
	} else {
		hr_buf_addf(&say, "Unknown command: %.1000s", command);
		o = observation("task_tracking", hr_buf_str(&say), command, NULL, err);
	}
	return o;
}
