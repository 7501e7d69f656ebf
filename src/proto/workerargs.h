/* hr_worker_args: defines the options of handrail-worker, which handraild writes and the worker
 * reads by the one table in workerargs.c. */
#ifndef HR_PROTO_WORKERARGS_H
#define HR_PROTO_WORKERARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define HR_WORKER_HIDDEN 4 /* files that no action may open */
#define HR_WORKER_UNKNOWN (~0UL)

struct hr_worker_args {
	/* paths; NULL or "": the option is not given */
	const char *pool, *run_dir, *work_dir, *libexec_dir, *office_converter, *network_log,
	    *journal, *page_rights;
	const char *hidden[HR_WORKER_HIDDEN];
	unsigned long slot, max_requests, unpack_bytes, unpack_entries;
	/* HR_WORKER_UNKNOWN: the option is not given */
	unsigned long user_id, edge_uid, edge_gid, shell_uid;
	unsigned long journal_entries, journal_bytes, journal_age, page_lifetime;
	bool journal_sync, journal_required;
};

/* The defaults of options that are not given. */
#define HR_WORKER_ARGS_NONE                                                                        \
	{                                                                                          \
		.edge_uid = HR_WORKER_UNKNOWN, .edge_gid = HR_WORKER_UNKNOWN, .shell_uid = 65534   \
	}

struct hr_worker_option {
	const char *name;
	const char *value; /* name of the value in the help text; NULL: no value */
	const char *help;
	size_t at; /* offset in struct hr_worker_args */
	enum { HR_WORKER_TEXT, HR_WORKER_NUMBER, HR_WORKER_FLAG, HR_WORKER_FILES } kind;
	unsigned long max; /* maximum of a number */
	bool needed;
};
extern const struct hr_worker_option hr_worker_options[];
extern const size_t hr_worker_options_n;

struct hr_worker_argv {
	const char *v[64]; /* NULL-terminated; the strings belong to the arguments */
	size_t n;
	char numbers[24][24];
};

void hr_worker_args_write(const struct hr_worker_args *a, struct hr_worker_argv *ret);
/* Sets one option; borrows the text. The error describes an invalid value. */
int hr_worker_args_set(struct hr_worker_args *a, const struct hr_worker_option *o, const char *text,
    struct hr_err *err);
/* Checks that all required options were given. */
int hr_worker_args_check(const struct hr_worker_args *a, struct hr_err *err);

#endif
