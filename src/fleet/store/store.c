/* Holds code that all stores share: names, keys, the log. */
#include "config.h"

#include "fleet/store/store.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "base/log.h"
#include "base/random.h"

#define KEY_DIGITS 48
#define KEY_PREFIX "hrk_"

_Static_assert(HR_FLEET_KEY_SUM == SHA256_DIGEST_LENGTH, "a sum is a SHA-256");

const char *
hr_fleet_state_name(enum hr_fleet_state s)
{
	static const char *const names[HR_FLEET_STATES] = {"starting", "running", "pausing",
	    "paused", "resuming", "stopping", "stopped", "died", "warming", "warm"};

	return names[s];
}

void
hr_fleet_row_done(struct hr_fleet_row *r)
{
	free(r->request);
	memset(r, 0, sizeof(*r));
}

void
hr_fleet_row_place(struct hr_fleet_row *r, const struct hr_fleet_row *at)
{
	memcpy(r->at, at->at, sizeof(r->at));
	memcpy(r->server_key, at->server_key, sizeof(r->server_key));
	r->vscode_port = at->vscode_port;
	memcpy(r->app_ports, at->app_ports, sizeof(r->app_ports));
}

void
hr_store_close(struct hr_store *s)
{
	if (s != NULL)
		s->ops->close(s);
}

int
hr_fleet_key_text(char text[64], struct hr_err *err)
{
	memcpy(text, KEY_PREFIX, sizeof(KEY_PREFIX));
	return hr_random_hex(text + strlen(KEY_PREFIX), KEY_DIGITS, err) < 0 ? -1 : 0;
}

void
hr_fleet_key_sum(const char *text, unsigned char sum[HR_FLEET_KEY_SUM])
{
	(void)SHA256((const unsigned char *)text, strlen(text), sum);
}

bool
hr_fleet_key_valid(const struct hr_fleet_key *k)
{
	return !k->revoked && (k->expires == 0 || k->expires > (int64_t)time(NULL));
}

bool
hr_fleet_key_good(const struct hr_fleet_key *k, const unsigned char kept[HR_FLEET_KEY_SUM],
    const unsigned char sum[HR_FLEET_KEY_SUM])
{
	return CRYPTO_memcmp(kept, sum, HR_FLEET_KEY_SUM) == 0 && hr_fleet_key_valid(k);
}

int
hr_fleet_session_key(char ret[HR_FLEET_SESSION_KEY], struct hr_err *err)
{
	return hr_random_hex(ret, HR_FLEET_SESSION_KEY - 1, err);
}

void
hr_fleet_log_move(const char *id, enum hr_fleet_state to, const char *reason)
{
	hr_log(HR_LOG_NOTICE, "sandbox %s: %s%s%s", id, hr_fleet_state_name(to),
	    reason != NULL && *reason != '\0' ? ": " : "", reason != NULL ? reason : "");
}
