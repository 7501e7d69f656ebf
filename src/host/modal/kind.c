/* Implements the back-end "modal": sandboxes of Modal (doc/clouds.md, "Modal"). */
#include "config.h"

#include "base/err.h"
#include "host/modal/modal.h"
#include "host/modal/pb.h"

#define MISSING 44 /* exit status of handrail's commands for a missing file */

static int
m_exec(struct hr_cloud *c, const struct hr_cloud_command *q, struct hr_cloud_end *ret,
    struct hr_err *err)
{
	/* Modal leaves the input open until it is closed explicitly */
	const char *const argv[] = {
	    "/bin/sh", "-c", "exec bash -l -c \"$0\" </dev/null", q->line, NULL};
	const struct hr_modal_exec e = {.argv = argv, .q = q};

	return hr_modal_run(c, &e, ret, err);
}

static int
m_launch(struct hr_cloud *c, const char *line, struct hr_err *err)
{
	const char *const argv[] = {
	    "/bin/sh", "-c", "exec bash -l -c \"$0\" </dev/null", line, NULL};
	const struct hr_cloud_command q = {.line = line};
	const struct hr_modal_exec e = {.argv = argv, .q = &q, .leave = true};
	struct hr_cloud_end end;

	return hr_modal_run(c, &e, &end, err);
}

/* ---- files, through commands ---- */

struct heard {
	struct hr_buf *out, why;
};

static void
hear(void *arg, int stream, const char *p, size_t len)
{
	struct heard *h = arg;

	if (stream == HR_MODAL_STDERR)
		hr_buf_add(&h->why, p, len);
	else if (h->out != NULL)
		hr_buf_add(h->out, p, len);
}

static int
file(struct hr_cloud *c, const char *line, const char *path, const char *p, size_t len,
    struct hr_buf *out, struct hr_err *err)
{
	const char *const argv[] = {"/bin/sh", "-c", line, "sh", path, NULL};
	struct heard h = {.out = out};
	const struct hr_cloud_command q = {.line = line, .output = hear, .arg = &h};
	const struct hr_modal_exec e = {.argv = argv, .q = &q, .input = p, .input_len = len};
	struct hr_cloud_end end;
	int r;
	size_t i;

	hr_buf_init(&h.why, 65536);
	r = hr_modal_run(c, &e, &end, err);
	for (i = 0; i < h.why.len; i++)
		if ((unsigned char)h.why.p[i] < ' ')
			h.why.p[i] = ' ';
	if (r == 0 && end.code == MISSING)
		r = hr_err_set(err, HR_E_NOTFOUND, "path '%s' does not exist", path);
	else if (r == 0 && end.code != 0)
		r = hr_err_set(err, HR_E_RUNTIME, HR_MODAL_WHO ": %s: status %d: %.300s", path,
		    end.code, hr_buf_str(&h.why));
	else if (r == 0 && out != NULL && hr_buf_check(out, NULL) != 0)
		r = hr_err_set(err, HR_E_INVAL, HR_MODAL_WHO ": the file %s is too long", path);
	hr_buf_done(&h.why);
	return r;
}

static int
m_get(struct hr_cloud *c, const char *path, struct hr_buf *b, struct hr_err *err)
{
	return file(c, "[ -e \"$1\" ] || exit 44; exec cat -- \"$1\"", path, NULL, 0, b, err);
}

static int
m_put(struct hr_cloud *c, const char *path, const char *p, size_t len, struct hr_err *err)
{
	return file(
	    c, "mkdir -p -- \"$(dirname -- \"$1\")\" && exec cat >\"$1\"", path, p, len, NULL, err);
}

static const char *const lacks[] = {
    "Modal: without an image that has handrail in it (sandbox.runtime_container_image) each "
    "command runs in a new shell: its directory, variables and programs do not last, and a running "
    "command takes no input; stderr comes after its end; no Jupyter, MCP servers, browser, editor "
    "or live view.",
    NULL};

static const struct hr_cloud_ops ops = {
    .name = "modal",
    .title = HR_MODAL_WHO,
    .lacks = lacks,
    .open = hr_modal_open,
    .create = hr_modal_create,
    .wait = hr_modal_task,
    .look = hr_modal_look,
    .list = hr_modal_list,
    .end = hr_modal_end,
    .exec = m_exec,
    .get = m_get,
    .put = m_put,
    .launch = m_launch,
    .publish = hr_modal_publish,
    .done = hr_modal_done,
};

HR_CLOUD_KIND(hr_modal_entry, "modal", ops)
