/* A body of a call of envd: frames and the messages in them. The first byte chooses the call. A
 * message that was read has only members of its table, and reads back the same. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "e2b/message.h"
#include "plugins/envd/rpc.h"
#include "proto/json.h"
#include "fuzz.h"

static bool
has_bytes(const struct hr_message *m)
{
	const struct hr_message_field *f;

	for (f = m->fields; f->name != NULL; f++)
		if (f->type == HR_MESSAGE_BYTES || (f->part != NULL && has_bytes(f->part)))
			return true;
	return false;
}

static void
check_members(const struct hr_message *m, struct json_object *o)
{
	const struct hr_message_field *f;
	int known = 0;

	for (f = m->fields; f->name != NULL; f++) {
		known += hr_json_at(o, f->name) != NULL;
		if (f->part != NULL && hr_json_at(o, f->name) != NULL)
			check_members(f->part, hr_json_at(o, f->name));
	}
	must(known == json_object_object_length(o));
}

static void
read_message(const struct hr_message *m, struct hr_span text)
{
	struct hr_connect_error e = {.code = HR_CONNECT_OK};
	struct json_object *o, *again;
	struct hr_buf b;

	if (hr_message_read(m, text, &o, &e) != 0) {
		must(o == NULL && e.code != HR_CONNECT_OK && e.text[0] != '\0');
		return;
	}
	check_members(m, o);
	hr_buf_init(&b, 64u << 20);
	hr_json_put_whole(&b, o);
	if (b.fail == HR_OK && !has_bytes(m)) {
		must(hr_message_read(m, hr_span_of_buf(&b), &again, &e) == 0);
		must(json_object_object_length(o) == json_object_object_length(again));
		json_object_put(again);
	}
	hr_buf_done(&b);
	json_object_put(o);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct envd_method *m = envd_process_methods;
	struct hr_connect_error e = {.code = HR_CONNECT_OK};
	struct hr_span rest, part;
	unsigned flags, i;

	if (size < 1)
		return 0;
	for (i = 0; i < data[0] % 8u; i++)
		m++;
	rest = (struct hr_span){(const char *)data + 1, size - 1};
	if (m->shape == ENVD_UNARY) {
		read_message(m->in, rest);
		return 0;
	}
	while (rest.len > 0 && hr_connect_take(&rest, true, &flags, &part, &e) == 0)
		read_message(m->in, part);
	must(rest.len == 0 || e.code != HR_CONNECT_OK);
	return 0;
}
