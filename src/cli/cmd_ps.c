/* Implements ps: lists sandboxes with their back-end and usage. All are queried at once, since an
 * Engine takes a second to report a container's usage. */
#include "config.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/text/quote.h"
#include "cli/commands.h"
#include "host/handle.h"
#include "proto/json.h"

#define AT_ONCE 16
#define INFO_MAX (1u << 16)
#define ASK_S 10 /* seconds for all concurrent queries together */

struct row {
	struct cli *c;
	struct json_object *record; /* data that are known without a query */
	bool stray;                 /* the sandbox is only in a provider's list */
	bool asked;                 /* a thread queries the sandbox */
	int late_fd;                /* readable at the time limit; -1: never */
	pthread_t thread;
	char state[32];
	double idle, cpu, memory; /* seconds, percent, bytes; -1: unknown */
	char why[300];            /* reason of an unknown state; "": none */
};

static const struct cli_option ps_options[] = {
    {'a', "all", NULL, "also list the back-end's sandboxes not recorded here"},
    {0, NULL, NULL, NULL},
};

/* ---- queries ---- */

/* Returns a member that is a number; otherwise -1. */
static double
number_at(struct json_object *o, const char *name)
{
	struct json_object *v = hr_json_at(o, name);
	double d = json_object_is_type(v, json_type_double) || json_object_is_type(v, json_type_int)
		       ? json_object_get_double(v)
		       : -1;

	return isfinite(d) && d >= 0 ? d : -1;
}

static struct json_object *
decoded(const char *text, size_t len)
{
	struct json_object *o = NULL;

	if (hr_json_decode_foreign(text, len, &o, NULL) < 0 ||
	    !json_object_is_type(o, json_type_object)) {
		json_object_put(o);
		return NULL;
	}
	return o;
}

/* Prefers the back-end's figures for the whole sandbox; falls back to the server's own. */
static void
ask_kind(struct row *w, struct hr_sandbox *s)
{
	HR_FREE char *text = NULL;
	HR_PUT struct json_object *o = NULL;

	if (hr_sandbox_stats(s, &text, NULL) == 0 && (o = decoded(text, strlen(text))) != NULL) {
		w->cpu = number_at(o, "cpu_percent");
		w->memory = number_at(o, "mem_bytes");
	}
}

static int
on_info(void *arg, const char *p, size_t len)
{
	struct hr_buf *b = arg;

	hr_buf_add(b, p, len);
	return b->fail == HR_OK ? 0 : -1;
}

static void
on_log(void *arg, const char *text)
{
	struct row *w = arg;

	(void)snprintf(w->why, sizeof(w->why), "%.290s", text);
}

/* Queries only once: a request with a sink is not repeated, and a list is not worth retries. The
 * state is unknown if the server stands still: its process may be stopped. */
static void
ask_server(struct row *w, struct hr_sandbox *s)
{
	HR_BUF(b, INFO_MAX);
	struct hr_http_request q = {.method = "GET",
	    .url = "/server_info",
	    .timeout_s = ASK_S,
	    .watch_fd = w->late_fd,
	    .sink = on_info,
	    .sink_arg = &b};
	HR_CLEAN(hr_http_answer_done) struct hr_http_answer a = {0};
	HR_PUT struct json_object *o = NULL;
	struct json_object *own;

	/* the time went to the back-end: nothing is known about the server */
	if (hr_fd_is_readable(w->late_fd))
		return;
	if (hr_client_send(&s->client, &q, &a, NULL) != 0) {
		if ((a.fault == HR_HTTP_CANCELLED && b.fail == HR_OK) ||
		    a.fault == HR_HTTP_READ_TIMEOUT || a.fault == HR_HTTP_CONNECT_TIMEOUT) {
			(void)snprintf(w->state, sizeof(w->state), "unknown");
			on_log(w,
			    "its server did not answer in time; \"handrail logs\" prints its log");
		}
		return;
	}
	o = decoded(hr_buf_str(&b), b.len);
	own = hr_json_at(o, "resources");
	w->idle = number_at(o, "idle_time");
	if (s->ops->stats == NULL) {
		w->cpu = number_at(own, "cpu_percent");
		w->memory = number_at(hr_json_at(own, "memory"), "rss");
	}
}

