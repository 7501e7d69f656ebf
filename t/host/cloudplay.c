/* Does with a provider what it is told on standard input, one JSON object a line, and answers with
 * one a line: {"ok": ...}, or {"code": N, "error": text}. For tests that play recorded traffic back
 * (t/e2e/lib/clouds.py). Usage: cloudplay PROVIDER, with the addresses in the environment; PLAY_ENV
 * has the variables of sandboxes, with blanks between them. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/text/quote.h"
#include "cloudplay.h"
#include "proto/json.h"

extern char **environ;

/* ---- answers ---- */

void
play_bytes(struct json_object *o, const char *name, const char *p, size_t len)
{
	HR_BUF(b, 512u << 20);

	hr_quote_base64(&b, p, len);
	play_put(o, name, json_object_new_string(hr_buf_str(&b)));
}

void
play_put(struct json_object *o, const char *name, struct json_object *v)
{
	hr_assert(json_object_object_add(o, name, v) == 0);
}

char *
play_unbase64(struct json_object *o, const char *name, size_t *ret_len)
{
	const char *text = hr_json_text_or(o, name, "");
	HR_BUF(b, 512u << 20);

	hr_buf_adds(&b, "");
	hr_assert(hr_quote_unbase64(&b, text, strlen(text)));
	*ret_len = b.len;
	return b.p != NULL ? hr_buf_take(&b) : strdup("");
}

/* "NAME=value" of an object; the caller's. */
void
play_env(struct hr_strv *v, struct json_object *o)
{
	if (!json_object_is_type(o, json_type_object))
		return;
	json_object_object_foreach(o, name, value)
	{
		hr_strv_addf(v, "%s=%s", name, json_object_get_string(value));
	}
}

void
play_output(void *arg, int stream, const char *p, size_t len)
{
	struct play_said *s = arg;

	hr_buf_add(stream == 2 ? &s->err : &s->out, p, len);
}

/* Sets what an answer of before would have set. */
static int
set_state(struct hr_cloud *c, struct json_object *q, struct hr_err *err)
{
	size_t i;

	const struct {
		const char *name;
		char **to;
	} texts[] = {{"id", &c->id}, {"token", &c->token}, {"address", &c->address},
	    {"version", &c->version}, {"run", &c->run}, {"url", &c->url}};

	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (hr_json_text_at(q, texts[i].name) != NULL &&
		    hr_text_set(texts[i].to, hr_json_text_at(q, texts[i].name), err) != 0)
			return -1;
	if (hr_json_at(q, "old") != NULL)
		c->old = hr_json_true_at(q, "old");
	return 0;
}

static void
answer(int r, struct json_object *o, const struct hr_err *err)
{
	HR_PUT struct json_object *all = json_object_new_object();

	if (r == 0) {
		play_put(all, "ok", o);
	} else {
		json_object_put(o);
		play_put(all, "code", json_object_new_int(err->code));
		play_put(all, "class", json_object_new_string(hr_err_class(err)));
		play_put(all, "error", json_object_new_string(err->msg));
	}
	(void)puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PLAIN));
	(void)fflush(stdout);
}

/* What its tables have functions for. */
static void
can(const struct hr_sandbox_ops *kind, const struct hr_cloud_ops *ops, struct json_object *o)
{
	size_t i;

	const struct {
		const char *name;
		bool is;
	} all[] = {{"server", ops->publish != NULL}, {"pause", ops->pause != NULL},
	    {"resume", ops->resume != NULL}, {"stats", ops->stats != NULL},
	    {"code", ops->code != NULL}, {"logs", kind->logs != NULL}, {"sh", kind->exec != NULL},
	    {"pool", kind->freeze != NULL}, {"build", kind->build != NULL}};

	for (i = 0; i < sizeof(all) / sizeof(*all); i++)
		play_put(o, all[i].name, json_object_new_boolean(all[i].is));
}

static int
play(const struct play_provider *p, const struct hr_sandbox_ops *ops, struct hr_cloud *c)
{
	struct json_object *q = NULL;
	struct hr_json_error why;
	size_t room = 0;
	char *line = NULL;
	ssize_t n;

	while ((n = getline(&line, &room, stdin)) > 0) {
		struct json_object *o = json_object_new_object();
		struct hr_err err = {0};
		int r;

		if (hr_json_decode(line, (size_t)n, &q, &why) != 0)
			return 2;
		r = strcmp(hr_json_text_or(q, "op", ""), "state") == 0 ? set_state(c, q, &err) : 0;
		if (strcmp(hr_json_text_or(q, "op", ""), "can") == 0)
			can(ops, c->ops, o);
		else if (r == 0)
			r = p->perform(c, hr_json_text_or(q, "op", ""), q, o, &err);
		answer(r, o, &err);
		json_object_put(q);
		q = NULL;
	}
	free(line);
	return 0;
}

static void
log_it(void *arg, const char *text)
{
	(void)arg;
	(void)fprintf(stderr, "%s\n", text);
}

int
main(int argc, char **argv)
{
	size_t i;

	static const struct play_provider *const all[] = {
	    &play_daytona, &play_e2b, &play_modal, &play_runloop};
	const char *given = getenv("PLAY_ENV");
	struct hr_strv variables = {0};
	struct hr_err err = {0};
	struct hr_config *config = hr_config_new(&err);
	struct hr_backend_host h = {.config = config,
	    .sid = "default",
	    .environ = (const char *const *)environ,
	    .log = log_it,
	    .stop_fd = -1};
	const struct hr_sandbox_ops *ops = NULL;
	void *self = NULL;
	int r = 2;

	hr_strv_add_words(&variables, given != NULL ? given : "");
	h.env = hr_strv_list(&variables);
	for (i = 0; argc == 2 && i < sizeof(all) / sizeof(*all); i++) {
		if (strcmp(all[i]->name, argv[1]) != 0)
			continue;
		ops = all[i]->entry(HR_BACKEND_ABI);
		if (ops->open(&h, &self, &err) != 0) {
			answer(-1, NULL, &err);
			r = 1;
			break;
		}
		r = play(all[i], ops, self);
		ops->free(self);
	}
	hr_strv_done(&variables);
	hr_config_free(config);
	return r;
}
