/* edit: one place of a text file changes, on this machine, and the file is sent back. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/fd.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/observation.h"
#include "files/charset/detect.h"
#include "files/diff.h"
#include "files/revise/revise.h"
#include "host/common/module.h"
#include "host/transfer/cp.h"
#include "proto/obs.h"

#define TEXT_MAX (4 * HR_PLAINTEXT_MAX)

/* The bytes of a file of the sandbox. */
static int
fetch(struct hr_sandbox *s, const char *path, struct hr_buf *bytes, struct hr_err *err)
{
	HR_CLOSE int fd = memfd_create("handrail-edit", MFD_CLOEXEC);

	if (fd < 0)
		return hr_err_sys(err, errno, "memfd_create");
	if (hr_cp_read(s, path, fd, err) != 0)
		return -1;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return hr_err_sys(err, errno, "%s", path);
	return hr_path_read_fd(fd, path, bytes, err);
}

static int
send(struct hr_sandbox *s, const char *path, const struct hr_buf *bytes, struct hr_err *err)
{
	HR_CLOSE int fd = hr_fd_of_bytes(hr_buf_str(bytes), bytes->len, err);

	return fd < 0 ? -1 : hr_cp_write(s, path, fd, err);
}

/* The observation of the action that it would be. */
static int
tell(struct cli *c, const struct cli_args *a, const char *path, struct hr_span content,
    struct hr_span diff)
{
	HR_PUT struct json_object *old = json_object_new_string(a->argv[1]);
	HR_PUT struct json_object *new = json_object_new_string(a->argv[2]);
	const struct hr_obs_edit e = {hr_span_of(path), old, new, content, diff};
	HR_BUF(b, TEXT_MAX);

	if (old == NULL || new == NULL || hr_obs_put_edit(&b, &e, HR_JSON_REPLACE) < 0 ||
	    b.fail != HR_OK)
		return cli_usage("out of memory");
	return cli_observed(c, hr_buf_str(&b), true);
}

static int
change(struct cli *c, struct hr_sandbox *s, const struct cli_args *a, const char *path,
    struct hr_plaintext *t)
{
	struct hr_err err = {0};
	struct hr_revised done;
	HR_BUF(after, TEXT_MAX);
	HR_BUF(bytes, TEXT_MAX);
	HR_BUF(why, TEXT_MAX);
	HR_BUF(diff, TEXT_MAX);
	HR_BUF(content, TEXT_MAX);

	if (hr_revise_replace(
		t, hr_span_of(a->argv[1]), hr_span_of(a->argv[2]), &after, &done, &why) < 0 ||
	    hr_plaintext_encode(t, hr_span_of_buf(&after), &bytes, &why) < 0) {
		hr_buf_addf(&content, "ERROR:\nNo replacement was performed in %s: %s.", path,
		    hr_buf_str(&why));
		return tell(c, a, path, hr_span_of_buf(&content), (struct hr_span){"", 0});
	}
	if (after.fail != HR_OK || bytes.fail != HR_OK)
		return cli_usage("out of memory");
	if (send(s, path, &bytes, &err) != 0 ||
	    hr_diff(&diff, hr_span_of_buf(&t->text), hr_span_of_buf(&after), hr_span_of(path),
		&err) < 0)
		return cli_fail(&err);
	hr_buf_addf(&content, "The file %s has been edited.", path);
	return tell(c, a, path, hr_span_of_buf(&content), hr_span_of_buf(&diff));
}

static int
edit(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	HR_FREE char *path = hr_cp_path(s, a->argv[0]);
	HR_CLEAN(hr_plaintext_done) struct hr_plaintext t;
	struct hr_err err = {0};
	HR_BUF(bytes, HR_PLAINTEXT_MAX);

	hr_plaintext_init(&t);
	if (path == NULL)
		return cli_usage("out of memory");
	if (hr_cp_is_direct(s)) /* by the back-end's own editor */
		return cli_act_in(c, s, "edit",
		    hr_json_texts(NULL, "path", path, "command", "str_replace", "old_str",
			a->argv[1], "new_str", a->argv[2], "impl_source", "oh_aci", NULL),
		    0);
	if (fetch(s, path, &bytes, &err) != 0)
		return cli_fail(&err);
	hr_detect_from(hr_module_dir());
	if (hr_plaintext_decode(&t, hr_buf_str(&bytes), bytes.len))
		return change(c, s, a, path, &t);
	cli_say("%s is a binary file", path);
	return CLI_ERROR;
}

const struct cli_command cli_edit = {"edit", "PATH OLD NEW",
    "Replace a text that occurs once in a file of the sandbox.", NULL, 3, 3, NULL, edit};
