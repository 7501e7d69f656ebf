/* hr_commands: the last commands that a shell was given, for those who look on. */
#ifndef HR_SESSION_COMMANDS_H
#define HR_SESSION_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "proto/frame.h"

#define HR_COMMAND_TEXT 1000 /* bytes of a command that are kept */
#define HR_COMMAND_KEY 256

struct hr_command {
	struct hr_command_state state; /* its spans are set when it is listed */
	int64_t begun_at, ended_at;
	size_t key_len, text_len;
	char key[HR_COMMAND_KEY], text[HR_COMMAND_TEXT];
};

/* All zero at first. Plain bytes: another process may go on with them. */
struct hr_commands {
	int64_t begun; /* the id of the last one */
	bool runs;     /* it has not ended */
	struct hr_command ring[HR_COMMANDS_MAX];
};

/* now: hr_now_ms(); at: offset in the output. One that has not ended goes with the next one. */
void hr_commands_begin(
    struct hr_commands *c, struct hr_span key, struct hr_span text, int64_t now, uint64_t at);
void hr_commands_end(
    struct hr_commands *c, enum hr_command_end how, int exit_code, int64_t now, uint64_t at);
/* The one of that id, if it is kept and has ended; NULL. */
const struct hr_command_state *hr_commands_ended(const struct hr_commands *c, int64_t id);
/* Oldest first; ret borrows until the next begin. printed: when the terminal printed last; at: the
 * output's end. */
size_t hr_commands_list(const struct hr_commands *c, int64_t now, int64_t printed, uint64_t at,
    struct hr_command_state ret[HR_COMMANDS_MAX]);

#endif
