/* hr_cloud: manages sandboxes that a paid provider runs. This header, cloud.c (life cycle),
 * actions.c and copies.c (actions with only commands and files) have the common parts; a struct
 * hr_cloud_ops describes one provider (doc/clouds.md). */
#ifndef HR_HOST_CLOUD_CLOUD_H
#define HR_HOST_CLOUD_CLOUD_H

#include <pthread.h>
#include <stdint.h>

#include "base/text/text.h"
#include "host/cloud/api.h"
#include "base/strv.h"
#include "host/handrail-backend.h"

#define HR_CLOUD_PORT 4444 /* port of the server in a sandbox */
#define HR_CLOUD_FILE_MAX (256u << 20)
#define HR_CLOUD_REPLY_MAX (64u << 20)

struct hr_cloud;

/* A command, which runs at most once. */
struct hr_cloud_command {
	const char *line; /* argument of bash -l -c */
	const char *cwd;  /* NULL: the sandbox's default */
	const char *const *env;
	unsigned timeout_ms; /* 0: no limit */
	/* Receives the output as it arrives; `stream` is 1 or 2. */
	void (*output)(void *arg, int stream, const char *p, size_t len);
	void *arg;
};

struct hr_cloud_end {
	int code; /* exit code, or 128 + signal number; -1: unknown */
	bool timed_out;
	char note[200]; /* note for people; "": none */
};

/* A sandbox of the account that handrail has created. */
struct hr_cloud_found {
	const char *id, *sid, *run, *owner, *state;
};
typedef int hr_cloud_found_fn(void *arg, const struct hr_cloud_found *f);

/* The functions of a provider return 0, or -1 with *err set. A function is required unless its
 * comment defines NULL. */
struct hr_cloud_ops {
	const char *name, *title; /* "e2b" and "E2B", for example */
	const char *const
	    *lacks; /* lines about missing features without a server; NULL-terminated */

	/* Reads keys and addresses without a request. */
	int (*open)(struct hr_cloud *c, struct hr_err *err);
	bool lists_at_once; /* list() has a new sandbox immediately */
	/* Creates a sandbox with labels and sets c->id. After an error *unsure means that it may
	 * exist, c->unmade that it does not. */
	int (*create)(struct hr_cloud *c, bool *unsure, struct hr_err *err);
	/* Waits until commands and files work. */
	int (*wait)(struct hr_cloud *c, struct hr_err *err);
	/* Asks for the state and sets c->state to "running", "paused", "exited" or "gone". */
	int (*look)(struct hr_cloud *c, struct hr_err *err);
	/* Lists the account's sandboxes that handrail has created; with `run`, only that one. */
	int (*list)(struct hr_cloud *c, const char *run, hr_cloud_found_fn *fn, void *arg,
	    struct hr_err *err);
	/* Ends a sandbox; a missing one is no error. */
	int (*end)(struct hr_cloud *c, const char *id, struct hr_err *err);
	/* Pauses the sandbox; NULL: unsupported. */
	int (*pause)(struct hr_cloud *c, struct hr_err *err);
	/* Resumes the sandbox; NULL: unsupported. */
	int (*resume)(struct hr_cloud *c, struct hr_err *err);
	/* Reports the usage as JSON; NULL: unsupported. */
	int (*stats)(struct hr_cloud *c, char **ret_json, struct hr_err *err);
	/* Sets the remaining lifetime; NULL: sandboxes live until they are ended. */
	int (*keep)(struct hr_cloud *c, unsigned seconds, struct hr_err *err);

	int (*exec)(struct hr_cloud *c, const struct hr_cloud_command *q, struct hr_cloud_end *ret,
	    struct hr_err *err);
	/* Reads a file; HR_E_NOTFOUND: it does not exist. */
	int (*get)(struct hr_cloud *c, const char *path, struct hr_buf *b, struct hr_err *err);
	/* Writes a file and creates its parents. */
	int (*put)(
	    struct hr_cloud *c, const char *path, const char *p, size_t len, struct hr_err *err);
	/* Runs a cell of Python and returns 1 if it raised an exception; NULL: unsupported. */
	int (*code)(struct hr_cloud *c, const char *code, struct hr_buf *out, struct hr_err *err);
	/* Starts a background command; NULL: create() has done it. */
	int (*launch)(struct hr_cloud *c, const char *line, struct hr_err *err);
	/* Sets c->url and c->url_header for a port. */
	int (*publish)(struct hr_cloud *c, int port, struct hr_err *err);
	void (*done)(struct hr_cloud *c); /* Frees `own`; NULL: there is nothing to do. */
};

