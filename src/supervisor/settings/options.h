/* hr_options: the command line, read as the original server's parser reads it.
 *
 * Neither argp nor getopt_long can: `--plugins a b c` takes every word up to the next option,
 * `--plugins=a` exactly one, and a prefix that was unambiguous among the original's options has to
 * stay so beside ours (`--no` is --no-enable-browser although --no-nginx exists). */
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

/* All strings are borrowed from argv. */
struct hr_options {
	enum hr_options_action action;
	const char *config_file; /* NULL: the default one */
	const char *nginx_part;  /* HR_ACTION_PRINT_NGINX: which */
	struct hr_option_value {
		const char *key; /* of the configuration, see settings.h */
		const char *value;
	} values[HR_OPTIONS_MAX]; /* in order; a later one replaces an earlier one */
	size_t nvalues;
	char **plugins; /* NULL: not given */
	size_t nplugins;
};

/* 0, or -1 with the original's message ("argument port: invalid int value: 'x'"). Pure. */
int hr_options_parse(struct hr_options *o, int argc, char **argv, struct hr_err *err);

/* Over what c has from its file. */
int hr_options_apply(const struct hr_options *o, struct hr_settings *c, struct hr_err *err);

void hr_options_usage(FILE *to); /* one line */
void hr_options_help(FILE *to);

#endif
