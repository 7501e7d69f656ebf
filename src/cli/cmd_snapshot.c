/* Implements snapshot: copies of the files of boxes, from which "up --from" starts others. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text/text.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "host/box/snapshot.h"
#include "host/docker/snapshots.h"
#include "host/handle.h"
#include "host/records/record.h"
#include "proto/json.h"

#define HOST(c)                                                                                    \
	(&(struct hr_backend_host){.state_dir = (c)->state_dir, .log = cli_note, .arg = (c)})
#define LIST_MAX (16u << 20)

int
cli_tag(const char *tag)
{
	if (hr_sid_valid(tag))
		return CLI_OK;
	return cli_usage("invalid name of a snapshot, \"%.200s\": " HR_SID_RULE, tag);
}

/* Checks the name of an image, which has less room than that of a copy of a box. */
static int
image_tag(const char *tag)
{
	size_t n = strlen(tag);

	if (n <= HR_DOCKER_TAG_MAX)
		return CLI_OK;
	return cli_usage("invalid name of a snapshot: that of a container can have at most %d "
			 "characters, and \"%.200s\" has %zu",
	    HR_DOCKER_TAG_MAX, tag, n);
}

static int
snapshot(struct cli *c, struct hr_sandbox *s, const struct cli_args *a)
{
	HR_FREE char *json = NULL;
	HR_PUT struct json_object *o = NULL;
	struct hr_err err = {0};

	if (a->argc > 0 && (cli_tag(a->argv[0]) != CLI_OK || (strcmp(s->ops->name, "docker") == 0 &&
								 image_tag(a->argv[0]) != CLI_OK)))
		return CLI_USAGE;
	/* the size of many files takes longer than their snapshot */
	if (hr_box_snapshot_within(s, a->argc > 0 ? a->argv[0] : NULL,
		&(struct hr_box_bounds){.counted = c->json}, &json, &err) < 0)
		return cli_fail(&err);
	if (c->json)
		return cli_out_line(json);
	if (hr_json_decode(json, strlen(json), &o, NULL) < 0)
		return cli_error("the record of the snapshot is not JSON");
	if (!hr_json_true_at(o, "still"))
		cli_note(c, "nothing could freeze the box: files that its commands changed "
			    "meanwhile may be half old and half new");
	return cli_out_line(hr_json_text_or(o, "tag", "-"));
}

int
cli_start_from(struct cli *c, const char *tag)
{
	HR_FREE char *image = NULL;
	struct hr_err err = {0};

	if (image_tag(tag) != CLI_OK)
		return CLI_USAGE;
	return hr_docker_snapshot_image(c->env, tag, &image, &err) == 0 &&
		       hr_config_set(c->config, "sandbox.runtime_container_image", image, &err) == 0
		   ? CLI_OK
		   : cli_fail(&err);
}

const struct cli_command cli_snapshot = {"snapshot", NULL, "NAME [TAG]",
    "Copy the files of a box or a container, for \"up --from TAG\"; prints TAG.", NULL, 0, 1,
    CLI_FIRST, NULL, snapshot};

static void
put_line(struct hr_buf *b, struct json_object *o)
{
	char when[HR_WALL_TEXT], files[32] = "-", disk[32] = "-";

	hr_wall_text_s(hr_json_int_at(o, "created"), when);
	/* the files of an image are not counted */
	if (hr_json_at(o, "files") != NULL)
		(void)snprintf(files, sizeof(files), "%lld", (long long)hr_json_int_at(o, "files"));
	if (hr_json_at(o, "bytes") != NULL)
		(void)snprintf(
		    disk, sizeof(disk), "%.1fM", (double)hr_json_int_at(o, "bytes") / 1048576);
	hr_buf_addf(b, "%-20s %-20s %-7s %-20s %8s %8s\n", hr_json_text_or(o, "tag", "-"),
	    hr_json_text_or(o, "sandbox", "-"), hr_json_text_or(o, "backend", "box"), when, files,
	    disk);
}

static int
list(struct cli *c, const struct cli_args *a)
{
	HR_FREE char *json = NULL;
	HR_FREE char *whole = NULL;
	HR_PUT struct json_object *all = NULL;
	struct hr_err err = {0};
	HR_BUF(b, LIST_MAX);
	size_t i;

	(void)a;
	if (hr_box_snapshots(c->state_dir, "", !c->quiet, &json, &err) < 0)
		return cli_fail(&err);
	if (hr_json_decode(json, strlen(json), &all, NULL) < 0)
		return cli_error("the list of snapshots is not JSON");
	/* a machine with boxes alone has no Engine */
	if (hr_docker_snapshots(c->env, all, &err) < 0 && err.code != HR_E_UNAVAILABLE)
		cli_note(c, err.msg);
	if (c->json)
		return (whole = hr_json_string(all, LIST_MAX, &err)) != NULL ? cli_out_line(whole)
									     : cli_fail(&err);
	if (!c->quiet)
		hr_buf_addf(&b, "%-20s %-20s %-7s %-20s %8s %8s\n", "TAG", "SANDBOX", "BACKEND",
		    "CREATED", "FILES", "DISK");
	for (i = 0; i < hr_json_count(all); i++) {
		struct json_object *o = hr_json_entry(all, i);
		HR_FREE char *text = NULL;

		if (c->quiet)
			hr_buf_addf(&b, "%s\n", hr_json_text_or(o, "tag", "-"));
		else
			put_line(&b, o);
		if (hr_json_text_at(o, "uncounted") != NULL &&
		    hr_text_setf(&text, NULL, "the files of \"%s\" are not counted: %s",
			hr_json_text_or(o, "tag", "-"), hr_json_text_at(o, "uncounted")) == 0)
			cli_note(c, text);
	}
	return cli_out_buf(&b);
}

