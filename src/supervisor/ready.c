/* Reports which parts work, for people and probes. */
#include "config.h"

#include "supervisor/ready.h"

#include <string.h>

#include "base/text/quote.h"
#include "supervisor/server.h"

static const char *
pool_state(const struct hr_pool *p)
{
	if (hr_service_ends(&p->svc))
		return "stopping";
	if (hr_service_failing(&p->svc))
		return "failing";
	return hr_pool_serves(p) ? "ready" : "starting";
}

/* Returns the first problem, or NULL. */
static const char *
why_not(const struct hr_server *s)
{
	unsigned i;

	if (s->stage > HR_SERVER_RUNNING)
		return "the server is ending";
	if (s->session.svc.state != HR_SERVICE_READY)
		return s->session.svc.reason[0] != '\0' ? s->session.svc.reason
							: "the shell is starting";
	for (i = 0; i < HR_POOLS; i++) {
		if (hr_service_failing(&s->pools.v[i].svc))
			return "workers end as soon as they start";
		if (!hr_pool_serves(&s->pools.v[i]))
			return "workers are starting";
	}
	if (!hr_plugins_settled(&s->plugins) && s->stage != HR_SERVER_RUNNING)
		return "plugins are starting";
	if (s->stage == HR_SERVER_STARTING && s->ctx.relieves)
		return NULL;
	if (s->ctx.settings.start_nginx && s->nginx.svc.state != HR_SERVICE_READY)
		return "nginx is starting";
	return s->stage == HR_SERVER_RUNNING ? NULL : "the server is starting";
}

bool
hr_ready_now(const struct hr_server *s)
{
	return why_not(s) == NULL;
}

static void
put_text(struct hr_buf *b, const char *text)
{
	hr_quote_json(b, text, strlen(text));
}

static void
put_pools(struct hr_buf *b, const struct hr_server *s)
{
	unsigned i, n, busy;

	for (i = 0; i < HR_POOLS; i++) {
		const struct hr_pool *p = &s->pools.v[i];

		n = hr_pool_count(p, &busy);
		hr_buf_addf(b,
		    ",\"pool_%s\":{\"state\":\"%s\",\"workers\":%u,\"busy\":%u,\"max\":%u}",
		    p->name, pool_state(p), n, busy, p->max);
	}
}

void
hr_ready_json(struct hr_buf *b, const struct hr_server *s)
{
	const char *why = why_not(s);

	hr_buf_addf(b, "{\"status\":\"%s\",\"reason\":", why == NULL ? "ready" : "not ready");
	if (why != NULL)
		put_text(b, why);
	else
		hr_buf_adds(b, "null");
	hr_buf_addf(b, ",\"components\":{\"session\":{\"state\":\"%s\"",
	    hr_service_state_text(&s->session.svc));
	if (s->session.svc.reason[0] != '\0') {
		hr_buf_adds(b, ",\"reason\":");
		put_text(b, s->session.svc.reason);
	}
	hr_buf_addf(b,
	    "},\"named_sessions\":{\"count\":%u},\"static_sessions\":{\"count\":%u},"
	    "\"nginx\":{\"state\":\"%s\"}",
	    s->sessions.count, s->static_sessions.count,
	    s->ctx.settings.start_nginx ? hr_service_state_text(&s->nginx.svc) : "not ours");
	put_pools(b, s);
	hr_buf_adds(b, ",\"plugins\":");
	hr_plugins_json(b, &s->plugins);
	hr_buf_adds(b, "},\"alerts\":");
	hr_alerts_json(b, &s->alerts);
	hr_buf_addc(b, '}');
}
