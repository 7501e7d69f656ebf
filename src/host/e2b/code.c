/* Uses E2B's code interpreter, a server in its templates: it runs Python cells and answers with
 * lines of JSON. */
#include "config.h"

#include "host/e2b/e2b.h"

#include <string.h>

#include "base/err.h"
#include "proto/json.h"

#define PORT 49999
#define WHO "E2B's code interpreter"
#define LIMIT_S 330 /* seconds; the server ends a cell after 300 */

static void
add(struct hr_buf *out, const char *text)
{
	if (out->len > 0 && out->p[out->len - 1] != '\n')
		hr_buf_addc(out, '\n');
	hr_buf_adds(out, text);
}

static int
on_result(struct json_object *o, struct hr_buf *out, struct hr_err *err)
{
	static const char *const forms[] = {
	    "text", "markdown", "html", "latex", "json", "svg", "png", "jpeg", "pdf"};
	const size_t images = 6; /* index of the first image format */
	const char *text = NULL;
	size_t i;

	for (i = 0; text == NULL && i < sizeof(forms) / sizeof(*forms); i++)
		if (hr_field_prose(WHO, "a result", o, forms[i], &text, err) != 0)
			return -1;
	if (text == NULL)
		return 0;
	add(out, i > images ? "" : text);
	if (i > images)
		hr_buf_addf(out, "[Image data: %zu bytes]", strlen(text) / 4 * 3);
	return 0;
}

/* Returns 1 for an exception, or 0 for SystemExit with success. */
static int
on_error(struct json_object *o, struct hr_buf *out, struct hr_err *err)
{
	const char *name, *value, *text;

	if (hr_field_text(WHO, "an error", o, "name", &name, err) != 0 ||
	    hr_field_prose(WHO, "an error", o, "value", &value, err) != 0 ||
	    hr_field_prose(WHO, "an error", o, "traceback", &text, err) != 0)
		return -1;
	add(out, text != NULL && *text != '\0' ? text : name);
	if (text == NULL || *text == '\0')
		hr_buf_addf(out, ": %s", value != NULL ? value : "");
	return strcmp(name, "SystemExit") != 0 ||
	       (value != NULL && *value != '\0' && strcmp(value, "0") != 0);
}

/* Handles one line. Returns 1 for an exception; unknown types are ignored. */
static int
on_line(struct json_object *o, struct hr_buf *out, struct hr_err *err)
{
	const char *type, *text;

	if (hr_field_text(WHO, "a line of the answer", o, "type", &type, err) != 0)
		return -1;
	if (strcmp(type, "result") == 0)
		return on_result(o, out, err);
	if (strcmp(type, "error") == 0)
		return on_error(o, out, err);
	if (strcmp(type, "stdout") != 0 && strcmp(type, "stderr") != 0)
		return 0;
	if (hr_field_prose(WHO, "the output of a cell", o, "text", &text, err) != 0)
		return -1;
	if (text == NULL)
		return hr_err_set(err, HR_E_PROTO, WHO ": the output of a cell has no \"text\"");
	hr_buf_adds(out, text);
	return 0;
}

static int
read_lines(const char *p, size_t len, struct hr_buf *out, struct hr_err *err)
{
	int r = 0, raised = 0;

	while (r >= 0 && len > 0) {
		const char *end = memchr(p, '\n', len);
		size_t n = end != NULL ? (size_t)(end - p) : len;
		HR_PUT struct json_object *o = NULL;
		struct hr_json_error why = {0};

		if (n > 0 && hr_json_decode_foreign(p, n, &o, &why) != 0)
			r = hr_json_err(
			    err, HR_E_PROTO, &why, WHO ": a line of the answer is not JSON");
		else if (n > 0)
			r = on_line(o, out, err);
		raised |= r > 0;
		n += end != NULL;
		p += n;
		len -= n;
	}
	if (r >= 0 && hr_buf_check(out, NULL) != 0)
		return hr_err_nomem(err);
	return r < 0 ? -1 : raised;
}

int
hr_e2b_code(struct hr_cloud *c, const char *code, struct hr_buf *out, struct hr_err *err)
{
	HR_PUT struct json_object *body = hr_json_texts(err, "code", code, NULL);
	struct hr_api_call q = {.method = "POST",
	    .path = "/execute",
	    .body = body,
	    .once = true,
	    .raw = true,
	    .timeout_s = LIMIT_S};
	HR_CLEAN(hr_api_answer_done) struct hr_api_answer a = {0};
	HR_CLEAN(hr_api_done) struct hr_api api = {0};
	int r = -1;

	if (body == NULL || json_object_object_add(body, "context_id", NULL) != 0 ||
	    json_object_object_add(body, "language", NULL) != 0 ||
	    json_object_object_add(body, "env_vars", NULL) != 0)
		return hr_err_nomem(err);
	if (hr_e2b_at_port(c, PORT, &api, err) == 0) {
		r = hr_api_do(&api, &q, &a, err);
		if (r == 0)
			r = read_lines(hr_buf_str(&a.body), a.body.len, out, err);
	}
	return r;
}