static void *
ask(void *arg)
{
	struct row *w = arg;
	struct hr_sandbox_options o = {.sid = hr_json_text_or(w->record, "sid", "-"),
	    .environ = w->c->env,
	    .attach = true,
	    .headless = true,
	    .log = on_log,
	    .log_arg = w,
	    .state_dir = w->c->state_dir};
	struct hr_err err = {0};
	HR_CLEAN(hr_sandbox_clean) struct hr_sandbox *s = hr_sandbox_open(w->c->config, &o, &err);

	if (s != NULL)
		s->host.stop_fd = w->late_fd; /* this bounds an Engine that hangs as well */
	if (s != NULL && hr_sandbox_connect(s, &err) == 0) {
		(void)snprintf(w->state, sizeof(w->state), "%s", hr_sandbox_state(s));
	} else if (s == NULL || s->elsewhere || err.code == HR_E_PERMISSION ||
		   err.code == HR_E_UNAVAILABLE) {
		/* no query was possible: a setting is wrong or missing, or the back-end is */
		(void)snprintf(w->state, sizeof(w->state), "unknown");
		on_log(w, err.msg);
	}
	if (strcmp(w->state, "unknown") != 0)
		w->why[0] = '\0';
	if (strcmp(w->state, "running") == 0) {
		if (s->endpoint.url != NULL)
			ask_server(w, s);
		if (s->ops->stats != NULL)
			ask_kind(w, s);
	}
	return NULL;
}

static void
ask_all(struct row *rows, size_t n)
{
	const struct itimerspec most = {.it_value = {.tv_sec = ASK_S}};
	HR_CLOSE int late_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	size_t from;

	for (from = 0; from < n; from += AT_ONCE) {
		const size_t end = n - from < AT_ONCE ? n : from + AT_ONCE;
		size_t i;

		/* restart the limit: the descriptor is not readable until the limit is over */
		(void)timerfd_settime(late_fd, 0, &most, NULL);
		for (i = from; i < end; i++) {
			rows[i].late_fd = late_fd;
			rows[i].asked = !rows[i].stray &&
					pthread_create(&rows[i].thread, NULL, ask, &rows[i]) == 0;
			/* this thread queries if no other one can be started */
			if (!rows[i].asked && !rows[i].stray)
				(void)ask(&rows[i]);
		}
		for (i = from; i < end; i++)
			if (rows[i].asked)
				(void)pthread_join(rows[i].thread, NULL);
	}
}

/* ---- printing ---- */

/* Prints "45s", "12m", "3h" or "5d". */
static void
put_duration(char text[16], double s)
{
	size_t i;

	static const struct {
		double less, unit;
		char letter;
	} units[] = {{120, 1, 's'}, {7200, 60, 'm'}, {172800, 3600, 'h'}, {8.64e9, 86400, 'd'}};

	(void)snprintf(text, 16, "-");
	for (i = 0; s >= 0 && i < sizeof(units) / sizeof(*units); i++)
		if (s < units[i].less) {
			(void)snprintf(
			    text, 16, "%.0f%c", floor(s / units[i].unit), units[i].letter);
			return;
		}
}

static void
put_amount(char text[16], double v, double unit, const char *format)
{
	(void)snprintf(text, 16, "-");
	if (v >= 0 && v / unit < 1e9)
		(void)snprintf(text, 16, format, v / unit);
}

/* Pads a column to its width plus a blank; quotes the text, which comes from outside. */
static void
put_column(struct hr_buf *b, const char *text, int width)
{
	const size_t before = b->len;

	hr_quote_text(b, text, strlen(text));
	hr_buf_addf(b, "%*s ",
	    b->len - before < (size_t)width ? (int)((size_t)width - (b->len - before)) : 0, "");
}

