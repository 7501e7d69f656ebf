/* Implements the rules of sandboxes' networks. A sandbox's rules are the member "network" of its
 * row's request. A key's limit is a note of the store, so that it can change. The rules of a
 * sandbox have the limit as their own member, which clients neither give nor see, so that the
 * broker of the sandbox holds it, too. */
#include "config.h"

#include "fleet/network.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/err.h"
#include "base/log.h"
#include "fleet/fleet_int.h"
#include "host/config/rules.h"
#include "proto/json.h"

#define REQUEST_MAX (4u << 20)
#define LIMIT "limit"

static void
note_name(int64_t key, char ret[40])
{
	(void)snprintf(ret, 40, "network-of-key-%" PRId64, key);
}

int
hr_fleet_network_limit_of(struct hr_fleet *f, int64_t key, char **ret_json, struct hr_err *err)
{
	char name[40];

	*ret_json = NULL;
	/* a store without that member belongs to an engine that never had a limit to enforce */
	if (f->store->ops->set_request == NULL)
		return 0;
	note_name(key, name);
	if (f->store->ops->note_get(f->store, name, ret_json, err) != 0)
		return -1;
	if (*ret_json != NULL && **ret_json == '\0') {
		free(*ret_json);
		*ret_json = NULL;
	}
	return 0;
}

static int
no_rules(struct hr_err *err)
{
	return hr_err_set(err, HR_E_INVAL,
	    "network: this service takes no rules from its clients: its back-end has none, or the "
	    "operator has set rules or networks for all sandboxes");
}

/* Reads rules that must be within the limit, NULL: none. */
static struct egress_policy *
read_within(const struct hr_fleet *f, struct json_object *rules, struct json_object *limit,
    struct hr_err *err)
{
	if (hr_json_at(rules, LIMIT) != NULL)
		return hr_err_set(err, HR_E_INVAL, "network: \"" LIMIT "\" is unknown here"), NULL;
	if (limit != NULL && hr_json_type(rules) == HR_PY_DICT &&
	    hr_json_set(rules, LIMIT, json_object_get(limit), err) != 0)
		return NULL;
	return hr_rules_read(rules, f->set.environ, err);
}

int
hr_fleet_network_may_limit(const struct hr_fleet *f, struct json_object *limit, struct hr_err *err)
{
	HR_PUT struct json_object *nothing = json_object_new_object();
	HR_CLEAN(hr_rules_clean) struct egress_policy *p = NULL;

	if (!f->engine->rules)
		return no_rules(err);
	if (nothing == NULL)
		return hr_err_nomem(err);
	p = read_within(f, nothing, limit, err);
	return p != NULL ? 0 : -1;
}

int
hr_fleet_network_limit(
    struct hr_fleet *f, int64_t key, struct json_object *limit, struct hr_err *err)
{
	HR_FREE char *json = NULL;
	char name[40];

	if (limit != NULL && (hr_fleet_network_may_limit(f, limit, err) != 0 ||
				 (json = hr_json_string(limit, EGRESS_POLICY_MAX, err)) == NULL))
		return -1;
	note_name(key, name);
	return f->store->ops->note_set(f->store, name, json != NULL ? json : "", err);
}

/* Checks a client's rules, and adds the limit to them. Without a limit they may lead to public
 * addresses, and use no secret: private addresses and secrets are the operator's. */
static enum hr_fleet_result
check(const struct hr_fleet *f, struct json_object *rules, struct json_object *limit,
    struct hr_err *err)
{
	HR_CLEAN(hr_rules_clean) struct egress_policy *p = NULL;

	if (!f->engine->rules) {
		(void)no_rules(err);
		return HR_FLEET_INVALID;
	}
	p = read_within(f, rules, limit, err);
	if (p == NULL)
		return err->code == HR_E_PERMISSION ? HR_FLEET_REFUSED : HR_FLEET_INVALID;
	if (limit != NULL || egress_policy_private(p) == NULL)
		return HR_FLEET_OK;
	(void)hr_err_set(err, HR_E_INVAL,
	    "network: private addresses, dnsServers and secrets belong to the settings of "
	    "this service: leave %.400s out",
	    egress_policy_private(p));
	return HR_FLEET_INVALID;
}

