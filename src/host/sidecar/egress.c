/* Applies the rules of a box's network: writes the files for handrail-egress(8), starts it, and
 * talks to it. All files are in the directory "egress" beside the box's other ones; a program in
 * the box sees only the certificates, the resolver's file and the list of its refusals. */
#include "config.h"

#include "host/sidecar/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "egress/edge.h"
#include "egress/told.h"
#include "host/common/module.h"
#include "host/config/rules.h"
#include "host/config/settings.h"
#include "host/records/secret.h"
#include "proto/json.h"

#define PROGRAM "handrail-egress"
#define BELOW "egress"
#define RECORD BELOW "/record"
#define POLICY BELOW "/policy.json"
#define SECRETS BELOW "/secrets.json"
#define PLACEHOLDERS BELOW "/placeholders.json"
#define NAMES BELOW "/names"
#define NGINX BELOW "/nginx.conf" /* the broker writes it, with the values of secrets */
#define CONTROL BELOW "/control"
#define RESOLVER BELOW "/resolv.conf"
/* places in the sandbox: the machine's certificate authorities with the sandbox's own, and that
 * alone */
#define BUNDLE "/etc/ssl/certs/ca-certificates.crt"
#define AUTHORITY "/etc/ssl/handrail-ca.crt"
#define FILE_MAX (32u << 20) /* maximum bytes of a file: secrets have 64 KB each */
#define LINE_MAX_BYTES (1u << 16)
#define PATIENCE_MS 30000 /* limit of an answer of the broker */

/* ---- files ---- */

static char *
path_of(const struct hr_sidecars *b, const char *name, struct hr_err *err)
{
	char *path = b->dir != NULL ? hr_sidecar_path(b, name) : NULL;

	return path != NULL ? path : hr_err_null(err);
}

/* Reads a file. Returns 1, 0 if there is none, or -1 with *err set. */
static int
get(const struct hr_sidecars *b, const char *name, struct hr_buf *ret, struct hr_err *err)
{
	HR_FREE char *path = path_of(b, name, err);
	struct hr_err e = {0};

	if (path == NULL)
		return -1;
	if (hr_path_read(path, ret, &e) == 0)
		return 1;
	return e.sys == ENOENT ? 0 : hr_err_pass(err, &e);
}

static int
put(const struct hr_sidecars *b, const char *name, const struct hr_buf *text, mode_t mode,
    struct hr_err *err)
{
	HR_FREE char *path = path_of(b, name, err);

	return path != NULL && hr_buf_check(text, err) == 0
		   ? hr_path_write(path, hr_buf_str(text), text->len, mode, err)
		   : -1;
}

static int
put_json(const struct hr_sidecars *b, const char *name, struct json_object *o, struct hr_err *err)
{
	HR_BUF(text, FILE_MAX);

	hr_json_put_whole(&text, o);
	hr_buf_addc(&text, '\n');
	return put(b, name, &text, 0600, err);
}

/* Returns the directory, absolute, which the caller frees; NULL with *err set. */
static char *
directory_of(const struct hr_sidecars *b, struct hr_err *err)
{
	HR_FREE char *path = path_of(b, BELOW, err);
	char *real = path != NULL ? realpath(path, NULL) : NULL;

	if (path != NULL && real == NULL)
		(void)hr_err_sys(err, errno, "%s", path);
	return real;
}

static bool
has_rules(const struct hr_sidecars *b)
{
	HR_FREE char *path = path_of(b, POLICY, NULL);

	return path != NULL && access(path, F_OK) == 0;
}

/* The rules refer to the values of secrets and to a placeholder for each credential. */
struct needs {
	const struct hr_backend_host *h;
	struct json_object *secrets, *placeholders;
	struct json_object *before; /* the placeholders of an earlier start */
	struct json_object *known;  /* the secrets that the rules have had */
	struct hr_err *err;
};

