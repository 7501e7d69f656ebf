/* Runs the server in a provider's sandbox: upload of the payload, start and address. Without a
 * server only the workspace directory is created. */
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
#define ALIVE_FIRST_MS 100
#define ALIVE_EVERY_MS 1000
/* prefix of the key's file; a random suffix follows */
#define KEY_FILE "/tmp/.handrail-start-"
#define ARCHIVE "/tmp/.handrail-payload-"
#define PAYLOAD_DIR "/openhands" /* fixed path of the payload's programs */
/* prefix of the file with the start's output until the server is ready */
#define SAID_FILE "/tmp/.handrail-said-"
#define VIEWER_URL "/tmp/oh-server-url" /* the same path as in runtime-image/start.sh.in */
#define MARK "handrail-start-ended:"
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

/* Packs the payload into one archive. */
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

/* Uploads an archive and unpacks it with one command. Other users in the sandbox must not be able
 * to write the programs. */
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
	    "exec 2>&1; trap 'rm -f %s' EXIT; s=; [ \"$(id -u)\" = 0 ] || s='sudo -n'; "
	    "$s mkdir -p " PAYLOAD_DIR " && $s tar -xof %s -C " PAYLOAD_DIR,
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

/* Starts "$@" and forwards SIGTERM to it. Until the server is ready, each output line also goes to
 * the file $s, which ends with MARK and the status if the server has ended: the provider no longer
 * has the output of the background command then. */
static const char supervise[] =
    "s=" SAID_FILE "%s; rm -f \"$s\"\n"
    "exec 3> >(umask 022; n=0; while IFS= read -r l; do printf '%%s\\n' \"$l\"\n"
    "case $l in *'ready: listening'*) rm -f \"$s\"; exec cat;; " MARK "*) n=0;; esac\n"
    "[ $((n += 1)) -gt 200 ] || printf '%%s\\n' \"$l\" >>\"$s\"; done)\n"
    "[ \"$1\" != handraild ] || w=$(PATH=$PATH:" PAYLOAD_DIR "/sbin:/usr/local/sbin:/usr/sbin; "
    "type -P handraild) && set -- \"${w:-$1}\" \"${@:2}\"\n"
    "\"$@\" >&3 2>&1 3>&- & p=$!\n"
    "trap 'kill $p' TERM INT HUP\n"
    "while wait $p; r=$?; [ $r -gt 128 ] && kill -0 $p 2>/dev/null; do :; done\n"
    "printf '\\n" MARK " %%s\\n' $r >&3\n";

/* Makes the command that starts the server. The session key is in a file, because others in the
 * sandbox can read a command line. */
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
	HR_BUF(script, 4096);
	size_t i;

	if (hr_command_build(&words, &q, c->h->config, c->h->environ, err) != 0)
		return -1;
	hr_buf_addf(&script,
	    "f=" KEY_FILE "%s; SESSION_API_KEY=$(cat \"$f\"); rm -f \"$f\"; "
	    "HANDRAIL_VIEWER_URL_FILE=${HANDRAIL_VIEWER_URL_FILE-" VIEWER_URL "}; "
	    "export SESSION_API_KEY HANDRAIL_VIEWER_URL_FILE\n",
	    c->run);
	hr_buf_addf(&script, supervise, c->run);
	hr_buf_adds(b, "exec bash -c ");
	hr_shell_quote(b, hr_buf_str(&script), script.len);
	hr_buf_adds(b, " bash");
	for (i = 0; i < words.n; i++) {
		hr_buf_addc(b, ' ');
		hr_shell_quote(b, words.v[i], strlen(words.v[i]));
	}
	return hr_buf_check(&script, NULL) == 0 && hr_buf_check(b, NULL) == 0 ? 0
									      : hr_err_nomem(err);
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

/* Appends the end of the start's output to `said` as one line and sets *ret_status; -1: the start
 * still runs. */
