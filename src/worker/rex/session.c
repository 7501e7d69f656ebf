/* Manages sessions: named shells of the sandbox. SWE-ReX shells have a prefix, so that clients can
 * create and close "default" as usual. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "proto/channel.h"
#include "proto/python/repr.h"
#include "shell/quote.h"
#include "worker/live.h"
#include "worker/rex/rex.h"

/* Makes the shell's name; a digest replaces a name that no shell can have. */
static void
shell_name(const struct hr_rex_call *c, char *name)
{
	struct hr_span given = hr_rex_str(c, "session");

	if (given.p == NULL)
		given = hr_span_of("default");
	(void)snprintf(name, HR_REX_SESSION, HR_REX_SESSIONS "-%.*s", (int)given.len, given.p);
	if (strlen(name) != sizeof(HR_REX_SESSIONS) + given.len || given.len == 0 ||
	    !hr_session_name_fits(name, strlen(name)))
		(void)snprintf(name, HR_REX_SESSION, HR_REX_SESSIONS "_%016" PRIx64,
		    hr_hash(HR_HASH, given.p, given.len));
}

/* Raises an exception with the session's name for %s, or its repr for %r. Returns false. */
static bool
raise_session(struct hr_rex_call *c, const char *class, const char *said, bool repr)
{
	struct hr_span given = hr_rex_str(c, "session");
	HR_BUF(text, HR_JSON_BODY_MAX);

	if (given.p == NULL)
		given = hr_span_of("default");
	hr_buf_adds(&text, "session ");
	if (repr)
		hr_pyrepr_str(&text, given.p, given.len);
	else
		hr_buf_add(&text, given.p, given.len);
	hr_buf_adds(&text, said);
	return hr_rex_raise(c->ret, class, &text, "");
}

/* Accepts only names made by shell_name(), not others with the prefix. */
static bool
is_ours(const char *name)
{
	const size_t n = sizeof(HR_REX_SESSIONS) - 1;

	return strncmp(name, HR_REX_SESSIONS, n) == 0 &&
	       (name[n] == '-' || (name[n] == '_' && strlen(name + n + 1) == 16 &&
				      strspn(name + n + 1, "0123456789abcdef") == 16));
}

bool
hr_rex_place(struct hr_rex_call *c, char *name, struct hr_shell_place *ret_place)
{
	shell_name(c, name);
	*ret_place = (struct hr_shell_place){.run_dir = c->w->run_dir, .session = name};
	if (hr_shell_is_there(ret_place))
		return true;
	return raise_session(
	    c, "swerex.exceptions.SessionDoesNotExistError", " does not exist", true);
}

/* Sources the startup files and collects their output. */
static bool
source(struct hr_rex_call *c, const struct hr_shell_place *place, struct hr_buf *out)
{
	struct json_object *list = hr_json_at(c->body, "startup_source");
	double limit_s = hr_rex_number(c, "startup_timeout", 1);
	HR_CLEAN(hr_rex_result_done) struct hr_rex_result result = {0};
	HR_BUF(text, HR_JSON_BODY_MAX);
	size_t i, len;
	const char *p;

	if (hr_json_count(list) == 0)
		return true;
	for (i = 0; i < hr_json_count(list); i++) {
		p = hr_json_str(hr_json_entry(list, i), &len);
		hr_buf_adds(&text, i > 0 ? "; source " : "source ");
		hr_shell_quote(&text, p, len);
	}
	if (!hr_rex_run(c, place->session, NULL, hr_span_of_buf(&text), limit_s, HR_SHELL_READY_S,
		hr_span_of("swerex:source"), &result))
		return false;
	if (result.exit_code < 0)
		return hr_rex_raisef(c->ret, "swerex.exceptions.CommandTimeoutError",
		    "the startup files took longer than %g seconds", limit_s);
	hr_buf_add(out, result.content.p, result.content.len);
	return true;
}

static void
create(struct hr_rex_call *c)
{
	char name[HR_REX_SESSION];
	const struct hr_shell_place place = {.run_dir = c->w->run_dir, .session = name};
	HR_CLEAN(hr_answer_done) struct hr_answer inner;
	HR_BUF(out, HR_ANSWER_MAX);
	bool made;

	shell_name(c, name);
	hr_answer_init(&inner);
	made = !hr_shell_is_there(&place) && hr_live_make(c->w, name, &inner);
	if (made && source(c, &place, &out)) {
		hr_buf_adds(&c->ret->body, "{\"output\":");
		(void)hr_json_put_str(&c->ret->body, hr_buf_str(&out), out.len, HR_JSON_REPLACE);
		hr_buf_adds(&c->ret->body, ",\"session_type\":\"bash\"}");
	} else if (!made && hr_shell_is_there(&place)) {
		raise_session(c, "swerex.exceptions.SessionExistsError", " already exists", false);
	} else if (!made) {
		hr_rex_pass(c->ret, &inner);
	} else {
		hr_answer_reset(&inner); /* the error was sent; end the incomplete session */
		(void)hr_live_end(c->w, name, &inner);
	}
}

void
hr_rex_create(struct hr_rex_call *c)
{
	if (hr_rex_enter(c)) {
		create(c);
		hr_rex_leave(c);
	}
}

/* Ends a session. Returns false after raising an exception. */
static bool
end(struct hr_rex_call *c, const char *name)
{
	HR_CLEAN(hr_answer_done) struct hr_answer inner;

	hr_answer_init(&inner);
	if (hr_live_end(c->w, name, &inner))
		return true;
	if (inner.status != 404)
		return hr_rex_pass(c->ret, &inner);
	return raise_session(
	    c, "swerex.exceptions.SessionDoesNotExistError", " does not exist", true);
}

void
hr_rex_close_one(struct hr_rex_call *c)
{
	char name[HR_REX_SESSION];

	if (!hr_rex_enter(c))
		return;
	shell_name(c, name);
	if (end(c, name))
		hr_buf_adds(&c->ret->body, "{\"session_type\":\"bash\"}");
	hr_rex_leave(c);
}

void
hr_rex_close_all(struct hr_rex_call *c)
{
	HR_CLEAN(hr_answer_done) struct hr_answer inner;
	HR_BUF(names, HR_CHANNEL_ANSWER_MAX);
	const char *p;

	hr_answer_init(&inner);
	if (!hr_worker_body(c->w, c->r, HR_JSON_BODY_MAX, c->ret))
		return;
	if (!hr_live_names(c->w, &names, &inner)) {
		hr_rex_pass(c->ret, &inner);
		return;
	}
	for (p = hr_buf_str(&names); p < names.p + names.len; p += strlen(p) + 1) {
		if (!is_ours(p))
			continue;
		hr_answer_reset(&inner);
		/* a session that has ended meanwhile counts as success, too */
		if (!hr_live_end(c->w, p, &inner) && inner.status != 404)
			break;
	}
	if (inner.status == 200 || inner.status == 404)
		hr_buf_adds(&c->ret->body, "{}");
	else
		hr_rex_pass(c->ret, &inner);
}
