/* hr_e2b: connects to the provider E2B: its API (api.c) and envd, the daemon in its sandboxes
 * (envd.c). The behaviour follows the recorded traffic of E2B's own clients (t/corpus/clouds). */
#ifndef HR_HOST_E2B_E2B_H
#define HR_HOST_E2B_E2B_H

#include "host/cloud/cloud.h"

#define HR_E2B_ENVD_PORT 49983
#define HR_E2B_USER "user" /* account for commands and files */

/* ---- api.c; ids are borrowed ---- */

struct hr_e2b_new {
	const char *template;
	unsigned timeout_s;           /* 0: the timeout is not sent */
	struct json_object *metadata; /* metadata and env are borrowed */
	struct json_object *env;
	bool no_internet, insecure;
};

int hr_e2b_create(struct hr_cloud *c, const struct hr_e2b_new *q, bool *unsure, struct hr_err *err);
/* Connects to a sandbox and resumes it if it is paused. */
int hr_e2b_connect(struct hr_cloud *c, const char *id, unsigned timeout_s, struct hr_err *err);
/* Returns 1 if the sandbox was ended, or 0 if it was gone. */
int hr_e2b_kill(struct hr_cloud *c, const char *id, struct hr_err *err);
int hr_e2b_timeout(struct hr_cloud *c, const char *id, unsigned timeout_s, struct hr_err *err);
/* Returns 1 if the sandbox is now paused, or 0 if it was already. */
int hr_e2b_pause(struct hr_cloud *c, const char *id, struct hr_err *err);
/* Fetches the sandbox's data, which the caller owns; NULL: the sandbox is gone. */
int hr_e2b_info(struct hr_cloud *c, const char *id, struct json_object **ret, struct hr_err *err);
/* Lists one page; name NULL: all. `next` is the page token, "" for the first page and after the
 * last one. *ret is an array, which the caller owns. */
int hr_e2b_list(struct hr_cloud *c, const char *name, const char *value, unsigned limit,
    char next[512], struct json_object **ret, struct hr_err *err);
int
hr_e2b_metrics(struct hr_cloud *c, const char *id, struct json_object **ret, struct hr_err *err);

/* ---- code.c ---- */

/* Runs a cell with E2B's code interpreter and appends its output and result as text. Returns 1 if
 * the cell raised an exception. */
int hr_e2b_code(struct hr_cloud *c, const char *code, struct hr_buf *out, struct hr_err *err);

/* ---- envd.c ---- */

/* Initialises *ret for requests to a port of the sandbox; the caller calls hr_api_done(). */
int hr_e2b_at_port(struct hr_cloud *c, int port, struct hr_api *ret, struct hr_err *err);

/* Connects to the daemon, using c->id, c->token and c->address. */
int hr_e2b_plane(struct hr_cloud *c, struct hr_err *err);
/* Returns a URL such as "https://8080-ID.e2b.app", which the caller frees. */
char *hr_e2b_url(struct hr_cloud *c, int port, struct hr_err *err);

struct hr_e2b_process {
	const struct hr_cloud_command *q;
	const char *user;       /* NULL: the default user of the template */
	bool stdin_open, leave; /* leave: return after the start, while the process continues */
	int64_t pid;            /* set after the start */
};
int hr_e2b_run(
    struct hr_cloud *c, struct hr_e2b_process *p, struct hr_cloud_end *ret, struct hr_err *err);
/* Invokes a procedure with a single answer, such as "process.Process/List". */
int hr_e2b_unary(struct hr_cloud *c, const char *procedure, struct json_object *body,
    struct json_object **ret, struct hr_err *err);
/* Returns 1, or 0 if the process does not exist. */
int hr_e2b_signal(struct hr_cloud *c, int64_t pid, const char *name, struct hr_err *err);
/* Returns true if the daemon takes a user with each request. */
bool hr_e2b_names_users(const struct hr_cloud *c);
/* Explains an error of the daemon's routes; returns -1. */
int hr_e2b_explain(struct hr_cloud *c, const struct hr_api_answer *a, struct hr_err *err);

/* ---- files.c ---- */

int hr_e2b_get(struct hr_cloud *c, const char *path, struct hr_buf *b, struct hr_err *err);
/* Uploads one file, or several whose names are paths. */
int hr_e2b_put_files(struct hr_cloud *c, const struct hr_api_part *files, size_t n,
    struct json_object **ret, struct hr_err *err);

/* rule for repeated requests (struct hr_rest_rule), with `more` failures: an interruption of some
 * seconds does no harm */
#define HR_E2B_AGAIN(more)                                                                         \
	{                                                                                          \
		.failures = HR_REST_UNSENT | HR_REST_LIMITED | HR_REST_BUSY | (more),              \
		.always = HR_REST_UNDONE, .attempts = 6, .first_ms = 100, .most_ms = 10000,        \
		.jitter_percent = 50, .after_max_s = 60                                            \
	}

#endif
