/* hr_oldnginx: ends the remaining nginx processes of a killed supervisor. */
#ifndef HR_SUPERVISOR_EDGE_OLDNGINX_H
#define HR_SUPERVISOR_EDGE_OLDNGINX_H

#include <sys/types.h>

/* Sends SIGQUIT to that master's group. Workers outlive a killed master, continue to accept, and
 * hold the port for ever: no other process would end them. Reads /proc; skips processes other than
 * nginx, since the number may have been reused. */
void hr_oldnginx_quit(pid_t master);

#endif
