/* Parses the command line. Each option sets one setting; its table, shared by file, environment and
 * command line, checks the value. */
#include "config.h"

#include "supervisor/settings/options.h"

#include <string.h>

#include "base/text/text.h"
#include "supervisor/settings/settings.h"

enum option_kind { VALUE, FLAG, WORDS, FILE_NAME, ACTION, NOTHING };

static const struct option {
	const char *name;
	enum option_kind kind;
	bool original; /* the original's start command uses the option */
	const char *key;
	const char *fixed; /* the value that a FLAG sets */
	const char *arg;   /* name of the value that --help prints */
	const char *help;
} options[] = {
    {"working-dir", VALUE, true, "working_dir", NULL, "DIR", "where the shell starts (required)"},
    {"plugins", WORDS, true, NULL, NULL, "NAME...", "jupyter, agent_skills, vscode"},
    {"username", VALUE, true, "username", NULL, "NAME", "user of the shell [openhands]"},
    {"user-id", VALUE, true, "user_id", NULL, "UID", "user ID of a new account [1000]"},
    {"enable-browser", FLAG, true, "enable_browser", "true", NULL, "browser actions (the default)"},
    {"no-enable-browser", FLAG, true, "enable_browser", "false", NULL, "no browser actions"},
    {"browsergym-eval-env", VALUE, true, "browsergym_eval_env", NULL, "NAME", "evaluation setting"},
    {"help", ACTION, true, NULL, NULL, NULL, "print this help, and exit (also -h)"},
    {"config", FILE_NAME, false, NULL, NULL, "FILE", "configuration file"},
    {"listen", VALUE, false, "listen", NULL, "ADDR", "address or unix:/PATH to listen on"},
    {"allow-unauthenticated", FLAG, false, "allow_unauthenticated", "true", NULL,
	"listen on a public address without a session key"},
    {"group-id", VALUE, false, "group_id", NULL, "GID", "group of the account and its directory"},
    {"run-dir", VALUE, false, "run_dir", NULL, "DIR", "sockets and other short-lived files"},
    {"state-dir", VALUE, false, "state_dir", NULL, "DIR", "files that survive a restart"},
    {"viewer-url-file", VALUE, false, "viewer_url_file", NULL, "FILE",
	"where the shell's account reads the file viewer's address"},
    {"no-nginx", FLAG, false, "start_nginx", "false", NULL, "use your own nginx instead"},
    {"log-format", VALUE, false, "log_format", NULL, "text|json", "form of the log lines [text]"},
    {"log-level", VALUE, false, "log_level", NULL, "LEVEL",
	"error, warning, notice, info, debug [info]"},
    {"foreground", NOTHING, false, NULL, NULL, NULL, "accepted; always the case"},
    {"check", ACTION, false, NULL, NULL, NULL, "check the configuration, nginx's too, and exit"},
    {"print-nginx", ACTION, false, NULL, NULL, "http|server|site|all",
	"print the configuration for your own nginx, and exit"},
    {"version", ACTION, false, NULL, NULL, NULL, "print the version, and exit"},
};

#define OPTIONS (sizeof(options) / sizeof(options[0]))

struct parse {
	struct hr_options *o;
	int argc, at;
	char **argv;
	bool only_words; /* "--" was seen */
	bool has_port;
	struct hr_err *err;
};

/* Treats a lone "-" and "-5" as arguments. */
static bool
is_word(const char *s)
{
	return s[0] != '-' || s[1] == '\0' || (s[1] >= '0' && s[1] <= '9');
}

/* Finds an option: exact names first, then prefixes among the original's options, then prefixes
 * among all options. */
