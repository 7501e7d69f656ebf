/* Writes a build's "build.json" atomically. */
#include "config.h"

#include "fleet/build/build_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/path.h"
#include "base/text/text.h"
#include "proto/json.h"

#define RECORD_MAX (64u << 10)

const char *const hr_build_words[] = {
    "QUEUED", "WORKING", "SUCCESS", "FAILURE", "TIMEOUT", "INTERNAL_ERROR"};

void
hr_build_free(struct hr_build *b)
{
	if (b != NULL)
		hr_strv_done(&b->names);
	free(b);
}

int
hr_build_write(const char *builds, const struct hr_build *one, struct hr_err *err)
{
	HR_BUF(t, RECORD_MAX);
	HR_FREE char *path = NULL;
	size_t i;

	hr_buf_addf(&t, "{\"key\":%lld,\"created\":%lld,\"status\":\"%s\"", (long long)one->key,
	    (long long)one->created, hr_build_words[one->status]);
	hr_json_put_named(&t, "error", one->error);
	hr_buf_adds(&t, ",\"names\":[");
	for (i = 0; i < one->names.n; i++) {
		hr_buf_adds(&t, i > 0 ? "," : "");
		(void)hr_json_put_str(
		    &t, one->names.v[i], strlen(one->names.v[i]), HR_JSON_REPLACE);
	}
	hr_buf_adds(&t, "]}\n");
	if (hr_buf_check(&t, err) != 0 ||
	    hr_text_setf(&path, err, "%s/%s/build.json", builds, one->id) != 0)
		return -1;
	return hr_path_write(path, t.p, t.len, 0600, err);
}

static int
read_record(const char *dir, struct json_object **ret, struct hr_err *err)
{
	HR_BUF(t, RECORD_MAX);
	HR_FREE char *path = hr_path_join(dir, "build.json");

	if (path == NULL)
		return hr_err_nomem(err);
	if (hr_path_read(path, &t, err) != 0)
		return -1;
	return hr_json_decode(hr_buf_str(&t), t.len, ret, NULL) == 0
		   ? 0
		   : hr_err_set(err, HR_E_INVAL, "%s is damaged", path);
}

static int
take_names(struct json_object *o, struct hr_strv *names, struct hr_err *err)
{
	struct json_object *list = hr_json_at(o, "names");
	const char *name;
	size_t i;

	for (i = 0; i < hr_json_count(list); i++)
		if ((name = hr_json_text(hr_json_entry(list, i))) != NULL)
			hr_strv_add(names, name);
	if (names->failed)
		return hr_err_nomem(err);
	return names->n > 0 ? 0 : hr_err_set(err, HR_E_INVAL, "a build without a name");
}

int
hr_fleet_build_names(const char *dir, struct hr_strv *names, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;

	return read_record(dir, &o, err) == 0 ? take_names(o, names, err) : -1;
}

struct hr_build *
hr_build_load(const char *builds, const char *id, struct hr_err *err)
{
	struct hr_build *one = calloc(1, sizeof(*one));
	HR_FREE char *dir = hr_path_join(builds, id);
	HR_PUT struct json_object *o = NULL;
	const char *status;
	size_t i;

	if (one == NULL || dir == NULL)
		(void)hr_err_nomem(err);
	if (one == NULL || dir == NULL || read_record(dir, &o, err) != 0 ||
	    take_names(o, &one->names, err) != 0) {
		hr_build_free(one);
		return NULL;
	}
	(void)snprintf(one->id, sizeof(one->id), "%.32s", id);
	(void)snprintf(one->error, sizeof(one->error), "%s", hr_json_text_or(o, "error", ""));
	one->key = hr_json_int_at(o, "key");
	one->created = hr_json_int_at(o, "created");
	status = hr_json_text_or(o, "status", "");
	for (i = HR_BUILD_SUCCESS; i <= HR_BUILD_INTERNAL_ERROR; i++)
		if (strcmp(status, hr_build_words[i]) == 0)
			one->status = (enum hr_build_status)i;
	return one;
}
