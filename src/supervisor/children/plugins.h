/* hr_plugins: manages the plugins of a server: those named in its start command and the implied
 * ones. See handrail-plugin(5). */
#ifndef HR_SUPERVISOR_CHILDREN_PLUGINS_H
#define HR_SUPERVISOR_CHILDREN_PLUGINS_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "supervisor/children/pluginproc.h"

struct hr_context;
struct hr_handover;
struct hr_keys;

void hr_plugins_init(struct hr_plugins *ps, struct hr_context *ctx);
void hr_plugins_done(struct hr_plugins *ps);

/* Finds and reads the manifests on the settings' search path. Fails with "Plugin <name> not found"
 * (HR_E_NOTFOUND), or because of a cycle of requirements. */
int hr_plugins_load(struct hr_plugins *ps, struct hr_err *err);

/* Ends a killed predecessor's plugins; call before the run directory is prepared. */
void hr_plugins_succeed(struct hr_plugins *ps);
/* Gives plugins with "openhands_v1" the sums of the keys, as HR_CHANNEL_KEYS does; call it after
 * hr_plugins_open() and after each change of the keys. */
void hr_plugins_keys(const struct hr_plugins *ps, const struct hr_keys *keys);
/* Makes the sockets; hr_plugins_start() then starts the plugins that start with the server. */
int hr_plugins_open(struct hr_plugins *ps, struct hr_err *err);
void hr_plugins_start(struct hr_plugins *ps);
/* Returns true once no plugin that starts with the server is still starting. */
bool hr_plugins_settled(const struct hr_plugins *ps);

/* Hands the sockets to the next image of this process. */
int hr_plugins_hand_over(const struct hr_plugins *ps, struct hr_handover *h, struct hr_err *err);

/* Stops the plugins that hold long responses open, since nginx waits for its connections. */
void hr_plugins_stop_http(struct hr_plugins *ps);
void hr_plugins_stop(struct hr_plugins *ps, bool fast);
bool hr_plugins_gone(const struct hr_plugins *ps);

/* Appends {"name":{"state":...,"reason":...},...} */
void hr_plugins_json(struct hr_buf *b, const struct hr_plugins *ps);

#endif
