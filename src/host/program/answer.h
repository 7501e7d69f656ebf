/* hr_program_answer: parses one line of a program back-end (doc/programs.md) field by field, with
 * errors that name the mistake. */
#ifndef HR_HOST_PROGRAM_ANSWER_H
#define HR_HOST_PROGRAM_ANSWER_H

#include <stdint.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "base/err.h"

/* maximum bytes of a line without its end, in both directions */
#define HR_PROGRAM_LINE_MAX (1u << 20)
/* maximum bytes of a name, an address or a line for people */
#define HR_PROGRAM_WORD_MAX 1000

enum hr_program_kind {
	HR_PROGRAM_OK,    /* final answer: success */
	HR_PROGRAM_ERROR, /* final answer: failure */
	HR_PROGRAM_DATA,  /* bytes of a file or of a command's output */
	HR_PROGRAM_FOUND, /* an entry of a list */
};

struct hr_program_answer {
	int64_t id; /* the request's id */
	enum hr_program_kind kind;
	int stream;               /* DATA: 0 a file, 1 stdout, 2 stderr */
	struct hr_buf data;       /* decoded bytes */
	struct json_object *body; /* an object with the result or the list entry */
	struct hr_err error;      /* error with a printable message */
};

/* Parses a line. Returns 0, or -1 with *err set, which contains no secret; the caller calls
 * hr_program_answer_done() in both cases. */
int hr_program_read(const char *line, size_t len, const char *const *secrets,
    struct hr_program_answer *ret, struct hr_err *err);
void hr_program_answer_done(struct hr_program_answer *a);

/* the optional abilities of a program */
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
	char title[HR_PROGRAM_TITLE_MAX + 1]; /* "": the program has no title */
	char lacks[HR_PROGRAM_WORD_MAX + 1];  /* "": the program lacks nothing */
};
/* Parses the answer. Returns 0, or -1 with *err set and *ret unchanged. */
int hr_program_hello(struct json_object *ok, struct hr_program_about *ret, struct hr_err *err);

/* Reads a one-line string of 1 to `max` bytes without control characters; borrowed. */
int hr_program_word(struct json_object *o, const char *subject, const char *name, size_t max,
    const char **ret, struct hr_err *err);

#endif
