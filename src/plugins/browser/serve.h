/* br_serve: the plugin's loop: actions come, one after the other is performed. */
#ifndef HR_PLUGINS_BROWSER_SERVE_H
#define HR_PLUGINS_BROWSER_SERVE_H

#include "base/err.h"
#include "plugins/browser/browser.h"
#include "plugins/browser/step.h"

/* Until SIGTERM. -1: waiting itself fails. */
int br_serve(struct browser *b, struct br_desk *d, int listener, struct hr_err *err);

#endif
