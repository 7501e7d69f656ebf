/* Internals of hr_keeper: keeper.c owns the shell, client.c the connections. */
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
#include "session/netlog.h"
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
	const char *key; /* key of a RUN request, in `in` */
	size_t key_len;
	uint32_t attempt;  /* attempt of the journal entry of `key` */
	bool joined;       /* the client receives the result of another request with its key */
	bool has_result;   /* out contains a result that must not be lost */
	bool queued;       /* the RUN waits for the requests before it */
	bool asks_to_stay; /* the client requests to stay connected for another RUN */
	bool stays;        /* the connection stays after the answer; it is one of nstaying */
};
TAILQ_HEAD(client_list, client);

#define CACHED_RESULTS 8      /* the last results, sent or not */
#define CACHED_MAX (1u << 20) /* maximum bytes of each cached result */
struct cached_result {
	char *key;
	size_t key_len;
	struct hr_buf out;
};

/* how to start, given a predecessor's state */
enum keeper_after { KEEPER_STARTS, KEEPER_RESUMES, KEEPER_REPLACES };

struct hr_keeper {
	const struct hr_keeper_config *config;
	struct hr_loop *loop;
	struct hr_core *core;

	/* state for the next keeper */
	struct hr_kept_store store;
	struct hr_kept *kept;       /* page of the store, with the retained output and commands */
	bool laid;                  /* the store has all that a successor needs */
	int laid_file, laid_memory; /* descriptors of the log in the store */
	enum keeper_after after;
	bool leaves;          /* the predecessor's shell cannot be continued at present */
	bool answered_before; /* the predecessor may have sent the ack that the shell waits for */

	/* ---- the shell ---- */
	struct hr_hook hook;
	struct hr_shell_user user;
	struct hr_shellproc shell;
	int shell_fd;                /* pidfd of the shell; -1: none */
	struct hr_watch *shell_ends; /* watch of a shell that is not this process's child */
	struct hr_strv environ;
	char *dir; /* the shell's last start directory */
	struct hr_statedir state;
	char *rcfile, *exports_path;
	/* the files exist until the shell has read them: they contain secrets */
	bool rc_there, exports_there;
	unsigned starts; /* starts without a prompt so far */
	bool restarted, prompted;
	bool suspicious; /* the command may change line editing or the environment */
	/* state of the shell that waits for an ack */
	bool renonce;   /* the nonce was lost */
	bool rehook;    /* PS0 or PROMPT_COMMAND have changed */
	bool allexport; /* the shell has `set -a` */
	bool from_us;   /* readline takes the next command from line_fd */
	bool has_line;  /* the shell has the builtin for line_fd */
	bool sent_away; /* an empty line was sent, for the terminal */
	int given;      /* commands given by line_fd and not taken back, since the shell's start */

	/* ---- output for viewers ---- */
	int64_t printed_at; /* time of the terminal's last output */
	TAILQ_HEAD(, follower) followers;
	unsigned nfollowers;

	TAILQ_HEAD(, exec) execs; /* ---- commands beside the shell ---- */
	unsigned nexecs;
	struct keeper_hold {
		bool asked;            /* requested by the current RUN request */
		int64_t command;       /* command whose output must not be lost; 0: none */
		uint64_t at;           /* offset up to which its output was sent */
		bool holds;            /* the terminal is not read until the reader has caught up */
		struct hr_watch *late; /* fires when the reader is too slow */
	} hold;

	/* ---- the terminal ---- */
	struct hr_watch *master_readable, *master_writable;
	struct hr_buf typed; /* text to type, of which the first typed_at bytes are written */
	size_t typed_at;
	bool literal;
	bool answered; /* the terminal answered a query since the last prompt */
	bool quick;    /* the last typed text will be read soon */
	bool resized;  /* the terminal was resized for the running command */

	/* ---- the reports ---- */
	int report_fd, exports_fd, ack_fd, line_fd;
	struct hr_watch *report_readable, *exports_readable;
	struct hr_report_reader reports;
	struct hr_buf exports, exports_in; /* output of `export -p`: whole, incomplete */
	int64_t exports_at;                /* time of the last request for the exports */
	unsigned exports_due;              /* requests without an answer yet */
	char hostname[256];
	uid_t known_uid;
	char *known_name; /* name of known_uid */
	struct hr_buf py_path;
	struct hr_account account; /* account of the shell */
	pid_t said_pid;            /* process of the last report */
	struct hr_netlog netlog;
	unsigned hides;   /* HR_HIDES_*, for the shell that runs the command */
	bool tells_hides; /* true: that shell reported `hides`; false: `hides` is unchanged */
	/* state of the check of the directory that the shell reported */
	bool place_looked, place_good;

