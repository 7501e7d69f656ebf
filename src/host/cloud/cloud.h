/* hr_cloud: sandboxes that a provider of them runs and is paid for. What all of them have in common
 * is here and in cloud.c (their life) and direct.c (actions by commands and files alone); what one
 * provider is like is a struct hr_cloud_ops (doc/clouds.md). */
#ifndef HR_HOST_CLOUD_CLOUD_H
#define HR_HOST_CLOUD_CLOUD_H

#include <pthread.h>
#include <stdint.h>

#include "base/text/text.h"
#include "host/cloud/api.h"
#include "base/strv.h"
#include "host/handrail-backend.h"

#define HR_CLOUD_PORT 4444 /* of the server in a sandbox */
#define HR_CLOUD_FILE_MAX (256u << 20)
#define HR_CLOUD_REPLY_MAX (64u << 20)

struct hr_cloud;

/* A command; it is run once, whatever happens. */
struct hr_cloud_command {
	const char *line; /* for bash -l -c */
	const char *cwd;  /* NULL: the sandbox's own */
	const char *const *env;
	unsigned timeout_ms; /* 0: none */
	/* What it prints as it comes; stream 1 or 2. */
	void (*output)(void *arg, int stream, const char *p, size_t len);
	void *arg;
};

struct hr_cloud_end {
	int code; /* 128 + number of a signal; -1: not known */
	bool timed_out;
	char note[200]; /* what people are to know of it: "" for nothing */
};

/* One of the account's sandboxes that was made by handrail. */
struct hr_cloud_found {
	const char *id, *sid, *run, *owner, *state;
};
typedef int hr_cloud_found_fn(void *arg, const struct hr_cloud_found *f);

/* Each int is 0, or -1 with *err. Required but where NULL is said to mean something. */
struct hr_cloud_ops {
	const char *name, *title; /* "e2b", "E2B" */
	const char *const
	    *lacks; /* what is lost where there is no server: lines; NULL-terminated */

	/* Reads keys and addresses; no request. */
	int (*open)(struct hr_cloud *c, struct hr_err *err);
	bool lists_at_once; /* one that was made is in list() from the same moment on */
	/* Makes one with labels and sets c->id. *unsure of an error: it may have been made;
	 * c->unmade of one: it was not. */
	int (*create)(struct hr_cloud *c, bool *unsure, struct hr_err *err);
	/* Waits until it can be used, with commands and files. */
	int (*wait)(struct hr_cloud *c, struct hr_err *err);
	/* Asks: c->state becomes "running", "paused", "exited", "gone". */
	int (*look)(struct hr_cloud *c, struct hr_err *err);
	/* The account's that were made by handrail; run: only that one. */
	int (*list)(struct hr_cloud *c, const char *run, hr_cloud_found_fn *fn, void *arg,
	    struct hr_err *err);
	/* One that is gone already is no error. */
	int (*end)(struct hr_cloud *c, const char *id, struct hr_err *err);
	int (*pause)(struct hr_cloud *c, struct hr_err *err);                  /* NULL: it cannot */
	int (*resume)(struct hr_cloud *c, struct hr_err *err);                 /* NULL: it cannot */
	int (*stats)(struct hr_cloud *c, char **ret_json, struct hr_err *err); /* NULL */
	/* It is to live that long from now on; NULL: it lives until it is ended. */
	int (*keep)(struct hr_cloud *c, unsigned seconds, struct hr_err *err);

	int (*exec)(struct hr_cloud *c, const struct hr_cloud_command *q, struct hr_cloud_end *ret,
	    struct hr_err *err);
	/* HR_E_NOTFOUND: no file. */
	int (*get)(struct hr_cloud *c, const char *path, struct hr_buf *b, struct hr_err *err);
	/* Parents are made. */
	int (*put)(
	    struct hr_cloud *c, const char *path, const char *p, size_t len, struct hr_err *err);
	/* Runs a cell of Python, 1: it raised an exception; NULL: it has no such thing. */
	int (*code)(struct hr_cloud *c, const char *code, struct hr_buf *out, struct hr_err *err);
	/* Starts what goes on by itself; NULL: create() has done it. */
	int (*launch)(struct hr_cloud *c, const char *line, struct hr_err *err);
	/* c->url and c->url_header of a port. */
	int (*publish)(struct hr_cloud *c, int port, struct hr_err *err);
	void (*done)(struct hr_cloud *c); /* NULL: nothing */
};

struct hr_cloud {
	const struct hr_cloud_ops *ops;
	const struct hr_backend_host *h;
	struct hr_api api, plane; /* the provider's, the sandbox's */
	const char *image;        /* with handrail in it, or whatever, with a payload; NULL */
	/* What packaging/payload made, or an archive of it; NULL. Without both: commands and files
	 * alone. */
	const char *payload;
	void *own; /* the provider's */

