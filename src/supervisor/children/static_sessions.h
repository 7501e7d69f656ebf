/* hr_static_sessions: manages the keepers of static sessions, one for each action that requests a
 * fresh shell. */
#ifndef HR_SUPERVISOR_CHILDREN_STATIC_SESSIONS_H
#define HR_SUPERVISOR_CHILDREN_STATIC_SESSIONS_H

#include <stdbool.h>
#include <sys/queue.h>

struct hr_context;
struct hr_pool_worker;
struct hr_pools;

struct hr_static_sessions {
	struct hr_context *ctx;
	const struct hr_pools *pools; /* pools of the requesting workers */
	LIST_HEAD(hr_static_session_list, hr_static_session) list;
	unsigned count, serial;
	bool stopping;
};

void hr_static_sessions_init(
    struct hr_static_sessions *all, struct hr_context *ctx, const struct hr_pools *pools);
/* Makes a fresh shell in dir ("": the working directory) for w, and answers on w's channel, at once
 * or when the shell is ready. */
void
hr_static_sessions_new(struct hr_static_sessions *all, struct hr_pool_worker *w, const char *dir);
void hr_static_sessions_stop(struct hr_static_sessions *all, bool fast);
/* Returns true if a worker waits for an answer. */
bool hr_static_sessions_asked(const struct hr_static_sessions *all);
bool hr_static_sessions_gone(const struct hr_static_sessions *all);
void hr_static_sessions_done(struct hr_static_sessions *all);

#endif
