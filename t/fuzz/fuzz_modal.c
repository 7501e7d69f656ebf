/* Answers of Modal's API as protobuf messages: the first byte says of which kind. What cannot be
 * read is an error with a text; what can is written and read again alike. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/modal/modal.h"
#include "host/modal/pb.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const ProtobufCMessageDescriptor *const types[] = {&hr_pb__created__descriptor,
	    &hr_pb__environment__descriptor, &hr_pb__image_answer__descriptor,
	    &hr_pb__image_join_answer__descriptor, &hr_pb__list__descriptor,
	    &hr_pb__output_batch__descriptor, &hr_pb__task_waited__descriptor,
	    &hr_pb__tunnels__descriptor};
	const ProtobufCMessageDescriptor *type;
	ProtobufCMessage *m, *copy;
	struct hr_err err = {0};
	HR_BUF(a, 1 << 24);
	HR_BUF(b, 1 << 24);

	if (size < 1)
		return 0;
	type = types[data[0] % (sizeof(types) / sizeof(*types))];
	m = hr_pb_read("it", type, (const char *)data + 1, size - 1, &err);
	must((m == NULL) == (err.code != HR_OK));
	if (m == NULL)
		return 0;
	must(hr_pb_put(&a, m, &err) == 0);
	copy = hr_pb_read("it", type, hr_buf_str(&a), a.len, &err);
	must(copy != NULL);
	must(hr_pb_put(&b, copy, &err) == 0);
	must(a.len == b.len && memcmp(hr_buf_str(&a), hr_buf_str(&b), a.len) == 0);
	hr_pb_done(&m);
	hr_pb_done(&copy);
	return 0;
}
