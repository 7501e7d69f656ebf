/* Inside of hr_keeper: keeper.c owns the shell, client.c the connections. */
#ifndef HR_SESSION_KEEPER_INT_H
#define HR_SESSION_KEEPER_INT_H

#include <sys/queue.h>

#include "base/account.h"
#include "base/buf.h"
#include "base/loop.h"
#include "base/strv.h"
#include "proto/journal.h"
#include "session/core.h"
#include "session/prompt/hook.h"
#include "session/kept.h"
#include "session/keeper.h"
#include "session/prompt/report.h"
#include "session/shellproc.h"
#include "session/statedir.h"

struct client {
	TAILQ_ENTRY(client) link;
	struct hr_keeper *keeper;
	int fd;
	struct hr_watch *readable, *writable;
	struct hr_buf in, out;
	size_t sent;
	const char *key; /* of a RUN request: in `in` */
	size_t key_len;
	uint32_t attempt;  /* in the journal */
	bool joined;       /* gets the result of another with its key */
	bool has_result;   /* out holds what must not be lost */
	bool queued;       /* RUN waits */
	bool asks_to_stay; /* for another RUN */
	bool stays;        /* after the answer; one of nstaying */
};
TAILQ_HEAD(client_list, client);

#define CACHED_RESULTS 8      /* the last ones, whether or not they could be handed over */
#define CACHED_MAX (1u << 20) /* bytes of each */
struct cached_result {
	char *key;
	size_t key_len;
	struct hr_buf out;
};

/* What follows from what a predecessor left. */
enum keeper_after { KEEPER_STARTS, KEEPER_RESUMES, KEEPER_REPLACES };

struct hr_keeper {
	const struct hr_keeper_config *config;
	struct hr_loop *loop;
	struct hr_core *core;

	/* for the next one */
	struct hr_kept_store store;
	struct hr_kept *kept;       /* its page: also what is kept of the output and of commands */
	bool laid;                  /* all that is needed lies in the store, */
	int laid_file, laid_memory; /* these of the log among it */
	enum keeper_after after;
	bool leaves;          /* what it found, as it cannot go on with it now */
	bool answered_before; /* maybe: the shell that waits for an ack, by a predecessor */

	/* the shell */
	struct hr_hook hook;
	struct hr_shell_user user;
	struct hr_shellproc shell;
	int shell_fd;                /* a handle of its process; -1: none */
	struct hr_watch *shell_ends; /* where it is not our child */
	struct hr_strv environ;
	char *dir; /* in which the shell was started last */
	struct hr_statedir state;
	char *rcfile, *exports_path;
	bool rc_there, exports_there; /* until the shell has read them: they hold secrets */
	unsigned starts;              /* without a prompt so far */
	bool restarted, prompted;
	bool suspicious; /* the command may touch line editing or the environment */
	/* of the shell that waits for an ack */
	bool renonce;   /* it lost its nonce */
	bool rehook;    /* PS0 or PROMPT_COMMAND are other than they were */
	bool allexport; /* set -a */
	bool from_us;   /* its readline takes the next command from line_fd */
	bool has_line;  /* the shell has the builtin for it */
	bool sent_away; /* ... to the terminal, if it waits there */
	int given;      /* commands that were, and not taken back: since the shell's start */

	/* those who look on */
	int64_t printed_at; /* when the terminal printed last */
	TAILQ_HEAD(, follower) followers;
	unsigned nfollowers;

	TAILQ_HEAD(, exec) execs; /* commands beside the shell */
	unsigned nexecs;
	struct keeper_hold {
		bool asked;            /* by the RUN request that is performed now */
		int64_t command;       /* none of whose output may be lost; 0: there is none */
		uint64_t at;           /* its output up to here has been passed on */
		bool holds;            /* the terminal is not read meanwhile */
		struct hr_watch *late; /* its reader takes too long */
	} hold;

	/* the terminal */
	struct hr_watch *master_readable, *master_writable;
	struct hr_buf typed; /* its first typed_at bytes were written */
	size_t typed_at;
	bool literal;
	bool answered; /* by the terminal, since the last prompt */
	bool quick;    /* what was typed last is soon read */
	bool resized;  /* for the command that runs */

