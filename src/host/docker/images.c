/* Lists and removes runtime images of a Docker Engine. */
#include "config.h"

#include <string.h>

#include <json-c/json_object.h>

#include "host/docker/docker_int.h"
#include "base/err.h"
#include "proto/json.h"

#define LIST_MAX (64u << 20)
#define FILTER "/images/json?filters=%7B%22label%22%3A%5B%22org.openhands.runtime%22%5D%7D"

/* Appends an image once per name. */
static void
put_image(struct hr_buf *b, struct json_object *image)
{
	struct json_object *names = hr_json_at(image, "RepoTags"),
			   *labels = hr_json_at(image, "Labels");
	size_t n = hr_json_count(names);
	const char *only = hr_json_text(hr_json_entry(names, 0)), *name;
	size_t i;

	/* older Engines list an image whose name has moved to another like this */
	if (n == 1 && only != NULL && strcmp(only, "<none>:<none>") == 0)
		n = 0;
	for (i = 0; i < (n > 0 ? n : 1); i++) {
		hr_buf_adds(b, b->len > 1 ? ",{" : "{");
		name = n > 0 ? hr_json_text(hr_json_entry(names, i)) : NULL;
		hr_json_put_named(b, "name", name != NULL ? name : "");
		hr_json_put_named(b, "id", hr_json_text_or(image, "Id", ""));
		hr_json_put_named(
		    b, "version", hr_json_text_or(labels, "org.openhands.version", ""));
		hr_buf_addf(b, ",\"bytes\":%lld,\"created\":%lld}",
		    (long long)hr_json_int_at(image, "Size"),
		    (long long)hr_json_int_at(image, "Created"));
	}
}

int
hr_image_list(const char *const *env, char **ret_json, struct hr_err *err)
{
	HR_PUT struct json_object *list = NULL;
	HR_CLEAN(hr_engine_done) struct hr_engine e = {0};
	HR_BUF(b, LIST_MAX);
	size_t i;

	if (hr_engine_init(&e, env, err) != 0 ||
	    hr_engine_call(&e, "GET", FILTER, NULL, &list, err) != 0)
		return -1;
	if (!json_object_is_type(list, json_type_array))
		return hr_err_set(err, HR_E_RUNTIME, "the Engine's answer is not a list");
	hr_buf_addc(&b, '[');
	for (i = 0; i < json_object_array_length(list); i++)
		put_image(&b, json_object_array_get_idx(list, i));
	hr_buf_addc(&b, ']');
	*ret_json = hr_buf_take(&b);
	return *ret_json != NULL ? 0 : hr_err_nomem(err);
}

void
hr_docker_image_path(struct hr_buf *b, const char *name)
{
	const char *slash;

	hr_buf_adds(b, "/images/");
	while ((slash = strchr(name, '/')) != NULL) {
		HR_FREE char *part = strndup(name, (size_t)(slash - name));

		if (part == NULL)
			b->fail = HR_E_NOMEM;
		else
			hr_http_escape(b, part);
		hr_buf_addc(b, '/');
		name = slash + 1;
	}
	hr_http_escape(b, name);
}

int
hr_image_remove(const char *const *env, const char *name, struct hr_err *err)
{
	HR_BUF(path, 8192);
	HR_BUF(look, 8192);
	HR_PUT struct json_object *o = NULL;
	HR_CLEAN(hr_engine_done) struct hr_engine e = {0};
	int r;

	hr_docker_image_path(&path, name);
	hr_buf_addf(&look, "%s/json", hr_buf_str(&path));
	r = *name == '\0' ? hr_err_set(err, HR_E_INVAL, "the name of the image is missing")
	    : hr_buf_check(&look, NULL) != 0 ? hr_err_nomem(err)
					     : hr_engine_init(&e, env, err);
	if (r == 0)
		r = hr_engine_call(&e, "GET", look.p, NULL, &o, err);
	/* refuses to remove other people's images */
	if (r == 0 && hr_json_at(hr_json_at(hr_json_at(o, "Config"), "Labels"),
			  "org.openhands.runtime") == NULL)
		r = hr_err_set(err, HR_E_INVAL,
		    "%s is not a runtime image; \"docker rmi\" removes other images", name);
	if (r == 0)
		r = hr_engine_call(&e, "DELETE", path.p, NULL, NULL, err);
	return r;
}
