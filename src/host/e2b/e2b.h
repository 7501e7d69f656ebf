/* The provider E2B: its API (api.c) and envd, the daemon in each of its sandboxes (envd.c). What is
 * said here follows the recorded traffic of its own clients (t/corpus/clouds). */
#ifndef HR_HOST_E2B_E2B_H
#define HR_HOST_E2B_E2B_H

#include "host/cloud/cloud.h"

#define HR_E2B_ENVD_PORT 49983
#define HR_E2B_USER "user" /* of its commands and files */

/* ---- api.c; ids are borrowed ---- */

struct hr_e2b_new {
	const char *template;
	unsigned timeout_s;           /* 0: not said */
	struct json_object *metadata; /* borrowed, as the next one */
	struct json_object *env;
	bool no_internet, insecure;
};

int hr_e2b_create(struct hr_cloud *c, const struct hr_e2b_new *q, bool *unsure, struct hr_err *err);
/* Goes on with a paused one, too. */
int hr_e2b_connect(struct hr_cloud *c, const char *id, unsigned timeout_s, struct hr_err *err);
/* 1 it was ended, 0 it was gone. */
int hr_e2b_kill(struct hr_cloud *c, const char *id, struct hr_err *err);
int hr_e2b_timeout(struct hr_cloud *c, const char *id, unsigned timeout_s, struct hr_err *err);
/* 1 it is paused now, 0 it was already. */
int hr_e2b_pause(struct hr_cloud *c, const char *id, struct hr_err *err);
/* Its answer, the caller's; NULL: gone. */
int hr_e2b_info(struct hr_cloud *c, const char *id, struct json_object **ret, struct hr_err *err);
/* One page: name NULL: all; next: where it goes on, "" at first and after the last one. *ret is the
 * caller's, an array. */
int hr_e2b_list(struct hr_cloud *c, const char *name, const char *value, unsigned limit,
    char next[512], struct json_object **ret, struct hr_err *err);
int
hr_e2b_metrics(struct hr_cloud *c, const char *id, struct json_object **ret, struct hr_err *err);

/* ---- code.c ---- */

/* Runs a cell with E2B's code interpreter: what it printed and gave, as text. 1: it raised an
 * exception. */
int hr_e2b_code(struct hr_cloud *c, const char *code, struct hr_buf *out, struct hr_err *err);

/* ---- envd.c ---- */

/* *ret becomes what asks a port of the sandbox; the caller is done with it. */
int hr_e2b_at_port(struct hr_cloud *c, int port, struct hr_api *ret, struct hr_err *err);

/* Of c->id, c->token, c->address. */
int hr_e2b_plane(struct hr_cloud *c, struct hr_err *err);
/* "https://8080-ID.e2b.app" and the like; the caller frees. */
char *hr_e2b_url(struct hr_cloud *c, int port, struct hr_err *err);

struct hr_e2b_process {
	const struct hr_cloud_command *q;
	const char *user;       /* NULL: the template's */
	bool stdin_open, leave; /* leave: return when it has begun, and it goes on */
	int64_t pid;            /* once it has begun */
};
int hr_e2b_run(
    struct hr_cloud *c, struct hr_e2b_process *p, struct hr_cloud_end *ret, struct hr_err *err);
/* One of its procedures with one answer, "process.Process/List". */
int hr_e2b_unary(struct hr_cloud *c, const char *procedure, struct json_object *body,
    struct json_object **ret, struct hr_err *err);
/* 1 done, 0 there is no such process. */
int hr_e2b_signal(struct hr_cloud *c, int64_t pid, const char *name, struct hr_err *err);
/* Does it take users with each request? */
bool hr_e2b_names_users(const struct hr_cloud *c);
/* An error of its routes in words of people; returns -1. */
int hr_e2b_explain(struct hr_cloud *c, const struct hr_api_answer *a, struct hr_err *err);

/* ---- files.c ---- */

int hr_e2b_get(struct hr_cloud *c, const char *path, struct hr_buf *b, struct hr_err *err);
/* One file with its path, or several, whose names are paths. */
int hr_e2b_put_files(struct hr_cloud *c, const struct hr_api_part *files, size_t n,
    struct json_object **ret, struct hr_err *err);

/* The requests' repetitions (struct hr_rest_rule), also after `more`: some seconds without a
 * network do not matter. */
#define HR_E2B_AGAIN(more)                                                                         \
	{                                                                                          \
		.failures = HR_REST_UNSENT | HR_REST_LIMITED | HR_REST_BUSY | (more),              \
		.always = HR_REST_UNDONE, .attempts = 6, .first_ms = 100, .most_ms = 10000,        \
		.jitter_percent = 50, .after_max_s = 60                                            \
	}

#endif
