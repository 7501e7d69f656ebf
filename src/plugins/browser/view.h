/* br_view: what a page shows: marks in its documents, tree, properties, focus, picture. */
#ifndef HR_PLUGINS_BROWSER_VIEW_H
#define HR_PLUGINS_BROWSER_VIEW_H

#include "plugins/browser/page/axtree.h"
#include "plugins/browser/browser.h"
#include "plugins/browser/page/props.h"

struct br_view {
	struct br_ax *ax; /* NULL: there is no tree, why_no_tree says it */
	struct br_props props;
	struct hr_buf html;    /* only where it was asked for */
	struct hr_buf focused; /* a bid */
	bool has_focus;        /* false: null */
	struct hr_buf png;     /* "": none */
	struct hr_buf why_no_tree;
	bool hangs; /* the page answers nothing, whatever is done */
};

void br_view_init(struct br_view *v);
void br_view_done(struct br_view *v);
/* Looks at the active tab. -1: Chromium is gone, b->err. */
int br_view_take(struct browser *b, struct br_view *v, bool html);

#endif