	/* what is recorded; NULL: not known */
	char *id;
	char *run;     /* made up before it is made: its label */
	char *token;   /* for its commands and files */
	char *address; /* for these, or its domain */
	char *version; /* of the daemon in it */
	char *url, *key;
	char *url_header; /* of each request to it; lines */
	bool old;         /* the provider knows only the older routes */
	struct hr_strv env;

	char *url_lines; /* url_header, cut into what headers names */
	const char *headers[HR_ENDPOINT_HEADERS + 1];
	char state[24];
	bool unmade;          /* create() failed, and nothing was made */
	bool lost;            /* it may have been made, and was not found */
	bool unreached;       /* the one of the record could not be asked about */
	char *mirror;         /* directory with copies of files at work, "": none yet */
	pthread_mutex_t lock; /* of what interrupt() reads */
	char *running;        /* the record while a command runs; NULL: none does */
	char mark[37];        /* of what that has started */
	int64_t kept;         /* when ops->keep() was called last, hr_now_ms(); 0: never */
};

/* What the module "handrail-clouds.so" exports of a kind: one table of functions, of which only
 * the first is the provider's. */
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

/* serve.c */
/* Is there such an archive? It was not asked for: 0. */
int hr_cloud_payload_look(struct hr_cloud *c, struct hr_err *err);
/* The directory of the workspace, which the account's user may write in. */
int hr_cloud_make_workspace(struct hr_cloud *c, struct hr_err *err);
/* Carries the payload there, starts the server and waits for it: c->url. */
int hr_cloud_serve(struct hr_cloud *c, struct hr_err *err);
/* After a pause: where it is now, and its start where it does not answer. */
int hr_cloud_serve_again(struct hr_cloud *c, struct hr_err *err);
/* What url_header has, ended by NULL; NULL: none, or no memory. */
const char *const *hr_cloud_url_headers(struct hr_cloud *c);

/* direct.c */
int hr_cloud_action(void *self, const char *action, char **ret, struct hr_err *err);
int hr_cloud_interrupt(void *self, int number, bool *ret, struct hr_err *err);
int
hr_cloud_copy_to(void *self, const char *from, const char *to, bool recursive, struct hr_err *err);
int hr_cloud_copy_from(void *self, const char *path, char **ret_file, struct hr_err *err);
int hr_cloud_list_files(void *self, const char *path, char **ret_json, struct hr_err *err);
int hr_cloud_add_env(void *self, const char *const *env, struct hr_err *err);
void hr_cloud_mirror_drop(struct hr_cloud *c);

/* ---- for providers ---- */

/* The environment's NAME, which there must be: "NAME environment variable is required for TITLE
 * runtime"; NAME_FILE names a file with it. The caller frees; NULL with *err. */
char *hr_cloud_key(struct hr_cloud *c, const char *name, struct hr_err *err);
/* An environment variable, or what it is without one. */
const char *hr_cloud_env(const struct hr_cloud *c, const char *name, const char *otherwise);
/* The labels of what is made now, added to o. */
struct json_object *hr_cloud_labels(struct hr_cloud *c);
/* What of them is in o[labels], an object of texts; all NULL where there is none. */
int hr_cloud_found_in(const char *who, struct json_object *o, const char *labels,
    struct hr_cloud_found *ret, struct hr_err *err);
/* {"NAME": "value"} of a list of variables; NULL with *err. */
struct json_object *hr_cloud_env_object(const char *const *env, struct hr_err *err);
/* A descriptor that is readable after so long; -1 with *err. */
int hr_cloud_timer(unsigned ms, struct hr_err *err);
/* Is it? timer -1: never. */
bool hr_cloud_timer_over(int timer);
/* Appends a text with ****** for each of the secrets in it (NULL: none are known). To be done
 * before it is cut or quoted: what is left of one would not be known for it. */
void hr_cloud_hide(struct hr_buf *out, const char *const *secrets, const char *text, size_t len);
/* A stream was cut or has ended, and its command not: is it followed on? Not where it has brought
 * nothing 20 times, each time at once: it would do so for ever. One that was silent for longer may
 * have nothing to tell yet. */
struct hr_cloud_cuts {
	int64_t since_ms; /* when it was asked for; hr_now_ms() */
	int idle;
};
bool hr_cloud_goes_on(struct hr_cloud_cuts *k, bool came, int64_t now_ms);
/* What the entries of a provider's list are like. */
struct hr_cloud_shape {
	const char *id, *labels;       /* members */
	const char *state, *otherwise; /* member, and what it is where none is told */
	const char *const (*words)[2]; /* of states, each with ours, ended by NULLs; others stay */
};
const char *hr_cloud_word(const struct hr_cloud_shape *s, const char *state);
/* Those of a list that were made by handrail, but for what is gone; run: only that one. */
int hr_cloud_entries(const char *who, const struct hr_cloud_shape *s, struct json_object *list,
    const char *run, hr_cloud_found_fn *fn, void *arg, struct hr_err *err);
/* One more page of a list: an error where there is no end to them. */
int hr_cloud_page(const char *who, unsigned *n, struct hr_err *err);

#endif
