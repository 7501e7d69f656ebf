/* Chooses the directory for run directories of servers on this machine. */
#ifndef HR_HOST_RUNBASE_H
#define HR_HOST_RUNBASE_H

/* Returns the directory in which a server's run directory is made, short enough for the addresses
 * of sockets in it; borrowed from env or static. Root's server runs nginx as another account, which
 * can enter it. */
const char *hr_run_base(const char *const *env);

#endif
