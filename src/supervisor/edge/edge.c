/* Composes certificates, keys and limits of nginx. The zones have a fixed size: nginx refuses to
 * change it on a reload. */
#include "config.h"

#include "supervisor/edge/edge.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "supervisor/run/edgekey.h"
#include "supervisor/run/keys.h"
#include "supervisor/settings/settings.h"
#include "base/text/template.h"

#define PART_MAX 8192

/* The nginx program contains these strings: the directive of the module that compares digests,
 * which some builds lack, and the warning about `listen ... http2` of 1.25.1 and later versions,
 * which have the directive `http2` instead. */
#define DIGEST_DIRECTIVE "secure_link_md5"
#define LISTEN_HTTP2_WARNING "\"listen ... http2\" directive is deprecated"

/* Mozilla's "intermediate" list without finite-field DHE, for which no parameters are set: ciphers
 * with forward secrecy and an AEAD. Others cost the server several times what they cost a client,
 * or have been broken. The groups are set too: OpenSSL's default for TLS 1.3 includes ffdhe8192,
 * which takes about 10 ms of CPU time. */
#define CIPHERS                                                                                    \
	"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"                               \
	"ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"                               \
	"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305"
#define GROUPS "X25519:prime256v1:secp384r1"

/* Returns true if the nginx program contains the string `text`, which shows how it was built.
 * Returns false for a wrapper. */
static bool
nginx_contains(const char *nginx, const char *text)
{
	bool found = false;
	struct stat st;
	char *p;
	HR_CLOSE int fd = open(nginx, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p != MAP_FAILED) {
			found = memmem(p, (size_t)st.st_size, text, strlen(text)) != NULL;
			(void)munmap(p, (size_t)st.st_size);
		}
	}
	return found;
}

/* Appends line with @value@ replaced, or nothing if the value is empty. */
static int
put_value(
    struct hr_buf *b, const char *key, const char *line, const char *value, struct hr_err *err)
{
	const struct hr_place place = {"value", value, false};

	if (value[0] == '\0')
		return 0;
	if (hr_template_fill(b, line, strlen(line), &place, 1, err) == 0)
		return 0;
	return hr_err_prefix(err, "%s", key);
}

static int
compose_tls(struct hr_edge *e, const struct hr_settings *c, struct hr_err *err)
{
	if (c->tls_certificate[0] == '\0')
		return 0;
	hr_buf_adds(&e->listen, " ssl");
	if (c->http2 && nginx_contains(c->nginx, LISTEN_HTTP2_WARNING))
		hr_buf_adds(&e->tls, "\t\thttp2 on;\n");
	else if (c->http2)
		hr_buf_adds(&e->listen, " http2");
	if (put_value(&e->tls, "tls_certificate", "\t\tssl_certificate @value@;\n",
		c->tls_certificate, err) != 0 ||
	    put_value(&e->tls, "tls_certificate_key", "\t\tssl_certificate_key @value@;\n",
		c->tls_certificate_key, err) != 0 ||
	    put_value(&e->tls, "tls_ciphers", "\t\tssl_ciphers @value@;\n",
		c->tls_ciphers[0] != '\0' ? c->tls_ciphers : CIPHERS, err) != 0 ||
	    put_value(&e->tls, "tls_client_ca",
		"\t\tssl_client_certificate @value@;\n\t\tssl_verify_client on;\n"
		"\t\tssl_verify_depth 4;\n",
		c->tls_client_ca, err) != 0 ||
	    put_value(
		&e->tls, "tls_client_crl", "\t\tssl_crl @value@;\n", c->tls_client_crl, err) != 0)
		return -1;
	hr_buf_addf(&e->tls, "\t\tssl_protocols %sTLSv1.3;\n",
	    strcmp(c->tls_min_version, "1.3") == 0 ? "" : "TLSv1.2 ");
	/* all ciphers are good: the client knows which one its CPU does best */
	hr_buf_adds(
	    &e->tls, "\t\tssl_prefer_server_ciphers off;\n\t\tssl_ecdh_curve " GROUPS ";\n");
	/* tickets use a key that lives as long as nginx does, without forward secrecy */
	hr_buf_adds(&e->tls, "\t\tssl_session_tickets off;\n"
			     "\t\tssl_session_cache shared:handrail_tls:1m;\n");
	return 0;
}