const struct cli_command cli_snapshot_ls = {"snapshot ls", NULL, NULL,
    "List the snapshots, with their disk use.", NULL, 0, 0, CLI_PLAIN, list, NULL};

/* Removes the snapshot of a box, or that of a container if there is none. */
static int
remove_one(struct cli *c, const char *tag, struct hr_err *err)
{
	struct hr_err why = {0};

	if (hr_box_snapshot_remove(HOST(c), tag, err) == 0)
		return 0;
	if (err->code != HR_E_NOTFOUND || hr_docker_snapshot_remove(c->env, tag, &why) == 0)
		return err->code == HR_E_NOTFOUND ? 0 : -1;
	/* the first reason is the right one if there is no Engine */
	return why.code == HR_E_UNAVAILABLE ? -1 : hr_err_pass(err, &why);
}

static int
remove_them(struct cli *c, const struct cli_args *a)
{
	struct hr_err err = {0};
	int r = CLI_OK, i;

	for (i = 0; i < a->argc && r == CLI_OK; i++)
		r = cli_tag(a->argv[i]);
	for (i = 0; i < a->argc && r == CLI_OK; i++)
		r = remove_one(c, a->argv[i], &err) == 0 ? cli_done(c, "tag", a->argv[i], NULL)
							 : cli_fail(&err);
	return r;
}

const struct cli_command cli_snapshot_rm = {"snapshot rm", NULL, "TAG...",
    "Remove snapshots; sandboxes that were started from them stay.", NULL, 1, -1, CLI_PLAIN,
    remove_them, NULL};

static int
export_to(struct cli *c, const char *tag, const char *file, struct hr_err *err)
{
	HR_FREE char *tmp = NULL;
	int fd;

	if (faccessat(AT_FDCWD, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return hr_err_sys(err, EEXIST, "create %s", file);
	fd = hr_path_new(file, 0600, &tmp, err);
	if (fd < 0)
		return -1;
	return hr_path_put(
	    fd, tmp, file, false, hr_box_snapshot_export(HOST(c), tag, fd, err), err);
}

static int export(struct cli *c, const struct cli_args *a)
{
	const char *tag = a->argv[0], *file = a->argv[1];
	struct hr_err err = {0};

	if (cli_tag(tag) != CLI_OK)
		return CLI_USAGE;
	if (strcmp(file, "-") == 0)
		return hr_box_snapshot_export(HOST(c), tag, STDOUT_FILENO, &err) == 0
			   ? CLI_OK
			   : cli_fail(&err);
	return export_to(c, tag, file, &err) == 0 ? cli_done(c, "tag", tag, "file", file, NULL)
						  : cli_fail(&err);
}

const struct cli_command cli_snapshot_export = {"snapshot export", NULL, "TAG FILE|-",
    "Write a snapshot to a new file, as an image whose layer has the box's changes.", NULL, 2, 2,
    CLI_PLAIN, export, NULL};

static int
import(struct cli *c, const struct cli_args *a)
{
	const bool from_stdin = strcmp(a->argv[0], "-") == 0;
	HR_CLOSE int fd = from_stdin ? -1 : open(a->argv[0], O_RDONLY | O_CLOEXEC);
	HR_FREE char *json = NULL;
	struct hr_err err = {0};

	if (cli_tag(a->argv[1]) != CLI_OK)
		return CLI_USAGE;
	if (!from_stdin && fd < 0) {
		(void)hr_err_sys(&err, errno, "open %s", a->argv[0]);
		return cli_fail(&err);
	}
	if (hr_box_snapshot_import(
		HOST(c), a->argv[1], from_stdin ? STDIN_FILENO : fd, &json, &err) < 0)
		return cli_fail(&err);
	return cli_out_line(c->json ? json : a->argv[1]);
}

const struct cli_command cli_snapshot_import = {"snapshot import", NULL, "FILE|- TAG",
    "Make a snapshot of such a file; prints TAG.", NULL, 2, 2, CLI_PLAIN, import, NULL};