	struct hr_watch *timer, *sigchld, *sigterm, *sigint;
	int64_t timer_at;
	bool stopping;

	/* ---- the requests ---- */
	struct hr_watch *listener, *accept_again;
	struct client_list clients; /* clients; those with a RUN are in order of its arrival */
	unsigned nstaying;
	struct hr_journal journal;
	/* a ring in which a new result replaces the oldest */
	struct cached_result cached[CACHED_RESULTS];
	size_t cached_next;
	struct client *active; /* NULL while the core is busy: an internal command runs */
	bool hidden;           /* the last request's text may be a secret */
	size_t init_next;
	bool is_ready;
	int notify_fd; /* -1: already notified, or there is nothing to notify */
	char *failure; /* reason why the shell will never be ready */
};

/* ---- keeper.c ---- */
void keeper_request(struct hr_keeper *k, const struct hr_run_request *r);
void keeper_stop(struct hr_keeper *k);
void keeper_ready(struct hr_keeper *k);
void keeper_arm(struct hr_keeper *k); /* Sets the timers; call it after each change of the core. */

/* ---- shell.c: the core's operations on the real shell ---- */
void shell_close(struct hr_keeper *k, bool kill_all);
int shell_start(struct hr_keeper *k, const char *dir, struct hr_err *err);
void shell_drain(struct hr_keeper *k);      /* Reads all of the terminal's output. */
void shell_look(struct hr_keeper *k);       /* Reads until output must wait for its reader. */
void shell_read_again(struct hr_keeper *k); /* Reads the terminal again after follow_holds(). */
void shell_answer(struct hr_keeper *k);     /* Types the terminal's answers to the output read. */
/* Drops the terminal's answers that an ended program did not read; their echo was the program's. */
void shell_unanswer(struct hr_keeper *k);
/* Drops input that the last command did not read. In the keeper's own shell the ack empties the
 * terminal. */
void shell_drop_input(struct hr_keeper *k, bool own);
void shell_end(struct hr_keeper *k); /* Kills the shell and its foreground; a new shell starts. */
/* Takes lines back that the shell did not read. Returns true if there were any, as at the first
 * prompt with the builtin. This function and shell_ack() are operations of the core: arg is the
 * keeper. */
bool shell_take_back(void *arg);
void shell_ack(void *arg, bool careful); /* Sends the ack line (shell_ack.c). */
/* Returns true if the shell waits for the ack of the report that was taken last. Takes 50 ms at
 * most. */
bool shell_waits(struct hr_keeper *k);
void shell_on_child(void *arg);
/* Watches an existing shell. `other`: it is not this process's child. */
int shell_watch(struct hr_keeper *k, bool other, struct hr_err *err);
/* Continues a stopped shell that is not this process's child: only children report stops. */
void shell_unstop(struct hr_keeper *k);
void shell_unsize(struct hr_keeper *k);    /* Restores the terminal's first size. */
extern const struct hr_core_ops shell_ops; /* all operations except `result` and `ready` */

/* ---- prompt.c: the shell's reports ---- */
int prompt_open(struct hr_keeper *k, struct hr_err *err);
void prompt_close(struct hr_keeper *k);
void prompt_read(struct hr_keeper *k); /* Reads the reports that have arrived. */
void prompt_take(struct hr_keeper *k); /* Handles the reports read. */
void prompt_last(struct hr_keeper *k); /* Reads the reports of a shell before ending it. */
int prompt_renew(struct hr_keeper *k, struct hr_err *err); /* Prepares for another shell. */

/* ---- claims.c: how far to trust a report; results are valid until the next report ---- */
const char *claims_name(struct hr_keeper *k, const struct hr_report *r);
/* Returns the path of the shell's directory, which is in `link` or in the report. */
const char *
claims_directory(const struct hr_keeper *k, const struct hr_report *r, char *link, size_t cap);
/* Returns the python of the shell's account, or "" if there is none. */
const char *claims_python(struct hr_keeper *k, const struct hr_report *r, const char *cwd);
/* Returns the shell's directory for processes with rights of their own: one that its account can
 * enter, or that the shell is in; otherwise the start directory. */
