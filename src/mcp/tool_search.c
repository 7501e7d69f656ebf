/* Implements the tools list, glob and grep, which search without a shell, with the permissions of
 * the shell's account. */
#include "config.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/account.h"
#include "base/clock.h"
#include "base/path.h"
#include "files/search/search.h"
#include "mcp/call.h"

#define TIME_MS 10000
#define LIMIT 200
#define LIMIT_MAX 2000
#define LINE_MAX_SHOWN 400
#define LINE_BEFORE 100        /* bytes of a cut line shown before the match */
#define TEXT_SHOWN (64u << 10) /* maximum bytes per answer */

/* Switches to the shell's account unless this process already has it. */
static bool
enter(struct hr_mcp_call *c, struct hr_account_own *own)
{
	struct hr_account shell;

	hr_account_find(&shell, c->env->shell_uid);
	if (hr_account_enter(&shell, own) == 0)
		return true;
	return hr_mcp_fail(c, "The sandbox cannot look as the shell's user: %s", strerror(errno));
}

/* Sets the home directories where the shell's account has its settings. */
static void
set_home(struct hr_search *s, uid_t shell)
{
	const struct passwd *user;

	if (shell == geteuid()) {
		s->home = getenv("HOME");
		s->config_home = getenv("XDG_CONFIG_HOME");
		if (s->config_home != NULL && *s->config_home != '/')
			s->config_home = NULL;
	} else {
		user = getpwuid(shell);
		s->home = user != NULL ? user->pw_dir : NULL;
	}
	if (s->home != NULL && *s->home != '/')
		s->home = NULL;
}

static struct hr_search
search_of(struct hr_mcp_call *c, const char *top)
{
	struct hr_search s = {.top = top,
	    .until_ms = hr_now_ms() + TIME_MS,
	    .hidden = hr_mcp_arg_true(c, "hidden"),
	    .ignored = hr_mcp_arg_true(c, "ignored")};

	if (!s.ignored)
		set_home(&s, c->env->shell_uid);
	return s;
}

static void
say_end(struct hr_mcp_call *c, const struct hr_search_end *e)
{
	if (e->late)
		hr_mcp_say(c,
		    "[not all was looked through within %d s: name a directory further down]\n",
		    TIME_MS / 1000);
	if (e->closed > 0)
		hr_mcp_say(c, "[%zu could not be opened]\n", e->closed);
	if (e->large > 0)
		hr_mcp_say(c, "[%zu too large]\n", e->large);
	if (e->deep > 0)
		hr_mcp_say(c, "[%zu directories too deep]\n", e->deep);
	if (e->costly > 0)
		hr_mcp_say(c,
		    "[in %zu files the expression took too many steps: make it simpler]\n",
		    e->costly);
}

static bool
is_whole(const struct hr_search_end *e)
{
	return !e->late && e->closed == 0 && e->deep == 0 && e->large == 0 && e->costly == 0;
}

/* Reports, where nothing was found, the number of ignored and hidden names that were skipped. */
static void
say_left_out(struct hr_mcp_call *c, const struct hr_search_end *e)
{
	if (e->ignored > 0)
		hr_mcp_say(
		    c, "[%zu ignored names were left out; ignored shows them]\n", e->ignored);
	if (e->hidden > 0)
		hr_mcp_say(c, "[%zu hidden names were left out; hidden shows them]\n", e->hidden);
}

/* ---- the start directory of a pattern ---- */

struct plan {
	struct hr_glob_plan p;
	struct hr_globs *globs;
	struct hr_search s;
};

static void
plan_done(struct plan *p)
{
	hr_glob_plan_done(&p->p);
	hr_globs_free(p->globs);
}

/* Makes the plan with the permissions of the shell's account. If the pattern's directory is
 * missing, this falls back to the top, and a pattern "/src" may be meant as relative to it. */
static int
plan_make(struct plan *p, const char *top, struct hr_span pattern, struct hr_err *err)
{
	if (hr_glob_plan(top, pattern, &p->p, err) < 0)
		return -1;
	if (hr_path_is_directory(hr_buf_str(&p->p.top))) {
		p->s.top = hr_buf_str(&p->p.top);
		pattern = hr_span_of_buf(&p->p.pattern);
		if (p->p.exact)
			p->s.named = hr_buf_str(&p->p.pattern) + (*p->p.pattern.p == '/');
	} else {
		hr_buf_reset(&p->p.shown);
	}
	p->globs = hr_globs_new(pattern, top, p->s.hidden, err);
	if (p->globs == NULL)
		return -1;
	p->s.hidden = hr_globs_hidden(p->globs);
	p->s.depth = hr_globs_depth(p->globs);
	return 0;
}

/* ---- list, glob ---- */

