/* hr_e2b: the fleet as clients of the E2B API see it (doc/e2b.md): the control API and the edge. A
 * sandbox is a row of the fleet, whichever API made it. A row that this API made has the member
 * "e2b" in its request: {"template", "user", "workdir", "root", "metadata", "env", "sum",
 * "autoResume", "public"}. Its session key is the sandbox's access token. */
#ifndef HR_FLEET_E2B_E2B_H
#define HR_FLEET_E2B_E2B_H

#include "fleet/api/api_int.h"
#include "fleet/copies.h"

#define HR_E2B_ENVD_VERSION "0.6.13"
#define HR_E2B_PORT "${PORT}" /* the part of maskRequestHost that becomes the port */
#define HR_E2B_ENVD_PORT 49983
#define HR_E2B_CODE_PORT 49999
#define HR_E2B_QUERY_MAX HR_FLEET_QUERY_MAX
#define HR_E2B_TRAFFIC_TOKEN 45
#define HR_E2B_ALL "0.0.0.0/0"
/* any page may use these APIs: their secrets are in no cookie */
#define HR_E2B_CORS                                                                                \
	"Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Methods: *\r\n"                    \
	"Access-Control-Allow-Headers: *\r\nAccess-Control-Max-Age: 7200\r\n"

/* ---- text.c: what needs no fleet ---- */

/* Decodes the metadata of a list's query, which is percent-encoded three times: calls fn for each
 * pair, until it returns false. Returns false then. */
bool hr_e2b_metadata(const char *query_value, size_t len,
    bool (*fn)(void *arg, const char *key, const char *value), void *arg);
/* Reads RFC 3339. Returns the seconds since 1970, a part of one left out, or -1. */
int64_t hr_e2b_time(const char *text);
/* Computes the signature of a URL of a file; expiry "": none. */
#define HR_E2B_SIGNATURE 48
void hr_e2b_sign(const char *path, const char *operation, const char *user, const char *token,
    const char *expiry, char ret[HR_E2B_SIGNATURE]);
/* Computes the token for the ports of a sandbox that are not public from its access token. */
void hr_e2b_traffic_token(const char *session_key, char ret[HR_E2B_TRAFFIC_TOKEN]);
/* Writes the text of "e2b_" keys as that of the same key of the fleet. Returns the key to look up:
 * api_key itself, or ret. */
const char *hr_e2b_key(const char *api_key, char ret[64]);
/* Returns true if nginx in the sandbox would answer the path (with or without a query) elsewhere
 * than below the prefix that precedes it. */
bool hr_e2b_leads_out(const char *path);
/* Returns true for a path of the sandbox's server that only the fleet itself may use. */
bool hr_e2b_is_closed(const char *path);

/* ---- edge.c ---- */

/* A request for a file by its signature. */
struct hr_e2b_signed {
	struct hr_buf path, user, signature, expiry;
	const char *operation;
};
void hr_e2b_signed_read(const struct hr_fleet_request *q, struct hr_e2b_signed *s);
void hr_e2b_signed_done(struct hr_e2b_signed *s);
/* Returns true if it was signed with that token. */
bool hr_e2b_signed_by(const struct hr_e2b_signed *s, const char *token);

/* ---- answers ---- */

/* Answers with a status and a message; always returns -1. */
int hr_e2b_say(struct hr_fleet_answer *a, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Decodes row->request. Returns its member "e2b", borrowed from *ret, or NULL if it has none. */
struct json_object *hr_e2b_of(const struct hr_fleet_row *row, struct json_object **ret);
/* Returns true if a create's body, or the member "e2b" of its row's request, has a pause at the end
 * of the time that ends processes. */
bool hr_e2b_pauses_cold(struct json_object *o);
/* Appends a Sandbox, a SandboxDetail or a ListedSandbox. */
void
hr_e2b_put_sandbox(struct hr_buf *b, const struct hr_fleet_call *c, const struct hr_fleet_row *row);
void hr_e2b_put_listed(
    struct hr_buf *b, const struct hr_fleet_call *c, const struct hr_fleet_row *row, bool detail);
void
hr_e2b_limits(const struct hr_fleet_api *api, int64_t factor, int64_t *ret_cpus, int64_t *ret_mb);
bool hr_e2b_is_paused(const struct hr_fleet_row *row);

/* ---- templates ---- */

struct hr_e2b_template {
	const char *name;
	char image[256]; /* image or root directory; "": the service's */
	char user[33], workdir[256];
};
/* Finds a template by "name", "name:default" or "name:latest". Returns false if there is none. */
bool hr_e2b_template(const struct hr_fleet_api *api, const char *name, struct hr_e2b_template *ret);
/* Finds a snapshot of the key, by its name with or without that of its template, and this template.
 * Returns 1, 0 if there is none, or -1 with *err set. */
int hr_e2b_snapshot_template(const struct hr_fleet_call *c, const char *name,
    char ret_snapshot[HR_FLEET_SNAPSHOT_NAME], struct hr_e2b_template *ret, struct hr_err *err);
/* Checks an option "NAME=IMAGE[;user=NAME][;workdir=DIR]". Returns the error text, or NULL. */
const char *hr_e2b_template_wrong(const char *option);

/* ---- calls ---- */

struct hr_e2b_row {
	const char *method, *path; /* "*" stands for one segment, "**" for all that follow */
	int scope;
	hr_fleet_call_fn *handle;
};
/* c->rest is the segment that "*" stands for. */
hr_fleet_call_fn hr_e2b_create_v1, hr_e2b_create_v2, hr_e2b_get, hr_e2b_kill, hr_e2b_timeout,
    hr_e2b_connect, hr_e2b_connect_v2, hr_e2b_resume, hr_e2b_pause, hr_e2b_refresh, hr_e2b_metrics,
    hr_e2b_network, hr_e2b_list_v1, hr_e2b_list_v2, hr_e2b_alias, hr_e2b_logs, hr_e2b_fork,
    hr_e2b_snapshot, hr_e2b_list_snapshots, hr_e2b_unsnapshot;
/* Answers that the sandbox is unknown; always returns -1. */
int hr_e2b_unknown(const struct hr_fleet_call *c);
/* Finds the sandbox that c->rest names. One that starts is not known to its client yet. Returns 0,
 * or -1 after it has answered. */
int hr_e2b_find(const struct hr_fleet_call *c, struct hr_fleet_row *row);
/* Reads the member "timeout". Returns the seconds, `otherwise` if there is none, or -1 after it has
 * answered. */
int64_t hr_e2b_read_timeout(struct hr_fleet_call *c, int64_t otherwise, int64_t least);
/* Reads the parameter "limit" of a page. Returns 0 after it has answered. */
size_t hr_e2b_read_limit(const struct hr_fleet_call *c);
/* Makes the network object of a request's rules. Returns 0 with *ret (NULL: none are asked for), or
 * -1 after it has answered. */
int
hr_e2b_read_network(struct hr_fleet_call *c, struct json_object *from, struct json_object **ret);

/* ---- the other parts of the fleet use these ---- */

/* Sends a started or resumed sandbox its variables, user and ids. */
int hr_e2b_begin(const struct hr_fleet_row *row, struct hr_err *err);

#endif
