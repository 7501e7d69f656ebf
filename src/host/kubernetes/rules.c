/* Makes the rules of a sandbox's network a NetworkPolicy, which is about addresses and ports: any
 * other rule is refused. The cluster's network plugin must enforce policies, and nothing in the API
 * shows whether it does. */
#include "config.h"

#include "host/kubernetes/rules.h"

#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "base/err.h"
#include "egress/policy_int.h"
#include "host/config/rules.h"
#include "host/config/settings.h"
#include "proto/json.h"

/* The cluster's resolver, as kubeadm and the services of clouds name it. */
static const char dns[] =
    "{\"to\":[{\"namespaceSelector\":{\"matchLabels\":{\"kubernetes.io/metadata.name\":"
    "\"kube-system\"}},\"podSelector\":{\"matchLabels\":{\"k8s-app\":\"kube-dns\"}}}],"
    "\"ports\":[{\"protocol\":\"UDP\",\"port\":53},{\"protocol\":\"TCP\",\"port\":53}]}";

bool
hr_kubernetes_has_rules(const struct hr_config *c)
{
	const char *mode = hr_config_text(c, "sandbox.security.network_mode");

	return mode != NULL && strcmp(mode, "egress") == 0;
}

/* Reads an entry that egress_policy_read() has accepted. Returns false if it is a name or IPv6. */
static bool
read_entry(const char *text, struct policy_target *e)
{
	return text != NULL && policy_target_read(text, e, NULL) == 0 && e->range.version == 4;
}

/* ---- checks ---- */

static int
refuse(struct hr_err *err, const char *what)
{
	return hr_err_set(err, HR_E_UNSUPPORTED,
	    "sandbox.network: a NetworkPolicy of Kubernetes has addresses, ranges and ports only, "
	    "and "
	    "cannot enforce %s: use the back-end box, or leave it out",
	    what);
}

static int
check_entries(struct json_object *list, bool ports, struct hr_err *err)
{
	struct policy_target e;
	char what[320];
	size_t i;

	for (i = 0; i < hr_json_count(list); i++) {
		const char *text = hr_json_text(hr_json_entry(list, i));

		if (text == NULL || (read_entry(text, &e) && (ports || e.port == 0)))
			continue;
		(void)snprintf(what, sizeof(what), "\"%.255s\" in %s", text,
		    ports ? "allowOut, which is no IPv4 address" : "denyOut");
		return refuse(err, what);
	}
	return 0;
}

int
hr_kubernetes_check_rules(const struct hr_backend_host *h, struct hr_err *err)
{
	static const char *const can[] = {
	    "allowOut", "denyOut", "allowInternetAccess", "allow_internet_access", "ports", NULL};
	const char *policy = hr_config_text(h->config, "kubernetes.network_policy");
	struct json_object *rules = hr_config_value(h->config, "sandbox.network");
	HR_CLEAN(hr_rules_clean) struct egress_policy *p = NULL;
	char what[100];

	if (!hr_kubernetes_has_rules(h->config))
		return rules == NULL ? 0
				     : hr_err_set(err, HR_E_INVAL,
					   "sandbox.network has rules, and the network of the "
					   "sandbox is the cluster's: use --network egress, or "
					   "unset sandbox.network");
	if (policy != NULL && *policy != '\0' && strcmp(policy, "none") != 0)
		return hr_err_set(err, HR_E_INVAL,
		    "sandbox.network makes a NetworkPolicy, and kubernetes.network_policy is %s: "
		    "unset one",
		    policy);
	if (!hr_config_bool(h->config, "kubernetes.network_policy_enforced"))
		return hr_err_set(err, HR_E_UNSUPPORTED,
		    "a cluster whose network plugin does not enforce NetworkPolicy ignores the "
		    "rules of "
		    "sandbox.network, and does not report that: if yours enforces them, set "
		    "kubernetes.network_policy_enforced to true");
	if (rules == NULL)
		return 0;
	json_object_object_foreach(rules, name, value)
	{
		if (hr_is_one_of(name, can) || value == NULL)
			continue;
		(void)snprintf(what, sizeof(what), "\"%.60s\"", name);
		return refuse(err, what);
	}
	p = hr_rules_read(rules, h->environ, err);
	return p != NULL && check_entries(hr_json_at(rules, "allowOut"), true, err) == 0
		   ? check_entries(hr_json_at(rules, "denyOut"), false, err)
		   : -1;
}