	/* reports */
	int report_fd, exports_fd, ack_fd, line_fd;
	struct hr_watch *report_readable, *exports_readable;
	struct hr_report_reader reports;
	struct hr_buf exports, exports_in; /* `export -p`: the last whole one, one on its way */
	int64_t exports_at;                /* when it was asked for */
	unsigned exports_due;              /* how many were, and have not come */
	char hostname[256];
	uid_t known_uid;
	char *known_name; /* of known_uid */
	struct hr_buf py_path;
	struct hr_account account;     /* the shell's */
	pid_t said_pid;                /* who reported last */
	unsigned hides;                /* HR_HIDES_*, of the shell that runs the command */
	bool tells_hides;              /* ... as it said; otherwise as it was before */
	bool place_looked, place_good; /* the directory that it named, since */

	struct hr_watch *timer, *sigchld, *sigterm, *sigint;
	int64_t timer_at;
	bool stopping;

	/* requests */
	struct hr_watch *listener, *accept_again;
	struct client_list clients; /* those with a RUN in the order in which that came */
	unsigned nstaying;
	struct hr_journal journal;
	struct cached_result cached[CACHED_RESULTS]; /* oldest replaced */
	size_t cached_next;
	struct client *active; /* NULL while busy: a command of our own */
	bool hidden;           /* the last request: its text may be a secret */
	size_t init_next;
	bool is_ready;
	int notify_fd; /* -1: told, or nobody to tell */
	char *failure; /* why it never will be */
};

/* keeper.c */
void keeper_request(struct hr_keeper *k, const struct hr_run_request *r);
void keeper_stop(struct hr_keeper *k);
void keeper_ready(struct hr_keeper *k);
void keeper_arm(struct hr_keeper *k); /* after anything moved the core: what waits, and the timer */

/* shell.c: the operations of the core on the real shell */
void shell_close(struct hr_keeper *k, bool kill_all);
int shell_start(struct hr_keeper *k, const char *dir, struct hr_err *err);
void shell_drain(struct hr_keeper *k);      /* reads the terminal empty */
void shell_read_again(struct hr_keeper *k); /* after follow_holds() */
void shell_answer(struct hr_keeper *k);     /* the terminal's answers to what was read */
/* The program has ended: answers that it did not read are dropped, and their echo was its own. */
void shell_unanswer(struct hr_keeper *k);
/* What the last command did not read is not for the shell. Of its own shell the terminal is emptied
 * by the ack. */
void shell_drop_input(struct hr_keeper *k, bool own);
void shell_end(struct hr_keeper *k); /* with what runs in the foreground; another one starts */
/* Takes lines back that the shell did not read. Returns true if there were any, as at the first
 * prompt where the builtin is there. Both are operations of the core: arg is the keeper. */
bool shell_take_back(void *arg);
void shell_ack(void *arg, bool careful); /* shell_ack.c */
void shell_on_child(void *arg);
/* Of a shell that there is. `other`: it is not our child. */
int shell_watch(struct hr_keeper *k, bool other, struct hr_err *err);
void shell_unstop(struct hr_keeper *k);    /* one that is not our child: nobody tells us */
void shell_unsize(struct hr_keeper *k);    /* the terminal is as large as it was at first */
extern const struct hr_core_ops shell_ops; /* all but result and ready */

/* prompt.c: what the shell says */
int prompt_open(struct hr_keeper *k, struct hr_err *err);
void prompt_close(struct hr_keeper *k);
void prompt_read(struct hr_keeper *k);                     /* the reports that are there */
void prompt_take(struct hr_keeper *k);                     /* ... and that were read */
void prompt_last(struct hr_keeper *k);                     /* ... of a shell that is to be ended */
int prompt_renew(struct hr_keeper *k, struct hr_err *err); /* for another shell */