/* A rate-limit class: the nginx variable that keys it, and its three limits. */
struct kind {
	const char *name, *variable;
	long long rate, burst, connections;
};

static void
compose_kind(struct hr_edge *e, const struct kind *k)
{
	if (k->rate > 0) {
		hr_buf_addf(&e->zones, "limit_req_zone %s zone=handrail_%s_rate:2m rate=%lldr/m;\n",
		    k->variable, k->name, k->rate);
		hr_buf_addf(&e->limits, "limit_req zone=handrail_%s_rate burst=%lld nodelay;\n",
		    k->name, k->burst);
	}
	if (k->connections > 0) {
		hr_buf_addf(&e->zones, "limit_conn_zone %s zone=handrail_%s_connections:2m;\n",
		    k->variable, k->name);
		hr_buf_addf(&e->limits, "limit_conn handrail_%s_connections %lld;\n", k->name,
		    k->connections);
		hr_buf_addf(&e->live_limits, "\tlimit_conn handrail_%s_connections %lld;\n",
		    k->name, k->connections);
	}
}

static void
compose_limits(struct hr_edge *e, const struct hr_settings *c)
{
	const struct kind kinds[] = {
	    {"address", "$binary_remote_addr", c->address_requests_per_minute, c->address_burst,
		c->address_connections},
	    /* requests without a key are not counted here: they end with 403 */
	    {"key", "$http_x_session_api_key", c->key_requests_per_minute, c->key_burst,
		c->key_connections},
	};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		compose_kind(e, &kinds[i]);
	hr_buf_adds(&e->limits, "limit_req_status 429;\nlimit_req_log_level notice;\n"
				"limit_conn_status 429;\nlimit_conn_log_level notice;\n");
	/* a location with its own limits does not inherit the server's */
	hr_buf_add(&e->action_limits, hr_buf_str(&e->live_limits), e->live_limits.len);
	/* nginx has one status for all limits of a location and does not report which was exceeded:
	 * 498, which HTTP does not define, leads to a worker that does */
	hr_buf_addf(
	    &e->action_limits, "\tlimit_conn_status %d;\n", e->action_limits.len > 0 ? 498 : 503);
}

/* Composes the check of the key. Asking a worker wakes two processes for each request; nginx itself
 * compares the first key's digest in a microsecond. All other keys go to a worker, even if there
 * are none: it may know newer ones. */
static void
compose_gate(struct hr_edge *e, const struct hr_settings *c, const struct hr_keys *keys)
{
	if (keys != NULL && keys->count == 0)
		return;
	hr_buf_adds(&e->gate, "\tauth_request /-/auth;\n");
	if (keys == NULL || !nginx_contains(c->nginx, DIGEST_DIRECTIVE))
		return;
	hr_edgekey_put(&e->known_key, keys->salt, keys->v[0].edge);
	hr_buf_adds(&e->known_key, "\tif ($secure_link) {\n\t\treturn 204;\n\t}\n");
}

int
hr_edge_compose(
    struct hr_edge *e, const struct hr_settings *c, const struct hr_keys *keys, struct hr_err *err)
{
	struct hr_buf *const parts[] = {&e->listen, &e->tls, &e->zones, &e->gate, &e->known_key,
	    &e->limits, &e->action_limits, &e->live_limits};
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		hr_buf_init(parts[i], PART_MAX);
	if (compose_tls(e, c, err) != 0)
		return -1;
	compose_gate(e, c, keys);
	compose_limits(e, c);
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (hr_buf_check(parts[i], err) != 0)
			return -1;
	}
	return 0;
}

void
hr_edge_done(struct hr_edge *e)
{
	hr_buf_done(&e->listen);
	hr_buf_done(&e->tls);
	hr_buf_done(&e->zones);
	hr_buf_done(&e->gate);
	hr_buf_done(&e->known_key);
	hr_buf_done(&e->limits);
	hr_buf_done(&e->action_limits);
	hr_buf_done(&e->live_limits);
}
