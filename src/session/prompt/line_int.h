/* Internals of the builtin for bash: line_module.c has the functions that readline calls,
 * line_prompt.c those of a prompt, line_place.c the directory. The layouts of a builtin since 2.0,
 * of a word list and of a variable are bash's. */
#ifndef HR_SESSION_PROMPT_LINE_INT_H
#define HR_SESSION_PROMPT_LINE_INT_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct word_desc {
	char *word;
	int flags;
};

struct word_list {
	struct word_list *next;
	struct word_desc *word;
};

typedef int builtin_function(struct word_list *);

struct variable;
typedef struct variable *variable_function(struct variable *);

struct variable {
	char *name;
	char *value;
	char *exported;
	variable_function *dynamic_value; /* called on each lookup; NULL: none */
	void *assign;
	int attributes;
	int context;
};

#define VARIABLE_ARRAYS 0x44 /* indexed, associative */
#define EXECUTION_SUCCESS 0
#define EXECUTION_FAILURE 1

/* The type of bash's zread(), which `read` uses, too: it handles signals, runs their traps, and
 * leaves by a jump when interrupted. */
typedef ssize_t zread_function(int, char *, size_t);
typedef void unwind_function(char *);

/* The functions and variables of bash in use, found by name. */
struct line_bash {
	zread_function *zread;
	void (*begin_unwind)(char *);
	void (*add_unwind)(unwind_function *, char *);
	void (*run_unwind)(char *);
	void (*set_event_hook)(void); /* readline's hook, which handles signals */
	void (*reset_token)(void);    /* resets the parser */
	builtin_function *source, *eval;
	struct variable *(*variable)(const char *);
	char *(*value)(const char *);
	char *(*flags)(void);     /* the text of $-, freed by the caller */
	volatile int *status;     /* the value of $? */
	volatile pid_t *job;      /* the value of $!; -1: none */
	volatile int *executing;  /* bash is executing a command */
	volatile int *evaluating; /* bash is evaluating a string: eval, a trap, PROMPT_COMMAND */
	volatile unsigned long *reading; /* readline's state */
	volatile int *echoes;            /* true: `set -v` is on */
	/* true: `shopt -s extdebug` is on, so that a trap may suppress commands */
	volatile int *debugging;
	volatile sig_atomic_t *interrupted, *terminating; /* pending signals */
	int (*pending_trap)(void); /* number of the first pending trap; -1: none */
	char **ps0;                /* borrowed; printed when the line has been read */
	char **ps2, **prompt;      /* prompt of a continuation line; the last prompt shown */
};
extern struct line_bash line_bash;

/* The process that loaded the builtin; its children are not served. */
extern pid_t line_owner;
/* true: readline's next line comes from the FIFO */
extern bool line_armed;
/* true: a line came from the FIFO since the last prompt; and the number of all lines */
extern bool line_given;
extern int line_taken;

/* Notes the mount of "/"; then, when readline starts to read a line, the shell's directory. */
void line_place_setup(void);
void line_place_note(void);
/* Enters that directory again if "/" has become another mount, when readline has read the line. */
void line_place_return(void);

/* Copies the names. Returns false without memory. */
bool line_prompt_setup(const char *report, const char *ack);
void line_prompt_forget(void);
/* Implement the builtin's forms `- ACK` and SCRIPT. */
int line_prompt_wait(const char *ack);
int line_prompt(struct word_list *list);
/* Stops bash from running PROMPT_COMMAND while nothing about it is unusual. */
void line_prompt_attach(void);

#endif