/* ---- the policy ---- */

/* Writes the ports of an entry; those of entries without one are 80 and 443 unless `list` is there.
 */
static void
put_ports(struct hr_buf *b, int port, struct json_object *list)
{
	size_t i, n = hr_json_count(list);

	hr_buf_adds(b, "\"ports\":[");
	if (port != 0)
		hr_buf_addf(b, "{\"protocol\":\"TCP\",\"port\":%d}", port);
	else if (n == 0)
		hr_buf_adds(
		    b, "{\"protocol\":\"TCP\",\"port\":80},{\"protocol\":\"TCP\",\"port\":443}");
	for (i = 0; port == 0 && i < n; i++)
		hr_buf_addf(b, "%s{\"protocol\":\"TCP\",\"port\":%lld}", i > 0 ? "," : "",
		    (long long)hr_json_int(hr_json_entry(list, i)));
	hr_buf_addc(b, ']');
}

static void
put_range(struct hr_buf *b, const char *before, const struct policy_range *r)
{
	hr_buf_addf(
	    b, "%s\"%u.%u.%u.%u/%u\"", before, r->a[0], r->a[1], r->a[2], r->a[3], r->length);
}

/* Writes a rule for a range. A public one does not lead to its private parts, nor to those that
 * `deny` lists. */
static void
put_rule(struct hr_buf *b, const struct policy_target *e, struct json_object *deny,
    struct json_object *ports)
{
	const char *comma = "";
	const struct policy_range *special;
	struct policy_target part;
	size_t i;

	put_range(b, "{\"to\":[{\"ipBlock\":{\"cidr\":", &e->range);
	hr_buf_adds(b, ",\"except\":[");
	for (i = 0; !policy_is_private(&e->range) && (special = policy_special(i)) != NULL; i++) {
		if (!policy_contains(&e->range, *special))
			continue;
		put_range(b, comma, special);
		comma = ",";
	}
	for (i = 0; i < hr_json_count(deny); i++) {
		if (!read_entry(hr_json_text(hr_json_entry(deny, i)), &part) ||
		    !policy_contains(&e->range, part.range))
			continue;
		put_range(b, comma, &part.range);
		comma = ",";
	}
	hr_buf_adds(b, "]}}],");
	put_ports(b, e->port, ports);
	hr_buf_addc(b, '}');
}

static bool
denies_all(struct json_object *deny)
{
	struct policy_target e;
	size_t i;

	for (i = 0; i < hr_json_count(deny); i++)
		if (read_entry(hr_json_text(hr_json_entry(deny, i)), &e) && e.range.length == 0)
			return true;
	return false;
}

void
hr_kubernetes_put_rules(const struct hr_config *c, struct hr_buf *b)
{
	struct json_object *rules = hr_config_value(c, "sandbox.network");
	struct json_object *allow = hr_json_at(rules, "allowOut"),
			   *deny = hr_json_at(rules, "denyOut");
	struct json_object *ports = hr_json_at(rules, "ports");
	const struct policy_target all = {.range = {.version = 4}};
	const char *comma = "";
	struct policy_target e;
	size_t i;

	/* allowOut beats denyOut */
	for (i = 0; i < hr_json_count(allow); i++) {
		if (!read_entry(hr_json_text(hr_json_entry(allow, i)), &e))
			continue; /* the check before the start has refused such an entry */
		hr_buf_adds(b, comma);
		put_rule(b, &e, NULL, ports);
		comma = ",";
	}
	if ((!hr_json_true_at(rules, "allowInternetAccess") &&
		!hr_json_true_at(rules, "allow_internet_access")) ||
	    denies_all(deny))
		return;
	hr_buf_adds(b, comma);
	put_rule(b, &all, deny, ports);
	hr_buf_addf(b, ",%s", dns);
}
