/* Puts the caller's tokens for git's providers into the rules of a box's network, as credentials
 * for the hosts of the provider that the rules allow: the box has placeholders. */
#include "config.h"

#include "host/sidecar/egress.h"

#include <string.h>

#include <json-c/json.h>

#include "host/config/rules.h"
#include "host/life/tokens.h"
#include "host/records/secret.h"
#include "proto/json.h"

static const char *const hosts[HR_PROVIDERS][4] = {
    [HR_GITHUB] = {"github.com", "api.github.com", "uploads.github.com"},
    [HR_GITLAB] = {"gitlab.com"},
    [HR_BITBUCKET] = {"bitbucket.org", "api.bitbucket.org"}};

/* Adds the hosts that the rules allow. */
static struct json_object *
allowed_hosts(const struct egress_policy *p, int provider, struct hr_err *err)
{
	struct json_object *list = json_object_new_array();
	struct egress_decision d;
	size_t i;

	for (i = 0; list != NULL && hosts[provider][i] != NULL; i++) {
		egress_policy_name(p, hosts[provider][i], 443, &d);
		if (d.verdict != EGRESS_DENY &&
		    hr_json_append(list, json_object_new_string(hosts[provider][i]), err) < 0)
			break;
	}
	return list;
}

int
hr_egress_add_tokens(const struct hr_backend_host *h, struct json_object *rules, struct hr_err *err)
{
	HR_CLEAN(hr_rules_clean) struct egress_policy *p = hr_rules_read(rules, h->environ, err);
	struct json_object *all = hr_json_typed_at(rules, "credentials", HR_PY_DICT), *list;
	const char *token;
	int i;

	if (p == NULL)
		return -1;
	for (i = 0; i < HR_PROVIDERS; i++) {
		token = hr_env_get(h->environ, hr_token_names[i]);
		if (token == NULL || strlen(token) < HR_SECRET_MIN ||
		    hr_json_at(all, hr_token_names[i]) != NULL)
			continue;
		list = allowed_hosts(p, i, err);
		if (hr_json_count(list) == 0) {
			json_object_put(list);
			continue;
		}
		if (all == NULL) {
			all = json_object_new_object();
			if (hr_json_set(rules, "credentials", all, err) < 0)
				return -1;
		}
		if (hr_json_set(all, hr_token_names[i],
			hr_json_object(NULL, "secret", json_object_new_string(hr_token_names[i]),
			    "hosts", list, NULL),
			err) < 0)
			return -1;
	}
	return 0;
}

const char *
hr_egress_token(const struct hr_backend_host *h, const char *secret)
{
	int i;

	for (i = 0; i < HR_PROVIDERS; i++)
		if (strcmp(secret, hr_token_names[i]) == 0)
			return hr_env_get(h->environ, secret);
	return NULL;
}
