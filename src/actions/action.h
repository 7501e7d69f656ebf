/* hr_action: what is done for each type of action. A new type is one file with one hr_action_ops
 * and one line of the table in table.c. */
#ifndef HR_ACTIONS_ACTION_H
#define HR_ACTIONS_ACTION_H

#include <sys/types.h>

#include "proto/event.h"
#include "proto/httperr.h"
#include "proto/journal.h"

/* Which client an action is done for. */
enum hr_rules {
	HR_RULES_V0,  /* OpenHands: with all accidents of the original server, byte for byte */
	HR_RULES_OWN, /* one of handrail's interfaces: output and files as they are */
};

/* What an action may need of its worker. All borrowed. */
struct hr_action_env {
	const char *run_dir;  /* session.sock is in it, and the undo history */
	const char *work_dir; /* the server's working directory */
	const char *office;   /* see files/document.h */
	int channel;          /* to the supervisor (proto/channel.h); -1: none */
	struct hr_span key;   /* at-most-once key of the request; may be empty */
	const char *session;  /* a named one, for `run`; NULL: the default one */
	int *shell_fd;        /* a connection to the default one, kept for the next request; -1:
				 none yet. NULL: none is kept */
	uid_t user_id;        /* owner of the files that `write` makes */
	enum hr_rules rules;

	/* the entry of that key in the journal; NULL: none */
	struct hr_journal *journal;
	struct hr_journal_entry *entry;
	bool again; /* HR_REPEAT_JOIN only: begun by somebody who died, and not to be begun again */
};

/* What a second execution would do. */
enum hr_repeat {
	HR_REPEAT_FREE,  /* nothing that matters: the action only looks */
	HR_REPEAT_NEVER, /* damage, from the first moment on */
	HR_REPEAT_MARK,  /* damage, once the action has called hr_journal_mark() */
	HR_REPEAT_JOIN,  /* as before, and who does it can be asked for what came of it */
};
enum hr_repeat hr_action_repeat(const struct hr_event *ev);

struct hr_action_ops {
	const char *type;
	/* Fills ret, whatever happens. May block for as long as the action takes. */
	void (*perform)(
	    const struct hr_action_env *env, const struct hr_event *ev, struct hr_answer *ret);
};

/* Performs what the event's type asks for, or answers as for a type that is not implemented
 * (doc/actions.md, "Types that nobody performs"). */
void hr_action_perform(
    const struct hr_action_env *env, const struct hr_event *ev, struct hr_answer *ret);

/* 200 with an error observation. */
void hr_action_error(struct hr_answer *ret, const char *text, size_t len);

extern const struct hr_action_ops hr_act_run;
extern const struct hr_action_ops hr_act_run_ipython;
extern const struct hr_action_ops hr_act_browse;
extern const struct hr_action_ops hr_act_browse_interactive;
extern const struct hr_action_ops hr_act_read;
extern const struct hr_action_ops hr_act_write;
extern const struct hr_action_ops hr_act_edit;

#endif
