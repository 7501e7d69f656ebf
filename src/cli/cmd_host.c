/* Implements image and doctor: this machine's support for sandboxes. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "base/text/quote.h"
#include "base/span.h"
#include "cli/commands.h"
#include "host/common/exam.h"
#include "proto/json.h"

/* ---- image ---- */

static int
show_images(const char *json)
{
	struct json_object *o;
	HR_PUT struct json_object *list = NULL;
	char when[32];
	HR_BUF(b, 64u << 20);
	struct tm tm;
	time_t t;
	size_t i;

	if (hr_json_decode(json, strlen(json), &list, NULL) < 0)
		return cli_error("the list of images from the back-end is invalid");
	hr_buf_addf(&b, "%8s  %-16s  %-8s  %s\n", "SIZE", "CREATED", "VERSION", "NAME");
	for (i = 0; i < hr_json_count(list); i++) {
		const char *name, *version;

		o = hr_json_entry(list, i);
		name = *hr_json_text_or(o, "name", "") != '\0' ? hr_json_text_or(o, "name", "")
							       : hr_json_text_or(o, "id", "");
		t = (time_t)hr_json_int_at(o, "created");
		when[0] = '\0'; /* the year is out of range */
		if (localtime_r(&t, &tm) != NULL)
			(void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &tm);
		version = hr_json_text_or(o, "version", "");
		hr_buf_addf(
		    &b, "%5lld MB  %-16s  ", (long long)hr_json_int_at(o, "bytes") / 1000000, when);
		hr_quote_text(&b, version, strlen(version));
		hr_buf_addf(&b, "%*s  ", strlen(version) < 8 ? (int)(8 - strlen(version)) : 0, "");
		hr_quote_text(&b, name, strlen(name));
		hr_buf_addc(&b, '\n');
	}
	return cli_out_buf(&b);
}

static int
image_ls(struct cli *c, const struct cli_args *a)
{
	struct hr_err err = {0};
	HR_FREE char *json = NULL;

	(void)a;
	if (hr_image_list(c->env, &json, &err) < 0)
		return cli_fail(&err);
	return c->json ? cli_out_line(json) : show_images(json);
}

const struct cli_command cli_image_ls = {
    .name = "image ls", .help = "List the runtime images.", .run = image_ls, .alias = "images"};

static int
image_rm(struct cli *c, const struct cli_args *a)
{
	struct hr_err err = {0};
	int i, r = CLI_OK;

	for (i = 0; r == CLI_OK && i < a->argc; i++)
		r = hr_image_remove(c->env, a->argv[i], &err) == 0
			? cli_done(c, "removed", a->argv[i], NULL)
			: cli_fail(&err);
	return r;
}

const struct cli_command cli_image_rm = {
    "image rm", "rmi", "NAME...", "Remove runtime images.", NULL, 1, -1, CLI_PLAIN, image_rm, NULL};

/* ---- doctor ---- */

struct findings {
	bool json;
	struct hr_buf b;
};

static void
on_finding(void *arg, bool ok, const char *what, const char *text)
{
	struct findings *f = arg;

	if (f->json) {
		hr_buf_addf(&f->b, "%s{\"ok\":%s", f->b.len > 1 ? "," : "", ok ? "true" : "false");
		hr_json_put_named(&f->b, "what", what);
		hr_json_put_named(&f->b, "text", text);
		hr_buf_addc(&f->b, '}');
	} else {
		hr_exam_line(&f->b, ok, what, text);
	}
}

static struct findings
begin_findings(const struct cli *c)
{
	struct findings f = {.json = c->json};

	hr_buf_init(&f.b, 1 << 20);
	if (f.json)
		hr_buf_addc(&f.b, '[');
	return f;
}

/* Prints the findings; r is the status of the search, err its error. */
static int
show_findings(struct findings *f, int r, bool well, const struct hr_err *err)
{
	if (f->json)
		hr_buf_adds(&f->b, "]\n");
	r = r == 0 ? cli_out_buf(&f->b) : cli_fail(err);
	hr_buf_done(&f->b);
	return r == CLI_OK && !well ? CLI_ERROR : r;
}

static int
doctor(struct cli *c, const struct cli_args *a)
{
	struct findings f;
	struct hr_err err = {0};
	bool well = false;
	int r;

	if (a->argc > 0 && hr_config_set(c->config, "core.runtime", a->argv[0], &err) < 0)
		return cli_fail(&err);
	r = cli_choose_kind(c, NULL);
	if (r == CLI_OK)
		r = cli_kind_exists(c);
	if (r != CLI_OK)
		return r;
	f = begin_findings(c);
	r = hr_doctor(c->config, c->env, c->state_dir, on_finding, &f, &well, &err);
	return show_findings(&f, r, well, &err);
}

const struct cli_command cli_doctor = {"doctor", NULL, "[BACKEND]",
    "Check whether this machine has what a back-end needs.", NULL, 0, 1, CLI_PLAIN, doctor, NULL};

static const struct cli_option preflight_options[] = {
    {1, "payload", "DIR", "handrail's programs for an image without them [sandbox.payload]"},
    {0, NULL, NULL, NULL},
};

static int
preflight(struct cli *c, const struct cli_args *a)
{
	struct findings f;
	const char *payload = cli_value(a, 1);
	struct hr_err err = {0};
	bool well = false;
	int r;

	if (payload != NULL && hr_config_set(c->config, "sandbox.payload", payload, &err) != 0)
		return cli_fail(&err);
	f = begin_findings(c);
	r = hr_image_preflight(c->config, c->env, a->argv[0], on_finding, &f, &well, &err);
	return show_findings(&f, r, well, &err);
}

const struct cli_command cli_preflight = {"image preflight", NULL, "IMAGE",
    "Check whether an image has what a sandbox needs.", preflight_options, 1, 1, CLI_PLAIN,
    preflight, NULL};

struct look {
	struct cli *c;
	struct findings f;
	/* reason why no sandbox can be started; empty: one can be, as far as is known */
	char why[1024];
};

/* Keeps the first reason for which no sandbox could be started. */
static void
on_need(void *arg, bool ok, const char *what, const char *text)
{
	static const char *const needs[] = {
	    "engine", "credentials", "service", "handraild", "bash", "nginx", NULL};
	struct look *l = arg;

	if (!ok && *l->why == '\0' && hr_is_one_of(what, needs))
		(void)snprintf(l->why, sizeof(l->why), "%s", text);
}

/* Examines a back-end: a built-in one may still lack its Engine or cluster. */
static void
on_backend(void *arg, bool ok, const char *what, const char *text)
{
	struct look *l = arg;
	struct hr_err err = {0};
	bool well;

	*l->why = '\0';
	if (ok && (hr_config_set(l->c->config, "core.runtime", what, &err) != 0 ||
		      hr_doctor(l->c->config, l->c->env, NULL, on_need, l, &well, &err) != 0))
		(void)snprintf(l->why, sizeof(l->why), "%s", err.msg);
	on_finding(&l->f, ok && *l->why == '\0', what, *l->why != '\0' ? l->why : text);
}

static int
backends(struct cli *c, const struct cli_args *a)
{
	struct look l = {.c = c, .f = begin_findings(c)};
	struct hr_err err = {0};
	int r = hr_backend_list(c->env, on_backend, &l, &err);

	(void)a;
	return show_findings(&l.f, r, true, &err);
}

const struct cli_command cli_backends = {"backends", NULL, NULL,
    "List the back-ends, and why one cannot be used here.", NULL, 0, 0, CLI_PLAIN, backends, NULL};
