/* Bodies of SWE-ReX and of OpenHands V1, and what a command printed. The first byte chooses the
 * model. What must hold: a body is taken, and then has what its model asks for, or is refused with
 * a 422 whose body is JSON, or a 500 where what was wrong is none; output becomes text that is
 * valid UTF-8. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/text/utf8.h"
#include "worker/v1/v1.h"
#include "fuzz.h"

/* What is no JSON, such as an infinity, cannot be given back: the generic 500. */
static void
check_refused(struct json_object *body, const struct hr_answer *a)
{
	struct json_object *o = NULL;
	struct hr_json_error e;
	struct hr_buf text;

	if (a->status == 500) {
		hr_buf_init(&text, HR_ANSWER_MAX);
		must(hr_json_put(&text, body) < 0);
		hr_buf_done(&text);
		return;
	}
	must(a->status == 422 && hr_json_decode(hr_buf_str(&a->body), a->body.len, &o, &e) == 0);
	must(hr_json_count(hr_json_at(o, "detail")) > 0);
	json_object_put(o);
}

/* As its handler reads it. */
static void
check_taken(struct json_object *body, struct hr_answer *a)
{
	const struct hr_rex_call c = {.body = body, .ret = a};
	static const char *const texts[] = {"command", "cwd", "session", "path", "content"};
	struct hr_span s;
	size_t i;

	must(hr_json_type(body) == HR_PY_DICT && a->body.len == 0);
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		s = hr_rex_str(&c, texts[i]);
		must(s.p == NULL || s.p[s.len] == '\0');
	}
	(void)hr_rex_true(&c, "shell");
	must(hr_rex_limit_s(&c) >= 0 || hr_rex_number(&c, "timeout", 0) != 0);
}

static void
check_output(const char *p, size_t len)
{
	struct hr_buf text;

	hr_buf_init(&text, (len + 1) * 4);
	hr_rex_clean(&text, p, len);
	must(text.fail == HR_OK && hr_utf8_strict(hr_buf_str(&text), text.len));
	hr_buf_done(&text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct hr_rex_model *const models[] = {&hr_rex_create_model, &hr_rex_run_model,
	    &hr_rex_close_model, &hr_rex_execute_model, &hr_rex_read_model, &hr_rex_write_model,
	    &hr_v1_bash_model};
	struct json_object *body = NULL;
	struct hr_json_error e;
	struct hr_answer a;

	if (size < 1)
		return 0;
	check_output((const char *)data + 1, size - 1);
	if (hr_json_decode(data + 1, size - 1, &body, &e) < 0)
		return 0;
	hr_answer_init(&a);
	if (hr_rex_check(models[data[0] % (sizeof(models) / sizeof(models[0]))], body, &a))
		check_taken(body, &a);
	else
		check_refused(body, &a);
	hr_answer_done(&a);
	json_object_put(body);
	return 0;
}
