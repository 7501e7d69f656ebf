/* hr_v1: serves the API of an OpenHands V1 agent server for its workspace clients, with the same
 * files (doc/agents.md, "OpenHands V1"). Each command is a process of its own, whose result is kept
 * in files; the server stores nothing else between requests. */
#ifndef HR_WORKER_V1_V1_H
#define HR_WORKER_V1_V1_H

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

/* Runs the command to its end in a process of its own. `out` gets its stdout, which is an error if
 * it does not fit. Returns false after sending an error. */
bool hr_v1_run(struct hr_rex_call *c, struct hr_span command, struct hr_span cwd, double timeout_s,
    struct hr_buf *out, int64_t *ret_code);

/* ---- events.c; the query has the parameters ---- */
void hr_v1_search(struct hr_rex_call *c);
/* Sends the event with the id from the path, or those of the list in the body. */
void hr_v1_get_event(struct hr_rex_call *c, struct hr_span id);
void hr_v1_get_events(struct hr_rex_call *c);

/* ---- dirs.c; path is absolute and normalised ---- */
void hr_v1_make_directory(struct hr_rex_call *c, const struct hr_buf *path);
/* Lists the directories in a directory, one page per request. */
void hr_v1_subdirectories(struct hr_rex_call *c, const struct hr_buf *path);
void hr_v1_home(struct hr_rex_call *c);

/* ---- archive.c; path is absolute ---- */
void hr_v1_archive(struct hr_rex_call *c, const struct hr_buf *path);
/* Answers without an agent server, which makes the conversations, that there is none. */
void hr_v1_trajectory(struct hr_rex_call *c, struct hr_span id);

/* ---- query.c ---- */

/* Parses a date and time, as microseconds since 1970, a number or a truth value of the query; *io
 * stays if the query has none. Returns false after sending an error. */
bool hr_v1_number(
    struct hr_rex_call *c, const char *name, long long least, long long most, long long *io);
bool hr_v1_time(struct hr_rex_call *c, const char *name, int64_t *io);
bool hr_v1_truth(struct hr_rex_call *c, const char *name, bool *io);

#endif