struct hr_cloud {
	const struct hr_cloud_ops *ops;
	const struct hr_backend_host *h;
	struct hr_api api, plane; /* the APIs of the provider and of the sandbox */
	const char *image;        /* image with handrail, or any image with a payload; NULL: none */
	/* output of packaging/payload or an archive of it; NULL: none. If image and payload are
	 * both NULL, only commands and files work. */
	const char *payload;
	void *own; /* state of the provider's functions */

	/* id from the record; NULL: unknown */
	char *id;
	char *run;     /* the sandbox's label, chosen before its creation */
	char *token;   /* access token of commands and files */
	char *address; /* address or domain of commands and files */
	char *version; /* version of the daemon in the sandbox */
	char *url, *key;
	char *url_header; /* headers of each request to `url`, as lines */
	bool old;         /* the provider has only the older routes */
	struct hr_strv env;

	char *url_lines; /* url_header, split for `headers` */
	const char *headers[HR_ENDPOINT_HEADERS + 1];
	char state[24];
	bool unmade;          /* create() failed and created nothing */
	bool lost;            /* a sandbox may exist but was not found */
	bool unreached;       /* the recorded sandbox could not be queried */
	char *mirror;         /* directory of file copies; "": there is none yet */
	pthread_mutex_t lock; /* guards the members that interrupt() reads */
	char *running;        /* record of the running command; NULL: no command runs */
	char mark[37];        /* mark in the environment of the command's processes */
	int64_t kept;         /* time of the last ops->keep(), hr_now_ms(); 0: never */
};

/* defines the table of a back-end in the module "handrail-clouds.so", whose first function alone is
 * the provider's */
#define HR_CLOUD_TABLE(kind, open_fn)                                                              \
	{                                                                                          \
		.abi = HR_BACKEND_ABI, .name = kind, .flags = HR_KIND_FINDS | HR_KIND_OUTPUT,      \
		.open = (open_fn), .free = hr_cloud_free, .connect = hr_cloud_connect,             \
		.endpoint = hr_cloud_endpoint, .record = hr_cloud_record,                          \
		.restore = hr_cloud_restore, .state = hr_cloud_state, .action = hr_cloud_action,   \
		.interrupt = hr_cloud_interrupt, .copy_to = hr_cloud_copy_to,                      \
		.copy_from = hr_cloud_copy_from, .list_files = hr_cloud_list_files,                \
		.add_env = hr_cloud_add_env, .pause = hr_cloud_pause, .resume = hr_cloud_resume,   \
		.close = hr_cloud_close, .destroy = hr_cloud_destroy, .stats = hr_cloud_stats,     \
		.found = hr_cloud_all, .end_found = hr_cloud_end_one                               \
	}
#define HR_CLOUD_KIND(entry, kind, cloud_ops)                                                      \
	static int kind_open(const struct hr_backend_host *h, void **ret_self, struct hr_err *err) \
	{                                                                                          \
		return hr_cloud_open(&(cloud_ops), h, ret_self, err);                              \
	}                                                                                          \
	static const struct hr_sandbox_ops kind_ops = HR_CLOUD_TABLE(kind, kind_open);             \
	const struct hr_sandbox_ops *entry(unsigned abi)                                           \
	{                                                                                          \
		return abi == HR_BACKEND_ABI ? &kind_ops : NULL;                                   \
	}

const struct hr_sandbox_ops *hr_daytona_entry(unsigned abi);
const struct hr_sandbox_ops *hr_e2b_entry(unsigned abi);
const struct hr_sandbox_ops *hr_modal_entry(unsigned abi);
const struct hr_sandbox_ops *hr_runloop_entry(unsigned abi);

int hr_cloud_open(const struct hr_cloud_ops *ops, const struct hr_backend_host *h, void **ret_self,
    struct hr_err *err);
void hr_cloud_free(void *self);
int hr_cloud_connect(void *self, enum hr_connected *ret, struct hr_err *err);
void hr_cloud_endpoint(void *self, struct hr_endpoint *ret);
char *hr_cloud_record(void *self, struct hr_err *err);
int hr_cloud_restore(void *self, const char *record, struct hr_err *err);
const char *hr_cloud_state(void *self);
int hr_cloud_pause(void *self, struct hr_err *err);
int hr_cloud_resume(void *self, struct hr_err *err);
int hr_cloud_close(void *self, struct hr_err *err);
int hr_cloud_destroy(void *self, struct hr_err *err);
int hr_cloud_stats(void *self, char **ret_json, struct hr_err *err);
int hr_cloud_all(void *self, char **ret_json, struct hr_err *err);
int hr_cloud_end_one(void *self, const char *id, struct hr_err *err);

