/* hr_loopback: the loopback interface of the network in which this process is. */
#ifndef HR_BASE_LOOPBACK_H
#define HR_BASE_LOOPBACK_H

#include "base/err.h"

/* Starts the interface. Returns 0, or -1 with *err set. */
int hr_loopback_raise(struct hr_err *err);

/* Makes every IPv4 address one of the interface ("AnyIP"): a broker of the caller's, which listens
 * in the network, takes what programs send to any machine. Without a listener, and over IPv6, the
 * kernel refuses a connection at once. The interface must be up. A second call has no effect. */
int hr_loopback_take_all(struct hr_err *err);

#endif
