/* egress_edge: the nginx outside a box that ends HTTP for inspected hosts: its configuration, and
 * the certificates of the box's own authority. It has no network: it listens on sockets in
 * DIR/edge, and its upstreams are sockets of the broker there.
 *
 * nginx runs in DIR/edge: the names of sockets are relative, so the length of DIR does not matter.
 * Remove in-* and mid-* there before a start: nginx does not replace the sockets of a killed one.
 */
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
 * a request that may pass); "mid-ID" is nginx's own, and "log" the broker's (a datagram for each
 * request). */
struct egress_host {
	unsigned id;
	const char *name;
	int port;
	bool tls; /* the box's side and the real server speak TLS */
};

/* Appends the whole configuration for these hosts. It is secret: write it with mode 0600. `dir` is
 * absolute. `secrets` and `placeholders` are objects of strings; a secret that is used and not
 * there, or is too short or too long, is an error, and a variable without a placeholder is
 * ignored. Values are quoted, so that no value can be taken for configuration. nginx trusts the
 * authorities of DIR/trust.pem. */
int egress_edge_config(const struct egress_policy *p, const char *dir,
    const struct egress_host *hosts, size_t n, struct json_object *secrets,
    struct json_object *placeholders, struct hr_buf *ret, struct hr_err *err);

/* Bytes of a secret: shorter ones would be taken out of unrelated text; nginx reads no longer word
 * than 4,096 bytes, in which a secret may be encoded. */
#define EGRESS_SECRET_MIN 8
#define EGRESS_SECRET_MAX 2800

/* Writes a new placeholder: "ph_" and 36 hexadecimal digits. The letters need no escape in headers,
 * JSON, URLs and shells. The place of a placeholder in "Basic BASE64(USER:PLACEHOLDER)" is found
 * without decoding: the byte before is always ':', and nothing comes after, so that for each of the
 * three alignments the text in base64 is known except for digits that belong to USER alone. */
#define EGRESS_PLACEHOLDER_TEXT 40
int egress_placeholder(char ret[EGRESS_PLACEHOLDER_TEXT], struct hr_err *err);

/* Makes DIR/ca.key, DIR/ca.crt and DIR/trust.pem unless they are there and still valid. */
int egress_authority_make(const char *dir, const char *box, struct hr_err *err);
/* Makes DIR/certs/NAME.crt and .key, signed by the authority, unless they are there and valid for
 * another day. */
int egress_authority_certify(const char *dir, const char *name, struct hr_err *err);

#endif
