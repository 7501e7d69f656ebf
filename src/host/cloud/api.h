/* hr_api: the API of a provider that is paid and that limits: what of its rules hr_rest does not
 * know, the errors' kinds, and fields by their names (doc/clouds.md). */
#ifndef HR_HOST_CLOUD_API_H
#define HR_HOST_CLOUD_API_H

#include <json-c/json_object.h>

#include "host/client/rest.h"

/* When a request is sent again: all failures of one request count together, so that a table has one
 * row. */
struct hr_api_rule {
	struct hr_rest_rule again[2]; /* the second is zeroed */
	const char *should;           /* a header that decides, "true" or "false"; NULL: none */
	/* "x-request-id: prefix-": a header whose value is the same for all attempts at one POST,
	 * with something random behind it; NULL: none. */
	const char *key;
};

struct hr_api {
	const char *who; /* "E2B", in messages */
	const struct hr_api_rule *rule;
	struct hr_rest *rest;
};

/* A part of a form of files. */
struct hr_api_part {
	const char *name, *filename, *type; /* filename and type NULL: a plain field */
	const char *p;
	size_t len;
};

struct hr_api_call {
	const char *method, *path;
	const char *id, *rest;    /* the path goes on with id, escaped, and rest; NULL: nothing */
	struct json_object *body; /* borrowed; NULL: none */
	const char *bytes, *type; /* instead of it: any body, and its type */
	size_t bytes_len;
	const struct hr_api_part *parts; /* or a form, one part each */
	size_t parts_n;
	const char *const *headers;
	hr_http_sink_fn *sink; /* instead of the answer's body: negative gives up */
	void *sink_arg;
	unsigned timeout_s; /* without a byte; 0: as usual */
	int watch_fd;       /* readable: give up; 0 or -1: none */
	bool once;          /* it is not sent again once it may have been carried out */
	bool plain;         /* every status is an answer, not an error */
	bool raw;           /* the answer's body need not be JSON */
	const char *header; /* of the answer, to be kept */
};

struct hr_api_answer {
	long status;
	struct hr_buf body;
	struct json_object *json; /* NULL: the body is none */
	char header[512];         /* the one that was asked for */
	bool unsure;              /* of an error: it may have been carried out all the same */
	char code[64];            /* of an error: the provider's word for it, "" for none */
};

/* A key goes to https only, or to this machine. */
int hr_api_url(const char *who, const char *base, struct hr_err *err);
int hr_api_init(struct hr_api *r, const char *who, const struct hr_api_rule *rule, const char *base,
    struct hr_err *err);
void hr_api_done(struct hr_api *r); /* of one that is zeroed or initialised */
/* Of each request; what is secret is in no error. */
int hr_api_header(
    struct hr_api *r, const char *name, const char *value, bool secret, struct hr_err *err);

/* A status from 400 up is an error: 404 HR_E_NO_SANDBOX, 401 and 403 HR_E_PERMISSION, 408
 * and 504 HR_E_TIMEOUT, 429 and 503 HR_E_UNAVAILABLE, others HR_E_HTTP_STATUS, with
 * err->status. hr_api_answer_done() in both cases. */
int hr_api_do(
    struct hr_api *r, const struct hr_api_call *c, struct hr_api_answer *ret, struct hr_err *err);
void hr_api_answer_done(struct hr_api_answer *a);
/* Of the answer only its JSON, the caller's; ret NULL: nothing. */
int hr_api_json(
    struct hr_api *r, const struct hr_api_call *c, struct json_object **ret, struct hr_err *err);
/* What r is where it is no error that there is no such thing; mine is passed on. */
int hr_api_or_gone(int r, const struct hr_err *mine, struct hr_err *err);

/* A file: what the answer brings is put behind b. HR_E_NOTFOUND: there is no such one. */
int hr_api_file(struct hr_api *r, const struct hr_api_call *c, const char *path, struct hr_buf *b,
    struct hr_api_answer *ret, struct hr_err *err);

/* Fields of what a provider said: -1 with "WHO: SUBJECT has no NAME" or with what it is instead of
 * what it ought to be. Results are borrowed; of hr_field_maybe() NULL where it is missing or null.
 */
int hr_field_text(const char *who, const char *subject, struct json_object *o, const char *name,
    const char **ret, struct hr_err *err);
int hr_field_maybe(const char *who, const char *subject, struct json_object *o, const char *name,
    const char **ret, struct hr_err *err);
int hr_field_int(const char *who, const char *subject, struct json_object *o, const char *name,
    int64_t *ret, struct hr_err *err);
/* An exit status, from -255 to 255; what a number below 0 means is the provider's to say. */
int hr_field_code(const char *who, const char *subject, struct json_object *o, const char *name,
    int *ret, struct hr_err *err);
/* As hr_field_maybe(), of any characters: for people. */
int hr_field_prose(const char *who, const char *subject, struct json_object *o, const char *name,
    const char **ret, struct hr_err *err);
/* false and 0 where it is missing or null. */
int hr_field_flag(const char *who, const char *subject, struct json_object *o, const char *name,
    bool *ret, struct hr_err *err);
int hr_field_number(const char *who, const char *subject, struct json_object *o, const char *name,
    double *ret, struct hr_err *err);
int hr_field_of(const char *who, const char *subject, struct json_object *o, const char *name,
    enum json_type type, struct json_object **ret, struct hr_err *err);

#endif