/* Reads the key's limit, NULL: none. Called with the lock. */
static int
read_limit(struct hr_fleet *f, int64_t key, struct json_object **ret, struct hr_err *err)
{
	HR_FREE char *json = NULL;

	*ret = NULL;
	if (hr_fleet_network_limit_of(f, key, &json, err) != 0)
		return -1;
	if (json != NULL && hr_json_decode(json, strlen(json), ret, NULL) != 0)
		return hr_err_set(err, HR_E_SYS, "the network of key %" PRId64 " is damaged", key);
	return 0;
}

enum hr_fleet_result
hr_fleet_network_check(
    struct hr_fleet *f, int64_t key, struct json_object *body, struct hr_err *err)
{
	HR_PUT struct json_object *limit = NULL;
	struct json_object *own = NULL;
	int r;

	(void)pthread_mutex_lock(&f->lock);
	r = read_limit(f, key, &limit, err);
	(void)pthread_mutex_unlock(&f->lock);
	if (r != 0)
		return HR_FLEET_BROKEN;
	if (hr_json_at(body, "network") == NULL && limit != NULL &&
	    (json_object_deep_copy(limit, &own, NULL) != 0 ||
		hr_json_set(body, "network", own, err) != 0)) {
		(void)hr_err_nomem(err);
		return HR_FLEET_BROKEN;
	}
	return hr_json_at(body, "network") != NULL
		   ? check(f, hr_json_at(body, "network"), limit, err)
		   : HR_FLEET_OK;
}

/* ---- a sandbox ---- */

struct json_object *
hr_fleet_network_of(const struct hr_fleet_row *row)
{
	HR_PUT struct json_object *request = NULL;
	struct json_object *rules = NULL;

	if (row->request != NULL &&
	    hr_json_decode(row->request, strlen(row->request), &request, NULL) == 0)
		rules = json_object_get(hr_json_at(request, "network"));
	if (rules != NULL)
		json_object_object_del(rules, LIMIT);
	return rules;
}

static int
each(const struct hr_fleet *f, struct json_object *rules, struct json_object *entries,
    hr_rules_change_fn *one, struct hr_err *err)
{
	size_t i;

	if (entries != NULL &&
	    (hr_json_type(entries) != HR_PY_LIST || !hr_json_all_strings(entries)))
		return hr_err_set(err, HR_E_INVAL, "allow and deny must be lists of strings");
	for (i = 0; i < hr_json_count(entries); i++)
		if (one(rules, f->set.environ, hr_json_text(hr_json_entry(entries, i)), err) < 0)
			return -1;
	return 0;
}

/* Makes the changed request of a row, and checks its rules. Called without the lock. The caller
 * frees *ret. */
static enum hr_fleet_result
changed(const struct hr_fleet *f, const struct hr_fleet_row *row,
    const struct hr_fleet_network_change *change, struct json_object *limit, char **ret,
    struct hr_err *err)
{
	HR_PUT struct json_object *request = NULL;
	struct json_object *rules, *given = NULL;
	enum hr_fleet_result r;

	if (hr_json_decode(row->request, strlen(row->request), &request, NULL) != 0) {
		(void)hr_err_set(err, HR_E_SYS, "the request of sandbox %s is damaged", row->id);
		return HR_FLEET_BROKEN;
	}
	rules = hr_json_at(request, "network");
	if (rules == NULL) {
		(void)hr_err_set(err, HR_E_INVAL,
		    "network: the sandbox was started without \"network\", so that its network can "
		    "have no rules: start one with them");
		return HR_FLEET_INVALID;
	}
	json_object_object_del(rules, LIMIT);
	if (change->network == NULL) {
		if (each(f, rules, change->allow, hr_rules_allow, err) < 0 ||
		    each(f, rules, change->deny, hr_rules_deny, err) < 0)
			return err->code == HR_E_INVAL ? HR_FLEET_INVALID : HR_FLEET_BROKEN;
	} else if (json_object_deep_copy(change->network, &given, NULL) != 0 ||
		   hr_json_set(request, "network", given, err) != 0) {
		(void)hr_err_nomem(err);
		return HR_FLEET_BROKEN;
	}
	r = check(f, hr_json_at(request, "network"), limit, err);
	if (r == HR_FLEET_OK && (*ret = hr_json_string(request, REQUEST_MAX, err)) == NULL)
		r = HR_FLEET_BROKEN;
	return r;
}

