/* hr_e2b_write: writes the files of a request, each whole or not at all, as the user's. The bytes
 * go to an unnamed file beside the place (files/place/atomic.h). */
#ifndef HR_WORKER_E2B_WRITE_H
#define HR_WORKER_E2B_WRITE_H

#include "base/strv.h"
#include "files/place/atomic.h"
#include "worker/e2b/e2b.h"

struct hr_e2b_write {
	struct hr_e2b_call *c;
	struct hr_buf given; /* path of the query */
	struct hr_buf path;  /* path of the current file, cleaned */
	struct hr_atomic file;
	bool open;               /* a file is being received */
	bool wanted;             /* the current part is a file */
	int status;              /* HTTP status of the error; 0: none */
	struct hr_buf why;       /* message of the error */
	struct hr_strv paths;    /* the written files */
	struct hr_strv metadata; /* pairs of key and value, sorted by key */
	struct hr_buf out;
};

void hr_e2b_write_init(struct hr_e2b_write *u, struct hr_e2b_call *c);
void hr_e2b_write_done(struct hr_e2b_write *u); /* Discards an unfinished file. */

/* Sets the error of the request unless there is one: fmt takes `text`. Returns -1. */
int hr_e2b_write_fail(struct hr_e2b_write *u, int status, const char *fmt, const char *text);
/* Sets the error of a system call about the current file. Returns -1. */
int hr_e2b_write_fail_errno(struct hr_e2b_write *u, const char *what, const char *call, int sys);

/* Reads the metadata of all files from the headers. Returns 0, or -1 with the error set, as the
 * next three. */
int hr_e2b_write_metadata(struct hr_e2b_write *u);
/* Opens the place of a file; `name` is its path as the client sent it. */
int hr_e2b_write_begin(struct hr_e2b_write *u, struct hr_span name);
int hr_e2b_write_data(struct hr_e2b_write *u, const char *p, size_t len);
int hr_e2b_write_end(struct hr_e2b_write *u); /* Puts the file in its place. */

/* Appends a JSON string as Go writes it: safe within HTML. */
void hr_e2b_write_put_text(struct hr_buf *b, const char *text);
/* Answers with u->out, or with the error. */
void hr_e2b_write_answer(struct hr_e2b_write *u);

#endif
