/* hr_record: what is written of a sandbox in the state directory. */
#ifndef HR_HOST_RECORDS_RECORD_H
#define HR_HOST_RECORDS_RECORD_H

#include "host/handle.h"

/* "STATE_DIR/SID.json" and the like; the caller frees; NULL: no memory. */
char *hr_record_path(const char *state_dir, const char *sid, const char *suffix);
#define HR_RECORD_HOME ".own" /* suffix of a home directory beside the record */
int hr_record_save(struct hr_sandbox *s, struct hr_err *err);
/* Records a sandbox that is not ready. */
int hr_record_save_begun(struct hr_sandbox *s, struct hr_err *err);

/* What the backend says now, in the record that there is: an address or a token is another one. */
int hr_record_renew(struct hr_sandbox *s, struct hr_err *err);

/* Texts are NULL where there are none, all of them where there is no record. */
struct hr_record {
	char *runtime, *backend;
	bool unready; /* it was begun, or comes from the pool and has its name there */
	int64_t created;
};
int
hr_record_load(const char *state_dir, const char *sid, struct hr_record *ret, struct hr_err *err);
void hr_record_done(struct hr_record *r);
void hr_record_remove(struct hr_sandbox *s);

/* May a sandbox be called so? Its name becomes a file's and a container's. */
bool hr_sid_valid(const char *sid);

#endif