const char *claims_place(struct hr_keeper *k);

/* ---- look.c: the shell's process ---- */
/* operations of hr_core_ops */
bool look_in_readline(void *keeper);
enum hr_core_seen look_waits(void *keeper); /* Examines the shell; also lets output flow again. */
int64_t look_works(void *keeper);
bool look_strays(void *keeper);
unsigned look_hides(const struct hr_keeper *k, pid_t pid); /* Returns HR_HIDES_*. */
const char *look_held(const struct hr_keeper *k);

/* ---- files.c ---- */
int files_open(struct hr_keeper *k, struct hr_err *err);
void files_close(struct hr_keeper *k); /* Closes and removes the files. */
/* Restores the shared files that the former shell has removed or changed. */
int files_share(struct hr_keeper *k, struct hr_err *err);
int files_put_rc(struct hr_keeper *k, bool no_user_files, struct hr_err *err);
bool files_put_exports(struct hr_keeper *k); /* Returns false if there are no exports. */
void files_forget(struct hr_keeper *k);      /* Removes both files after the shell has read them. */

struct hr_follow_request;
struct hr_press_request;

/* ---- follow.c: the followers ---- */
/* Adds a follower; takes ownership of fd. */
void follow_add(struct hr_keeper *k, int fd, const struct hr_follow_request *r);
void follow_wake(struct hr_keeper *k);  /* Wakes the followers after new output. */
bool follow_holds(struct hr_keeper *k); /* Returns true if the terminal must not be read now. */
/* Returns the reason of a refusal. */
const char *follow_press(struct hr_keeper *k, const struct hr_press_request *r);
void follow_began(struct hr_keeper *k, const char *p, size_t len);
void follow_over(void *keeper, int exit_code, bool shell_ended); /* Implements hr_core_ops.over. */
void follow_free_all(struct hr_keeper *k);

struct hr_exec_request;

/* ---- exec.c ---- */
/* Starts a command; takes ownership of fd. */
void exec_add(struct hr_keeper *k, int fd, const struct hr_exec_request *r);
/* Returns false if pid is none of the commands. */
bool exec_ended(struct hr_keeper *k, pid_t pid, int exit_code);
void exec_free_all(struct hr_keeper *k); /* Frees and kills all commands. */

/* ---- client.c ---- */
int client_listen(struct hr_keeper *k, struct hr_err *err);
int client_add(struct hr_keeper *k, int fd, struct hr_err *err);
void client_next(struct hr_keeper *k); /* Passes the oldest request to an idle core. */
void client_result(struct hr_keeper *k, const struct hr_run_result *r);
void client_free_all(struct hr_keeper *k);
/* Restores the current request and the last result of a predecessor. */
int client_resume(
    struct hr_keeper *k, const char *key, size_t len, uint32_t attempt, struct hr_err *err);
void
client_take_result(struct hr_keeper *k, const char *key, size_t key_len, const char *p, size_t len);

/* ---- resume.c: continuing after a killed keeper ---- */
int resume_open(struct hr_keeper *k, struct hr_err *err); /* Looks for a predecessor's state. */
/* Takes the predecessor's shell, or starts one. */
int resume_shell(struct hr_keeper *k, struct hr_err *err);
void resume_lay(struct hr_keeper *k); /* Stores a new shell's descriptors. */
/* Stores the log's descriptors as soon as the log has a new store. */
void resume_lay_log(struct hr_keeper *k);
/* Forgets the shell's descriptors after the shell has ended. */
void resume_unlay(struct hr_keeper *k);
/* Marks the state as unusable for a successor from the first action on the shell in an event to the
 * end of the event. */
void resume_unsure(struct hr_keeper *k);
void resume_note(struct hr_keeper *k);
/* Notes that a report is about to be read and the shell to be answered. */
void resume_note_report(struct hr_keeper *k);
void resume_note_answer(struct hr_keeper *k);
void resume_note_exports(struct hr_keeper *k);
/* Starts another command after one that outlasted its result, or whose end no client knows.
 * Output that clients got by other ways than results is not repeated: see hr_core_returned(). */
void resume_returned(struct hr_keeper *k);
void resume_log_given(struct hr_keeper *k, const char *p, size_t len);
void resume_note_result(struct hr_keeper *k, const struct client *c);

#endif
