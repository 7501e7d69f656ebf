/* Inside of the builtin for bash: line_module.c is what readline calls, line_prompt.c what is done
 * at a prompt. The layouts are bash's: of a builtin since 2.0, of a word list and of a variable. */
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
	variable_function *dynamic_value; /* called whenever it is looked up; NULL: none */
	void *assign;
	int attributes;
	int context;
};

#define VARIABLE_ARRAYS 0x44 /* indexed, associative */
#define EXECUTION_SUCCESS 0
#define EXECUTION_FAILURE 1

/* `read` reads with it, too: a signal is acted on, its trap run, an interrupt left by a jump. */
typedef ssize_t zread_function(int, char *, size_t);
typedef void unwind_function(char *);

/* What is used of bash, found by name. */
struct line_bash {
	zread_function *zread;
	void (*begin_unwind)(char *);
	void (*add_unwind)(unwind_function *, char *);
	void (*run_unwind)(char *);
	void (*set_event_hook)(void); /* readline's, which acts on signals */
	void (*reset_token)(void);    /* of the parser */
	builtin_function *source, *eval;
	struct variable *(*variable)(const char *);
	char *(*value)(const char *);
	char *(*flags)(void);            /* $-, to be freed */
	volatile int *status;            /* $? */
	volatile pid_t *job;             /* $!, -1: none */
	volatile int *executing;         /* a command that was read */
	volatile int *evaluating;        /* a text: eval, a trap, PROMPT_COMMAND */
	volatile unsigned long *reading; /* readline's state */
	volatile int *echoes;            /* set -v */
	volatile int *debugging; /* shopt -s extdebug: a trap may keep commands from running */
	volatile sig_atomic_t *interrupted, *terminating; /* signals came, and are to be acted on */
	int (*pending_trap)(void);                        /* the first one's, -1: none */
	char **ps0;           /* borrowed: what is shown when the line has been read */
	char **ps2, **prompt; /* the same of a line's rest; the one shown last */
};
extern struct line_bash line_bash;

/* The process that loaded the builtin: no child of it is served. */
extern pid_t line_owner;
/* The next line that readline reads is to come from the FIFO. */
extern bool line_armed;
/* A line did since the last prompt; and how many did. */
extern bool line_given;
extern int line_taken;

/* Copies the names. False: out of memory. */
bool line_prompt_setup(const char *report, const char *ack);
void line_prompt_forget(void);
/* The builtin's forms `- ACK` and SCRIPT. */
int line_prompt_wait(const char *ack);
int line_prompt(struct word_list *list);
/* PROMPT_COMMAND is not run any more where there is nothing unusual about it. */
void line_prompt_attach(void);

#endif
