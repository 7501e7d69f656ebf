/* hr_fcgi: accepts requests on descriptor 0 and sends the answers, one at a time, as the only user
 * of libfcgi. */
#ifndef HR_WORKER_REQUEST_FCGI_H
#define HR_WORKER_REQUEST_FCGI_H

#include "base/err.h"

struct hr_worker;

/* Prepares the process; call it before the rest of this header. It changes the environment and the
 * signals: SIGTERM and SIGUSR1 end the loop after the current request. */
int hr_fcgi_setup(struct hr_err *err);

/* Serves requests until one of those signals or the end of the channel (both let the current
 * request finish), or until max_requests (0: no limit) are answered. Returns -1 only if it cannot
 * start: errors of accept() are logged and survived. */
int hr_fcgi_loop(struct hr_worker *w, unsigned long max_requests, struct hr_err *err);

#endif
