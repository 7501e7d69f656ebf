/* hr_child: runs a back-end program: sends requests one at a time and reads the answers
 * (doc/programs.md). The first request starts the program. A protocol error ends it, and the next
 * request restarts it. */
#ifndef HR_HOST_PROGRAM_CHILD_H
#define HR_HOST_PROGRAM_CHILD_H

#include <sys/types.h>

#include "host/program/answer.h"

struct hr_child {
	/* the caller sets these before the first request */
	const char *name, *path;
	const char *const *env;      /* environment of the program */
	struct json_object *opening; /* arguments of "open", borrowed; NULL: "open" is not sent */
	const char *const *secrets;  /* strings to hide in its messages; NULL: none */
	unsigned patience_ms;        /* timeout of most answers */
	unsigned greet_ms;           /* timeout of "hello" and of "open" */
	void (*say)(void *arg, const char *line); /* receives stderr lines; NULL: dropped */
	void *arg;

	struct hr_program_about about; /* valid while the program runs */
	pid_t pid;                     /* 0: the program does not run */
	int to, from, said, ended;     /* stdin, stdout and stderr of the program, and its pidfd */
	struct hr_buf in, words;       /* incomplete lines */
	size_t looked;                 /* bytes of `in` without a line end */
	bool cut;                      /* the rest of a stderr line is dropped */
	char last[300];                /* last line on stderr */
	unsigned lines;                /* number of stderr lines */
	int64_t id;                    /* id of the last request */
};

struct hr_child_call {
	const char *op;
	struct json_object *args; /* borrowed; NULL: there are none */
	unsigned timeout_ms;      /* 0: no limit */
	const char *bytes;        /* data to send after the request; NULL: none */
	size_t bytes_len;
	/* Handles the answers before the last one; NULL: there must be none. A result of -1 with
	 * *err ends the program. */
	int (*event)(void *arg, const struct hr_program_answer *a, struct hr_err *err);
	void *arg;
};

struct hr_child_end {
	struct json_object *ok; /* result, owned by the caller */
	bool told;              /* after an error: the program reported it, so nothing was done */
	bool late;              /* the request timed out and was cancelled */
};

void hr_child_init(struct hr_child *c, const char *name, const char *path, const char *const *env);
void hr_child_done(struct hr_child *c); /* Ends the program. */
/* Starts the program unless it runs, with "hello" and "open". */
int hr_child_start(struct hr_child *c, struct hr_err *err);
/* Sends a request. Returns 0, or -1 with *err set and details in *ret. */
int hr_child_ask(struct hr_child *c, const struct hr_child_call *q, struct hr_child_end *ret,
    struct hr_err *err);

#endif