static double
age_of(const struct row *w)
{
	const int64_t created = hr_json_int_at(w->record, "created");

	return created > 0 ? difftime(time(NULL), (time_t)created) : -1;
}

static void
put_line(struct hr_buf *b, const struct row *w)
{
	char age[16], idle[16], cpu[16], memory[16];
	const char *url = hr_json_text_or(w->record, "url", "-");

	put_duration(age, age_of(w));
	put_duration(idle, w->idle);
	put_amount(cpu, w->cpu, 1, "%.1f%%");
	put_amount(memory, w->memory, 1048576, "%.0fM");
	put_column(b, hr_json_text_or(w->record, "sid", "-"), 20);
	put_column(b, hr_json_text_or(w->record, "runtime", "-"), 10);
	put_column(b, w->state, 8);
	put_column(b, hr_json_text_or(w->record, "image", "-"), 20);
	hr_buf_addf(b, "%5s %5s %6s %6s ", age, idle, cpu, memory);
	if (w->stray) {
		url = hr_json_text_or(w->record, "id", "-");
		hr_buf_adds(b, "not recorded here: ");
	}
	hr_quote_text(b, url, strlen(url));
	if (w->stray && !hr_json_true_at(w->record, "ours"))
		hr_buf_adds(b, " (another's)");
	hr_buf_addc(b, '\n');
}

static void
put_number(struct hr_buf *b, const char *name, double v, int digits)
{
	if (v >= 0)
		hr_buf_addf(b, ",\"%s\":%.*f", name, digits, v);
	else
		hr_buf_addf(b, ",\"%s\":null", name);
}

static void
put_json(struct hr_buf *b, const struct row *w)
{
	hr_buf_adds(b, b->len > 1 ? ",{" : "{");
	hr_json_put_named(b, "sid", hr_json_text_or(w->record, "sid", "-"));
	hr_json_put_named(b, "runtime", hr_json_text_or(w->record, "runtime", "-"));
	hr_json_put_named(b, "state", w->state);
	hr_json_put_named(b, "url", hr_json_text_at(w->record, "url"));
	hr_json_put_named(b, "image", hr_json_text_at(w->record, "image"));
	put_number(b, "age", age_of(w), 0);
	put_number(b, "idle", w->idle, 3);
	put_number(b, "cpu_percent", w->cpu, 1);
	put_number(b, "memory_bytes", w->memory, 0);
	hr_buf_addf(b, ",\"stray\":%s", w->stray ? "true" : "false");
	if (w->stray) {
		hr_buf_addf(
		    b, ",\"ours\":%s", hr_json_true_at(w->record, "ours") ? "true" : "false");
		hr_json_put_named(b, "id", hr_json_text_at(w->record, "id"));
	}
	hr_buf_addc(b, '}');
}

/* ---- the rows ---- */

static int
add_row(struct row **rows, size_t *n, struct cli *c, struct json_object *record, bool stray)
{
	struct row *more = reallocarray(*rows, *n + 1, sizeof(**rows));

	if (more == NULL)
		return cli_no_memory();
	*rows = more;
	more[*n] = (struct row){
	    .c = c, .record = record, .stray = stray, .idle = -1, .cpu = -1, .memory = -1};
	(void)snprintf(more[*n].state, sizeof(more[*n].state), "%s",
	    stray ? hr_json_text_or(record, "state", "-") : "exited");
	(*n)++;
	return CLI_OK;
}

