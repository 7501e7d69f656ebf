/* Explains Status objects. The server's messages are made for programmers; frequent ones are
 * translated into fault and remedy, all others are passed on. */
#include "config.h"

#include "host/kubernetes/status.h"

#include <stdio.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/text/quote.h"
#include "base/err.h"
#include "proto/json.h"

#define PART 200

void
hr_kube_status_text(char *to, size_t cap, const char *text, size_t len)
{
	HR_BUF(b, 16384);

	hr_quote_text(&b, text, len < 3000 ? len : 3000);
	(void)snprintf(to, cap, "%s", hr_buf_str(&b));
}

bool
hr_kube_status_of(struct hr_kube_status *ret, struct json_object *o)
{
	const char *text = hr_json_text_or(o, "message", "");
	const char *reason = hr_json_text_or(o, "reason", "");
	int64_t code = hr_json_int_at(o, "code");

	if (strcmp(hr_json_text_or(o, "kind", ""), "Status") != 0)
		return false;
	if (code > 0 && code < 1000)
		ret->code = (int)code;
	hr_kube_status_text(ret->reason, sizeof(ret->reason), reason, strlen(reason));
	hr_kube_status_text(ret->message, sizeof(ret->message), text, strlen(text));
	return true;
}

void
hr_kube_status_read(struct hr_kube_status *ret, int code, const char *p, size_t len)
{
	HR_PUT struct json_object *o = NULL;

	memset(ret, 0, sizeof(*ret));
	ret->code = code;
	if (len == 0 || hr_json_decode_foreign(p, len, &o, NULL) != 0 || !hr_kube_status_of(ret, o))
		hr_kube_status_text(ret->message, sizeof(ret->message), p != NULL ? p : "", len);
}

bool
hr_kube_status_is(const struct hr_kube_status *s, const char *reason)
{
	return strcmp(s->reason, reason) == 0;
}

/* ---- explanations ---- */

/* Extracts the part between two strings; returns false if they are missing. */
static bool
between(const char *text, const char *before, const char *after, char ret[PART])
{
	const char *from = strstr(text, before), *to;

	if (from == NULL)
		return false;
	from += strlen(before);
	to = strstr(from, after);
	if (to == NULL)
		return false;
	(void)snprintf(ret, PART, "%.*s", (int)(to - from), from);
	return true;
}

static int
forbidden(const struct hr_kube_status *s, struct hr_err *err)
{
	char who[PART], verb[PART], what[PART], where[PART], used[PART];
	const char *m = s->message, *rest;

	if (between(m, "exceeded quota: ", ", requested: ", what) &&
	    between(m, "requested: ", ", used: ", who) &&
	    between(m, ", used: ", ", limited: ", used)) {
		rest = strstr(m, ", limited: ") + strlen(", limited: ");
		return hr_err_set(err, HR_E_UNAVAILABLE,
		    "the quota \"%s\" of the namespace is used up: requested %s, used %s of %s; "
		    "end other sandboxes, or ask for a larger quota",
		    what, who, used, rest);
	}
	if ((rest = strstr(m, "failed quota: ")) != NULL)
		return hr_err_set(err, HR_E_INVAL,
		    "a quota of the namespace requires more of the pod: %s (set "
		    "kubernetes.resource_* or sandbox.limits.*)",
		    rest);
	if ((rest = strstr(m, "violates PodSecurity ")) != NULL)
		return hr_err_set(err, HR_E_PERMISSION,
		    "the namespace's Pod Security does not allow such a pod: it %s (settings "
		    "sandbox.security.* and kubernetes.privileged)",
		    rest);
	if (between(m, "User \"", "\"", who) && between(m, "cannot ", " resource", verb) &&
	    between(m, "resource \"", "\"", what)) {
		bool named = between(m, "in the namespace \"", "\"", where);

		return hr_err_set(err, HR_E_PERMISSION,
		    "%s has no right to %s %s%s%s%s: a Role must grant it (\"handrail doctor -r "
		    "kubernetes\" prints all missing rights)",
		    who, verb, what, named ? " in the namespace \"" : "", named ? where : "",
		    named ? "\"" : "");
	}
	return hr_err_set(err, HR_E_PERMISSION, "the API server forbids it: %s", m);
}

int
hr_kube_status_error(const struct hr_kube_status *s, struct hr_err *err)
{
	const char *m = s->message[0] != '\0' ? s->message : "no details";

	switch (s->code) {
	case 401:
		(void)hr_err_set(err, HR_E_PERMISSION,
		    "the API server does not know these credentials (401): they have expired, or "
		    "are for another cluster");
		break;
	case 403: (void)forbidden(s, err); break;
	case 404: (void)hr_err_set(err, HR_E_NO_SANDBOX, "%s", m); break;
	case 409:
		(void)hr_err_set(err, HR_E_RUNTIME, "another client changed it first: %s", m);
		break;
	case 410:
		(void)hr_err_set(err, HR_E_NOT_READY,
		    "the API server no longer keeps the requested version: %s", m);
		break;
	case 400:
	case 422:
		(void)hr_err_set(err, HR_E_INVAL, "the API server does not take it: %s", m);
		break;
	case 429:
		(void)hr_err_set(err, HR_E_UNAVAILABLE,
		    "the API server refuses requests for now (429), try again later: %s", m);
		break;
	default:
		(void)hr_err_set(err, s->code >= 500 ? HR_E_UNAVAILABLE : HR_E_RUNTIME,
		    "the API server answered %d: %s", s->code, m);
		break;
	}
	if (err != NULL)
		err->status = s->code;
	return -1;
}
