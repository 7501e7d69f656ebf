/* Writes the JSON of a record: every value is escaped, even those that need no escape today. */
#include "config.h"

#include "host/common/recordtext.h"

#include <string.h>

#include "proto/json.h"

/* Replaces invalid UTF-8 by U+FFFD, so that a record is always possible. */
static void
quote(struct hr_buf *b, const char *text)
{
	(void)hr_json_put_str(b, text, strlen(text), HR_JSON_REPLACE);
}

static void
begin(struct hr_buf *b, const char *name)
{
	hr_buf_addc(b, b->len == 0 ? '{' : ',');
	quote(b, name);
	hr_buf_addc(b, ':');
}

void
hr_record_put_text(struct hr_buf *b, const char *name, const char *value)
{
	begin(b, name);
	if (value != NULL)
		quote(b, value);
	else
		hr_buf_adds(b, "null");
}

void
hr_record_put_int(struct hr_buf *b, const char *name, long long value)
{
	begin(b, name);
	hr_buf_addf(b, "%lld", value);
}

void
hr_record_put_bool(struct hr_buf *b, const char *name, bool value)
{
	begin(b, name);
	hr_buf_adds(b, value ? "true" : "false");
}

void
hr_record_put_list(struct hr_buf *b, const char *name, const struct hr_strv *list)
{
	size_t i;

	begin(b, name);
	hr_buf_addc(b, '[');
	for (i = 0; i < list->n; i++) {
		if (i > 0)
			hr_buf_addc(b, ',');
		quote(b, list->v[i]);
	}
	hr_buf_addc(b, ']');
}

char *
hr_record_take(struct hr_buf *b, struct hr_err *err)
{
	hr_buf_adds(b, b->len == 0 ? "{}" : "}");
	return hr_buf_end(b, err);
}
