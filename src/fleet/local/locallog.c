/* Reads the end of logs for the engine "local". */
#include "config.h"

#include "fleet/local/local_int.h"

#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "fleet/engine.h"
#include "host/handle.h"
#include "proto/json.h"

#define LOGS_PATIENCE_S 10 /* seconds; a log may be long, and only its end is needed */

static int
add_line(void *arg, const char *line, size_t len)
{
	struct hr_buf *b = arg;
	const char *end;

	if (len > HR_FLEET_LOGS / 2)
		len = HR_FLEET_LOGS / 2;
	hr_buf_add(b, line, len);
	if (len == 0 || line[len - 1] != '\n')
		hr_buf_addc(b, '\n');
	if (b->len <= HR_FLEET_LOGS || hr_buf_check(b, NULL) != 0)
		return 0;
	end = memchr(b->p + b->len - HR_FLEET_LOGS, '\n', HR_FLEET_LOGS);
	hr_buf_drop_front(b, (size_t)(end + 1 - b->p));
	return 0;
}

static int
add_refusal(void *arg, const char *line, size_t len)
{
	HR_PUT struct json_object *o = NULL;

	return hr_json_decode_foreign(line, len, &o, NULL) == 0 &&
		       hr_json_str_is(hr_json_at(o, "verdict"), "deny")
		   ? add_line(arg, line, len)
		   : 0;
}

static int
taken(struct hr_buf *b, char **ret_text, struct hr_err *err)
{
	*ret_text = hr_buf_take(b);
	return *ret_text != NULL ? 0 : hr_err_nomem(err);
}

int
hr_local_log(struct hr_sandbox *s, char **ret_text, struct hr_err *err)
{
	HR_BUF(b, 4 * HR_FLEET_LOGS);
	struct hr_err why = {0};

	(void)alarm(LOGS_PATIENCE_S);
	(void)hr_sandbox_connect(s, &why); /* an ended sandbox has a log as well */
	return hr_sandbox_logs(s, false, add_line, &b, err) == 0 ? taken(&b, ret_text, err) : -1;
}

int
hr_local_network_log(struct hr_sandbox *s, char **ret_text, struct hr_err *err)
{
	HR_BUF(b, 4 * HR_FLEET_LOGS);

	(void)alarm(LOGS_PATIENCE_S);
	return hr_sandbox_connect(s, err) == 0 &&
		       hr_sandbox_network_log(s, false, add_refusal, &b, err) == 0
		   ? taken(&b, ret_text, err)
		   : -1;
}
