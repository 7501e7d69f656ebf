/* hr_command: builds the command that starts the server of a sandbox (doc/host.md, "The start
 * command"). */
#ifndef HR_HOST_COMMAND_H
#define HR_HOST_COMMAND_H

#include "host/handrail-backend.h"
#include "base/strv.h"

struct json_object;

struct hr_command {
	const char *const *prefix; /* the program and its arguments before the port */
	int port;
	const char *working_dir;
	const char *const *plugins;
	const char *username; /* NULL: taken from environment and configuration */
	long user_id;         /* -1: taken from environment and configuration; 0 is a valid id */
};

/* Returns the command for an image with the original's layout, in the workspace of the settings. */
struct hr_command hr_command_in_image(const struct hr_backend_host *h, int port);

/* Replaces *ret by the key of a new server: the environment's, or a random one. */
int hr_command_key(const char *const *env, char **ret, struct hr_err *err);

/* Sets the variables of a server that is alone in its sandbox: the key (NULL: none), the ports of
 * an editor and of two programs, and those of the settings, which come last. */
void hr_command_env(struct hr_strv *env, const struct hr_backend_host *h, const char *key,
    int vscode_port, const int app_ports[2]);

#define HR_WORKER_PORTS 2
/* Returns the port that a client of OpenHands V1 gives to programs in WORKER_1 (i is 0) or
 * WORKER_2; 0 if `environment`, which may be NULL, has none. */
int hr_command_worker_port(struct json_object *environment, int i);

/* Runs `words` (the first is the program) on the caller's terminal, without the server's key in its
 * environment. */
int hr_command_here(
    const struct hr_strv *words, const char *const *env, int *ret_status, struct hr_err *err);

/* Appends the command to *ret. */
int hr_command_build(struct hr_strv *ret, const struct hr_command *c, const struct hr_config *cfg,
    const char *const *env, struct hr_err *err);

#endif
