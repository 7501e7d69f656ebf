/* hr_v1: serves the API of an OpenHands V1 agent server for its workspace clients, with the same
 * files (doc/agents.md, "OpenHands V1"). Each command is a process of its own, whose result is kept
 * in files; the server stores nothing else between requests. */
#ifndef HR_WORKER_V1_V1_H
#define HR_WORKER_V1_V1_H

#include <sys/stat.h>

#include "worker/rex/rex.h"

#define HR_V1_ID 37 /* size of a command's id: a UUID and its NUL */

extern const struct hr_rex_model hr_v1_bash_model;

/* ---- bash.c; the model above checks the bodies ---- */
void hr_v1_start(struct hr_rex_call *c);
void hr_v1_execute(struct hr_rex_call *c);
/* Starts the command without an answer. Returns false after sending an error. */
bool hr_v1_begin(struct hr_rex_call *c);
/* Drops the results of all ended commands. */
void hr_v1_clear(struct hr_rex_call *c);
/* Stops the command with the id from the path. */
void hr_v1_stop(struct hr_rex_call *c, struct hr_span id);

/* Runs the command, which has no null character, to its end in a process outside the default shell.
 * `out` gets its stdout, which is an error if it does not fit. Returns false after sending an
 * error. */
bool hr_v1_run(struct hr_rex_call *c, struct hr_span command, int64_t limit_s, struct hr_buf *out,
    int64_t *ret_code);

/* ---- events.c; the query has the parameters ---- */
void hr_v1_search(struct hr_rex_call *c);
/* Returns true if there is an event with that id. */
bool hr_v1_is_output(struct hr_rex_call *c, struct hr_span id);
/* Sends the event with the id from the path, or those of the list in the body. */
void hr_v1_get_event(struct hr_rex_call *c, struct hr_span id);
void hr_v1_get_events(struct hr_rex_call *c);

/* ---- dirs.c; path is absolute and normalised ---- */
void hr_v1_make_directory(struct hr_rex_call *c, const struct hr_buf *path);
struct hr_v1_listing {
	long long limit; /* entries per page */
	bool hidden;     /* true: list hidden directories, too */
};
/* Lists the directories in a directory, one page per request. */
void hr_v1_subdirectories(
    struct hr_rex_call *c, const struct hr_buf *path, const struct hr_v1_listing *l);
void hr_v1_home(struct hr_rex_call *c);

/* ---- download.c ---- */

struct hr_bytepart;
#define HR_V1_RANGES 100 /* maximum in a request; more mean the whole file */
/* Parses the header Range as Starlette does. Returns the number of parts, sorted and without
 * overlaps; 0: the whole file; -1: one lies outside the file; -2 with the text of a 400 in
 * *ret_why. */
int hr_v1_ranges(const char *header, off_t size, struct hr_bytepart *to, const char **ret_why);
/* Sends an open file, with the ranges but without the conditions of the request: the original has
 * none but If-Range. Takes *fd, if it needs it. */
void hr_v1_download(struct hr_rex_call *c, int *fd, const struct stat *st);

/* ---- archive.c; path is absolute ---- */
void hr_v1_archive(struct hr_rex_call *c, const struct hr_buf *path, bool tar, bool excludes);
/* Answers without an agent server, which makes the conversations, that there is none. */
void hr_v1_trajectory(struct hr_rex_call *c);

/* ---- invalid.c ---- */

#define HR_V1_TEXT_MAX (64u << 10) /* bytes of a parameter */

/* A parameter: `where` is query, path or body, text.p NULL stands for null. */
struct hr_v1_input {
	const char *where, *name; /* name NULL: the whole body */
	struct hr_span text;
};

/* Adds an error to the answer, which becomes a 422; ctx has the members of one more object, or is
 * NULL. Returns false. */
bool hr_v1_invalid(struct hr_rex_call *c, const struct hr_v1_input *in, const char *type,
    const char *msg, const char *ctx);
/* Adds "Input should be a valid `what`, `error`". Returns false. */
bool hr_v1_invalid_as(struct hr_rex_call *c, const struct hr_v1_input *in, const char *type,
    const char *what, const struct hr_buf *error);
bool hr_v1_missing(struct hr_rex_call *c, const char *where, const char *name);

/* Each of these returns false after it has added an error. Those with *io leave it as it is if the
 * query lacks the parameter. */

/* Requires a parameter of the query. */
bool hr_v1_required(struct hr_rex_call *c, const char *name);
/* Sets *io to the index of the query's value; type is that of the error. */
bool hr_v1_one_of(struct hr_rex_call *c, const char *name, const char *type,
    const char *const *values, size_t *io);
/* Checks the name of a commit: 4 to 64 hexadecimal digits. */
bool hr_v1_sha(struct hr_rex_call *c, const struct hr_v1_input *in);
/* Checks a UUID in any of its forms. *ret becomes its part without "urn:uuid:" or braces. */
bool hr_v1_uuid(struct hr_rex_call *c, const struct hr_v1_input *in, struct hr_span *ret);

/* ---- query.c: the same for numbers, times and truth values ---- */

bool hr_v1_number(struct hr_rex_call *c, const char *name, long long *io);
/* Parses `limit`, 1 to `most`; `above`: the error's words are "greater than 0". */
bool hr_v1_limit(struct hr_rex_call *c, bool above, long long most, long long *io);
/* Parses a date and time as microseconds since 1970. */
bool hr_v1_time(struct hr_rex_call *c, const char *name, int64_t *io);
bool hr_v1_truth(struct hr_rex_call *c, const char *name, bool *io);

#endif
