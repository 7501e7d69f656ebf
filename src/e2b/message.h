/* hr_message: messages of protobuf as JSON, as its Go library reads them: names in lowerCamelCase
 * or snake_case, numbers also as text, enums by name or number, null for a missing member; unknown
 * members are ignored. Wrong types are errors in that library's words. */
#ifndef HR_E2B_MESSAGE_H
#define HR_E2B_MESSAGE_H

#include <json-c/json_object.h>

#include "base/span.h"
#include "e2b/connect.h"

enum hr_message_type {
	HR_MESSAGE_STRING,
	HR_MESSAGE_STRINGS, /* a list */
	HR_MESSAGE_MAP,     /* an object of strings */
	HR_MESSAGE_BYTES,   /* base64 */
	HR_MESSAGE_BOOL,
	HR_MESSAGE_UINT32,
	HR_MESSAGE_ENUM,
	HR_MESSAGE_PART, /* another message */
};

struct hr_message_enum {
	const char *name; /* NULL: the end of a table */
	int number;
};

struct hr_message_field {
	const char *name; /* lowerCamelCase; NULL: the end of a table */
	enum hr_message_type type;
	const struct hr_message *part;        /* only HR_MESSAGE_PART has one */
	const struct hr_message_enum *values; /* only HR_MESSAGE_ENUM has them */
	const char *oneof; /* at most one field with this name may be set; NULL: no such rule */
};

struct hr_message {
	const char *name; /* "process.StartRequest" */
	const struct hr_message_field *fields;
};

/* Parses a message. Returns 0 with *ret, which the caller puts: an object of the known members that
 * are not null, by their names in lowerCamelCase, with numbers and enums as integers and bytes
 * decoded. Returns -1 with *e, HR_CONNECT_INVALID_ARGUMENT. */
int hr_message_read(const struct hr_message *m, struct hr_span text, struct json_object **ret,
    struct hr_connect_error *e);

#endif
