/* hr_harden: gives up all rights that a worker does not need, before it receives any secret. */
#ifndef HR_WORKER_HARDEN_H
#define HR_WORKER_HARDEN_H

#include "base/err.h"

/* Drops rights: from now on no process without CAP_SYS_PTRACE can read this process's memory or
 * open its descriptors, it leaves no core file, and neither it nor its children keep a capability
 * of root that file access does not need, such as reading the memory of other processes. */
int hr_harden(struct hr_err *err);

#endif