static const struct option *
option_find(const char *name, size_t len, struct hr_err *err)
{
	const struct option *found = NULL;
	int original;
	size_t i;

	for (i = 0; i < OPTIONS; i++) {
		if (strlen(options[i].name) == len && memcmp(options[i].name, name, len) == 0)
			return &options[i];
	}
	for (original = 1; found == NULL && original >= 0; original--) {
		for (i = 0; i < OPTIONS; i++) {
			if (options[i].original != (original == 1) || len == 0 ||
			    strncmp(options[i].name, name, len) != 0)
				continue;
			if (found != NULL) {
				(void)hr_err_set(err, HR_E_INVAL,
				    "ambiguous option: --%.*s could match --%s, --%s", (int)len,
				    name, found->name, options[i].name);
				return NULL;
			}
			found = &options[i];
		}
	}
	if (found == NULL)
		(void)hr_err_set(err, HR_E_INVAL, "unrecognized arguments: --%.*s", (int)len, name);
	return found;
}

static int
set_value(struct parse *p, const char *key, const char *value)
{
	struct hr_options *o = p->o;
	size_t i;

	for (i = 0; i < o->nvalues; i++) {
		if (strcmp(o->values[i].key, key) == 0)
			break;
	}
	hr_assert(i < HR_OPTIONS_MAX);
	o->values[i] = (struct hr_option_value){key, value};
	if (i == o->nvalues)
		o->nvalues++;
	return 0;
}

static int
set_int(struct parse *p, const char *argument, const char *key, const char *value)
{
	long long n;

	if (hr_text_python_int(value, &n) != 0)
		return hr_err_set(
		    p->err, HR_E_INVAL, "argument %s: invalid int value: '%s'", argument, value);
	return set_value(p, key, value);
}

/* Returns the value after '=', or the next argument. */
static const char *
take_value(struct parse *p, const struct option *opt, const char *inline_value)
{
	if (inline_value != NULL)
		return inline_value;
	if (p->at + 1 < p->argc && is_word(p->argv[p->at + 1]))
		return p->argv[++p->at];
	(void)hr_err_set(p->err, HR_E_INVAL, "argument --%s: expected one argument", opt->name);
	return NULL;
}

static int
take_words(struct parse *p, const struct option *opt, char *inline_value, char **inline_slot)
{
	struct hr_options *o = p->o;

	if (inline_value != NULL) {
		/* the slot in argv serves as a list of one */
		*inline_slot = inline_value;
		o->plugins = inline_slot;
		o->nplugins = 1;
		return 0;
	}
	o->plugins = &p->argv[p->at + 1];
	o->nplugins = 0;
	while (p->at + 1 < p->argc && is_word(p->argv[p->at + 1])) {
		p->at++;
		o->nplugins++;
	}
	if (o->nplugins == 0)
		return hr_err_set(
		    p->err, HR_E_INVAL, "argument --%s: expected at least one argument", opt->name);
	return 0;
}

static int
take_action(struct parse *p, const struct option *opt, const char *inline_value)
{
	struct hr_options *o = p->o;

	if (opt->arg != NULL) {
		o->nginx_part = take_value(p, opt, inline_value);
		if (o->nginx_part == NULL)
			return -1;
		if (strcmp(o->nginx_part, "http") != 0 && strcmp(o->nginx_part, "server") != 0 &&
		    strcmp(o->nginx_part, "site") != 0 && strcmp(o->nginx_part, "all") != 0)
			return hr_err_set(p->err, HR_E_INVAL,
			    "argument --%s: invalid choice: '%s' (choose from http, server, site, "
			    "all)",
			    opt->name, o->nginx_part);
		o->action = HR_ACTION_PRINT_NGINX;
	} else if (strcmp(opt->name, "help") == 0) {
		o->action = HR_ACTION_HELP;
	} else if (strcmp(opt->name, "version") == 0) {
		o->action = HR_ACTION_VERSION;
	} else {
		o->action = HR_ACTION_CHECK;
	}
	return 0;
}

