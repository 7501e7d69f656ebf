/* A command of a sandbox's shell, through the server's live interface (doc/live.md). Once it is
 * found, nothing is requested, shown or sent for another command, whatever the shell runs by
 * then. */
#ifndef HR_CLI_WATCHED_H
#define HR_CLI_WATCHED_H

#include <stdint.h>

#include "base/buf.h"
#include "host/client/client.h"

struct cli_watched {
	struct hr_client client;
	int given_up_fd;  /* the caller's; readable: abort a request; -1: none */
	char request[33]; /* id of the request that started it; "": the shell's last command */

	bool answered;     /* the action is answered: it must be in the list */
	int64_t id;        /* number in the server's list; 0: not found yet */
	struct hr_buf key; /* key of its action: a restarted server counts from 1 again */
	bool listed;       /* found by the last look */
	bool running;
	bool behind;        /* not listed then, and another one ran */
	int exit_code;      /* -1: it ended the shell, or unknown */
	uint64_t end;       /* offset after its output so far */
	struct hr_buf text; /* start of its text */
	uint64_t at;        /* offset of the next byte to deliver */
};

int cli_watched_open(struct cli_watched *k, const struct hr_endpoint *e, struct hr_err *err);
void cli_watched_close(struct cli_watched *k);

/* Looks up the command's state. Returns 0; -1: *err, e.g. if the server has no list of commands. */
int cli_watched_look(struct cli_watched *k, struct hr_err *err);

/* Takes bytes of output; `lost`: bytes before them that are no longer kept. Negative: stop. */
typedef int cli_watched_fn(void *arg, uint64_t lost, const char *p, size_t len);

/* Delivers output from k->at on, up to its known end; with a descriptor, new output until that is
 * readable, the command ends, or the server ends the response. If the command was not found yet, it
 * waits for any activity in the shell. Returns 0: end of the response; 1: aborted; -1: *err. */
int cli_watched_output(
    struct cli_watched *k, int follow_until_fd, cli_watched_fn *fn, void *arg, struct hr_err *err);

/* Sends to this command only; an ended one gets nothing. */
void cli_watched_interrupt(struct cli_watched *k);
void cli_watched_resize(struct cli_watched *k, int rows, int columns);

#endif
