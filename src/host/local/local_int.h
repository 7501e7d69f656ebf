/* hr_local: internals of the back-end "local": one server that is a process of this machine. */
#ifndef HR_HOST_LOCAL_LOCAL_INT_H
#define HR_HOST_LOCAL_LOCAL_INT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/strv.h"
#include "host/records/portlock.h"
#include "host/handle.h"

struct hr_local {
	const struct hr_backend_host *h;
	pid_t pid; /* 0: there is no server */
	unsigned long long started;
	int watch; /* pidfd, readable when the server has ended; -1: none */
	int port, vscode_port, app_ports[2];
	int reserved; /* descriptor that holds the port until the server has it; -1: none */
	char *url, *key, *workspace, *log;
	char *run_dir;      /* the server's run directory; NULL: not chosen yet */
	bool own_workspace; /* the workspace was created here and is removed at the end */
	char *home; /* the sandbox's home directory, removed with it; NULL: not created yet */
	/* this process created the home directory: it is removed if the start fails */
	bool new_home;
	bool in_home; /* `home` is $HOME, too, and not only the place of the shell's history */
	struct hr_portlock locks[4];
};

/* Starts a server and waits until it answers; after a failure *l has all that was started. */
int hr_local_make(struct hr_local *l, struct hr_err *err);

/* Changes the caller's environment to one whose programs write nothing into the caller's home
 * directory. */
void hr_local_set_home(const struct hr_local *l, struct hr_strv *env);

/* Returns the directory in which a server's run directory is made, short enough for the addresses
 * of sockets in it; borrowed from env or static. Root's server runs nginx as another account, which
 * can enter it. */
const char *hr_local_run_base(const char *const *env);

/* Implements members of the table. */
int hr_local_vscode_url(void *self, char **ret, struct hr_err *err);
int hr_local_web_hosts(void *self, char **ret_json, struct hr_err *err);
int hr_local_doctor(void *self, hr_finding_fn *fn, void *arg, struct hr_err *err);

#endif
