/* hr_child: a program that is a back-end, while it runs: requests to it, one at a time, and its
 * answers (doc/programs.md). It is started by the first request, and ended where it breaks the
 * protocol; the next request starts it anew. */
#ifndef HR_HOST_PROGRAM_CHILD_H
#define HR_HOST_PROGRAM_CHILD_H

#include <sys/types.h>

#include "host/program/answer.h"

struct hr_child {
	/* of the caller, before the first request */
	const char *name, *path;
	const char *const *env;                   /* what may be in its environment */
	struct json_object *opening;              /* for "open"; NULL: none is sent. Borrowed */
	const char *const *secrets;               /* in nothing that it says; NULL: none */
	unsigned patience_ms;                     /* for most answers */
	unsigned greet_ms;                        /* for those to "hello" and "open" */
	void (*say)(void *arg, const char *line); /* what it says on stderr; NULL: nobody listens */
	void *arg;

	struct hr_program_about about; /* once it runs */
	pid_t pid;                     /* 0: none */
	int to, from, said, ended;     /* its stdin, stdout, stderr; a pidfd */
	struct hr_buf in, words;       /* lines that are not whole yet */
	size_t looked;                 /* of in: no line ends there */
	bool cut;                      /* the rest of a line on stderr is dropped */
	char last[300];                /* its last line on stderr */
	unsigned lines;                /* of them */
	int64_t id;                    /* of the last request */
};

struct hr_child_call {
	const char *op;
	struct json_object *args; /* borrowed; NULL: none */
	unsigned timeout_ms;      /* 0: as long as it takes */
	const char *bytes;        /* sent behind it; NULL: none */
	size_t bytes_len;
	/* What comes before the end; NULL: nothing may. -1 with *err ends the program. */
	int (*event)(void *arg, const struct hr_program_answer *a, struct hr_err *err);
	void *arg;
};

struct hr_child_end {
	struct json_object *ok; /* the caller's */
	bool told;              /* of an error: the program said it, so nothing was done */
	bool late;              /* its time was over, and it was told so */
};

void hr_child_init(struct hr_child *c, const char *name, const char *path, const char *const *env);
void hr_child_done(struct hr_child *c); /* ends it */
/* Starts it where it does not run, with "hello" and "open". */
int hr_child_start(struct hr_child *c, struct hr_err *err);
/* 0, or -1 with *err and what *ret says of it. */
int hr_child_ask(struct hr_child *c, const struct hr_child_call *q, struct hr_child_end *ret,
    struct hr_err *err);

#endif
