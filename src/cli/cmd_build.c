/* Implements build: runtime images. */
#include "config.h"

#include <string.h>

#include "base/text/quote.h"
#include "base/buf.h"
#include "base/fd.h"
#include "cli/commands.h"
#include "cli/progress.h"

static const struct cli_option build_options[] = {
    {'b', "base", "IMAGE", "base image [sandbox.base_container_image]"},
    {'f', "force", NULL, "build from the base, without existing images"},
    {1, "retag", NULL, "with --force: move existing names to the new image"},
    {'d', "dry-run", NULL, "print the image's name and build nothing"},
    {'o', "folder", "DIR", "keep the build folder in DIR"},
    {2, "no-pull", NULL, "do not ask a registry for images"},
    {3, "allow-registry-port", NULL, "accept a base such as host:5000/name:tag"},
    {4, "for", "CLIENT", "openhands-v1: an image with V1's agent server and its start command"},
    {0, NULL, NULL, NULL},
};

static void
on_progress(void *arg, const char *text)
{
	struct cli *c = arg;
	HR_BUF(b, 1 << 20);
	size_t n = strlen(text);

	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	if (c->quiet || n == 0 || cli_progress_line(c, text, n))
		return;
	hr_quote_text(&b, text, n);
	hr_buf_addc(&b, '\n');
	(void)hr_fd_write_full(2, hr_buf_str(&b), b.len, NULL);
}

static int
build(struct cli *c, const struct cli_args *a)
{
	const char *client = cli_value(a, 4);
	struct hr_build_options o = {
	    .base = cli_value(a, 'b'),
	    .folder = cli_value(a, 'o'),
	    .environ = c->env,
	    .force = cli_value(a, 'f') != NULL,
	    .retag = cli_value(a, 1) != NULL,
	    .dry_run = cli_value(a, 'd') != NULL,
	    .pull = cli_value(a, 2) == NULL,
	    .registry_port = cli_value(a, 3) != NULL,
	    .openhands_v1 = client != NULL,
	    .progress = on_progress,
	    .arg = c,
	};
	struct hr_err err = {0};
	HR_FREE char *name = NULL;
	HR_BUF(b, 1 << 16);
	int r;

	if (client != NULL && strcmp(client, "openhands-v1") != 0)
		return cli_usage("--for: \"%.64s\" is not known, only openhands-v1", client);
	r = hr_build_image(c->config, &o, &name, &err);
	cli_progress_end(c);
	if (r != 0)
		return cli_fail(&err);
	hr_buf_addf(&b, c->json ? "{\"image\":\"%s\"}\n" : "%s\n", name);
	return cli_out_buf(&b);
}

const struct cli_command cli_build = {"image build", NULL, NULL,
    "Build a runtime image, or find it; prints its name.", build_options, 0, 0, CLI_PLAIN, build,
    NULL};
