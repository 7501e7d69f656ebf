/* hr_engine: calls the HTTP API of a Docker Engine, over its Unix socket or TCP (doc/host.md, "The
 * Engine"). */
#ifndef HR_HOST_DOCKER_ENGINE_H
#define HR_HOST_DOCKER_ENGINE_H

#include "host/handrail.h"
#include "http/http.h"

struct json_object;

struct hr_engine {
	struct hr_http *http;
	char *socket;       /* NULL: TCP */
	char *base;         /* the base address, "http://localhost/v1.41" */
	unsigned timeout_s; /* limit of a call; 0: none; hr_engine_init() sets the usual one */
	int watch_fd;       /* when it is readable, calls are aborted with an error; -1: none */
};

/* Returns the Engine's address: $DOCKER_HOST, or that of /var/run/docker.sock; borrowed. */
const char *hr_engine_at(const char *const *env);
/* Connects to the Engine at that address and asks for its version. */
int hr_engine_init(struct hr_engine *e, const char *const *env, struct hr_err *err);
void hr_engine_done(struct hr_engine *e); /* Frees e, which must be zeroed or initialised. */

/* Makes a call with a JSON body (NULL: none). *ret (ret may be NULL) is the answer, which the
 * caller owns; NULL if it has no body. 404 is HR_E_NO_SANDBOX, or HR_E_NOTFOUND for a missing
 * image; other statuses from 400 up are HR_E_RUNTIME with the Engine's message. 304 is success:
 * nothing had to change. */
int hr_engine_call(struct hr_engine *e, const char *method, const char *path,
    struct json_object *body, struct json_object **ret, struct hr_err *err);

/* Streams a call's answer to sink, until that returns non-zero (a success). `source` is a tar file
 * as the body, or NULL. timeout_s limits the time without a byte; 0: no limit. */
int hr_engine_stream(struct hr_engine *e, const char *method, const char *path,
    hr_http_source_fn *source, void *source_arg, hr_http_sink_fn *sink, void *sink_arg,
    unsigned timeout_s, struct hr_err *err);

#define HR_CONTAINER_PREFIX "openhands-runtime-" /* prefix of handrail's container names */
#define HR_CONTAINER_LABEL "handrail.owner"      /* name of the label that holds the owner */

/* An Engine's event about one of handrail's containers. */
struct hr_engine_event {
	char sid[256]; /* id of the sandbox */
	const char *what;
	char detail[64];
};

/* Parses a line of events. Returns false if it is about anything else. No I/O. */
bool hr_engine_event(struct hr_engine_event *ret, const char *line, size_t len);

/* Splits the output of a container without a terminal: frames of 8 bytes of header and a payload,
 * made into lines per stream. */
struct hr_demux {
	hr_line_fn *fn;
	void *arg;
	unsigned char head[8];
	size_t head_len, left;
	struct hr_buf lines[2];
	bool stopped; /* fn asked to stop */
};

void hr_demux_init(struct hr_demux *d, hr_line_fn *fn, void *arg);
int hr_demux_sink(void *demux, const char *p, size_t len); /* Takes output, as a hr_http_sink_fn. */
void hr_demux_done(struct hr_demux *d);                    /* Passes on an unfinished line. */

#endif
