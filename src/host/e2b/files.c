/* Files of a sandbox of E2B, by the routes of its daemon that are plain HTTP. */
#include "config.h"

#include "host/e2b/e2b.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "proto/json.h"

#define WHO "E2B's daemon"

static const char *
files_path(struct hr_cloud *c, struct hr_buf *b, const char *path)
{
	hr_buf_init(b, 65536);
	hr_buf_adds(b, "/files");
	if (path != NULL) {
		hr_buf_adds(b, "?path=");
		hr_http_escape(b, path);
	}
	if (hr_e2b_names_users(c))
		hr_buf_addf(b, "%susername=" HR_E2B_USER, path != NULL ? "&" : "?");
	return hr_buf_str(b);
}

int
hr_e2b_get(struct hr_cloud *c, const char *path, struct hr_buf *b, struct hr_err *err)
{
	struct hr_api_call call = {.method = "GET", .raw = true};
	struct hr_api_answer a;
	struct hr_buf url;
	struct hr_err mine = {0};
	int r;

	call.path = files_path(c, &url, path);
	r = hr_api_file(&c->plane, &call, path, b, &a, &mine);
	if (r != 0 && mine.code != HR_E_NOTFOUND)
		(void)hr_e2b_explain(c, &a, &mine);
	hr_api_answer_done(&a);
	hr_buf_done(&url);
	return r != 0 ? hr_err_pass(err, &mine) : 0;
}

int
hr_e2b_put_files(struct hr_cloud *c, const struct hr_cloud_part *files, size_t n,
    struct json_object **ret, struct hr_err *err)
{
	struct hr_api_call call = {.method = "POST"};
	struct hr_api_answer a = {0};
	struct hr_buf url, body;
	char type[100];
	int r;

	hr_buf_init(&body, HR_CLOUD_FILE_MAX + (1u << 20));
	call.path = files_path(c, &url, n == 1 ? files[0].filename : NULL);
	r = hr_cloud_form(&body, files, n, type, err);
	call.type = type;
	call.bytes = hr_buf_str(&body);
	call.bytes_len = body.len;
	if (r == 0) {
		r = hr_api_do(&c->plane, &call, &a, err);
		if (r != 0)
			(void)hr_e2b_explain(c, &a, err);
	}
	if (r == 0 && !json_object_is_type(a.json, json_type_array))
		r = hr_err_set(err, HR_E_PROTO, WHO ": the answer to POST /files is no JSON array");
	if (ret != NULL)
		*ret = r == 0 ? json_object_get(a.json) : NULL;
	hr_api_answer_done(&a);
	hr_buf_done(&body);
	hr_buf_done(&url);
	return r;
}
