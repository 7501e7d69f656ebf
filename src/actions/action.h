/* hr_action: performs actions by type. A new type is one file with one hr_action_ops and one line
 * of the table in table.c. */
#ifndef HR_ACTIONS_ACTION_H
#define HR_ACTIONS_ACTION_H

#include <sys/types.h>

#include "proto/event.h"
#include "proto/httperr.h"
#include "proto/journal.h"

/* The kind of client for which an action is done. */
enum hr_rules {
	HR_RULES_V0,  /* OpenHands: with all quirks of the original server, byte for byte */
	HR_RULES_OWN, /* handrail's interfaces: output and files unchanged */
};

/* The worker's resources for actions. All are borrowed. */
struct hr_action_env {
	const char *run_dir;  /* contains session.sock and the undo history */
	const char *work_dir; /* the server's working directory */
	const char *office;   /* see files/document.h */
	int channel;          /* channel to the supervisor (proto/channel.h); -1: none */
	struct hr_span key;   /* at-most-once key of the request; may be empty */
	const char *session;  /* a named session, for `run`; NULL: the default one */
	int *shell_fd; /* connection to the default session, kept for the next request; -1: none
			  yet. NULL: not kept */
	uid_t user_id; /* owner of files made by `write` */
	enum hr_rules rules;

	/* journal entry of that key; NULL: none */
	struct hr_journal *journal;
	struct hr_journal_entry *entry;
	/* HR_REPEAT_JOIN only: a process that died had started the action; it must not be started
	 * again */
	bool again;
};

/* Says what harm a second execution would do. */
enum hr_repeat {
	HR_REPEAT_FREE,  /* no harm: the action only reads */
	HR_REPEAT_NEVER, /* damage, from the start of the action on */
	HR_REPEAT_MARK,  /* damage, once the action has called hr_journal_mark() */
	/* the same as HR_REPEAT_MARK, and the performer can be asked for the result */
	HR_REPEAT_JOIN,
};
enum hr_repeat hr_action_repeat(const struct hr_event *ev);

struct hr_action_ops {
	const char *type;
	/* Fills ret in any case. May block for as long as the action takes. */
	void (*perform)(
	    const struct hr_action_env *env, const struct hr_event *ev, struct hr_answer *ret);
};

/* Performs an action by its type, or answers as for a type that is not implemented (doc/actions.md,
 * "Types that nobody performs"). */
void hr_action_perform(
    const struct hr_action_env *env, const struct hr_event *ev, struct hr_answer *ret);

/* Answers 200 with an error observation. */
void hr_action_error(struct hr_answer *ret, const char *text, size_t len);

extern const struct hr_action_ops hr_act_run;
extern const struct hr_action_ops hr_act_run_ipython;
extern const struct hr_action_ops hr_act_browse;
extern const struct hr_action_ops hr_act_browse_interactive;
extern const struct hr_action_ops hr_act_read;
extern const struct hr_action_ops hr_act_write;
extern const struct hr_action_ops hr_act_edit;

#endif
