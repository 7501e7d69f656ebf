/* br_act: the functions of a program, one call at a time. */
#ifndef HR_PLUGINS_BROWSER_ACT_ACT_H
#define HR_PLUGINS_BROWSER_ACT_ACT_H

#include "plugins/browser/browser.h"
#include "plugins/browser/program/program.h"

#define BR_GOTO_MS 100000
#define BR_CALL_MS 8000 /* for a page to answer when it is touched */

struct br_run {
	struct browser *b;
	const char *dir;    /* relative names of files count from there */
	char page[BR_ID];   /* the tab that calls work on */
	struct hr_buf *why; /* the exception */
	bool noted;         /* something was done that the page may answer with a change */
};

/* 0; 1: it raised; -1: b->err, the browser cannot go on. */
int br_act(struct br_run *run, const struct br_call *call);

#endif
