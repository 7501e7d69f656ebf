/* What the fleet knows, as objects of an API server: Secrets with the label "handrail/fleet", whose
 * value is what they are, and whose only item "data" is JSON. Pure, but for memory. */
#ifndef HR_FLEET_KUBERNETES_OBJECTS_H
#define HR_FLEET_KUBERNETES_OBJECTS_H

#include "fleet/store/store.h"

struct json_object;

#define HR_OBJECT_LABEL "handrail/fleet"
#define HR_OBJECT_OWNER "handrail/fleet-owner" /* annotation: who works on it */
#define HR_OBJECT_NAME 64
#define HR_OBJECT_VERSION 40

/* Names: one for each row, for each session of a key (it holds the id of its row), for each key. */
void hr_object_row_name(const char *id, char name[HR_OBJECT_NAME]);
void hr_object_session_name(int64_t key, const char *session, char name[HR_OBJECT_NAME]);
void hr_object_key_name(int64_t id, char name[HR_OBJECT_NAME]);

/* Its label, "row" and so on; "" where it has none. */
const char *hr_object_kind(struct json_object *o);
const char *hr_object_version(struct json_object *o);
const char *hr_object_owner(struct json_object *o);
/* What is in it; NULL: it holds nothing that we wrote. The caller's. */
struct json_object *hr_object_data(struct json_object *o);

/* Bodies. version NULL: a new one; else only the one of that version is changed. owner may be NULL.
 * Check b. */
void hr_object_write(struct hr_buf *b, const char *ns, const char *name, const char *kind,
    const char *owner, const char *version, const char *data);
void hr_object_row_data(struct hr_buf *b, const struct hr_fleet_row *r);
void hr_object_key_data(
    struct hr_buf *b, const struct hr_fleet_key *k, const unsigned char sum[HR_FLEET_KEY_SUM]);

/* 1; 0: it is no row, or a key; -1: no memory. */
int hr_object_read_row(struct json_object *data, struct hr_fleet_row *ret);
int hr_object_read_key(
    struct json_object *data, struct hr_fleet_key *ret, unsigned char sum[HR_FLEET_KEY_SUM]);

#endif
