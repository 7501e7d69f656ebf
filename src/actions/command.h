/* hr_command: reads the keeper's record of a command, and its output, for APIs that follow a
 * command beyond the answer to its action. */
#ifndef HR_ACTIONS_COMMAND_H
#define HR_ACTIONS_COMMAND_H

#include "actions/shell.h"

#define HR_COMMAND_KEY_MAX 256 /* bytes of an action's key that a keeper stores */

/* Finds the newest command of that key, or with key "" the running one. Fills frame, from which
 * *ret borrows. Returns 1; 0 if the keeper does not know such a command; -1 if the keeper is not
 * available. */
int hr_command_find(const struct hr_shell_place *place, struct hr_span key, struct hr_buf *frame,
    struct hr_command_state *ret);

/* Reads output from *io_from on, to `end` and `max` bytes at most. *io_from becomes the offset of
 * the first byte still kept. Returns 0 or -1. */
int hr_command_output(const struct hr_shell_place *place, uint64_t *io_from, uint64_t end,
    size_t max, struct hr_buf *ret, struct hr_err *err);

/* Returns a descriptor that is readable when this worker must end, or -1 with *err set. */
int hr_command_signals(struct hr_err *err);

#endif
