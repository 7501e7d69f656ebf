/* br_view: takes the view of a page: its tree, properties, focus and picture, with marks set for
 * them. */
#ifndef HR_PLUGINS_BROWSER_VIEW_H
#define HR_PLUGINS_BROWSER_VIEW_H

#include "plugins/browser/page/axtree.h"
#include "plugins/browser/browser.h"
#include "plugins/browser/page/props.h"

struct br_view {
	struct br_ax *ax; /* NULL: there is no tree, see why_no_tree */
	struct br_props props;
	struct hr_buf html;    /* filled only on request */
	struct hr_buf focused; /* a bid */
	bool has_focus;        /* false: the focus is null */
	struct hr_buf png;     /* "": there is no picture */
	struct hr_buf why_no_tree;
	bool hangs; /* the page does not respond */
};

void br_view_init(struct br_view *v);
void br_view_done(struct br_view *v);
/* Takes the view of the active tab. Returns -1 with b->err if Chromium has ended. */
int br_view_take(struct browser *b, struct br_view *v, bool html);

#endif
