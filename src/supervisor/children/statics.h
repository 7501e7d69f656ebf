/* hr_statics: the keepers of static sessions, one for each action that asks for a fresh shell. */
#ifndef HR_SUPERVISOR_CHILDREN_STATICS_H
#define HR_SUPERVISOR_CHILDREN_STATICS_H

#include <stdbool.h>
#include <sys/queue.h>

struct hr_server;
struct hr_watch;
struct hr_worker;

struct hr_statics {
	struct hr_server *server;
	LIST_HEAD(hr_static_list, hr_static) list;
	unsigned count, serial;
	bool stopping;
	struct hr_watch *patience;
};

void hr_statics_init(struct hr_statics *all, struct hr_server *server);
/* A fresh shell in dir ("": the working directory) for w; the answer goes to w by its channel, at
 * once or when the shell is ready. */
void hr_statics_new(struct hr_statics *all, struct hr_worker *w, const char *dir);
void hr_statics_stop(struct hr_statics *all, bool fast);
bool hr_statics_asked(const struct hr_statics *all); /* a worker waits for one */
bool hr_statics_gone(const struct hr_statics *all);
void hr_statics_done(struct hr_statics *all);

#endif
