/* Decides for nginx which loopback address a request to /port/N/ goes to. */
#include "config.h"

#include <stdlib.h>

#include "base/clean.h"
#include "base/peer.h"
#include "worker/worker.h"

void
hr_handle_port(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret)
{
	HR_BUF(text, 16);
	unsigned port;

	ret->content_type = NULL;
	ret->status = 204;
	if (!hr_request_query(r, "port", &text))
		return;
	/* 127.0.0.1 comes first. Linux without tcp_diag finds no listener at all. */
	port = (unsigned)strtoul(hr_buf_str(&text), NULL, 10);
	if (hr_peer_listens(&w->peers, "127.0.0.1", port) == 0 &&
	    hr_peer_listens(&w->peers, "::1", port) == 1)
		ret->status = 403;
}
