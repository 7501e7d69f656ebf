/* The server in a sandbox of a provider: what of it has to be carried there first, its start, and
 * the way to it. Without one there is the directory of the workspace alone. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/path.h"
#include "host/cloud/actions_int.h"
#include "host/command.h"
#include "host/common/payload.h"
#include "host/transfer/tarfile.h"
#include "shell/quote.h"

#define ALIVE_S 120
#define ALIVE_EVERY_MS 1000
#define KEY_FILE "/tmp/.handrail-start-" /* and what nobody guesses */
#define ARCHIVE "/tmp/.handrail-payload-"
#define PAYLOAD_DIR "/openhands" /* its programs know no other place */
#define SAID_MAX 300

/* ---- the payload ---- */

int
hr_cloud_payload_look(struct hr_cloud *c, struct hr_err *err)
{
	struct stat st;

	if (c->payload == NULL)
		return 0;
	if (stat(c->payload, &st) != 0)
		return hr_err_set(
		    err, HR_E_INVAL, "sandbox.payload: %.200s: %s", c->payload, strerror(errno));
	if (S_ISDIR(st.st_mode) ? hr_payload_is(c->payload)
				: S_ISREG(st.st_mode) && st.st_size <= HR_CLOUD_FILE_MAX)
		return 0;
	return hr_err_set(err, HR_E_INVAL,
	    "sandbox.payload: %.200s is neither a directory that \"packaging/payload DIR\" made, "
	    "in "
	    "a source tree of handrail, nor an archive of one (\"tar -C DIR -czf FILE .\"), of at "
	    "most %u MiB",
	    c->payload, HR_CLOUD_FILE_MAX >> 20);
}

/* As one file. */
static int
packed(struct hr_cloud *c, struct hr_buf *archive, struct hr_err *err)
{
	struct hr_err e = {0};
	int fd = -1, r;

	if (!hr_payload_is(c->payload)) {
		r = hr_path_read(c->payload, archive, &e);
	} else if ((fd = hr_tarfile_make(c->payload, true, true, &e)) < 0) {
		r = -1;
	} else {
		r = hr_path_read_fd(fd, c->payload, archive, &e);
		(void)close(fd);
	}
	return r == 0 ? 0 : hr_err_from(err, HR_E_SYS, &e);
}

/* One file and one command. Others in the sandbox may not write what is to run. */
static int
carry(struct hr_cloud *c, struct hr_err *err)
{
	HR_BUF(archive, HR_CLOUD_FILE_MAX);
	HR_BUF(line, 4096);
	HR_BUF(said, 1);
	char file[100];
	int status = -1;

	(void)snprintf(file, sizeof(file), ARCHIVE "%s", c->run);
	if (c->h->log != NULL)
		c->h->log(c->h->arg, "The payload is copied into the sandbox.");
	if (packed(c, &archive, err) != 0 ||
	    c->ops->put(c, file, hr_buf_str(&archive), archive.len, err) != 0)
		return -1;
	hr_buf_addf(&line,
	    "exec 2>&1; s=; [ \"$(id -u)\" = 0 ] || s='sudo -n'; $s mkdir -p " PAYLOAD_DIR
	    " && $s tar -xof %s -C " PAYLOAD_DIR " && rm -f %s",
	    file, file);
	if (hr_cloud_helper(c, hr_buf_str(&line), &said, &status, err) != 0)
		return -1;
	if (status != 0)
		return hr_err_set(err, HR_E_RUNTIME,
		    "%s: the payload cannot be unpacked to " PAYLOAD_DIR
		    " in the sandbox (status %d): %.*s",
		    c->ops->title, status, SAID_MAX, hr_buf_str(&said));
	return 0;
}

/* ---- the server ---- */

