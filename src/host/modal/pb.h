/* hr_pb: messages of protobuf-c to and from bytes, with errors that name the field. */
#ifndef HR_HOST_MODAL_PB_H
#define HR_HOST_MODAL_PB_H

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"
#include "host/handrail.h"

/* NULL with *err: "WHO: "field" of SUBJECT is of another type", or what else is wrong with the
 * bytes. protobuf_c_message_free_unpacked() it. */
ProtobufCMessage *hr_pb_read(const char *who, const char *subject,
    const ProtobufCMessageDescriptor *type, const char *p, size_t len, struct hr_err *err);
int hr_pb_put(struct hr_buf *b, const ProtobufCMessage *m, struct hr_err *err);
void hr_pb_done(void *at); /* of a pointer to a message; of NULL: nothing */

/* A text of an answer that is needed: there, not empty, without control characters, as it becomes
 * part of a request. */
int hr_pb_text(
    const char *who, const char *subject, const char *name, const char *text, struct hr_err *err);

#endif