static int
need_secret(void *arg, const char *name)
{
	struct needs *n = arg;
	const struct hr_backend_host *h = n->h;
	struct hr_err e = {0};
	HR_BUF(value, HR_SECRET_MAX + 1);

	if (hr_secret_get(h->state_dir, h->environ, name, &value, &e) < 0) {
		/* a token of the caller's, or of the one who started the box */
		const char *token = hr_egress_token(h, name);

		token = token != NULL ? token : hr_json_text_at(n->known, name);
		if (e.code != HR_E_NOTFOUND || token == NULL)
			return hr_err_pass(n->err, &e);
		hr_buf_adds(&value, token);
	}
	return hr_json_set(n->secrets, name,
	    json_object_new_string_len(hr_buf_str(&value), (int)value.len), n->err);
}

/* Sets a placeholder, which stays the same for all boxes of a sandbox: files of the agent's may
 * hold it. Returns 0, or -1 with n->err set. */
static int
need_placeholder(void *arg, const struct egress_credential *c)
{
	struct needs *n = arg;
	const char *old = hr_json_text_at(n->before, c->variable);
	char made[EGRESS_PLACEHOLDER_TEXT] = "";

	if (old == NULL && egress_placeholder(made, n->err) < 0)
		return -1;
	return hr_json_set(
	    n->placeholders, c->variable, json_object_new_string(old != NULL ? old : made), n->err);
}

/* Checks the rules, and writes them with what they need, the rules last. */
static int
put_rules(const struct hr_sidecars *b, struct json_object *rules, struct hr_err *err)
{
	HR_CLEAN(hr_rules_clean)
	struct egress_policy *p = hr_rules_read(rules, b->h->environ, err);
	HR_PUT struct json_object *secrets = json_object_new_object();
	HR_PUT struct json_object *placeholders = json_object_new_object();
	HR_PUT struct json_object *before = NULL;
	HR_PUT struct json_object *known = NULL;
	struct needs n = {b->h, secrets, placeholders, NULL, NULL, err};
	HR_BUF(text, FILE_MAX);

	if (p == NULL || get(b, PLACEHOLDERS, &text, err) < 0)
		return -1;
	(void)hr_json_decode(hr_buf_str(&text), text.len, &before, NULL);
	n.before = before;
	hr_buf_reset(&text);
	if (get(b, SECRETS, &text, err) < 0)
		return -1;
	(void)hr_json_decode(hr_buf_str(&text), text.len, &known, NULL);
	n.known = known;
	if (egress_policy_secrets(p, need_secret, &n) < 0 ||
	    egress_policy_password(p, secrets, err) < 0 ||
	    egress_policy_credentials(p, need_placeholder, &n) < 0)
		return -1;
	return put_json(b, SECRETS, secrets, err) < 0 ||
		       put_json(b, PLACEHOLDERS, placeholders, err) < 0
		   ? -1
		   : put_json(b, POLICY, rules, err);
}

/* ---- settings ---- */

/* Returns the rules of the settings; none of them allows nothing. The caller owns the object. */
static struct json_object *
given_rules(const struct hr_config *c)
{
	struct json_object *o = hr_config_value(c, "sandbox.network");

	return o != NULL ? json_object_get(o) : json_object_new_object();
}

static int
check_credential(void *arg, const struct egress_credential *c)
{
	const struct needs *n = arg;
	struct json_object *map = hr_config_value(n->h->config, "sandbox.runtime_startup_env_vars");

	return hr_env_get(n->h->env, c->variable) == NULL && hr_json_at(map, c->variable) == NULL
		   ? 0
		   : hr_err_set(n->err, HR_E_INVAL,
			 "the sandbox is given the variable %s, and the credentials of "
			 "sandbox.network hold it back: leave one out",
			 c->variable);
}

int
hr_egress_check(const struct hr_backend_host *h, const char *net, struct hr_err *err)
{
	HR_PUT struct json_object *rules = given_rules(h->config);
	HR_CLEAN(hr_rules_clean) struct egress_policy *p = NULL;
	struct needs n = {.h = h, .err = err};

	if (strcmp(net, "egress") != 0)
		return hr_config_value(h->config, "sandbox.network") == NULL
			   ? 0
			   : hr_err_set(err, HR_E_INVAL,
				 "sandbox.network has rules, and the network of the sandbox is %s: "
				 "use "
				 "--network egress, or unset sandbox.network",
				 net);
	p = hr_rules_read(rules, h->environ, err);
	return p != NULL ? egress_policy_credentials(p, check_credential, &n) : -1;
}

