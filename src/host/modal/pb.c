/* Finds the invalid field of a message: protobuf-c reports only that the message is invalid. */
#include "config.h"

#include "host/modal/pb.h"

#include <stdint.h>
#include <string.h>

#include "base/err.h"

/* an empty message takes two bytes here, and some hundred once it is parsed */
#define MESSAGES_MAX (1u << 20)

enum wire { VARINT = 0, EIGHT = 1, BYTES = 2, FOUR = 5 };

static enum wire
wire_of(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
	case PROTOBUF_C_TYPE_MESSAGE: return BYTES;
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_FLOAT: return FOUR;
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE: return EIGHT;
	default: return VARINT;
	}
}

/* Decodes a varint and advances *at. Returns false if it is truncated or longer than ten bytes. */
static bool
varint(const unsigned char **at, const unsigned char *end, uint64_t *ret)
{
	unsigned shift;

	*ret = 0;
	for (shift = 0; *at < end && shift < 70; shift += 7) {
		unsigned char c = *(*at)++;

		*ret |= shift < 64 ? (uint64_t)(c & 0x7f) << shift : 0;
		if (c < 0x80)
			return true;
	}
	return false;
}

/* Returns the name of the first invalid field, or NULL. *whole is set if all bytes were
 * readable, and *left counts down for each message in a field. */
static const char *
odd_field(const ProtobufCMessageDescriptor *type, const unsigned char *p, size_t len, bool *whole,
    unsigned *left)
{
	const unsigned char *end = p + len;
	const ProtobufCFieldDescriptor *f;
	const char *name;
	uint64_t tag, n;

	*whole = true;
	while (p < end) {
		*whole = false;
		if (!varint(&p, end, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
			return NULL;
		f = protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3));
		if (f != NULL && (tag & 7) != wire_of(f->type))
			return f->name;
		n = (tag & 7) == EIGHT ? 8 : 4;
		if ((tag & 7) != EIGHT && (tag & 7) != FOUR && (tag & 7) != VARINT &&
		    (tag & 7) != BYTES)
			return NULL;
		if (((tag & 7) == VARINT || (tag & 7) == BYTES) && !varint(&p, end, &n))
			return f != NULL ? f->name : NULL;
		if ((tag & 7) == VARINT) {
			*whole = true;
			continue;
		}
		if (n > (uint64_t)(end - p))
			return f != NULL ? f->name : NULL;
		if (f != NULL && f->type == PROTOBUF_C_TYPE_MESSAGE) {
			if (*left == 0)
				return f->name;
			--*left;
			name = odd_field(f->descriptor, p, (size_t)n, whole, left);
			if (name != NULL || !*whole)
				return name != NULL ? name : f->name;
		}
		*whole = true;
		p += n;
	}
	return NULL;
}

ProtobufCMessage *
hr_pb_read(const char *subject, const ProtobufCMessageDescriptor *type, const char *p, size_t len,
    struct hr_err *err)
{
	unsigned left = MESSAGES_MAX;
	bool whole;
	const char *name = odd_field(type, (const unsigned char *)p, len, &whole, &left);
	ProtobufCMessage *m;

	if (name != NULL && left == 0)
		(void)hr_err_set(err, HR_E_PROTO,
		    HR_MODAL_WHO ": \"%s\" of %s has too many entries", name, subject);
	else if (name != NULL)
		(void)hr_err_set(err, HR_E_PROTO,
		    HR_MODAL_WHO ": \"%s\" of %s has the wrong type or is incomplete", name,
		    subject);
	else if (!whole)
		(void)hr_err_set(
		    err, HR_E_PROTO, HR_MODAL_WHO ": %s is not a protobuf message", subject);
	if (name != NULL || !whole)
		return NULL;
	m = protobuf_c_message_unpack(type, NULL, len, (const uint8_t *)p);
	if (m == NULL)
		(void)hr_err_set(err, HR_E_PROTO,
		    HR_MODAL_WHO ": %s cannot be read, or there is no memory for it", subject);
	return m;
}

int
hr_pb_put(struct hr_buf *b, const ProtobufCMessage *m, struct hr_err *err)
{
	size_t n = protobuf_c_message_get_packed_size(m);
	char *p = n > 0 ? hr_buf_reserve(b, n) : NULL;

	if (p != NULL)
		hr_buf_grew(b, protobuf_c_message_pack(m, (uint8_t *)p));
	if (b->fail == HR_E_TOOLARGE)
		return hr_err_set(err, HR_E_INVAL, "the request is too long");
	return b->fail == HR_OK ? 0 : hr_err_nomem(err);
}

void
hr_pb_done(void *at)
{
	ProtobufCMessage *message;

	memcpy(&message, at, sizeof(message));
	if (message != NULL)
		protobuf_c_message_free_unpacked(message, NULL);
}

int
hr_pb_text(const char *subject, const char *name, const char *text, struct hr_err *err)
{
	if (text == NULL || *text == '\0')
		return hr_err_set(
		    err, HR_E_PROTO, HR_MODAL_WHO ": %s has no \"%s\"", subject, name);
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return hr_err_set(err, HR_E_PROTO,
			    HR_MODAL_WHO ": \"%s\" of %s has a control character", name, subject);
	return 0;
}
