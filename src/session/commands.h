/* hr_commands: records the last commands of a shell, for viewers. */
#ifndef HR_SESSION_COMMANDS_H
#define HR_SESSION_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "proto/frame.h"

#define HR_COMMAND_TEXT 1000 /* maximum bytes kept of a command */
#define HR_COMMAND_KEY 256

struct hr_command {
	struct hr_command_state state; /* hr_commands_list() sets its spans */
	int64_t begun_at, ended_at;
	size_t key_len, text_len;
	char key[HR_COMMAND_KEY], text[HR_COMMAND_TEXT];
};

/* All members are zero at first. The struct is plain bytes, so that another process can continue
 * with it. */
struct hr_commands {
	int64_t begun; /* id of the last command */
	bool runs;     /* the last command has not ended */
	struct hr_command ring[HR_COMMANDS_MAX];
};

/* Records a command. now: hr_now_ms(); at: offset in the output. A command still running counts as
 * ended. */
void hr_commands_begin(
    struct hr_commands *c, struct hr_span key, struct hr_span text, int64_t now, uint64_t at);
void hr_commands_end(
    struct hr_commands *c, enum hr_command_end how, int exit_code, int64_t now, uint64_t at);
/* Returns the command of that id if it is kept and has ended; otherwise NULL. */
const struct hr_command_state *hr_commands_ended(const struct hr_commands *c, int64_t id);
/* Returns the last command if its request had that key and the command has completed; otherwise
 * NULL. */
const struct hr_command_state *
hr_commands_completed(const struct hr_commands *c, struct hr_span key);
/* Lists the commands, oldest first; ret borrows until the next begin. printed: time of the
 * terminal's last output; at: the output's end. */
size_t hr_commands_list(const struct hr_commands *c, int64_t now, int64_t printed, uint64_t at,
    struct hr_command_state ret[HR_COMMANDS_MAX]);

#endif