static int
ask_start(struct hr_cloud *c, struct hr_buf *said, int *ret_status, struct hr_err *err)
{
	char line[400];
	const char *p, *mark = NULL;
	HR_BUF(all, 1);
	size_t n, i;
	int status;

	*ret_status = -1;
	/* the end may be written right now: removes the file only after it was seen */
	(void)snprintf(line, sizeof(line),
	    "exec 2>/dev/null; s=" SAID_FILE "%s; t=$(cat $s) && printf '%%s\\n' \"$t\" && "
	    "case $t in *" MARK "*) rm -f $s;; esac",
	    c->run);
	if (hr_cloud_helper(c, line, &all, &status, err) != 0)
		return -1;
	for (p = hr_buf_str(&all); (p = strstr(p, "\n" MARK)) != NULL; p++)
		mark = p;
	if (mark != NULL)
		*ret_status = (int)strtol(mark + strlen("\n" MARK), NULL, 10);
	n = mark != NULL ? (size_t)(mark - all.p) : all.len;
	while (n > 0 && all.p[n - 1] == '\n')
		n--;
	i = n > SAID_MAX ? n - SAID_MAX : 0;
	while (i > 0 && i < n && ((unsigned char)all.p[i] & 0xC0) == 0x80)
		i++;
	for (; i < n; i++)
		hr_buf_addc(said, (unsigned char)all.p[i] < ' ' ? ' ' : all.p[i]);
	return 0;
}

/* Returns -1 with *err set if the start has ended, or 0 if it runs or its state is unknown. */
static int
start_ended(struct hr_cloud *c, struct hr_err *err)
{
	HR_BUF(said, 4096);
	int status;

	if (ask_start(c, &said, &status, NULL) != 0 || status < 0)
		return 0;
	return hr_err_set(err, HR_E_RUNTIME,
	    "%s: the server's start in the sandbox ended with status %d: %s%s", c->ops->title,
	    status, said.len > 0 ? hr_buf_str(&said) : "it printed nothing",
	    status == 127 && c->payload == NULL
		? ": handraild is neither on PATH nor in " PAYLOAD_DIR
		  "/sbin: name an image that \"handrail image build\" made, or set sandbox.payload"
		: "");
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

static int
ask_alive(struct hr_cloud *c, struct hr_err *err)
{
	static const struct hr_api_rule once = {0};
	const struct hr_api_call q = {
	    .method = "GET", .path = "/alive", .headers = hr_cloud_url_headers(c), .timeout_s = 10};
	HR_CLEAN(hr_api_answer_done) struct hr_api_answer a = {0};
	HR_CLEAN(hr_api_done) struct hr_api api = {0};

	return hr_api_init(&api, "the server", &once, c->url, err) < 0
		   ? -1
		   : hr_api_do(&api, &q, &a, err);
}

/* Waits up to ALIVE_S for the server's answer, but only while its start runs. */
static int
wait_alive(struct hr_cloud *c, struct hr_err *err)
{
	int64_t end = hr_now_ms() + ALIVE_S * 1000;
	int wait_ms = ALIVE_FIRST_MS, status, r;
	struct hr_err mine;
	HR_BUF(said, 4096);

	for (;;) {
		mine = (struct hr_err){0};
		r = ask_alive(c, &mine);
		if (r != 0 && c->ops->launch != NULL && start_ended(c, err) != 0)
			return -1;
		if (r == 0 || hr_now_ms() >= end)
			break;
		(void)hr_rest_wait(-1, wait_ms);
		wait_ms = wait_ms * 2 < ALIVE_EVERY_MS ? wait_ms * 2 : ALIVE_EVERY_MS;
	}
	if (r == 0)
		return 0;
	if (c->ops->launch != NULL && ask_start(c, &said, &status, NULL) == 0 && said.len > 0)
		return hr_err_set(err, mine.code, "%.300s; the server's start printed: %s",
		    mine.msg, hr_buf_str(&said));
	return hr_err_pass(err, &mine);
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
	return r == 0 ? wait_alive(c, err) : -1;
}

int
hr_cloud_serve_again(struct hr_cloud *c, struct hr_err *err)
{
	struct hr_err none = {0};
	int r = c->ops->publish(c, HR_CLOUD_PORT, err);

	if (r != 0 || ask_alive(c, &none) == 0)
		return r;
	if (c->ops->launch != NULL)
		r = launch(c, err);
	return r == 0 ? wait_alive(c, err) : -1;
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
		    "%s: the sandbox's account cannot make the directory %s (status %d): set "
		    "core.workspace_mount_path_in_sandbox to one that it can make",
		    c->ops->title, hr_cloud_workspace(c), status);
	return r;
}
