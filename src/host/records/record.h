/* hr_record: keeps a sandbox's record in the state directory. */
#ifndef HR_HOST_RECORDS_RECORD_H
#define HR_HOST_RECORDS_RECORD_H

#include "host/common/logfile.h"
#include "host/handle.h"

/* Returns "STATE_DIR/SID.json" or similar, which the caller frees; NULL without memory. */
char *hr_record_path(const char *state_dir, const char *sid, const char *suffix);
#define HR_RECORD_HOME ".own"                   /* suffix of a home directory beside the record */
#define HR_RECORD_NEW_LOG ".log" HR_LOGFILE_NEW /* ... of the log of a server that starts */
#define HR_POOL_BELOW "/warm" /* suffix of the state directory's name for the pool */
int hr_record_save(struct hr_sandbox *s, struct hr_err *err);
/* Records a sandbox that is not ready. */
int hr_record_save_begun(struct hr_sandbox *s, struct hr_err *err);

/* Updates an existing record by the back-end's present address and token; unless `before` is NULL,
 * only one that has what the back-end's record() returned earlier, and only if that has changed. */
int hr_record_renew(struct hr_sandbox *s, const char *before, struct hr_err *err);

/* A record as read. Strings are NULL if absent; all of them if there is no record. */
struct hr_record {
	char *runtime, *backend;
	bool unready; /* the sandbox is not ready, or comes from the pool and has a record there */
	int64_t created;
};
int
hr_record_load(const char *state_dir, const char *sid, struct hr_record *ret, struct hr_err *err);
void hr_record_done(struct hr_record *r);
void hr_record_remove(struct hr_sandbox *s);
/* Removes the unfinished record of a process that was killed. */
void hr_record_clean(const char *state_dir, const char *sid);

/* Removes the files of a process that was killed before it could record the sandbox. */
void hr_record_remove_start(const char *state_dir, const char *sid);

/* Returns true for a valid name of a sandbox, which becomes part of the names of a file and of a
 * container. */
bool hr_sid_valid(const char *sid);
#define HR_SID_MAX 200
#define HR_SID_RULE                                                                                \
	"use letters, digits, '_', '.' and '-', at most 200, and first a letter or a digit"

#endif
