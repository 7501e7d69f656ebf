/* hr_e2b_setup: the facts about a sandbox that its service sets by POST /handrail/e2b/init:
 * variables, default user and directory, ids. A worker writes them to RUN_DIR/e2b.json, which only
 * the server's account and the group of the sandbox's account can read; workers and plugins read
 * them. */
#ifndef HR_E2B_SETUP_H
#define HR_E2B_SETUP_H

#include <stdbool.h>
#include <sys/stat.h>

#include <json-c/json_object.h>

#include "base/err.h"

struct hr_e2b_setup {
	struct json_object *doc; /* the stored document; NULL: none was stored */
	const char *user;        /* name of the default user; NULL: the sandbox's user */
	const char *directory;   /* default directory; NULL: the user's home */
	struct stat st;          /* the file as it was read */
};

/* Reads the document if it has changed since the last call; *s is all zero before the first one. A
 * missing file is an empty setup. Returns 0, or -1 with *err set and *s empty. */
int hr_e2b_setup_read(struct hr_e2b_setup *s, const char *run_dir, struct hr_err *err);
void hr_e2b_setup_done(struct hr_e2b_setup *s);

/* Checks the types of a foreign document: envVars is an object of strings, defaultUser,
 * defaultWorkdir, sandboxId and templateId are strings, null counts as missing, and nothing else is
 * read. Returns 0, or -1 with HR_E_INVAL. */
int hr_e2b_setup_check(struct json_object *doc, struct hr_err *err);
/* Replaces the stored document, which must have passed the check. `sandbox`: the sandbox's account,
 * as which plugins run. */
int
hr_e2b_setup_write(const char *run_dir, struct json_object *doc, uid_t sandbox, struct hr_err *err);

/* Writes the ids of the document to /run/e2b, if it states that /run is the sandbox's own. Returns
 * 0, or -1 with *err set. */
int hr_e2b_setup_show(struct json_object *doc, struct hr_err *err);

/* Returns the variables of the sandbox, as an object of strings that the caller puts: E2B_SANDBOX,
 * the ids, and those of the service, which cannot replace these. NULL: no memory. */
struct json_object *hr_e2b_setup_variables(const struct hr_e2b_setup *s, struct hr_err *err);

#endif
