/* Defines the interface that the subcommands of the handrail command share. */
#ifndef HR_CLI_CLI_H
#define HR_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "host/handrail.h"

/* the exit statuses other than those of commands */
enum { CLI_OK, CLI_ERROR, CLI_USAGE, CLI_NOT_FOUND, CLI_TIMEOUT, CLI_DISCONNECTED };
#define CLI_COMMAND_TIMEOUT 124 /* as the status of timeout(1) */
#define CLI_NO_PROGRAM 127      /* a shell's status if it finds no program */

struct hr_buf;
struct hr_strv;

struct cli_option {
	char letter; /* below 32: there is no short form */
	const char *name;
	const char *arg; /* NULL: the option takes no argument */
	const char *help;
};

#define CLI_ANY_OWNER 31 /* letter of an option in cli_common, unused by any command */

struct cli_args {
	struct cli_given {
		char letter;
		const char *value;
	} * given;
	size_t n;
	int argc; /* remaining arguments */
	char **argv;
};

/* The state that every subcommand gets. */
struct cli {
	const char *name; /* name of the sandbox */
	const char *kind; /* back-end named by --runtime; NULL: not given */
	const char *word; /* the first argument, if it is or may be meant as `name`; NULL: none */
	bool json, quiet, any_owner;
	bool paused; /* the command needs no answer of the sandbox: it may be paused */
	char *state_dir;
	const char *const *env;
	struct hr_config *config;
	int out;          /* status of printing a log's lines */
	int64_t drawn_ms; /* time of drawing the progress line; 0: none is drawn */
	/* state of the progress rate (progress.c) */
	int64_t began_ms;
	unsigned long long from, done;
	char what[64];
};

/* How a command's arguments are parsed: names of sandboxes are taken unless --name is given. */
enum cli_form {
	CLI_PLAIN,
	CLI_NAME,     /* the only argument is a name */
	CLI_NAMES,    /* all arguments are names; an attached command runs for each in order */
	CLI_FIRST,    /* the first argument is a name */
	CLI_RAW,      /* all arguments, also options, belong to another program */
	CLI_VERBATIM, /* options end at the first argument: the rest belongs to a command */
	CLI_EXEC,     /* as CLI_VERBATIM, but the first argument is the sandbox's name */
	/* as CLI_VERBATIM, but the first argument is a name if such a sandbox is recorded */
	CLI_SH,
};

struct cli_command {
	const char *name;        /* name; "repo clone" belongs to the group "repo" */
	const char *alias;       /* docker's name for the command; NULL: none */
	const char *args, *help; /* args NULL: the command takes none */
	/* ends with a name of NULL; NULL: the command has no options of its own */
	const struct cli_option *options;
	int min, max; /* number of arguments; max -1: any number */
	enum cli_form form;
	int (*run)(struct cli *c, const struct cli_args *a);
	/* called instead of `run`, with the existing sandbox, attached */
	int (*attached)(struct cli *c, struct hr_sandbox *s, const struct cli_args *a);
};

/* A section of the help; it ends where the next one begins. */
struct cli_section {
	const struct cli_command *first;
	const char *title, *group; /* group NULL: the commands belong to no group */
};

extern const struct cli_command *const cli_commands[];
extern const size_t cli_commands_n;
extern const struct cli_section cli_sections[];
extern const size_t cli_sections_n;
extern const struct cli_option cli_common[];

/* Returns true for a command that needs no answer of the sandbox's server, which may be paused. */
bool cli_takes_paused(const struct cli_command *cmd);

/* Returns the last value of an option; NULL if it is not given ("" for one without argument). */
const char *cli_value(const struct cli_args *a, char letter);
/* Returns the next value of a repeatable option; *at starts with 0. Returns NULL after the last. */
const char *cli_next(const struct cli_args *a, char letter, size_t *at);

/* Parses a decimal number. Returns false if the text is no number from `least` to `most`. */
bool cli_number(const char *text, long least, long most, long *ret);

/* Lists the plugins of -p; by default those that agents have, which cost nothing until their first
 * use; "none" is no plugin. Returns CLI_ERROR after it has reported a lack of memory. */
int cli_plugins(const struct cli_args *a, struct hr_strv *ret);

/* Prints "handrail: text" on stderr, and returns the exit status for the error. */
int cli_fail(const struct hr_err *err);
int cli_no_name(const char *name); /* Reports an invalid name; returns CLI_USAGE. */
/* Returns CLI_OK, or CLI_USAGE after it has reported an invalid name of a snapshot. */
int cli_tag(const char *tag);
int cli_no_memory(void); /* Reports a lack of memory; returns CLI_ERROR. */
int cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Reports an error; returns CLI_ERROR. */
int cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Prints a note on stderr. */
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Returns true if the command has a record of a sandbox of that name. */
bool cli_is_recorded(const struct cli *c, const char *name);
/* Returns the options with which every sandbox is opened; its messages are printed as notes. */
struct hr_sandbox_options cli_sandbox(struct cli *c, const char *sid);
/* Returns CLI_OK, or CLI_USAGE after it has reported that no back-end has the configured name. */
int cli_kind_exists(const struct cli *c);
/* Sets core.runtime where no setting names a back-end: to that of the recorded sandbox `name`
 * (NULL: none), else to docker where an Engine listens, else to box, with a note. Returns CLI_OK,
 * or an exit status after it has reported the error. */
int cli_choose_kind(struct cli *c, const char *name);
/* Returns the address of the server's page, which the caller frees; NULL if it has none, or after a
 * note where that is unknown. */
char *cli_page(struct cli *c, struct hr_sandbox *s);
/* Makes the image of a snapshot the one that a new container gets. Returns CLI_OK, or another
 * status after reporting the error. */
int cli_start_from(struct cli *c, const char *tag);
/* Appends the variables of --env. */
int cli_environment(const struct cli_args *a, struct hr_strv *env);
/* Returns false with *err set if --runtime names another back-end than the sandbox's. */
bool cli_is_of_kind(const struct cli *c, const struct hr_sandbox *s, struct hr_err *err);
/* Connects the named sandbox. Returns NULL with the exit status in *ret_status after it has
 * reported the error. */
struct hr_sandbox *cli_attach(struct cli *c, int *ret_status);

/* Runs an attached command with the sandbox, or with each named one. */
int cli_each(struct cli *c, const struct cli_command *cmd, const struct cli_args *a);
/* Runs a program in the sandbox on this terminal. Returns its exit status. */
int cli_on_terminal(struct hr_sandbox *s, const char *const *argv);

struct json_object;
/* Lists the recorded sandboxes. cli_provided() lists those of the configured back-end's provider
 * (see hr_sandbox_list(), hr_sandbox_found()). The caller owns the list. Both return NULL with *err
 * set. */
struct json_object *cli_recorded(struct cli *c, struct hr_err *err);
struct json_object *cli_provided(struct cli *c, struct hr_err *err);

/* Returns a descriptor that is readable once stdout's reader has ended, or -1 where that is
 * impossible, as for a file. */
int cli_reader_gone(void);
/* Writes everything to stdout. Returns CLI_ERROR after it has reported a failure. */
int cli_out(const void *p, size_t len);
int cli_outs(const char *s);
int cli_out_buf(const struct hr_buf *b);
int cli_out_line(const char *s); /* Writes a line; appends its line feed. */
/* Prints the result with --json, as pairs of names and texts that end with NULL; otherwise prints
 * nothing. Returns CLI_OK, or CLI_ERROR after it has reported a failure. */
int cli_done(const struct cli *c, ...) __attribute__((sentinel));

#endif
