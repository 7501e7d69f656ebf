/* egress_edge: the nginx outside a box that ends HTTP for inspected hosts: its configuration, and
 * the certificates of the box's own authority. It has no network: it listens on sockets in
 * DIR/edge, and its upstreams are sockets of the broker there. */
#ifndef HR_EGRESS_EDGE_H
#define HR_EGRESS_EDGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct egress_policy;
struct json_object;

/* One inspected host. All names of sockets are relative to DIR/edge: "in-ID" (nginx listens; the
 * broker connects with the bytes of the box) and "out-ID" (the broker listens; nginx connects with
 * a request that may pass). */
struct egress_host {
	unsigned id;
	const char *name;
	int port;
	bool tls; /* the box's side and the real server speak TLS */
};

/* Appends the whole configuration for these hosts. `secrets` and `placeholders` are objects of
 * strings; a secret that is used and not there is an error. Values are quoted, so that no value can
 * be taken for configuration. */
int egress_edge_config(const struct egress_policy *p, const char *dir,
    const struct egress_host *hosts, size_t n, struct json_object *secrets,
    struct json_object *placeholders, struct hr_buf *ret, struct hr_err *err);

/* Makes DIR/ca.key, DIR/ca.crt and DIR/trust.pem unless they are there and still valid. */
int egress_authority_make(const char *dir, const char *box, struct hr_err *err);
/* Makes DIR/certs/NAME.crt and .key, signed by the authority, unless they are there and valid for
 * another day. */
int egress_authority_certify(const char *dir, const char *name, struct hr_err *err);

#endif
