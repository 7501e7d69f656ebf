/* One command of a sandbox's shell, as the server's live interface tells of it (doc/live.md). From
 * when it was found on nothing is asked about, shown of or sent to another one, whatever the shell
 * runs by then. */
#ifndef HR_CLI_WATCHED_H
#define HR_CLI_WATCHED_H

#include <stdint.h>

#include "base/buf.h"
#include "host/client/client.h"

struct cli_watched {
	struct hr_client client;
	int given_up_fd;  /* the caller's; readable: a request is given up; -1: none */
	char request[33]; /* the request that began it; "": the shell's last one is meant */

	bool answered;     /* its action is: all that it can be found by is there */
	int64_t id;        /* in the server's list; 0: it was not found yet */
	struct hr_buf key; /* of its action: a server that was killed counts from 1 again */
	bool listed;       /* it was, at the last look */
	bool running;
	bool behind;        /* it was not listed then, and another one ran */
	int exit_code;      /* -1: it ended the shell, or it is not known */
	uint64_t end;       /* the offset behind its output; of what there is while it runs */
	struct hr_buf text; /* the beginning of its text */
	uint64_t at;        /* its next byte that was not given to anybody */
};

int cli_watched_open(struct cli_watched *k, const struct hr_endpoint *e, struct hr_err *err);
void cli_watched_close(struct cli_watched *k);

/* Looks for it, or how it is: 0; -1: *err, as of a server that has no list of commands. */
int cli_watched_look(struct cli_watched *k, struct hr_err *err);

/* Bytes of its output; `lost`: so many before them are no longer kept. Negative: enough. */
typedef int cli_watched_fn(void *arg, uint64_t lost, const char *p, size_t len);

/* Its output from k->at on, as far as it is known to go; or, with a descriptor, what comes until it
 * is readable, the command ends, or the server ends the answer. Of one that was not found that is
 * until anything happens in the shell. 0: the answer's end; 1: given up before; -1: *err. */
int cli_watched_output(
    struct cli_watched *k, int follow_until_fd, cli_watched_fn *fn, void *arg, struct hr_err *err);

/* For it alone; one that has ended gets none of it. */
void cli_watched_interrupt(struct cli_watched *k);
void cli_watched_resize(struct cli_watched *k, int rows, int columns);

#endif