static int
show(struct cli *c, const struct row *rows, size_t n)
{
	HR_BUF(b, 16 << 20);
	size_t i;

	if (c->json)
		hr_buf_addc(&b, '[');
	else if (!c->quiet)
		hr_buf_addf(&b, "%-20s %-10s %-8s %-20s %5s %5s %6s %6s %s\n", "NAME", "RUNTIME",
		    "STATE", "IMAGE", "AGE", "IDLE", "CPU", "MEM", "URL");
	for (i = 0; i < n; i++) {
		if (c->json)
			put_json(&b, &rows[i]);
		else if (c->quiet)
			hr_buf_addf(&b, "%s\n", hr_json_text_or(rows[i].record, "sid", "-"));
		else
			put_line(&b, &rows[i]);
	}
	if (c->json)
		hr_buf_adds(&b, "]\n");
	return cli_out_buf(&b);
}

/* Prints the rows; r is the status so far, which the first failure sets. Bare names need no
 * query. */
static int
ask_and_show(struct cli *c, struct row *rows, size_t n, int r)
{
	struct hr_err err = {0};
	int shown;
	size_t i;

	if (c->json || !c->quiet)
		ask_all(rows, n);
	shown = show(c, rows, n);
	for (i = 0; i < n; i++) {
		if (strcmp(rows[i].state, "unknown") != 0 || rows[i].why[0] == '\0')
			continue;
		(void)hr_err_set(&err, HR_E_UNAVAILABLE, "%.100s: %s",
		    hr_json_text_or(rows[i].record, "sid", "-"), rows[i].why);
		r = r != CLI_OK ? r : cli_fail(&err);
	}
	return r != CLI_OK ? r : shown;
}

static int
ps(struct cli *c, const struct cli_args *a)
{
	struct json_object *o;
	struct hr_err err = {0};
	HR_PUT struct json_object *list = cli_recorded(c, &err);
	HR_PUT struct json_object *found = NULL;
	HR_FREE struct row *rows = NULL;
	size_t n = 0, i;
	int r = CLI_OK;

	if (list == NULL)
		return cli_fail(&err);
	for (i = 0; i < hr_json_count(list) && r == CLI_OK; i++)
		r = add_row(&rows, &n, c, hr_json_entry(list, i), false);
	if (r == CLI_OK && cli_value(a, 'a') != NULL) {
		found = cli_provided(c, &err);
		r = found != NULL ? CLI_OK : cli_fail(&err);
	}
	for (i = 0; i < hr_json_count(found) && r == CLI_OK; i++) {
		o = hr_json_entry(found, i);
		if (!hr_json_true_at(o, "recorded"))
			r = add_row(&rows, &n, c, o, true);
	}
	return ask_and_show(c, rows, n, r);
}

const struct cli_command cli_ps = {"ps", NULL, NULL,
    "List the sandboxes with their images, ages and use.", ps_options, 0, 0, CLI_PLAIN, ps, NULL};

/* Appends the row of a recorded sandbox. */
static int
add_named(struct row **rows, size_t *n, struct cli *c, struct json_object *list, const char *name)
{
	struct json_object *o = hr_json_find(list, "sid", name);

	if (o != NULL)
		return add_row(rows, n, c, o, false);
	cli_say("there is no sandbox \"%s\"; \"handrail ps\" lists the sandboxes", name);
	return CLI_NOT_FOUND;
}

static int
inspect(struct cli *c, const struct cli_args *a)
{
	struct hr_err err = {0};
	HR_PUT struct json_object *list = cli_recorded(c, &err);
	HR_FREE struct row *rows = NULL;
	size_t n = 0;
	int r = CLI_OK, one, i;

	if (list == NULL)
		return cli_fail(&err);
	if (a->argc == 0)
		r = add_named(&rows, &n, c, list, c->name);
	for (i = 0; i < a->argc; i++) {
		one = add_named(&rows, &n, c, list, a->argv[i]);
		r = r != CLI_OK ? r : one;
	}
	c->json = true;
	return ask_and_show(c, rows, n, r);
}

const struct cli_command cli_inspect = {"inspect", NULL, "[NAME]...",
    "Print what \"ps\" lists of a sandbox as JSON.", NULL, 0, -1, CLI_NAMES, inspect, NULL};