struct listing {
	struct hr_mcp_call *c;
	const char *shown, *named; /* prefix of each shown name; a name that may be a directory */
	const struct hr_globs *globs; /* NULL: list all names including directories */
	size_t n, max;
};

static bool
on_name(void *arg, int dir, const char *name, const char *rel, bool is_dir)
{
	struct listing *l = arg;
	struct hr_mcp_call *c = l->c;
	char last = name[strlen(name) + 1];

	(void)dir;
	if (l->globs != NULL && ((is_dir && (l->named == NULL || strcmp(rel, l->named) != 0)) ||
				    !hr_globs_match(l->globs, rel)))
		return true;
	if (l->n++ >= l->max || c->text.len >= TEXT_SHOWN) {
		l->max = l->max < l->n ? l->max : l->n - 1; /* only counts the remaining names */
		return true;
	}
	hr_buf_adds(&c->structured, l->n > 1 ? "," : "");
	hr_buf_addc(&c->structured, '"');
	(void)hr_json_put_text(&c->structured, l->shown, strlen(l->shown), HR_JSON_REPLACE);
	(void)hr_json_put_text(&c->structured, rel, strlen(rel), HR_JSON_REPLACE);
	hr_buf_adds(&c->structured, is_dir ? "/\"" : "\"");
	hr_buf_adds(&c->text, l->shown);
	hr_buf_adds(&c->text, rel);
	hr_buf_adds(&c->text, is_dir ? "/\n" : last == 'l' ? "@\n" : "\n");
	return true;
}

/* Lists names; a `pattern` with p NULL lists all names of the directory. */
static void
walk(struct hr_mcp_call *c, const struct hr_search *s, struct hr_span pattern)
{
	struct listing l = {
	    .c = c, .shown = "", .max = (size_t)hr_mcp_arg_int(c, "limit", LIMIT, 1, LIMIT_MAX)};
	HR_CLEAN(plan_done) struct plan plan = {.s = *s};
	struct hr_search_end end;
	struct hr_account_own own;
	struct hr_err err = {0};
	size_t shown;
	int r = 0;

	if (!enter(c, &own))
		return;
	hr_buf_adds(&c->structured, "{\"paths\":[");
	if (pattern.p != NULL) {
		r = plan_make(&plan, s->top, pattern, &err);
		l.globs = plan.globs;
		l.shown = hr_buf_str(&plan.p.shown);
		l.named = plan.s.named;
	}
	if (r == 0)
		r = hr_search_walk(&plan.s, on_name, &l, &end, &err);
	hr_account_leave(&own);
	if (r < 0) {
		hr_mcp_fail(c, "%s", err.msg);
		return;
	}
	shown = l.n < l.max ? l.n : l.max;
	hr_buf_addf(&c->structured, "],\"total\":%zu,\"complete\":%s}", l.n,
	    is_whole(&end) && shown == l.n ? "true" : "false");
	if (l.n == 0) {
		hr_mcp_say(c, "Nothing found.\n");
		say_left_out(c, &end);
	}
	if (shown < l.n)
		hr_mcp_say(c, "[%zu of %zu]\n", shown, l.n);
	say_end(c, &end);
}

#define HIDDEN                                                                                     \
	{                                                                                          \
		"hidden", HR_MCP_BOOL, false, "Names that begin with a dot, too."                  \
	}
#define IGNORED                                                                                    \
	{                                                                                          \
		"ignored", HR_MCP_BOOL, false, "What .gitignore names, too."                       \
	}
#define PATHS_SCHEMA                                                                               \
	"{\"type\":\"object\",\"properties\":{\"paths\":{\"type\":\"array\",\"items\":{\"type\":"  \
	"\"string\"}},\"total\":{\"type\":\"integer\"},\"complete\":{\"type\":\"boolean\"}},"      \
	"\"required\":[\"paths\",\"total\",\"complete\"]}"

static const struct hr_mcp_param list_params[] = {
    {"path", HR_MCP_STR, false, "A directory; left out: the default shell's."},
    {"depth", HR_MCP_INT, false, "How many levels, 1 if left out."},
    {"limit", HR_MCP_INT, false, "How many names at most, 200 if left out, up to 2000."},
    HIDDEN,
    IGNORED,
    {NULL, HR_MCP_STR, false, NULL},
};

static void
call_list(struct hr_mcp_call *c)
{
	HR_FREE char *top = hr_mcp_path(c, "path");
	struct hr_search s;

	if (top == NULL)
		return;
	s = search_of(c, top);
	s.depth = (unsigned)hr_mcp_arg_int(c, "depth", 1, 1, HR_SEARCH_DEPTH);
	walk(c, &s, (struct hr_span){NULL, 0});
}

