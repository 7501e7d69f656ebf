/* Watches a command of a sandbox's shell, through the server's live interface (doc/live.md). Once
 * it is found, nothing is requested, shown or sent for another command, whatever the shell runs by
 * then. */
#ifndef HR_CLI_WATCHED_H
#define HR_CLI_WATCHED_H

#include <stdint.h>

#include "base/buf.h"
#include "host/client/client.h"

struct json_object;

struct cli_watched {
	struct hr_client client;
	/* the caller's descriptor; when it is readable, abort a request; -1: none */
	int given_up_fd;
	unsigned timeout_s; /* seconds for requests other than those for output */
	char session[40];   /* "session=NAME"; "": the default shell */
	/* id of the request that started the command; "": the shell's last command */
	char request[33];

	bool answered;     /* the action is answered, so the command must be in the list */
	int64_t id;        /* number in the server's list; 0: not found yet */
	struct hr_buf key; /* key of the command's action: a restarted server counts from 1 again */
	bool listed;       /* the last look found the command */
	bool running;
	bool behind;        /* the last look did not find the command, and another one ran */
	int exit_code;      /* -1: the command ended the shell, or the code is unknown */
	uint64_t end;       /* offset after the command's output so far */
	struct hr_buf text; /* start of the command's text */
	uint64_t at;        /* offset of the next byte to deliver */
};

int cli_watched_open(struct cli_watched *k, const struct hr_endpoint *e, struct hr_err *err);
void cli_watched_close(struct cli_watched *k);

/* Sends a request that concerns the shell; body has JSON, NULL: none. The caller owns *ret. */
int cli_watched_ask(struct cli_watched *k, const char *method, const char *path, const char *body,
    struct json_object **ret, struct hr_err *err);
/* Posts a request that must not be done twice, and is not repeated when its answer is lost. A
 * program that has just ended refuses it: that is no error. */
void cli_watched_post_once(struct cli_watched *k, const char *path, const char *body);

/* Looks up the command's state. Returns 0, or -1 with *err, e.g. if the server has no list of
 * commands. */
int cli_watched_look(struct cli_watched *k, struct hr_err *err);

/* Takes the state from the action's observation, which saves the look. Returns false if the command
 * is known already, or the observation does not have the place of its output. */
bool cli_watched_take(struct cli_watched *k, const char *observation);

/* Takes bytes of output; `lost` bytes before them are no longer kept. A negative result stops. */
typedef int cli_watched_fn(void *arg, uint64_t lost, const char *p, size_t len);

/* Delivers output from k->at on, up to its known end; with a descriptor, new output until that is
 * readable, the command ends, or the server ends the response. If the command was not found yet, it
 * waits for any activity in the shell. Returns 0 at the end of the response, 1 if aborted, -1 with
 * *err. */
int cli_watched_output(
    struct cli_watched *k, int follow_until_fd, cli_watched_fn *fn, void *arg, struct hr_err *err);

/* Sends to this command only; an ended command gets nothing. */
void cli_watched_interrupt(struct cli_watched *k);
void cli_watched_resize(struct cli_watched *k, int rows, int columns);
/* Returns the size of the terminal on standard output, or false if the size is not known. */
bool cli_watched_size(int *ret_rows, int *ret_columns);
/* Lets the command continue without a reader of its output. */
void cli_watched_let_go(struct cli_watched *k);

#endif