/* claims.c: how far a report is believed. What is returned is valid until the next one. */
const char *claims_name(struct hr_keeper *k, const struct hr_report *r);
/* In `link`, or the report's own. */
const char *
claims_directory(const struct hr_keeper *k, const struct hr_report *r, char *link, size_t cap);
/* What the shell's account finds as python; "" if nothing. */
const char *claims_python(struct hr_keeper *k, const struct hr_report *r, const char *cwd);
/* The shell's directory for those who act there with rights of their own: one that its account can
 * enter, or that it is in; otherwise the one in which it was started. */
const char *claims_place(struct hr_keeper *k);

/* look.c: the shell's process */
/* those of hr_core_ops */
bool look_in_readline(void *keeper);
enum hr_core_seen look_waits(void *keeper); /* and output flows again */
int64_t look_works(void *keeper);
unsigned look_hides(const struct hr_keeper *k, pid_t pid); /* HR_HIDES_* */
const char *look_held(const struct hr_keeper *k);

/* files.c */
int files_open(struct hr_keeper *k, struct hr_err *err);
void files_close(struct hr_keeper *k); /* and removes them */
/* Puts back what of the shared files the shell before has removed or changed. */
int files_share(struct hr_keeper *k, struct hr_err *err);
int files_put_rc(struct hr_keeper *k, bool no_user_files, struct hr_err *err);
bool files_put_exports(struct hr_keeper *k); /* false: there are none */
void files_forget(struct hr_keeper *k);      /* the shell has read both */

struct hr_follow_request;
struct hr_press_request;

/* follow.c */
void follow_add(struct hr_keeper *k, int fd, const struct hr_follow_request *r); /* takes fd */
void follow_wake(struct hr_keeper *k);  /* there may be new output */
bool follow_holds(struct hr_keeper *k); /* true: the terminal must not be read now */
const char *follow_press(struct hr_keeper *k, const struct hr_press_request *r); /* why not */
void follow_began(struct hr_keeper *k, const char *p, size_t len);
void follow_over(void *keeper, int exit_code, bool shell_ended); /* hr_core_ops.over */
void follow_free_all(struct hr_keeper *k);

struct hr_exec_request;

/* exec.c */
void exec_add(struct hr_keeper *k, int fd, const struct hr_exec_request *r); /* takes fd */
bool exec_ended(struct hr_keeper *k, pid_t pid, int exit_code); /* false: it is none of them */
void exec_free_all(struct hr_keeper *k);                        /* and ends them */

/* client.c */
int client_listen(struct hr_keeper *k, struct hr_err *err);
int client_add(struct hr_keeper *k, int fd, struct hr_err *err);
void client_next(struct hr_keeper *k); /* hands the oldest request to an idle core */
void client_result(struct hr_keeper *k, const struct hr_run_result *r);
void client_free_all(struct hr_keeper *k);
/* The request in hand and the last result of a predecessor. */
int client_resume(
    struct hr_keeper *k, const char *key, size_t len, uint32_t attempt, struct hr_err *err);
void
client_take_result(struct hr_keeper *k, const char *key, size_t key_len, const char *p, size_t len);

/* resume.c: what a killed keeper's successor goes on with */
int resume_open(struct hr_keeper *k, struct hr_err *err);  /* looks for a predecessor's */
int resume_shell(struct hr_keeper *k, struct hr_err *err); /* its shell, or a new one */
void resume_lay(struct hr_keeper *k);                      /* another shell is there */
void resume_lay_log(struct hr_keeper *k); /* as soon as the log has another store */
void resume_unlay(struct hr_keeper *k);   /* the shell is no more */
/* From the first thing that is done with the shell in an event until the event is over nobody could
 * go on. */
void resume_unsure(struct hr_keeper *k);
void resume_note(struct hr_keeper *k);
/* A report is about to be read, and the shell to be answered. */
void resume_note_report(struct hr_keeper *k);
void resume_note_answer(struct hr_keeper *k);
void resume_note_exports(struct hr_keeper *k);
/* Another command follows the one that goes on or whose end no client was told. What clients were
 * given of that by other ways than results is not repeated: see hr_core_returned(). */
void resume_returned(struct hr_keeper *k);
void resume_log_given(struct hr_keeper *k, const char *p, size_t len);
void resume_note_result(struct hr_keeper *k, const struct client *c);

#endif