/* ---- start ---- */

/* Makes the certificates of the sandbox, unless an earlier box of it has made them. */
static int
make_authority(const struct hr_sidecars *b, struct hr_err *err)
{
	HR_FREE char *program = hr_module_path(PROGRAM, err);
	HR_FREE char *dir = directory_of(b, err);
	const char *const argv[] = {program, "--prepare", dir, NULL};
	char said[1024];
	int status;

	if (program == NULL || dir == NULL)
		return -1;
	if (access(program, X_OK) != 0)
		return hr_err_set(err, HR_E_RUNTIME,
		    "a network with rules needs " PROGRAM "(8), and %s cannot be executed",
		    program);
	status = hr_spawn_wait(argv, said, sizeof(said), err);
	if (status < 0)
		return -1;
	return status == 0
		   ? 0
		   : hr_err_set(err, HR_E_RUNTIME, "prepare the network of the sandbox: %.*s",
			 (int)strcspn(said, "\n"), *said != '\0' ? said : hr_exit_words(status));
}

/* Lets all accounts of the box enter the directory of its list of refusals. */
static int
open_told(const char *dir, struct hr_err *err)
{
	return chmod(dir, 0755) == 0 ? 0 : hr_err_sys(err, errno, "change the mode of %s", dir);
}

static void
remove_all(const struct hr_sidecars *b, const char *const names[], size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		HR_FREE char *path = path_of(b, names[i], NULL);

		if (path != NULL)
			(void)hr_path_unlink(path);
	}
}

int
hr_egress_prepare(const struct hr_sidecars *b, bool has, struct hr_err *err)
{
	HR_PUT struct json_object *given = given_rules(b->h->config);
	HR_PUT struct json_object *rules = NULL;
	HR_FREE char *dir = path_of(b, BELOW, err);
	HR_FREE char *told = path_of(b, BELOW "/" EGRESS_TOLD_DIR, err);
	HR_BUF(resolver, 64);

	if (dir == NULL || told == NULL)
		return -1;
	if (!has) /* an earlier box of the sandbox may have had rules */
		return hr_path_remove(dir, err);
	if (given == NULL || json_object_deep_copy(given, &rules, NULL) != 0)
		return hr_err_nomem(err);
	if (hr_egress_add_tokens(b->h, rules, err) < 0)
		return -1;
	/* a box that did not end by "down" has left these; the next one asks for no earlier
	 * address */
	remove_all(b, (const char *const[]){SECRETS, NGINX, NAMES}, 3);
	hr_buf_adds(&resolver, "nameserver 198.18.0.1\n");
	return hr_path_mkdirs_own(told, 0700, NULL, err) < 0 || put_rules(b, rules, err) < 0 ||
		       put(b, RESOLVER, &resolver, 0644, err) < 0 || open_told(told, err) < 0
		   ? -1
		   : make_authority(b, err);
}

int
hr_egress_files(const struct hr_sidecars *b, hr_egress_file_fn *fn, void *arg, struct hr_err *err)
{
	static const char *const files[][2] = {{RESOLVER, "/etc/resolv.conf"},
	    {BELOW "/trust.pem", BUNDLE}, {BELOW "/ca.crt", AUTHORITY},
	    {BELOW "/" EGRESS_TOLD_DIR, "/run/handrail/network"}};
	char place[PATH_MAX];
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		HR_FREE char *path = path_of(b, files[i][0], err);

		if (path == NULL)
			return -1;
		if (realpath(path, place) == NULL)
			return hr_err_sys(err, errno, "%s", path);
		if (fn(arg, place, files[i][1]) < 0)
			return -1;
	}
	return 0;
}