/* ---- serve.c ---- */
/* Checks the payload archive, if one is configured. Returns 0, or -1 with *err set. */
int hr_cloud_payload_look(struct hr_cloud *c, struct hr_err *err);
/* Creates the workspace directory, writable for the account's user. */
int hr_cloud_make_workspace(struct hr_cloud *c, struct hr_err *err);
/* Uploads the payload, starts the server and waits for it; sets c->url. */
int hr_cloud_serve(struct hr_cloud *c, struct hr_err *err);
/* Finds the server after a pause, and restarts it if it does not answer. */
int hr_cloud_serve_again(struct hr_cloud *c, struct hr_err *err);
/* Returns the headers of url_header, ended by NULL, or NULL if there are none or memory runs
 * out. */
const char *const *hr_cloud_url_headers(struct hr_cloud *c);

/* ---- actions.c and copies.c ---- */
int hr_cloud_action(void *self, const char *action, char **ret, struct hr_err *err);
int hr_cloud_interrupt(void *self, int number, bool *ret, struct hr_err *err);
int
hr_cloud_copy_to(void *self, const char *from, const char *to, bool recursive, struct hr_err *err);
int hr_cloud_copy_from(void *self, const char *path, char **ret_file, struct hr_err *err);
int hr_cloud_list_files(void *self, const char *path, char **ret_json, struct hr_err *err);
int hr_cloud_add_env(void *self, const char *const *env, struct hr_err *err);
void hr_cloud_mirror_drop(struct hr_cloud *c);

/* ---- helpers for providers ---- */

/* Returns the required environment variable `name`, or the content of the file named by NAME_FILE;
 * the caller frees it. Returns NULL with "NAME environment variable is required for TITLE runtime"
 * in *err. */
char *hr_cloud_key(struct hr_cloud *c, const char *name, struct hr_err *err);
/* Returns an environment variable, or `otherwise` if it is not set. */
const char *hr_cloud_env(const struct hr_cloud *c, const char *name, const char *otherwise);
/* Returns an object with the labels of a new sandbox. */
struct json_object *hr_cloud_labels(struct hr_cloud *c);
/* Reads the labels in o[labels], an object of strings; all are NULL if it is missing. */
int hr_cloud_found_in(const char *who, struct json_object *o, const char *labels,
    struct hr_cloud_found *ret, struct hr_err *err);
/* Returns {"NAME": "value"} of a list of variables, or NULL with *err set. */
struct json_object *hr_cloud_env_object(const char *const *env, struct hr_err *err);
/* Returns a descriptor that becomes readable after `ms`, or -1 with *err set. */
int hr_cloud_timer(unsigned ms, struct hr_err *err);
/* Appends a text with each known secret replaced by ****** (secrets NULL: none). Call this before
 * cutting or quoting the text: part of a secret would not be recognised. */
void hr_cloud_hide(struct hr_buf *out, const char *const *secrets, const char *text, size_t len);
/* Counts interruptions of a stream whose command still runs; hr_cloud_goes_on() returns false after
 * 20 connections in a row that ended at once without data, which would repeat for ever. A
 * connection that was silent for longer may have had no data yet. */
struct hr_cloud_cuts {
	int64_t since_ms; /* time of the connection by hr_now_ms() */
	int idle;
};
bool hr_cloud_goes_on(struct hr_cloud_cuts *k, bool came, int64_t now_ms);
/* The format of a provider's list entries. */
struct hr_cloud_shape {
	const char *id, *labels; /* names of the members */
	/* state: name of a member; otherwise: the state if it is missing */
	const char *state, *otherwise;
	/* pairs of a provider's state and handrail's; ends with NULLs; other states stay */
	const char *const (*words)[2];
};
const char *hr_cloud_word(const struct hr_cloud_shape *s, const char *state);
/* Passes fn each entry that handrail has created and that still exists; with `run`, only that
 * one. */
int hr_cloud_entries(const char *who, const struct hr_cloud_shape *s, struct json_object *list,
    const char *run, hr_cloud_found_fn *fn, void *arg, struct hr_err *err);
/* Counts a page of a list in *n. Returns 0, or -1 with *err set after so many pages that the list
 * seems to have no end. */
int hr_cloud_page(const char *who, unsigned *n, struct hr_err *err);

#endif
