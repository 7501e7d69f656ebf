/* A network object of any bytes, and questions about it: no crash, an error that says something,
 * and no decision against what always holds. The input ends with a NUL and a name, if it has one.
 */
#include "config.h"

#include <arpa/inet.h>
#include <json-c/json.h>
#include <string.h>

#include "egress/policy.h"
#include "fuzz.h"
#include "proto/json.h"

static int
see_rule(void *arg, const struct egress_http_rule *r)
{
	const char *const *at;

	++*(unsigned *)arg;
	must(r->spelled[0] != '\0' && (!r->deny || r->headers == NULL));
	for (at = r->methods; at != NULL && *at != NULL; at++)
		must(strpbrk(*at, " \r\n:") == NULL);
	for (at = r->paths; at != NULL && *at != NULL; at++)
		must(**at == '/' || **at == '*');
	for (at = r->headers; at != NULL && *at != NULL; at++)
		must(strpbrk(*at, "\r\n") == NULL && strstr(*at, ": ") != NULL);
	return 0;
}

static int
see_credential(void *arg, const struct egress_credential *c)
{
	(void)arg;
	must(strchr(c->variable, '=') == NULL && c->secret[0] != '\0');
	return 0;
}

static int
see_secret(void *arg, const char *secret)
{
	(void)arg;
	must(strpbrk(secret, "/.}$") == NULL);
	return 0;
}

static void
ask(const struct egress_policy *p, const char *name)
{
	static const int ports[] = {22, 80, 443, 8080};
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct egress_decision d, request;
	unsigned rules;
	size_t i;

	for (i = 0; i < sizeof(ports) / sizeof(*ports); i++) {
		rules = 0;
		egress_policy_name(p, name, ports[i], &d);
		egress_policy_request(p, name, ports[i], "GET", name, &request);
		egress_policy_http(p, name, ports[i], see_rule, see_credential, &rules);
		must((d.verdict == EGRESS_INSPECT) == (rules > 0));
		must(d.verdict != EGRESS_DENY || request.verdict == EGRESS_DENY);
		must(request.verdict != EGRESS_INSPECT && d.rule[0] != '\0');
		in.sin_addr.s_addr = htonl(0x5DB8D822u + (unsigned)i);
		egress_policy_address(p, in.sin_addr, ports[i], &d);
		must(d.verdict != EGRESS_INSPECT);
		(void)egress_policy_result(p, (struct sockaddr *)&in);
	}
}

/* A policy that is within the empty one allows nothing; and none is within it that does. */
static void
compare(const struct egress_policy *p, const char *name)
{
	HR_PUT struct json_object *o = json_object_new_object();
	struct hr_err err = {0};
	struct egress_policy *none = egress_policy_read(o, NULL, &err);
	int ports[EGRESS_PORTS_MAX + 2];
	size_t i, n = egress_policy_ports(p, ports);
	struct egress_decision d;

	must(none != NULL);
	if (egress_policy_within(p, none, &err) < 0)
		must(err.msg[0] != '\0');
	else
		for (i = 0; i < n; i++) {
			egress_policy_request(p, name, ports[i], "GET", "/", &d);
			must(d.verdict == EGRESS_DENY);
		}
	must(egress_policy_within(none, p, &err) == 0);
	(void)egress_policy_within(p, p, &err);
	egress_policy_free(none);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size > 0 ? (const uint8_t *)memchr(data, 0, size) : NULL;
	size_t len = end != NULL ? (size_t)(end - data) : size;
	HR_PUT struct json_object *o = NULL;
	struct egress_policy *p;
	struct hr_err err = {0};
	int ports[EGRESS_PORTS_MAX + 2];
	char name[EGRESS_NAME_MAX + 1];
	HR_BUF(b, 1 << 24);

	if (hr_json_decode(data, len, &o, NULL) < 0)
		return 0;
	p = egress_policy_read(o, NULL, &err);
	must(p != NULL ? err.code == HR_OK : err.code != HR_OK && err.msg[0] != '\0');
	if (p == NULL)
		return 0;
	ask(p, "api.github.com");
	ask(p, "a.example.com");
	compare(p, "a.example.com");
	if (end != NULL && egress_name((const char *)end + 1, size - len - 1, name))
		ask(p, name);
	must(egress_policy_ports(p, ports) >= 2 && ports[0] == 80);
	egress_policy_credentials(p, see_credential, NULL);
	egress_policy_secrets(p, see_secret, NULL);
	egress_policy_explain(p, &b);
	must(b.len > 0);
	egress_policy_free(p);
	return 0;
}