int
hr_egress_env(const struct hr_sidecars *b, struct hr_strv *env, struct hr_err *err)
{
	static const char *const bundle[] = {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE",
	    "GIT_SSL_CAINFO", "CURL_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO"};
	HR_PUT struct json_object *o = NULL;
	HR_BUF(text, FILE_MAX);
	size_t i;

	if (get(b, PLACEHOLDERS, &text, err) < 0)
		return -1;
	hr_strv_set_env(env, "HANDRAIL_NETWORK_LOG=/run/handrail/network/refused");
	for (i = 0; i < sizeof(bundle) / sizeof(*bundle); i++)
		if (hr_env_get(hr_strv_list(env), bundle[i]) == NULL)
			hr_strv_set_envf(env, "%s=%s", bundle[i], BUNDLE);
	if (hr_env_get(hr_strv_list(env), "NODE_EXTRA_CA_CERTS") == NULL)
		hr_strv_set_env(env, "NODE_EXTRA_CA_CERTS=" AUTHORITY);
	if (hr_json_decode(hr_buf_str(&text), text.len, &o, NULL) < 0)
		return hr_err_set(err, HR_E_INVAL, PLACEHOLDERS " is damaged");
	json_object_object_foreach(o, name, value)
	{
		hr_strv_set_envf(env, "%s=%s", name, json_object_get_string(value));
	}
	return 0;
}

int
hr_egress_keep(const struct hr_sidecars *b, struct hr_err *err)
{
	HR_FREE char *dir = NULL;
	const char *argv[] = {PROGRAM, NULL, NULL};

	if (!has_rules(b))
		return 0;
	argv[1] = dir = directory_of(b, err);
	return dir == NULL || hr_sidecar_find(b,
				  &(const struct hr_sidecar){.argv = argv,
				      .record = RECORD,
				      .what = "the broker of the sandbox's network"},
				  err) < 0
		   ? -1
		   : 0;
}

void
hr_egress_stop(const struct hr_sidecars *b)
{
	hr_sidecar_end(b, RECORD);
}

void
hr_egress_end(const struct hr_sidecars *b)
{
	hr_egress_stop(b);
	remove_all(b, (const char *const[]){SECRETS, NGINX}, 2);
}

/* ---- a running box ---- */

/* Connects to the broker by its open file, since the path may be too long for an address. */
static int
talk(const struct hr_sidecars *b, const char *request, struct hr_err *err)
{
	HR_FREE char *path = path_of(b, CONTROL, err);
	HR_CLOSE int at = path != NULL ? open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = -1;

	if (path == NULL)
		return -1;
	(void)snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d", at);
	if (at >= 0)
		fd = hr_fd_connect(&to, PATIENCE_MS / 1000);
	if (fd < 0)
		return hr_err_sys(err, errno, "connect to the broker of the sandbox's network");
	if (hr_fd_send(fd, request, strlen(request), -1, err) < 0)
		hr_fd_close(&fd);
	return fd;
}

/* Passes the lines of an answer to fn, until it ends, fn returns non-zero, or stop_fd is readable.
 * timeout_ms -1: waits for each for ever. */
static int
read_lines(int fd, int stop_fd, int timeout_ms, hr_line_fn *fn, void *arg, struct hr_err *err)
{
	struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = stop_fd, .events = POLLIN}};
	HR_BUF(b, LINE_MAX_BYTES);
	char *room, *end;
	ssize_t n;
	int r;

	for (;;) {
		r = poll(p, 2, timeout_ms);
		if (r < 0 && errno == EINTR)
			continue;
		if (r == 0)
			return hr_err_set(err, HR_E_TIMEOUT,
			    "the broker of the sandbox's network does not answer");
		if (r < 0 || p[1].revents != 0)
			return r < 0 ? hr_err_sys(err, errno, "wait for the broker") : 0;
		room = hr_buf_reserve(&b, 4096);
		n = room != NULL ? hr_fd_read(fd, room, 4096) : -1;
		if (n <= 0)
			return n == 0 ? 0
				      : hr_err_set(err, HR_E_RUNTIME,
					    "the answer of the broker cannot be read");
		hr_buf_grew(&b, (size_t)n);
		while ((end = memchr(b.p, '\n', b.len)) != NULL) {
			*end = '\0';
			if (fn(arg, b.p, (size_t)(end - b.p)) != 0)
				return 0;
			hr_buf_drop_front(&b, (size_t)(end - b.p) + 1);
		}
	}
}

