/* Transfers files of an E2B sandbox, by plain HTTP routes of its daemon. */
#include "config.h"

#include "host/e2b/e2b.h"

#include "base/err.h"

#define WHO "E2B's daemon"

/* Sets the path in the query, and the user if the daemon takes users. */
static void
set_path(struct hr_cloud *c, struct hr_api_call *call, const char *path)
{
	call->path = path != NULL ? "/files?path=" : "/files";
	call->id = path;
	if (hr_e2b_names_users(c))
		call->rest = path != NULL ? "&username=" HR_E2B_USER : "?username=" HR_E2B_USER;
}

int
hr_e2b_get(struct hr_cloud *c, const char *path, struct hr_buf *b, struct hr_err *err)
{
	struct hr_api_call call = {.method = "GET", .raw = true};
	HR_CLEAN(hr_api_answer_done) struct hr_api_answer a = {0};
	struct hr_err mine = {0};
	int r;

	set_path(c, &call, path);
	r = hr_api_file(&c->plane, &call, path, b, &a, &mine);
	if (r != 0 && mine.code != HR_E_NOTFOUND)
		(void)hr_e2b_explain(c, &a, &mine);
	return r != 0 ? hr_err_pass(err, &mine) : 0;
}

int
hr_e2b_put_files(struct hr_cloud *c, const struct hr_api_part *files, size_t n,
    struct json_object **ret, struct hr_err *err)
{
	struct hr_api_call call = {.method = "POST", .parts = files, .parts_n = n};
	HR_CLEAN(hr_api_answer_done) struct hr_api_answer a = {0};
	int r;

	set_path(c, &call, n == 1 ? files[0].filename : NULL);
	r = hr_api_do(&c->plane, &call, &a, err);
	if (r != 0)
		(void)hr_e2b_explain(c, &a, err);
	if (r == 0 && !json_object_is_type(a.json, json_type_array))
		r = hr_err_set(
		    err, HR_E_PROTO, WHO ": the answer to POST /files is not a JSON array");
	if (ret != NULL)
		*ret = r == 0 ? json_object_get(a.json) : NULL;
	return r;
}