void
hr_mcp_list_names(struct hr_mcp_call *c, const char *path)
{
	struct hr_search s = search_of(c, path);

	s.depth = 1;
	walk(c, &s, (struct hr_span){NULL, 0});
	hr_buf_reset(&c->structured); /* the tool `read` has no structured part */
}

const struct hr_mcp_tool hr_mcp_list = {.name = "list",
    .title = "List a directory",
    .help = "The names in a directory, sorted; directories end with /. Leaves out what .gitignore "
	    "names.",
    .reads = true,
    .idempotent = true,
    .params = list_params,
    .output = PATHS_SCHEMA,
    .call = call_list};

static const struct hr_mcp_param glob_params[] = {
    {"pattern", HR_MCP_STR, true,
	"As **/*.{c,h} or src/**/test_*.py; without a slash it is for the file's name, anywhere. A "
	"path that is named is found, hidden or ignored as it may be."},
    {"path", HR_MCP_STR, false, "The directory to look in; left out: the default shell's."},
    {"limit", HR_MCP_INT, false, "How many names at most, 200 if left out, up to 2000."},
    HIDDEN,
    IGNORED,
    {NULL, HR_MCP_STR, false, NULL},
};

static void
call_glob(struct hr_mcp_call *c)
{
	HR_FREE char *top = hr_mcp_path(c, "path");
	struct hr_search s;

	if (top == NULL)
		return;
	s = search_of(c, top);
	walk(c, &s, hr_mcp_arg(c, "pattern"));
}

const struct hr_mcp_tool hr_mcp_glob = {.name = "glob",
    .title = "Find files by name",
    .help = "Files whose names fit a pattern, sorted, relative to path. Leaves out what .gitignore "
	    "names. Always ends within 10 seconds.",
    .reads = true,
    .idempotent = true,
    .params = glob_params,
    .output = PATHS_SCHEMA,
    .call = call_glob};

/* ---- grep ---- */

static const struct hr_mcp_param grep_params[] = {
    {"pattern", HR_MCP_STR, true, "Regular expression of Perl, for one line at a time."},
    {"path", HR_MCP_STR, false, "A directory or a file; left out: the default shell's directory."},
    {"glob", HR_MCP_STR, false, "Only files whose names fit, as *.py or src/**/*.{c,h}."},
    {"ignore_case", HR_MCP_BOOL, false, "Upper and lower case are the same."},
    {"literal", HR_MCP_BOOL, false, "The pattern is a text, not an expression."},
    {"context", HR_MCP_INT, false, "Lines around each match, up to 20."},
    {"files_only", HR_MCP_BOOL, false, "The names of the files alone."},
    {"limit", HR_MCP_INT, false, "How many matches at most, 200 if left out, up to 2000."},
    HIDDEN,
    IGNORED,
    {NULL, HR_MCP_STR, false, NULL},
};

struct matches {
	struct hr_mcp_call *c;
	const char *prefix; /* prefix of each name */
	size_t shown, last_line;
	bool context;
};

static bool
is_inside(const char *p, size_t at)
{
	return ((unsigned char)p[at] & 0xC0) == 0x80;
}

/* Appends the line, or of a long line the part around the match, cut at character boundaries. */
static void
put_line(struct hr_buf *b, const struct hr_grep_line *l)
{
	size_t len = l->text.len, from = 0, to = len;

	if (len > LINE_MAX_SHOWN) {
		from = l->from > LINE_BEFORE ? l->from - LINE_BEFORE : 0;
		if (from > len - LINE_MAX_SHOWN)
			from = len - LINE_MAX_SHOWN;
		to = from + LINE_MAX_SHOWN;
		while (from > 0 && from < to && is_inside(l->text.p, from))
			from++;
		while (to < len && is_inside(l->text.p, to) && to > from)
			to--;
	}
	if (from > 0)
		hr_buf_adds(b, "[...]");
	hr_buf_add(b, l->text.p + from, to - from);
	if (to < len)
		hr_buf_adds(b, "[...]");
}

