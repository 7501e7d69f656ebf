/* hr_plugins: the plugins of a server: those that its start command names and those that are there
 * without being named. What a plugin is: handrail-plugin(5). */
#ifndef HR_SUPERVISOR_CHILDREN_PLUGINS_H
#define HR_SUPERVISOR_CHILDREN_PLUGINS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "supervisor/children/pluginproc.h"

struct hr_context;
struct hr_handover;

void hr_plugins_init(struct hr_plugins *ps, struct hr_context *ctx);
void hr_plugins_done(struct hr_plugins *ps);

/* Finds and reads the manifests on the search path of the settings. "Plugin <name> not found"
 * (HR_E_NOTFOUND) for one that has none; a circle of requirements is an error too. */
int hr_plugins_load(struct hr_plugins *ps, struct hr_err *err);

/* Before the run directory is made ready: what a killed predecessor left is ended. */
void hr_plugins_succeed(struct hr_plugins *ps);
/* Makes the sockets; then starts what is to start with the server. */
int hr_plugins_open(struct hr_plugins *ps, struct hr_err *err);
void hr_plugins_start(struct hr_plugins *ps);
/* Nothing that starts with the server is still starting. */
bool hr_plugins_settled(const struct hr_plugins *ps);

/* Their sockets, for the next image of us. */
int hr_plugins_hand_over(const struct hr_plugins *ps, struct hr_handover *h, struct hr_err *err);

/* Those that hold long answers open for nginx, which waits for its connections. */
void hr_plugins_stop_http(struct hr_plugins *ps);
void hr_plugins_stop(struct hr_plugins *ps, bool fast);
bool hr_plugins_gone(const struct hr_plugins *ps);

/* {"name":{"state":...,"reason":...},...} */
void hr_plugins_json(struct hr_buf *b, const struct hr_plugins *ps);

#endif
