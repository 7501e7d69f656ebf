/* hr_fcgi: the only user of libfcgi: takes requests from the listening socket on descriptor 0 and
 * gives the answers back, one at a time. */
#ifndef HR_WORKER_REQUEST_FCGI_H
#define HR_WORKER_REQUEST_FCGI_H

#include "base/err.h"

struct hr_worker;

/* Before anything else of this header; changes the environment of the process and its signals:
 * SIGTERM and SIGUSR1 end the loop after the request in hand. */
int hr_fcgi_setup(struct hr_err *err);

/* Until one of those signals, until the supervisor closes its end of the channel (both wait for the
 * request in hand), or until max_requests (0: no limit) were answered. -1 only if it cannot begin:
 * errors of accept() are logged and survived. */
int hr_fcgi_loop(struct hr_worker *w, unsigned long max_requests, struct hr_err *err);

#endif