static void
on_line(void *arg, const char *rel, const struct hr_grep_line *l)
{
	struct matches *m = arg;
	struct hr_mcp_call *c = m->c;
	HR_BUF(shown, LINE_MAX_SHOWN + 16);
	HR_BUF(name, 128u << 10);

	if (c->text.len >= TEXT_SHOWN)
		return;
	if (m->context && l->number > 0 && m->last_line > 0 && l->number != m->last_line + 1)
		hr_buf_adds(&c->text, "--\n");
	m->last_line = l->number;
	put_line(&shown, l);
	hr_buf_adds(&name, m->prefix);
	hr_buf_adds(&name, rel);
	hr_buf_add(&c->text, hr_buf_str(&name), name.len);
	if (l->number > 0) {
		hr_buf_addf(
		    &c->text, "%c%zu%c", l->match ? ':' : '-', l->number, l->match ? ':' : '-');
		hr_buf_add(&c->text, hr_buf_str(&shown), shown.len);
	}
	hr_buf_addc(&c->text, '\n');
	if (!l->match)
		return;
	m->shown++;
	hr_buf_adds(&c->structured, m->shown > 1 ? ",{\"path\":" : "{\"path\":");
	(void)hr_json_put_str(&c->structured, hr_buf_str(&name), name.len, HR_JSON_REPLACE);
	if (l->number > 0) {
		hr_buf_addf(&c->structured, ",\"line\":%zu,\"text\":", l->number);
		(void)hr_json_put_str(
		    &c->structured, hr_buf_str(&shown), shown.len, HR_JSON_REPLACE);
	}
	hr_buf_addc(&c->structured, '}');
}

static void
say_no_match(struct hr_mcp_call *c, const struct hr_grep *g, const struct hr_grep_end *end)
{
	hr_mcp_say(c, "No match in %zu files.\n", end->searched);
	if (end->searched == 0)
		say_left_out(c, &end->walk);
	if (end->walk.binary > 0)
		hr_mcp_say(c, "[%zu of them are binary]\n", end->walk.binary);
	if (g->pattern.len > 1 && memmem(g->pattern.p, g->pattern.len, "\\n", 2) != NULL)
		hr_mcp_say(c, "[one line at a time is looked at: \\n is in none]\n");
}

static void
grep(struct hr_mcp_call *c, const struct hr_search *s, struct hr_grep *g, struct hr_span glob)
{
	struct matches m = {.c = c, .prefix = "", .context = g->context > 0};
	HR_CLEAN(plan_done) struct plan plan = {.s = *s};
	struct hr_grep_end end;
	struct hr_account_own own;
	struct hr_err err = {0};
	int r = 0;

	if (!enter(c, &own))
		return;
	hr_buf_adds(&c->structured, "{\"matches\":[");
	if (glob.p != NULL && hr_path_is_directory(s->top)) {
		r = plan_make(&plan, s->top, glob, &err);
		g->names = plan.globs;
		m.prefix = hr_buf_str(&plan.p.shown);
	}
	if (r == 0)
		r = hr_grep(&plan.s, g, on_line, &m, &end, &err);
	hr_account_leave(&own);
	if (r < 0) {
		hr_mcp_fail(c, "%s", err.msg);
		return;
	}
	hr_buf_addf(&c->structured, "],\"total\":%zu,\"files\":%zu,\"complete\":%s}", end.lines,
	    end.files,
	    is_whole(&end.walk) && m.shown == (g->files_only ? end.files : end.lines) ? "true"
										      : "false");
	if (end.lines == 0)
		say_no_match(c, g, &end);
	else if (g->files_only ? m.shown < end.files : m.shown < end.lines)
		hr_mcp_say(c, "[%zu of %zu matches, in %zu files]\n", m.shown,
		    g->files_only ? end.files : end.lines, end.files);
	say_end(c, &end.walk);
}

static void
call_grep(struct hr_mcp_call *c)
{
	struct hr_grep g = {.pattern = hr_mcp_arg(c, "pattern"),
	    .ignore_case = hr_mcp_arg_true(c, "ignore_case"),
	    .literal = hr_mcp_arg_true(c, "literal"),
	    .files_only = hr_mcp_arg_true(c, "files_only"),
	    .context = (unsigned)hr_mcp_arg_int(c, "context", 0, 0, 20),
	    .max = (size_t)hr_mcp_arg_int(c, "limit", LIMIT, 1, LIMIT_MAX)};
	HR_FREE char *top = hr_mcp_path(c, "path");
	struct hr_search s;

	if (top == NULL)
		return;
	s = search_of(c, top);
	grep(c, &s, &g, hr_mcp_arg(c, "glob"));
}

const struct hr_mcp_tool hr_mcp_grep = {.name = "grep",
    .title = "Search in files",
    .help = "Lines that match, as path:line:text, sorted by path. Leaves out binary files and what "
	    ".gitignore names. Always ends within 10 seconds.",
    .reads = true,
    .idempotent = true,
    .params = grep_params,
    .output = "{\"type\":\"object\",\"properties\":{\"matches\":{\"type\":\"array\",\"items\":{"
	      "\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},\"line\":{"
	      "\"type\":\"integer\"},\"text\":{\"type\":\"string\"}},\"required\":[\"path\"]}},"
	      "\"total\":{\"type\":\"integer\"},\"files\":{\"type\":\"integer\"},\"complete\":{"
	      "\"type\":\"boolean\"}},\"required\":[\"matches\",\"total\",\"complete\"]}",
    .call = call_grep};
