/* hr_program_answer: one line of a program that is a back-end (doc/programs.md), read field by
 * field: what it is, and nothing else, or an error that says what is wrong with it. */
#ifndef HR_HOST_PROGRAM_ANSWER_H
#define HR_HOST_PROGRAM_ANSWER_H

#include <stdint.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "base/err.h"

#define HR_PROGRAM_LINE_MAX (1u << 20) /* of a line without its end, both ways */
#define HR_PROGRAM_WORD_MAX 1000       /* of a name, an address, a line for people */

enum hr_program_kind {
	HR_PROGRAM_OK,    /* the end: done */
	HR_PROGRAM_ERROR, /* the end: not done */
	HR_PROGRAM_DATA,  /* bytes of a file, or of what a command prints */
	HR_PROGRAM_FOUND, /* one of a list */
};

struct hr_program_answer {
	int64_t id; /* of the request */
	enum hr_program_kind kind;
	int stream;               /* of data: 0 a file, 1 stdout, 2 stderr */
	struct hr_buf data;       /* decoded */
	struct json_object *body; /* what is done, or one of the list: an object */
	struct hr_err error;      /* in words that can be printed */
};

/* 0, or -1 with *err; hr_program_answer_done() in both cases. No secret is in its error. */
int hr_program_read(const char *line, size_t len, const char *const *secrets,
    struct hr_program_answer *ret, struct hr_err *err);
void hr_program_answer_done(struct hr_program_answer *a);

/* What a program can beside what all of them can. */
enum hr_program_can {
	HR_PROGRAM_WAIT = 1,
	HR_PROGRAM_PAUSE = 2,
	HR_PROGRAM_RESUME = 4,
	HR_PROGRAM_STATS = 8,
	HR_PROGRAM_KEEP = 16,
	HR_PROGRAM_SHELL = 32,
	HR_PROGRAM_SERVER = 64,
};

#define HR_PROGRAM_PROTOCOL 1
#define HR_PROGRAM_TITLE_MAX 40

/* The answer to "hello". */
struct hr_program_about {
	unsigned can;
	char title[HR_PROGRAM_TITLE_MAX + 1]; /* "": it says none */
	char lacks[HR_PROGRAM_WORD_MAX + 1];  /* "": it says none */
};
/* -1: *ret is as it was. */
int hr_program_hello(struct json_object *ok, struct hr_program_about *ret, struct hr_err *err);

/* A text of one line of 1 to `max` bytes, without control characters; borrowed. */
int hr_program_word(struct json_object *o, const char *subject, const char *name, size_t max,
    const char **ret, struct hr_err *err);

#endif
