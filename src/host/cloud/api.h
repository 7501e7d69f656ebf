/* hr_api: calls a provider's API with costs and rate limits: the rules that hr_rest lacks, error
 * codes, and access to fields by name (doc/clouds.md). */
#ifndef HR_HOST_CLOUD_API_H
#define HR_HOST_CLOUD_API_H

#include <json-c/json_object.h>

#include "host/client/rest.h"

/* A rule for repeating requests. All failures of a request share one counter, so a table has one
 * row. */
struct hr_api_rule {
	struct hr_rest_rule again[2]; /* the second row is all zero */
	const char *should; /* header that overrides the rule with "true" or "false"; NULL: none */
	/* a header "x-request-id: prefix-" with a random suffix, the same for all attempts of one
	 * POST; NULL: none */
	const char *key;
};

struct hr_api {
	const char *who; /* name for messages, such as "E2B" */
	const struct hr_api_rule *rule;
	struct hr_rest *rest;
};

/* A part of a multipart form. */
struct hr_api_part {
	const char *name, *filename, *type; /* filename and type NULL: a plain field */
	const char *p;
	size_t len;
};

struct hr_api_call {
	const char *method, *path;
	const char *id, *rest;    /* appended to path, with the id escaped; NULL: nothing */
	struct json_object *body; /* borrowed; NULL: none */
	const char *bytes, *type; /* raw bytes instead of JSON, with their type */
	size_t bytes_len;
	const struct hr_api_part *parts; /* a multipart form instead of JSON */
	size_t parts_n;
	const char *const *headers;
	hr_http_sink_fn *sink; /* receives the answer's body; a negative result aborts */
	void *sink_arg;
	unsigned timeout_s; /* seconds without data; 0: the default */
	int watch_fd;       /* when it is readable, the request is aborted; 0 or -1: none */
	bool once;          /* do not repeat a request that may have been executed */
	bool plain;         /* return every status instead of an error */
	bool raw;           /* the answer's body need not be JSON */
	const char *header; /* response header to keep; NULL: none */
};

struct hr_api_answer {
	long status;
	struct hr_buf body;
	struct json_object *json; /* NULL: the body is not JSON */
	char header[512];         /* value of the requested header */
	bool unsure;              /* after an error: whether the request may have been executed */
	char code[64];            /* the provider's error code; "": none */
};

/* Accepts https URLs and this machine: a key must not be sent elsewhere. Returns 0, or -1 with *err
 * set. */
int hr_api_url(const char *who, const char *base, struct hr_err *err);
int hr_api_init(struct hr_api *r, const char *who, const struct hr_api_rule *rule, const char *base,
    struct hr_err *err);
void hr_api_done(struct hr_api *r); /* Accepts a zeroed or initialised struct. */
/* Adds a header to every request; a secret value appears in no error message. */
int hr_api_header(
    struct hr_api *r, const char *name, const char *value, bool secret, struct hr_err *err);

/* Makes a request. A status from 400 up is an error: 404 HR_E_NO_SANDBOX, 401 and 403
 * HR_E_PERMISSION, 408 and 504 HR_E_TIMEOUT, 429 and 503 HR_E_UNAVAILABLE, others HR_E_HTTP_STATUS,
 * with err->status. The caller calls hr_api_answer_done() in both cases. */
int hr_api_do(
    struct hr_api *r, const struct hr_api_call *c, struct hr_api_answer *ret, struct hr_err *err);
void hr_api_answer_done(struct hr_api_answer *a);
/* Makes a request and returns only the answer's JSON, which the caller owns; ret may be NULL. */
int hr_api_json(
    struct hr_api *r, const struct hr_api_call *c, struct json_object **ret, struct hr_err *err);
/* Returns 0 if r is 0 or `mine` reports a missing object; otherwise copies `mine` to err and
 * returns -1. */
int hr_api_or_gone(int r, const struct hr_err *mine, struct hr_err *err);

/* Downloads a file and appends it to b. HR_E_NOTFOUND: it does not exist. */
int hr_api_file(struct hr_api *r, const struct hr_api_call *c, const char *path, struct hr_buf *b,
    struct hr_api_answer *ret, struct hr_err *err);

/* Reads a field of a provider's answer. Returns -1 with "WHO: SUBJECT has no NAME", or with the
 * wrong type, in *err. Results are borrowed; hr_field_maybe() gives NULL for a missing field or
 * null. */
int hr_field_text(const char *who, const char *subject, struct json_object *o, const char *name,
    const char **ret, struct hr_err *err);
int hr_field_maybe(const char *who, const char *subject, struct json_object *o, const char *name,
    const char **ret, struct hr_err *err);
int hr_field_int(const char *who, const char *subject, struct json_object *o, const char *name,
    int64_t *ret, struct hr_err *err);
/* Reads an exit status from -255 to 255; each provider defines the negative ones. */
int hr_field_code(const char *who, const char *subject, struct json_object *o, const char *name,
    int *ret, struct hr_err *err);
/* Works like hr_field_maybe() but allows all characters, for text shown to people. */
int hr_field_prose(const char *who, const char *subject, struct json_object *o, const char *name,
    const char **ret, struct hr_err *err);
/* Reads a boolean; hr_field_number() reads a number. A missing field or null gives false and 0. */
int hr_field_flag(const char *who, const char *subject, struct json_object *o, const char *name,
    bool *ret, struct hr_err *err);
int hr_field_number(const char *who, const char *subject, struct json_object *o, const char *name,
    double *ret, struct hr_err *err);
int hr_field_of(const char *who, const char *subject, struct json_object *o, const char *name,
    enum json_type type, struct json_object **ret, struct hr_err *err);

#endif
