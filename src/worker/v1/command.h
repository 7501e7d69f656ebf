/* hr_v1_command: looks up a command of the V1 API, run as the only command of its own shell; its
 * state and output. bash.c and events.c use it. */
#ifndef HR_WORKER_V1_COMMAND_H
#define HR_WORKER_V1_COMMAND_H

#include "proto/channel.h"
#include "worker/v1/v1.h"

#define HR_V1_SHELLS "v1-"              /* prefix of all V1 shell names */
#define HR_V1_DIGITS 28                 /* digits of the id in the name; the last four are 0 */
#define HR_V1_LIMIT_HEAD "(limit=%lld;" /* prefix of a command's text */

struct hr_v1_command {
	char id[HR_V1_ID];
	char name[sizeof(HR_V1_SHELLS) + HR_V1_DIGITS];
};

/* Makes the shell's name from the id. */
void hr_v1_name(struct hr_v1_command *m);
/* Parses an id with or without dashes. Returns false if the id is not valid here. */
bool hr_v1_parse_id(struct hr_v1_command *m, struct hr_span s);
struct hr_shell_place hr_v1_place(const struct hr_rex_call *c, const char *name);
/* Looks up the only command of that shell. Returns 1, 0 if there is none or the shell is not a V1
 * shell (clients of other APIs may choose such names and type into V1 shells), or -1 if the keeper
 * does not answer. */
int hr_v1_look(const struct hr_rex_call *c, const char *name, struct hr_buf *frame,
    struct hr_command_state *ret);
/* Iterates over all V1 commands. hr_v1_walk_next() returns a name that stays valid until done, with
 * *ret, whose spans stay valid until the next call; NULL at the end. */
struct hr_v1_walk {
	struct hr_rex_call *c;
	struct hr_buf names, frame;
	size_t at;
};

void hr_v1_walk_init(struct hr_v1_walk *w, struct hr_rex_call *c);
void hr_v1_walk_done(struct hr_v1_walk *w);
const char *hr_v1_walk_next(struct hr_v1_walk *w, struct hr_command_state *ret);
int64_t hr_v1_exit_code(const struct hr_command_state *s);

/* ---- output streams: files in the shell's directory ---- */

struct hr_v1_streams {
	int out, err;
	uint64_t out_size, err_size;
};

/* Makes the files of a command; `request` is the JSON object that hr_v1_put_command() shows.
 * Returns 0, or -1 with errno set. */
int hr_v1_make_files(const struct hr_rex_call *c, const char *name, const struct hr_buf *request);
void hr_v1_streams_open(const struct hr_rex_call *c, const char *name, struct hr_v1_streams *s);
void hr_v1_streams_close(struct hr_v1_streams *s);
/* Appends the output between two boundaries, moved to the next character boundaries. */
void hr_v1_put_part(struct hr_buf *text, int fd, uint64_t from, uint64_t to);

/* ---- events ---- */

/* The ranges of an output event and its number. code is NULL while the command runs. */
struct hr_v1_event {
	uint64_t order, out_from, out_to, err_from, err_to;
	const int64_t *code;
};

/* Returns the number of output events of an ended command. */
uint64_t hr_v1_outputs(const struct hr_rex_call *c, const char *name);
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
