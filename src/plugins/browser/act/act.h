/* br_act: performs the functions of a program, one call at a time. */
#ifndef HR_PLUGINS_BROWSER_ACT_ACT_H
#define HR_PLUGINS_BROWSER_ACT_ACT_H

#include "plugins/browser/browser.h"
#include "plugins/browser/program/program.h"

#define BR_GOTO_MS 100000
#define BR_CALL_MS 8000 /* ms for a page to respond to an action */

struct br_run {
	struct browser *b;
	const char *dir;    /* base of relative file names */
	char page[BR_ID];   /* target of the tab that the calls use */
	struct hr_buf *why; /* text of the exception */
	bool noted;         /* an action was done to which the page may react */
};

/* Returns 0; 1 if it raised an exception; -1 with b->err if the browser has failed. */
int br_act(struct br_run *run, const struct br_call *call);

#endif
