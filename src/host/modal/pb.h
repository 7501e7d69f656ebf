/* hr_pb: converts protobuf-c messages to and from bytes, with errors that name the field. */
#ifndef HR_HOST_MODAL_PB_H
#define HR_HOST_MODAL_PB_H

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"
#include "host/handrail.h"

#define HR_MODAL_WHO "Modal"

/* Parses a message, which the caller frees by protobuf_c_message_free_unpacked(). Returns NULL with
 * *err set to "Modal: "field" of SUBJECT is of another type", or another reason. */
ProtobufCMessage *hr_pb_read(const char *subject, const ProtobufCMessageDescriptor *type,
    const char *p, size_t len, struct hr_err *err);
int hr_pb_put(struct hr_buf *b, const ProtobufCMessage *m, struct hr_err *err);
/* Frees a message and clears its pointer; `at` points to the pointer. Does nothing with NULL. */
void hr_pb_done(void *at);

/* Checks a required string of an answer: not empty and without control characters, because it
 * becomes part of a request. */
int hr_pb_text(const char *subject, const char *name, const char *text, struct hr_err *err);

#endif
