/* hr_oldnginx: what is left of the nginx of a supervisor that was killed. */
#ifndef HR_SUPERVISOR_EDGE_OLDNGINX_H
#define HR_SUPERVISOR_EDGE_OLDNGINX_H

#include <sys/types.h>

/* Tells the processes of that master's group to end in order. Its workers outlive a master that was
 * killed, go on to accept, and keep the port for ever: nobody else would tell them. Reads /proc;
 * processes that are no nginx are left alone, as the number may be somebody else's by now. */
void hr_oldnginx_quit(pid_t master);

#endif
