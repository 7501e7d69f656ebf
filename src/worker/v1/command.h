/* hr_v1_command: a command of the V1 API: its state and output, which are files. bash.c and
 * events.c use it. */
#ifndef HR_WORKER_V1_COMMAND_H
#define HR_WORKER_V1_COMMAND_H

#include "worker/v1/v1.h"

#define HR_V1_LIST_MAX (1u << 20) /* bytes of a list of commands */

struct hr_v1_command {
	char id[HR_V1_ID]; /* the last four digits are 0: they number its events */
};

struct hr_v1_state {
	int64_t started_us, ended_us; /* since 1970 */
	int64_t code;
	bool over; /* `code` and `ended_us` are set */
};

struct hr_v1_entry {
	struct hr_v1_command m;
	struct hr_v1_state state;
};

/* Parses an id with or without dashes. Returns false if the id is not valid here; m->id is then ""
 * unless it is another UUID. */
bool hr_v1_parse_id(struct hr_v1_command *m, struct hr_span s);
/* Returns the path of a command's directory, "" for that of all, followed by `rest`; the caller
 * frees it. Returns NULL without memory. */
char *hr_v1_path(const struct hr_worker *w, const char *id, const char *rest);
/* Looks up a command. Returns 1, 0 if there is none, or -1 if its files cannot be read. */
int hr_v1_look(const struct hr_rex_call *c, const char *id, struct hr_v1_state *ret);
/* Appends a struct hr_v1_entry for each command in the order of their starts. Returns their
 * number. */
size_t hr_v1_list(const struct hr_rex_call *c, struct hr_buf *list);
/* Returns the bytes of a command's output. */
uint64_t hr_v1_bytes(const struct hr_rex_call *c, const char *id);
/* Finds the command that the request with this name has started. */
bool hr_v1_find(const struct hr_rex_call *c, struct hr_span key, struct hr_v1_command *ret);
/* Removes a command, which ends all that is left of it. Returns false if files are left. */
bool hr_v1_remove(const struct hr_rex_call *c, const char *id);
/* Returns true while the minder runs, which stays until no process of the command is left. */
bool hr_v1_is_minded(const struct hr_rex_call *c, const char *id);
/* Stops a running command, or what an ended one has left. Returns 0, or -1 with errno. */
int hr_v1_stop_file(const struct hr_rex_call *c, const char *id);

/* Starts the command of the body without a time limit, or finds the one that an earlier attempt of
 * the request with the name `key` has started. Returns false after sending an error. */
bool hr_v1_begin_named(struct hr_rex_call *c, struct hr_span key, struct hr_v1_command *m);
/* Waits until the command ends, whose minder then closes the file of its state, hr_now_ms() reaches
 * until_ms, or one of fds[1] to fds[n - 1] is ready; fds[0] is set here. Returns as
 * hr_v1_look(). */
struct pollfd;
int hr_v1_wait(const struct hr_rex_call *c, const char *id, int64_t until_ms, struct pollfd *fds,
    size_t n, struct hr_v1_state *state);

/* ---- output streams ---- */

struct hr_v1_streams {
	int out, err;
	uint64_t out_size, err_size;
};

/* Makes the files of a command that is not started yet; `request` is the JSON object that
 * hr_v1_put_command() shows. Returns 0, or -1 with errno set. */
int hr_v1_make_files(const struct hr_rex_call *c, const char *id, const struct hr_buf *request);
void hr_v1_streams_open(const struct hr_rex_call *c, const char *id, struct hr_v1_streams *s);
void hr_v1_streams_close(struct hr_v1_streams *s);
/* Appends the output between two boundaries, moved to the next character boundaries. */
void hr_v1_put_part(struct hr_buf *text, int fd, uint64_t from, uint64_t to);

/* ---- events ---- */

/* The ranges of an output event and its number. code is NULL while the command runs. */
struct hr_v1_event {
	uint64_t order, out_from, out_to, err_from, err_to;
	const int64_t *code;
};

/* Returns the number of output events that there are now. */
int64_t hr_v1_outputs_now(
    const struct hr_rex_call *c, const struct hr_v1_command *m, const struct hr_v1_state *state);
/* Returns the number of output events of an ended command. */
uint64_t hr_v1_outputs(const struct hr_rex_call *c, const char *id);
/* Calls fn for each event so far, oldest first; order -1: the command itself. */
typedef void hr_v1_each_fn(void *arg, const struct hr_v1_command *m, int64_t order);
void hr_v1_each_event(struct hr_rex_call *c, hr_v1_each_fn *fn, void *arg);
void hr_v1_put_time(struct hr_buf *b, int64_t ms);
/* Appends the id of an output event, which is always the same for the same event. */
void hr_v1_put_id(struct hr_buf *b, const struct hr_v1_command *m, uint64_t order);
void hr_v1_put_output(struct hr_buf *b, const struct hr_v1_command *m, uint64_t order,
    const int64_t *code, const struct hr_buf *out, const struct hr_buf *err, int64_t ms);
void hr_v1_put_event(struct hr_buf *b, const struct hr_v1_command *m, const struct hr_v1_streams *s,
    const struct hr_v1_event *e, int64_t ms);
/* Appends the event of the command itself. */
void hr_v1_put_command(
    struct hr_buf *b, const struct hr_rex_call *c, const struct hr_v1_command *m, int64_t ms);

#endif
