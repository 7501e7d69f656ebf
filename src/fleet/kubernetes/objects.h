/* Defines objects of the fleet's state in the API server: Secrets with the label "handrail/fleet",
 * whose value is the type, and with one item "data", which is JSON. No I/O. */
#ifndef HR_FLEET_KUBERNETES_OBJECTS_H
#define HR_FLEET_KUBERNETES_OBJECTS_H

#include "fleet/store/store.h"

struct json_object;

#define HR_OBJECT_LABEL "handrail/fleet"
/* annotation that names the process that works on the object */
#define HR_OBJECT_OWNER "handrail/fleet-owner"
#define HR_OBJECT_NAME 64
#define HR_OBJECT_VERSION 40

/* Writes the name of an object: of a row, of a key's session (it holds its row's id), or of a
 * key. */
void hr_object_row_name(const char *id, char name[HR_OBJECT_NAME]);
void hr_object_session_name(int64_t key, const char *session, char name[HR_OBJECT_NAME]);
void hr_object_key_name(int64_t id, char name[HR_OBJECT_NAME]);

/* Returns the object's label, such as "row", or "" without one. */
const char *hr_object_kind(struct json_object *o);
const char *hr_object_version(struct json_object *o);
const char *hr_object_owner(struct json_object *o);
/* Returns the object's data, which the caller owns, or NULL if handrail did not write it. */
struct json_object *hr_object_data(struct json_object *o);

/* Writes a request's body. version NULL creates; otherwise the server refuses any other version.
 * owner may be NULL. Check b. */
void hr_object_write(struct hr_buf *b, const char *ns, const char *name, const char *kind,
    const char *owner, const char *version, const char *data);
void hr_object_row_data(struct hr_buf *b, const struct hr_fleet_row *r);
void hr_object_key_data(
    struct hr_buf *b, const struct hr_fleet_key *k, const unsigned char sum[HR_FLEET_KEY_SUM]);

/* Returns 1; 0 if the object is not a row, or key; -1 without memory. */
int hr_object_read_row(struct json_object *data, struct hr_fleet_row *ret);
int hr_object_read_key(
    struct json_object *data, struct hr_fleet_key *ret, unsigned char sum[HR_FLEET_KEY_SUM]);

#endif
