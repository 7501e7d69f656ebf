/* envd_rpc: calls of the Connect protocol over HTTP: which procedure, which user, which message;
 * and the answers, unary or as a stream with its deadline and its signs of life. It knows no
 * procedure. */
#ifndef HR_PLUGINS_ENVD_RPC_H
#define HR_PLUGINS_ENVD_RPC_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json_object.h>

#include "e2b/connect.h"
#include "e2b/message.h"
#include "e2b/setup.h"
#include "e2b/who.h"

struct hr_loop;
struct hr_serve_request;
struct envd_call;
struct envd_table;
struct envd_watchers;

/* The plugin's process that serves HTTP. */
struct envd {
	struct hr_loop *loop;
	const char *run_dir;       /* borrowed */
	uid_t sandbox;             /* the sandbox's user */
	struct hr_e2b_setup setup; /* as of the current call */
	struct envd_table *table;
	struct envd_watchers *watchers;
	size_t held; /* bytes of input that all calls hold, see envd_call_hold() */
};

enum envd_shape {
	ENVD_UNARY,
	ENVD_STREAM, /* one message, many answers */
	ENVD_INPUT,  /* many messages, which are read as they arrive, and one answer */
};

/* A procedure. Invariant of `fn`: sooner or later one of the functions that end a call ends it. */
struct envd_method {
	const char *path; /* "/process.Process/Start"; NULL: the end of a table */
	enum envd_shape shape;
	const struct hr_message *in;
	void (*fn)(struct envd_call *c);
	const char *keepalive; /* the message of a silent stream; NULL: no stream */
};

/* process.Process (calls.c) and the watchers of filesystem.Filesystem (watchcalls.c) */
extern const struct envd_method envd_process_methods[];
extern const struct envd_method envd_watch_methods[];

struct envd_events {
	void (*drained)(void *arg); /* the client has taken everything */
	void (*over)(void *arg);    /* the client has left or the deadline is over; ends the call */
	void (*arrived)(void *arg); /* there may be a message of ENVD_INPUT */
};

struct envd_call {
	struct envd *envd;
	const struct envd_method *method;
	struct hr_serve_request *q;
	struct json_object *in; /* the message; NULL for ENVD_INPUT */
	struct hr_buf part;     /* bytes of ENVD_INPUT, from the last message on */
	struct hr_buf input;    /* bytes that a process has not taken yet */
	size_t held;            /* bytes of both, as they were counted */
	size_t used;            /* bytes of `part` that were read */
	struct hr_e2b_who who;
	int64_t timeout_ms; /* the client's limit; -1: none */
	bool late;          /* the deadline is over */
	bool packed;        /* messages may be compressed */
	bool gzip;          /* the client takes compressed answers */
	bool opened;
	int64_t silence_ms;
	struct hr_watch *deadline, *silence;
	const struct envd_events *events;
	void *arg;
};

/* Handles a request of HTTP. */
void envd_rpc_request(void *envd, struct hr_serve_request *q);

/* Ends a call, which is freed: with a unary answer or the last frame of a stream. e NULL: success;
 * `json` is the answer of ENVD_UNARY and ENVD_INPUT, a text. */
void envd_call_answer(struct envd_call *c, struct hr_span json);
void envd_call_end(struct envd_call *c, const struct hr_connect_error *e);
/* Ends a stream without a last frame. */
void envd_call_cut(struct envd_call *c);

/* Reads the next message of ENVD_INPUT. Returns 1 with *ret, NULL if it has not arrived; 0 at the
 * end; or -1 with *e. */
int envd_call_read(struct envd_call *c, struct json_object **ret, struct hr_connect_error *e);

/* Counts the bytes of the call's input. Returns 0, or -1 with *e if all calls together hold too
 * many: the call must end then. */
int envd_call_hold(struct envd_call *c, struct hr_connect_error *e);

/* Sends a message of a stream. */
void envd_call_send(struct envd_call *c, struct hr_span json);
/* Returns the number of bytes that the client has not taken yet. */
size_t envd_call_pending(const struct envd_call *c);
/* Sets the callbacks of a call that waits; from now on it has its deadline, and a stream its signs
 * of life. */
void envd_call_wait(struct envd_call *c, const struct envd_events *events, void *arg);

#endif
