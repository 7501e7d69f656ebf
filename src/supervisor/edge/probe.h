/* hr_probe: one GET to ourselves: the way to know that nginx and a worker answer, since neither can
 * say so. It is asked once at start, never again. It speaks no TLS: there, nginx's complaint about
 * that (status 400) shows that nginx answers, and says nothing of a worker. */
#ifndef HR_SUPERVISOR_EDGE_PROBE_H
#define HR_SUPERVISOR_EDGE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/err.h"

struct hr_loop;
struct hr_watch;

/* Called once, the probe is closed before. answer: the status line, or what went wrong. */
typedef void hr_probe_fn(void *arg, bool ok, const char *answer);

struct hr_probe {
	int fd;
	struct hr_watch *watch, *timer;
	hr_probe_fn *fn;
	void *arg;
	const char *want;
	size_t len;
	char text[256];
};

/* to must be listening, so that connecting does not wait. path: what is asked for. want: how the
 * status line that is an answer begins; kept. */
int hr_probe_start(struct hr_probe *p, struct hr_loop *loop, const struct sockaddr_storage *to,
    socklen_t len, const char *path, const char *want, int timeout_ms, hr_probe_fn *fn, void *arg,
    struct hr_err *err);
void hr_probe_stop(struct hr_probe *p); /* fn is not called any more; not running: nothing */

#endif
