/* hr_sidecar: programs that serve a sandbox of this machine from outside, one process of each, and
 * the directory that they share with it. */
#ifndef HR_HOST_SIDECAR_SIDECAR_H
#define HR_HOST_SIDECAR_SIDECAR_H

#include <sys/types.h>

#include "base/strv.h"
#include "host/handrail-backend.h"

/* the directory of the server's socket in the sandbox, which the caller's side has, too */
#define HR_SIDECAR_EDGE "/run/handrail/edge"
#define HR_SIDECAR_SOCKET "http.sock"

/* A sandbox, as its sidecars need it. "The box" in their files is this sandbox. */
struct hr_sidecars {
	const struct hr_backend_host *h;
	/* a directory that the caller alone may enter, with a record of each program; NULL: there
	 * is none yet */
	char *dir;
	int watch;      /* pidfd of the sandbox's first process; -1: none */
	char first[48]; /* that process's number and start, by which a record names its sandbox */
	int socket;     /* the server's socket file, opened with O_PATH; -1: none */
	char at[32];    /* the path of `socket` */
};

/* Returns a path below s->dir, which the caller frees; NULL without memory. */
char *hr_sidecar_path(const struct hr_sidecars *s, const char *name);
/* Makes a directory that no other account can enter, or reuses one that belongs to this account. */
int hr_sidecar_make_directory(const char *path, bool *ret_new, struct hr_err *err);
/* Makes the directory of the server's socket. It is the root of a mount in the sandbox, whose root
 * can change its mode, owner and contents: only the directory above keeps other accounts out of it.
 * One that cannot be removed gets another name, and goes with the directory above. */
int hr_sidecar_make_edge(const char *path, struct hr_err *err);
/* Opens the server's socket in that directory. The sandbox's root can put a link or another file in
 * its place, which is refused and not followed, now or later. Returns 0, or -1 with *err set. */
int hr_sidecar_open_socket(struct hr_sidecars *s, const char *edge, struct hr_err *err);

struct hr_sidecar {
	/* The program, a file of the directory for programs, and its arguments. Its descriptors
	 * are: 1, the locked record, to which it writes {"pid": N, "started": N, "port": N} when it
	 * serves; 2, to which it writes why it cannot, and which it closes when it serves; 3, a
	 * pidfd of the box's first process; 4, the server's socket, if the program needs it. */
	const char *const *argv;
	bool socket;
	const char *record; /* a file below the box's directory */
	const char *what;   /* the subject of errors */
};

/* Watches the sandbox's first process. Returns the pidfd, or -1 with errno as hr_proc_watch(). */
int hr_sidecar_watch(struct hr_sidecars *b, pid_t pid, unsigned long long started);
/* Starts the program of a running box unless it runs already, and ends that of an earlier box of
 * the sandbox. Returns its port (0: it has none), or -1 with *err set. */
int hr_sidecar_find(const struct hr_sidecars *b, const struct hr_sidecar *h, struct hr_err *err);
/* Ends it, if it runs, and removes its record. */
void hr_sidecar_end(const struct hr_sidecars *b, const char *record);

/* Starts the forwarder to the server of a running sandbox at that port (0: any), or with `editor`
 * to its editor, whose port has the same number inside and outside, unless it already runs. Returns
 * the port of 127.0.0.1, or -1 with *err set. */
int hr_sidecar_forward(const struct hr_sidecars *b, bool editor, int port, struct hr_err *err);
/* Ends the forwarders, if there are any. */
void hr_sidecar_end_forwards(const struct hr_sidecars *b);

#endif
