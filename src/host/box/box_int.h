/* Internals of hr_box, the back-end "box": one server that is process 1 of a box, which
 * handrail-box(8) makes. */
#ifndef HR_HOST_BOX_BOX_INT_H
#define HR_HOST_BOX_BOX_INT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "host/handrail-backend.h"
#include "host/records/portlock.h"
#include "host/sidecar/egress.h"

#define HR_BOX_NOTIFY "ready"
/* A file in the box's directory: the line {"pid": N, "started": N, "groups": [PATH, ...]}. */
#define HR_BOX_PROCESS "process"
#define HR_BOX_OLD "storage.old" /* the storage of a box whose removal was interrupted */
#define HR_BOX_STATE_DIR "/var/lib/handrail" /* the server's journal */
/* The directory of the journal in the storage, which is a mount of its own in the box. */
#define HR_BOX_JOURNAL "journal"
#define HR_BOX_LINE_MAX (1u << 16)

enum { HR_BOX_VSCODE, HR_BOX_APP1, HR_BOX_APP2, HR_BOX_PORTS };

struct hr_spawn_fd;
struct json_object;

struct hr_box {
	const struct hr_backend_host *h;
	/* The next four members are kept from one box to the next of the same sandbox: the record
	 * of the first leads to the next. NULL: there was none. */
	char *name; /* name of the control groups, and the host name in the box */
	/* side.dir has all files of the box: "storage", "log", "process", "edge" */
	struct hr_sidecars side;
	char *edge; /* the caller's name of HR_SIDECAR_EDGE, below side.dir */
	char *key;
	char *root; /* box.root of the first box; NULL: the host's programs */
	pid_t pid;  /* 0: none */
	unsigned long long started;
	/* the copied storage of a new branch, and its parent's directory; borrowed; NULL: the box
	 * is no branch */
	const char *prepared, *parent;
	int64_t most;          /* bytes of a snapshot; 0: no limit */
	bool replaces;         /* true: a snapshot may take the tag of another one */
	bool counted;          /* true: a snapshot's files are counted at once */
	struct hr_strv groups; /* directories of the control groups */
	char *url;             /* "unix:" and the caller's path of it; NULL: none */
	bool new_dir; /* this process made the directory: it is removed if the start fails */
	/* locks that are held only with the network of the host */
	struct hr_portlock locks[HR_BOX_PORTS];
	/* 0: none; a box with a network of its own has only the editor's port, which has the same
	 * number in the box and outside */
	int ports[HR_BOX_PORTS];
};

/* Returns port i in the box, which is a port of the machine if the box has the host's network. */
int hr_box_port(const struct hr_box *b, int i);
/* Starts a box and waits until its server answers; after a failure *b has all that was started. */
int hr_box_make(struct hr_box *b, struct hr_err *err);
/* Takes the process and the groups from the launcher's line. Returns 1 if the process runs, 0 if it
 * has ended, or -1 with *err set if that cannot be known. */
int hr_box_take_process(struct hr_box *b, const char *line, struct hr_err *err);
/* Opens the server's socket. Returns 0, or -1 with *err set. */
int hr_box_open_socket(struct hr_box *b, struct hr_err *err);
/* Lets the launcher check the document o. Appends its output to *out. Returns 0, or -1 with the
 * launcher's reason in *err. */
int hr_box_check(struct json_object *o, struct hr_buf *out, struct hr_err *err);
/* Returns the path of a program of boxes. The caller frees it; NULL with *err set: there is none.
 */
#define HR_BOX_LAUNCHER "handrail-box"
char *hr_box_program(const char *name, struct hr_err *err);
/* Sets *err to the last message that a program of boxes has printed; always returns -1. */
int hr_box_refused(const char *program, const char *said, int status, struct hr_err *err);

/* Appends the document that describes the box. Needs b's name, dir, edge, key and ports. */
int hr_box_document(const struct hr_box *b, struct hr_buf *ret, struct hr_err *err);
/* Finds the network of the box in the settings. Returns 0, or -1 with *err set. */
enum hr_box_net { HR_BOX_NONE, HR_BOX_HOST, HR_BOX_EGRESS };
const char *hr_box_net_name(enum hr_box_net net);
int hr_box_network(const struct hr_config *c, enum hr_box_net *ret, struct hr_err *err);
/* Returns the limit of open files, 0 for none, or -1 with *err set. */
long long hr_box_open_files(const struct hr_config *c, struct hr_err *err);

/* Freezes or thaws all processes of the box. Returns 1, 0 if the box has no control group that can,
 * or -1 with *err set. */
int hr_box_freeze(const struct hr_box *b, bool frozen, struct hr_err *err);
/* Returns that control group, or NULL if there is none. */
const char *hr_box_freezer(const struct hr_box *b);
bool hr_box_is_frozen(const struct hr_box *b);
/* Waits until no other process copies or ends the box, and excludes that until *ret_fd is closed:
 * -1 if the box has no directory. Returns 0, or -1 with *err set. */
int hr_box_hold(const struct hr_box *b, int *ret_fd, struct hr_err *err);
/* Returns true while another process copies or ends the box. */
bool hr_box_is_held(const struct hr_box *b);
/* Removes the control groups of a box that has ended. */
void hr_box_remove_groups(struct hr_box *b);

/* Fills the storage of a new box with the files of the snapshot box.from, if that is set. Returns
 * 0, or -1 with *err set. */
int hr_box_fill(struct hr_box *b, struct hr_err *err);
/* Locks that the launcher keeps until it has ended; -1: none. */
#define HR_BOX_LOCKS 2
/* Runs a program of boxes with these arguments. It keeps the locks, so that they hold until the
 * files are at rest. `thaws`: it has frozen a box. `data`: its input or output; NULL: the output is
 * appended to *out. Returns 0, or -1 with *err set. */
int hr_box_run_program(const int locks[HR_BOX_LOCKS], const char *const *argv, bool thaws,
    const struct hr_spawn_fd *data, struct hr_buf *out, struct hr_err *err);
/* Removes a tree, which may be missing, and may have files of the box's accounts: an ordinary user
 * cannot remove those of subordinate ids, but the launcher can. `locks`: NULL for none. */
int hr_box_remove_tree(const int locks[HR_BOX_LOCKS], const char *path, struct hr_err *err);
/* Removes the layers of files that no box and no snapshot uses. */
void hr_box_layers_clean(const struct hr_backend_host *h);
/* Implements snapshot() of struct hr_sandbox_ops. */
int hr_box_snapshot(void *self, const char *tag, char **ret_json, struct hr_err *err);

/* Records the settings with which the box starts, for its branches. */
int hr_box_keep_settings(const struct hr_box *b, struct hr_err *err);
/* Takes over the files of a new branch, and the placeholders for its secrets; does nothing for
 * another box. */
int hr_box_take_branch(const struct hr_box *b, struct hr_err *err);

int hr_box_doctor(void *self, hr_finding_fn *fn, void *arg, struct hr_err *err);

#endif
