/* hr_options: parses the command line as the original server does.
 *
 * Neither argp nor getopt_long can: `--plugins a b c` takes all arguments up to the next option,
 * `--plugins=a` exactly one, and a prefix that was unambiguous among the original's options stays
 * so despite handrail's own (`--no` is --no-enable-browser although --no-nginx exists). */
#ifndef HR_SUPERVISOR_SETTINGS_OPTIONS_H
#define HR_SUPERVISOR_SETTINGS_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

struct hr_settings;

enum hr_options_action {
	HR_ACTION_RUN,
	HR_ACTION_HELP,
	HR_ACTION_VERSION,
	HR_ACTION_CHECK,
	HR_ACTION_PRINT_NGINX,
};

#define HR_OPTIONS_MAX 32

/* The parsed options; all strings are borrowed from argv. */
struct hr_options {
	enum hr_options_action action;
	const char *config_file; /* NULL: the default file */
	const char *nginx_part;  /* the part that HR_ACTION_PRINT_NGINX prints */
	struct hr_option_value {
		const char *key; /* name of the setting, see settings.h */
		const char *value;
	} values[HR_OPTIONS_MAX]; /* ordered, since later ones win */
	size_t nvalues;
	char **plugins; /* NULL: the option is not given */
	size_t nplugins;
};

/* Returns 0, or -1 with the original's message ("argument port: invalid int value: 'x'"). Pure. */
int hr_options_parse(struct hr_options *o, int argc, char **argv, struct hr_err *err);

/* Applies the options over the settings from the file. */
int hr_options_apply(const struct hr_options *o, struct hr_settings *c, struct hr_err *err);

void hr_options_usage(FILE *to); /* Prints one line. */
void hr_options_help(FILE *to);

#endif
