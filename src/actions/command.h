/* hr_command: what the keeper of a shell knows of a command, and what it printed. For the doors
 * that follow a command beyond the answer to its action. */
#ifndef HR_ACTIONS_COMMAND_H
#define HR_ACTIONS_COMMAND_H

#include "actions/shell.h"

#define HR_COMMAND_KEY_MAX 256 /* so much of an action's key a keeper notes */

/* The newest command of that key, or with key "" the one that runs. frame is filled, *ret borrows
 * from it. 1; 0: there is none among those that the keeper still knows; -1: it cannot be asked. */
int hr_command_find(const struct hr_shell_place *place, struct hr_span key, struct hr_buf *frame,
    struct hr_command_state *ret);

/* Of the output from *io_from on, to `end` and `max` bytes at most. *io_from: where the first byte
 * is that was still kept. 0 or -1. */
int hr_command_output(const struct hr_shell_place *place, uint64_t *io_from, uint64_t end,
    size_t max, struct hr_buf *ret, struct hr_err *err);

#endif
