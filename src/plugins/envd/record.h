/* envd_record: the description of a process in a memory file: what its program needs, read by the
 * child of the keeper, and what a later server must know of it. All numbers are this machine's. */
#ifndef HR_PLUGINS_ENVD_RECORD_H
#define HR_PLUGINS_ENVD_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/span.h"

#define ENVD_RECORD_MAX (64u << 20)

struct envd_record {
	uid_t uid;
	gid_t gid;
	const gid_t *groups;
	uint32_t ngroups;
	bool identity; /* change to this account */
	bool pty;
	bool has_stdin;                 /* a pipe, not /dev/null */
	int64_t deadline_ms;            /* as hr_now_ms() counts; 0: none */
	char *const *argv, *const *env; /* NULL-terminated */
	struct hr_span tag, config;     /* tag.p NULL: none; config: JSON */
};

/* Appends the record's bytes. */
void envd_record_put(struct hr_buf *b, const struct envd_record *r);
/* Reads a record, which borrows from `data`, except argv and env, which stay allocated with *store,
 * freed by the caller. Returns 0, or -1 for bytes that are no record or without memory. */
int envd_record_get(struct envd_record *r, struct hr_span data, void **store);

#endif
