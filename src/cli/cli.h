/* The handrail command: what its subcommands share. */
#ifndef HR_CLI_CLI_H
#define HR_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "host/handrail.h"

/* Exit statuses beside those of commands. */
enum { CLI_OK, CLI_ERROR, CLI_USAGE, CLI_NOT_FOUND, CLI_TIMEOUT, CLI_DISCONNECTED };
#define CLI_COMMAND_TIMEOUT 124 /* as timeout(1) has it */

struct hr_buf;
struct hr_strv;

struct cli_option {
	char letter; /* below 32: without a short form */
	const char *name;
	const char *arg; /* NULL: takes none */
	const char *help;
};

#define CLI_ANY_OWNER 31 /* a letter of cli_common, and of no command's own */

struct cli_args {
	struct cli_given {
		char letter;
		const char *value;
	} * given;
	size_t n;
	int argc; /* what is left */
	char **argv;
};

/* What every subcommand is given. */
struct cli {
	const char *name; /* of the sandbox */
	const char *kind; /* the back-end of --runtime; NULL: not given */
	const char *word; /* the first argument, if it is or may be meant as `name`; NULL: none */
	bool json, quiet, any_owner;
	char *state_dir;
	const char *const *env;
	struct hr_config *config;
	int64_t drawn_ms; /* when the line of progress was drawn; 0: there is none */
	/* what it tells of, for its rate (progress.c) */
	int64_t began_ms;
	unsigned long long from, done;
	char what[64];
};

/* The arguments of a command: names of sandboxes are taken unless --name is given. */
enum cli_form {
	CLI_PLAIN,
	CLI_NAME,     /* the only one is a name */
	CLI_NAMES,    /* all are; an attached command is run with one after the other */
	CLI_RAW,      /* so is each option: another program's */
	CLI_VERBATIM, /* options end at the first one: the others are a command's own */
	CLI_EXEC,     /* so they do, and the first one is the sandbox's name */
	CLI_SH,       /* so they do, and the first one is a name if such a sandbox is recorded */
};

struct cli_command {
	const char *name;                 /* "repo clone" is of the group "repo" */
	const char *alias;                /* docker's word; NULL: none */
	const char *args, *help;          /* args NULL: none */
	const struct cli_option *options; /* ends with a name of NULL; NULL: none of its own */
	int min, max;                     /* number of arguments; max -1: any */
	enum cli_form form;
	int (*run)(struct cli *c, const struct cli_args *a);
	/* in place of run: with the sandbox that is there, attached to */
	int (*attached)(struct cli *c, struct hr_sandbox *s, const struct cli_args *a);
};

/* A part of the help; it ends where the next one begins. */
struct cli_section {
	const struct cli_command *first;
	const char *title, *group; /* group NULL: its commands are in none */
};

extern const struct cli_command *const cli_commands[];
extern const size_t cli_commands_n;
extern const struct cli_section cli_sections[];
extern const size_t cli_sections_n;
extern const struct cli_option cli_common[];

/* The last value of an option; NULL: not given ("" for one without argument). */
const char *cli_value(const struct cli_args *a, char letter);
/* The next value of an option that may be repeated; *at starts with 0. NULL: no more. */
const char *cli_next(const struct cli_args *a, char letter, size_t *at);

/* The plugins that are asked for with -p; without it those that an agent has by default, which cost
 * nothing until they are used; "none": none at all. CLI_ERROR (said): no memory. */
int cli_plugins(const struct cli_args *a, struct hr_strv *ret);

/* "handrail: text" on stderr, and the exit status that fits the error. */
int cli_fail(const struct hr_err *err);
int cli_no_name(const char *name); /* of what cannot be a sandbox's: CLI_USAGE */
int cli_no_memory(void);           /* CLI_ERROR */
int cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* CLI_ERROR */
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));  /* to stderr */

/* What every sandbox is opened with; what it says is noted. */
struct hr_sandbox_options cli_sandbox(struct cli *c, const char *sid);
/* Returns CLI_OK, or CLI_USAGE after it has reported that there is no back-end of the configured
 * name. */
int cli_kind_exists(const struct cli *c);
/* Appends the variables of --env. */
int cli_environment(const struct cli_args *a, struct hr_strv *env);
/* Returns false with *err set if --runtime names another back-end than the sandbox's. */
bool cli_is_of_kind(const struct cli *c, const struct hr_sandbox *s, struct hr_err *err);
/* The named sandbox, connected; NULL: *ret_status is the exit status, all is said. */
struct hr_sandbox *cli_attach(struct cli *c, int *ret_status);

/* Runs an attached command with the sandbox, or with each of those that are named. */
int cli_each(struct cli *c, const struct cli_command *cmd, const struct cli_args *a);
/* Runs a program in the sandbox on this terminal, and returns its exit status. */
int cli_on_terminal(struct hr_sandbox *s, const char *const *argv);

struct json_object;
/* What is recorded here, and what the provider of the configured kind has (see hr_sandbox_list(),
 * hr_sandbox_found()): the caller's; NULL: *err. */
struct json_object *cli_recorded(struct cli *c, struct hr_err *err);
struct json_object *cli_provided(struct cli *c, struct hr_err *err);

/* Writes all of it to stdout; CLI_ERROR (said) if that fails. */
int cli_out(const void *p, size_t len);
int cli_outs(const char *s);
int cli_out_buf(const struct hr_buf *b);
int cli_out_line(const char *s); /* with an end of line */
/* With --json: what was done, as names and texts that end with NULL; nothing otherwise. CLI_OK, or
 * CLI_ERROR (said). */
int cli_done(const struct cli *c, ...) __attribute__((sentinel));

#endif