static int
parse_option(struct parse *p)
{
	char *word = p->argv[p->at], **slot = &p->argv[p->at];
	char *eq = strchr(word, '='), *inline_value = eq != NULL ? eq + 1 : NULL;
	const struct option *opt;
	const char *value;

	if (strcmp(word, "-h") == 0) {
		p->o->action = HR_ACTION_HELP;
		return 0;
	}
	if (word[1] != '-')
		return hr_err_set(p->err, HR_E_INVAL, "unrecognized arguments: %s", word);
	opt =
	    option_find(word + 2, eq != NULL ? (size_t)(eq - word - 2) : strlen(word + 2), p->err);
	if (opt == NULL)
		return -1;
	if (inline_value != NULL && (opt->kind == FLAG || opt->kind == NOTHING ||
					(opt->kind == ACTION && opt->arg == NULL)))
		return hr_err_set(p->err, HR_E_INVAL,
		    "argument --%s: ignored explicit argument '%s'", opt->name, inline_value);
	switch (opt->kind) {
	case FLAG: return set_value(p, opt->key, opt->fixed);
	case NOTHING: return 0;
	case WORDS: return take_words(p, opt, inline_value, slot);
	case ACTION: return take_action(p, opt, inline_value);
	case FILE_NAME:
		p->o->config_file = take_value(p, opt, inline_value);
		return p->o->config_file != NULL ? 0 : -1;
	case VALUE: break;
	}
	value = take_value(p, opt, inline_value);
	if (value == NULL)
		return -1;
	if (strcmp(opt->name, "user-id") == 0)
		return set_int(p, "--user-id", opt->key, value);
	return set_value(p, opt->key, value);
}

static int
parse_word(struct parse *p)
{
	const char *word = p->argv[p->at];

	if (p->has_port)
		return hr_err_set(p->err, HR_E_INVAL, "unrecognized arguments: %s", word);
	p->has_port = true;
	return set_int(p, "port", "port", word);
}

int
hr_options_parse(struct hr_options *o, int argc, char **argv, struct hr_err *err)
{
	struct parse p = {.o = o, .argc = argc, .argv = argv, .err = err};
	int r = 0;

	memset(o, 0, sizeof(*o));
	for (p.at = 1; r == 0 && p.at < argc; p.at++) {
		if (p.only_words || is_word(argv[p.at]))
			r = parse_word(&p);
		else if (strcmp(argv[p.at], "--") == 0)
			p.only_words = true;
		else
			r = parse_option(&p);
		/* -h wins over everything after it, as in the original */
		if (r == 0 && (o->action == HR_ACTION_HELP || o->action == HR_ACTION_VERSION))
			return 0;
	}
	return r;
}

int
hr_options_apply(const struct hr_options *o, struct hr_settings *c, struct hr_err *err)
{
	size_t i;

	for (i = 0; i < o->nvalues; i++) {
		if (hr_settings_set(c, o->values[i].key, o->values[i].value, err) < 0)
			return -1;
	}
	return o->plugins == NULL ? 0 : hr_words_copy(&c->plugins, o->plugins, o->nplugins, err);
}

void
hr_options_usage(FILE *to)
{
	(void)fputs("usage: handraild [options] PORT --working-dir DIR [--plugins NAME...]\n"
		    "                 [--username NAME] [--user-id UID] [--no-enable-browser]\n",
	    to);
}

void
hr_options_help(FILE *to)
{
	size_t i;

	hr_options_usage(to);
	(void)fputs(
	    "\nThe server of one sandbox: starts and watches nginx, the workers and the shell.\n\n",
	    to);
	for (i = 0; i < OPTIONS; i++) {
		const struct option *o = &options[i];
		int used = fprintf(to, "  --%s%s%s", o->name, o->arg != NULL ? " " : "",
		    o->arg != NULL ? o->arg : "");

		(void)fprintf(to, "%*s%s\n", used < 28 ? 28 - used : 1, "", o->help);
	}
	(void)fputs(
	    "\nLimits default to none: see handrail.conf(5), and WARNING in handraild(8).\n", to);
}