/* Puts the rules of a request in force. Called without the lock. */
static int
enforce(const struct hr_fleet *f, const struct hr_fleet_row *row, char *request, struct hr_err *err)
{
	struct hr_fleet_row with = *row;

	with.request = request;
	return f->engine->network(f->engine_self, &with, err);
}

/* Changes the rules in the sandbox and then in its row, so that a change without an answer may have
 * taken effect, and an answered one has in both. Called with the lock and the sandbox's turn. */
static enum hr_fleet_result
apply(struct hr_fleet *f, struct hr_fleet_row *row, const struct hr_fleet_network_change *change,
    struct hr_err *err)
{
	HR_PUT struct json_object *limit = NULL;
	HR_FREE char *request = NULL;
	enum hr_fleet_result r;
	struct hr_err why = {0};
	bool found = false;

	if (row->state != HR_FLEET_RUNNING && row->state != HR_FLEET_PAUSED)
		return HR_FLEET_CONFLICT;
	if (read_limit(f, row->key, &limit, err) != 0)
		return HR_FLEET_BROKEN;
	(void)pthread_mutex_unlock(&f->lock);
	r = changed(f, row, change, limit, &request, err);
	if (r == HR_FLEET_OK && enforce(f, row, request, err) != 0) {
		(void)hr_err_prefix(err, "network");
		r = HR_FLEET_INVALID;
	}
	(void)pthread_mutex_lock(&f->lock);
	if (r != HR_FLEET_OK)
		return r;
	if (f->store->ops->set_request(f->store, row, request, &found, err) != 0) {
		(void)pthread_mutex_unlock(&f->lock);
		if (enforce(f, row, row->request, &why) != 0)
			hr_log(HR_LOG_ERROR, "sandbox %s: its earlier rules: %.400s", row->id,
			    why.msg);
		(void)pthread_mutex_lock(&f->lock);
		return HR_FLEET_BROKEN;
	}
	if (!found)
		return HR_FLEET_NOT_FOUND;
	free(row->request);
	row->request = request;
	request = NULL;
	hr_log(HR_LOG_NOTICE, "sandbox %s: its network has new rules", row->id);
	return HR_FLEET_OK;
}

enum hr_fleet_result
hr_fleet_network_edit(struct hr_fleet *f, int64_t key, const char *id,
    const struct hr_fleet_network_change *change, struct hr_fleet_row *row, struct hr_err *err)
{
	enum hr_fleet_result r = HR_FLEET_OK;
	struct hr_fleet_job *turn = NULL;
	struct hr_fleet_place place;
	int found;

	memset(row, 0, sizeof(*row));
	(void)pthread_mutex_lock(&f->lock);
	found = f->store->ops->find(f->store, id, row, err);
	if (found == 1 && (row->key == 0 || (key != 0 && row->key != key)))
		found = 0;
	if (found == 1 && !f->engine->rules) {
		(void)no_rules(err);
		r = HR_FLEET_INVALID;
	} else if (found == 1 && !hr_fleet_place_take(f, &place, row->key)) {
		r = HR_FLEET_LATE;
	} else if (found == 1) {
		r = hr_fleet_job_enter(f, row->id, &turn, err);
		if (r == HR_FLEET_OK && (found = hr_fleet_look_again(f, row, err)) == 1)
			r = apply(f, row, change, err);
		if (turn != NULL)
			hr_fleet_job_leave(f, turn);
		hr_fleet_place_give(f, &place);
	}
	(void)pthread_mutex_unlock(&f->lock);
	return found == 1 ? r : found == 0 ? HR_FLEET_NOT_FOUND : HR_FLEET_BROKEN;
}

enum hr_fleet_result
hr_fleet_network_set(struct hr_fleet *f, int64_t key, const char *id, struct json_object *rules,
    struct hr_fleet_row *row, struct hr_err *err)
{
	return hr_fleet_network_edit(
	    f, key, id, &(struct hr_fleet_network_change){.network = rules}, row, err);
}
