/* hr_harden: what a worker gives up before it is told anything. */
#ifndef HR_WORKER_HARDEN_H
#define HR_WORKER_HARDEN_H

#include "base/err.h"

/* From here on no process without CAP_SYS_PTRACE reads our memory or opens our descriptors, we
 * leave no core file, and neither we nor what we start can do with root's rights what no file
 * needs: read the memory of others, first of all. */
int hr_harden(struct hr_err *err);

#endif
