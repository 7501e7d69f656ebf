/* hr_record: what is written of a sandbox in the state directory. */
#ifndef HR_HOST_RECORDS_RECORD_H
#define HR_HOST_RECORDS_RECORD_H

#include "host/handle.h"

/* "STATE_DIR/SID.json" and the like; the caller frees; NULL: no memory. */
char *hr_record_path(const char *state_dir, const char *sid, const char *suffix);
#define HR_RECORD_HOME ".own" /* suffix of a home directory beside the record */
int hr_record_save(struct hr_sandbox *s, struct hr_err *err);
/* Before it is the sandbox's: what the backend recorded of the one that is taken from the pool, and
 * the name of the pool's file, which is locked until hr_record_save(). */
int hr_record_save_taking(
    struct hr_sandbox *s, const char *backend, const char *taking, struct hr_err *err);

/* What the backend says now, in the record that there is: an address or a token is another one. */
int hr_record_renew(struct hr_sandbox *s, struct hr_err *err);

/* Texts are NULL where there are none, all of them where there is no record. */
struct hr_record {
	char *runtime, *backend;
	char *taking; /* it is not ready yet, see above */
	int64_t created;
};
int
hr_record_load(const char *state_dir, const char *sid, struct hr_record *ret, struct hr_err *err);
void hr_record_done(struct hr_record *r);
void hr_record_remove(struct hr_sandbox *s);

/* May a sandbox be called so? Its name becomes a file's and a container's. */
bool hr_sid_valid(const char *sid);

#endif
