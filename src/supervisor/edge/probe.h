/* hr_probe: sends a GET to the server itself: it shows that nginx and a worker respond, since
 * neither can report that. It runs once at start. It speaks no TLS: on a TLS port nginx's error
 * about that (status 400) shows that nginx responds, but nothing about a worker. */
#ifndef HR_SUPERVISOR_EDGE_PROBE_H
#define HR_SUPERVISOR_EDGE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/err.h"

struct hr_loop;
struct hr_watch;

/* Called once, after the probe was closed. `answer` is the status line, or the error. */
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

/* Starts the probe. `to` must be listening, so that connecting does not block. `want` is the prefix
 * of the expected status line; borrowed. */
int hr_probe_start(struct hr_probe *p, struct hr_loop *loop, const struct sockaddr_storage *to,
    socklen_t len, const char *path, const char *want, int timeout_ms, hr_probe_fn *fn, void *arg,
    struct hr_err *err);
/* Stops the probe: fn is not called any more. The probe may be stopped already. */
void hr_probe_stop(struct hr_probe *p);

#endif
