/* hr_e2b: answers the requests of E2B's SDKs about files, as their envd does (doc/e2b.md). The
 * plugin envd has the processes and the watchers. */
#ifndef HR_WORKER_E2B_E2B_H
#define HR_WORKER_E2B_E2B_H

#include <sys/types.h>

#include "base/clean.h"
#include "base/span.h"
#include "e2b/path.h"
#include "e2b/setup.h"
#include "e2b/who.h"
#include "files/byteparts.h"
#include "worker/worker.h"

struct hr_e2b_call {
	struct hr_worker *w;
	struct hr_request *r;
	struct hr_answer *ret;
	const struct hr_e2b_setup *setup;
	struct hr_e2b_who who; /* set after the user was found */
};

/* ---- route.c ---- */

/* Returns the value of a header by its name in FastCGI, such as "ACCEPT_ENCODING"; "": missing. */
const char *hr_e2b_header(const struct hr_e2b_call *c, const char *name);
/* Answers {"code":status,"message":...}. Returns false. */
bool hr_e2b_refuse(struct hr_e2b_call *c, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Answers with a line of plain text. Returns false. */
bool hr_e2b_plain(struct hr_e2b_call *c, int status, const char *text);
bool hr_e2b_not_allowed(struct hr_e2b_call *c, const char *methods); /* answers 405 */
/* Checks that each parameter is given once and the expiration is a number. Returns false after
 * sending an error. */
bool hr_e2b_check_query(struct hr_e2b_call *c);
/* Finds the user of the query's username. Returns false after sending an error. */
bool hr_e2b_find_user(struct hr_e2b_call *c);

/* ---- place.c ---- */

/* Formats Go's error of a call: "stat PATH: not a directory". Returns -1. */
int hr_e2b_sys(struct hr_buf *why, const char *call, const char *path, int sys);
/* Makes the missing directories of a cleaned path for the user. Returns its descriptor (O_PATH), or
 * -1 with the reason. *ret_shells: see hr_reach_open_whose(). */
int hr_e2b_mkdirs(struct hr_e2b_call *c, const char *path, bool *ret_shells, struct hr_buf *why);
/* Returns the directory of a cleaned path; the caller frees. NULL: no memory. */
char *hr_e2b_parent(const char *path);
/* Returns true if this process lacks descriptors or memory: the path may be good. */
bool hr_e2b_is_shortage(int sys);
/* Appends EntryInfo of a path. Returns 0, or -1 with errno. */
int hr_e2b_put_entry(struct hr_buf *b, const char *path);

/* ---- download.c ---- */

#define HR_E2B_RANGES 32 /* maximum in a request; more mean the whole file */
/* Parses the header Range. Returns the number of ranges; 0: the whole file; -1: none overlaps with
 * the file; -2: the header is not a range. */
int hr_e2b_ranges(const char *header, off_t size, struct hr_bytepart *to);

/* ---- a part for each group of paths ---- */
void hr_e2b_filesystem(struct hr_e2b_call *c, const char *method);
void hr_e2b_download(struct hr_e2b_call *c);
void hr_e2b_upload(struct hr_e2b_call *c);
void hr_e2b_compose(struct hr_e2b_call *c);
void hr_e2b_metrics(struct hr_e2b_call *c);

#endif
