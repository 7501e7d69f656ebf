/* box_spec: reads the JSON document that describes one box (handrail-box(8), "The document"). */
#ifndef HR_BOX_SPEC_H
#define HR_BOX_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct json_object;

#define BOX_SPEC_MAX (1u << 20) /* maximum bytes of a document */
#define BOX_MOUNTS_MAX 256
#define BOX_BELOW_MAX 40 /* maximum number of layers below the root of a box */

struct box_mount {
	const char *source; /* absolute path on the host */
	const char *target; /* absolute path in the box */
	bool read_only;
};

struct box_limits {
	int64_t memory_bytes; /* 0: no limit */
	int64_t processes;    /* 0: no limit */
	double cpus;          /* CPU time, in processors; 0: no limit */
};

/* The content of a document. Every string is borrowed from `tree`. */
struct box_spec {
	struct json_object *tree;
	const char *name;    /* name of the control groups, and the host name in the box */
	const char *storage; /* a directory of the caller's, for all that the box changes */
	const char *root;    /* a directory with a system of its own; NULL: the host's programs */
	const char *below[BOX_BELOW_MAX]; /* directories below the box's own files, topmost first */
	size_t nbelow;
	bool host_network; /* false: the box has no network, only a loopback interface of its own */
	bool egress; /* that interface takes connections to every IPv4 address, for a broker */
	const char *directory; /* directory in which the program starts */
	struct box_mount mounts[BOX_MOUNTS_MAX];
	size_t nmounts;
	struct box_limits limits;
	char **argv, **env; /* NULL-terminated; owned */
};

/* Reads a document. Anything that this version does not know is an error: an unknown member, a
 * value of another type or outside its limits, a relative path, the same target twice. Returns 0,
 * or -1 with HR_E_INVAL, which names the member. Release *s with box_spec_done() in any case. */
int box_spec_read(struct box_spec *s, const char *text, size_t len, struct hr_err *err);
void box_spec_done(struct box_spec *s);

/* Appends the properties of a box of this document, in sentences, for --check. */
void box_spec_explain(const struct box_spec *s, struct hr_buf *b);

#endif