static int
on_answer(void *arg, const char *line, size_t len)
{
	(void)hr_json_decode(line, len, arg, NULL);
	return 1;
}

/* Makes the broker read the files again. */
static int
reload(const struct hr_sidecars *b, struct hr_err *err)
{
	HR_CLOSE int fd = talk(b, "{\"op\":\"reload\"}\n", err);
	HR_PUT struct json_object *o = NULL;
	char text[96];
	long long cut;

	if (fd < 0 || read_lines(fd, b->h->stop_fd, PATIENCE_MS, on_answer, &o, err) < 0)
		return -1;
	cut = (long long)hr_json_int_at(o, "cut");
	if (cut > 0) {
		(void)snprintf(text, sizeof(text),
		    "cut %lld open connection%s that the rules no longer allow", cut,
		    cut > 1 ? "s" : "");
		b->h->log(b->h->arg, text);
	}
	return hr_json_true_at(o, "ok") ? 0
					: hr_err_set(err, HR_E_RUNTIME, "%s",
					      hr_json_text_or(o, "error",
						  "the broker of the sandbox's network has ended"));
}

int
hr_egress_rules(const struct hr_sidecars *b, char **ret_json, struct hr_err *err)
{
	HR_BUF(text, EGRESS_POLICY_MAX);
	int r = b->dir != NULL ? get(b, POLICY, &text, err) : 0;

	*ret_json = NULL;
	if (r <= 0)
		return r;
	*ret_json = hr_buf_end(&text, err);
	return *ret_json != NULL ? 0 : -1;
}

int
hr_egress_set_rules(const struct hr_sidecars *b, const char *json, struct hr_err *err)
{
	static const char *const names[] = {SECRETS, PLACEHOLDERS, POLICY};
	HR_FREE char *dir = path_of(b, BELOW, err);
	HR_CLOSE int lock = dir != NULL ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	HR_PUT struct json_object *rules = NULL;
	HR_BUF(secrets, FILE_MAX);
	HR_BUF(placeholders, FILE_MAX);
	HR_BUF(policy, FILE_MAX);
	struct hr_buf *before[] = {&secrets, &placeholders, &policy};
	struct hr_err e = {0};
	size_t i;

	if (dir == NULL)
		return -1;
	if (lock < 0 || flock(lock, LOCK_EX) != 0)
		return hr_err_sys(err, errno, "lock %s", dir);
	for (i = 0; i < 3; i++)
		if (get(b, names[i], before[i], err) < 0)
			return -1;
	if (json == NULL)
		json = hr_buf_str(&policy);
	rules = hr_rules_decode(json, strlen(json), err);
	if (rules == NULL)
		return -1;
	/* a sandbox with no process has no broker: the next one reads the files */
	if (put_rules(b, rules, err) == 0 && (b->watch < 0 || reload(b, err) == 0))
		return 0;
	/* the broker keeps the earlier rules, and one that starts must find the same */
	for (i = 0; i < 3; i++)
		if (put(b, names[i], before[i], 0600, &e) < 0)
			b->h->log(b->h->arg, e.msg);
	return -1;
}

int
hr_egress_log(
    const struct hr_sidecars *b, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err)
{
	HR_CLOSE int fd = talk(b,
	    follow ? "{\"op\":\"log\",\"from\":0,\"follow\":true}\n"
		   : "{\"op\":\"log\",\"from\":0,\"follow\":false}\n",
	    err);

	return fd >= 0 ? read_lines(fd, b->h->stop_fd, follow ? -1 : PATIENCE_MS, fn, arg, err)
		       : -1;
}