/* The words that start it. */
static int
server_line(struct hr_cloud *c, struct hr_buf *b, struct hr_err *err)
{
	const char *const prefix[] = {
	    c->payload != NULL ? PAYLOAD_DIR "/libexec/handrail/start" : "handraild", NULL};
	const struct hr_command q = {.prefix = prefix,
	    .port = HR_CLOUD_PORT,
	    .working_dir = hr_cloud_workspace(c),
	    .plugins = c->h->plugins,
	    .user_id = -1};
	HR_CLEAN(hr_strv_done) struct hr_strv words = {0};
	size_t i;

	if (hr_command_build(&words, &q, c->h->config, c->h->environ, err) != 0)
		return -1;
	/* not on a command line, which others in it can read */
	hr_buf_addf(b,
	    "f=" KEY_FILE "%s; SESSION_API_KEY=$(cat \"$f\"); rm -f \"$f\"; "
	    "export SESSION_API_KEY; exec",
	    c->run);
	for (i = 0; i < words.n; i++) {
		hr_buf_addc(b, ' ');
		hr_shell_quote(b, words.v[i], strlen(words.v[i]));
	}
	return hr_buf_check(b, NULL) == 0 ? 0 : hr_err_nomem(err);
}

static int
launch(struct hr_cloud *c, struct hr_err *err)
{
	char file[100];
	HR_BUF(b, 1 << 20);

	(void)snprintf(file, sizeof(file), KEY_FILE "%s", c->run);
	if (server_line(c, &b, err) != 0 || c->ops->put(c, file, c->key, strlen(c->key), err) != 0)
		return -1;
	return c->ops->launch(c, hr_buf_str(&b), err);
}

const char *const *
hr_cloud_url_headers(struct hr_cloud *c)
{
	char *line, *at = NULL;
	size_t n = 0;

	free(c->url_lines);
	c->url_lines = c->url_header != NULL ? strdup(c->url_header) : NULL;
	if (c->url_lines == NULL)
		return NULL;
	for (line = strtok_r(c->url_lines, "\n", &at); line != NULL && n < HR_ENDPOINT_HEADERS;
	     line = strtok_r(NULL, "\n", &at))
		c->headers[n++] = line;
	c->headers[n] = NULL;
	return c->headers;
}

/* Does it answer, within so many seconds? 0: it is asked once. */
static int
wait_alive(struct hr_cloud *c, int seconds, struct hr_err *err)
{
	static const struct hr_api_rule once = {.attempts = 1};
	const struct hr_api_call q = {
	    .method = "GET", .path = "/alive", .headers = hr_cloud_url_headers(c), .timeout_s = 10};
	int64_t end = hr_now_ms() + seconds * 1000;
	struct hr_api_answer a;
	HR_CLEAN(hr_api_done) struct hr_api api = {0};
	int r;

	if (hr_api_init(&api, "the server", &once, c->url, err) < 0)
		return -1;
	while ((r = hr_api_do(&api, &q, &a, err)) != 0 && hr_now_ms() < end) {
		hr_api_answer_done(&a);
		(void)hr_rest_wait(-1, ALIVE_EVERY_MS);
	}
	hr_api_answer_done(&a);
	return r;
}

int
hr_cloud_serve(struct hr_cloud *c, struct hr_err *err)
{
	int r = 0;

	if (c->ops->launch != NULL) {
		r = hr_cloud_make_workspace(c, err);
		if (r == 0 && c->payload != NULL)
			r = carry(c, err);
		if (r == 0)
			r = launch(c, err);
	}
	if (r == 0)
		r = c->ops->publish(c, HR_CLOUD_PORT, err);
	return r == 0 ? wait_alive(c, ALIVE_S, err) : -1;
}

int
hr_cloud_serve_again(struct hr_cloud *c, struct hr_err *err)
{
	struct hr_err none = {0};
	int r = c->ops->publish(c, HR_CLOUD_PORT, err);

	if (r != 0 || wait_alive(c, 0, &none) == 0)
		return r;
	if (c->ops->launch != NULL)
		r = launch(c, err);
	return r == 0 ? wait_alive(c, ALIVE_S, err) : -1;
}

/* ---- the workspace ---- */

int
hr_cloud_make_workspace(struct hr_cloud *c, struct hr_err *err)
{
	int status = -1;
	int r = hr_cloud_helper_on(c, "d=", hr_cloud_workspace(c),
	    "; mkdir -p \"$d\" 2>/dev/null && [ -w \"$d\" ] || "
	    "{ sudo -n mkdir -p \"$d\" && sudo -n chmod 777 \"$d\"; }",
	    NULL, &status, err);

	if (r == 0 && status != 0)
		r = hr_err_set(err, HR_E_RUNTIME,
		    "%s: the directory %s cannot be made in the sandbox (status %d)", c->ops->title,
		    hr_cloud_workspace(c), status);
	return r;
}
