/* br_serve: runs the plugin's loop, which performs arriving actions one after the other. */
#ifndef HR_PLUGINS_BROWSER_SERVE_H
#define HR_PLUGINS_BROWSER_SERVE_H

#include "base/err.h"
#include "plugins/browser/browser.h"
#include "plugins/browser/step.h"

/* Runs until SIGTERM. Returns -1 if waiting itself fails. */
int br_serve(struct browser *b, struct br_desk *d, int listener, struct hr_err *err);

#endif
