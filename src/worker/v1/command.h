/* hr_v1_command: one command of the V1 door, as the one command of a shell of its own; what is
 * known of it, and what it printed. For bash.c and events.c. */
#ifndef HR_WORKER_V1_COMMAND_H
#define HR_WORKER_V1_COMMAND_H

#include "proto/channel.h"
#include "worker/v1/v1.h"

#define HR_V1_SHELLS "v1-"              /* all of our shells begin with it */
#define HR_V1_DIGITS 28                 /* of the id, behind it; the last four are 0 */
#define HR_V1_LIMIT_HEAD "(limit=%lld;" /* begins the text of a command */

struct hr_v1_command {
	char id[HR_V1_ID];
	char name[sizeof(HR_V1_SHELLS) + HR_V1_DIGITS];
};

/* The shell's name, of the id. */
void hr_v1_name(struct hr_v1_command *m);
/* With dashes and without. False: no id of ours. */
bool hr_v1_parse_id(struct hr_v1_command *m, struct hr_span s);
struct hr_shell_place hr_v1_place(const struct hr_rex_call *c, const char *name);
/* The one command of that shell. 1; 0: there is none, or it is no shell of ours: others may give
 * such names, too, and type into ours; -1: it cannot be asked. */
int hr_v1_look(const struct hr_rex_call *c, const char *name, struct hr_buf *frame,
    struct hr_command_state *ret);
/* All of them. next: a name that stays until done, and *ret, of which spans stay until the next;
 * NULL: no more. */
struct hr_v1_walk {
	struct hr_rex_call *c;
	struct hr_buf names, frame;
	size_t at;
};

void hr_v1_walk_init(struct hr_v1_walk *w, struct hr_rex_call *c);
void hr_v1_walk_done(struct hr_v1_walk *w);
const char *hr_v1_walk_next(struct hr_v1_walk *w, struct hr_command_state *ret);
int64_t hr_v1_exit_code(const struct hr_command_state *s);

/* ---- its two streams are files in the shell's directory ---- */

struct hr_v1_streams {
	int out, err;
	uint64_t out_size, err_size;
};

/* -1 with errno. */
int hr_v1_make_files(const struct hr_rex_call *c, const char *name);
void hr_v1_streams_open(const struct hr_rex_call *c, const char *name, struct hr_v1_streams *s);
void hr_v1_streams_close(struct hr_v1_streams *s);
/* Of what stands from one boundary to another: a boundary lies between two characters. */
void hr_v1_put_part(struct hr_buf *text, int fd, uint64_t from, uint64_t to);

/* ---- events ---- */

/* Where an output ends, and what its number is; one that goes on has no code. */
struct hr_v1_event {
	uint64_t order, out_from, out_to, err_from, err_to;
	const int64_t *code;
};

/* How many events of output a command that has ended has. */
uint64_t hr_v1_outputs(const struct hr_rex_call *c, const char *name);
void hr_v1_put_time(struct hr_buf *b, int64_t ms);
/* Another id for each of a command's outputs, and the same one whenever it is asked for. */
void hr_v1_put_id(struct hr_buf *b, const struct hr_v1_command *m, uint64_t order);
void hr_v1_put_output(struct hr_buf *b, const struct hr_v1_command *m, uint64_t order,
    const int64_t *code, const struct hr_buf *out, const struct hr_buf *err, int64_t ms);
void hr_v1_put_event(struct hr_buf *b, const struct hr_v1_command *m, const struct hr_v1_streams *s,
    const struct hr_v1_event *e, int64_t ms);

#endif
