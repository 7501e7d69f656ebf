/* Recognises a repeated request. nginx continues an action whose client has left, and reads its
 * answer. So the worker asks the kernel whether the client's connection still exists. If it cannot
 * know the connection (a proxy's address, a Unix socket, a kernel without this query), nginx's view
 * stands. */
#include "config.h"

#include "worker/repeat.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "worker/request/key.h"
#include "worker/worker.h"

static uint64_t
mix(uint64_t h, const char *text)
{
	return hr_hash(h, text, strlen(text) + 1);
}

/* Returns the client's digest. It trusts the address that a client states, which only separates
 * that client's own requests. */
static uint64_t
client_of(const struct hr_worker *w, const struct hr_request *r)
{
	uint64_t h = HR_HASH;

	if (r->forwarded_for[0] != '\0')
		h = mix(h, r->forwarded_for);
	else
		h = hr_hash(h, w->peer.remote, sizeof(w->peer.remote));
	h = mix(h, r->user_agent);
	h = mix(h, r->session_key);
	return mix(h, r->authorization);
}

static uint64_t
digest_of(
    const struct hr_worker *w, const struct hr_request *r, const char *session, uint64_t client)
{
	uint64_t h = mix(client, session != NULL ? session : "");

	h = mix(h, r->uri);
	h = hr_hash(h, hr_buf_str(&w->body), w->body.len);
	h = hr_hash(h, &w->body.len, sizeof(w->body.len));
	return h != 0 ? h : 1;
}

static void
become(struct hr_buf *key, const char id[HR_UNREAD_ID])
{
	hr_buf_reset(key);
	hr_buf_addf(key, "%c:%.*s", HR_KEY_OF_NGINX, HR_UNREAD_ID, id);
}

/* Returns true if `client`, whose action is in the place `h`, has left without an answer. A client
 * with an answer may have closed its connection before the worker frees the place. */
static bool
is_left(struct hr_worker *w, const struct hr_unread_hold *h, struct hr_peer *client)
{
	return !hr_unread_is_answering(h) && hr_peer_look(&w->peers, client) == 0;
}

/* Takes over the place of the first equal action whose client has left, or that nginx itself sends
 * again, and copies that action's id to *mine. Reads a place again if it changes meanwhile. The
 * kernel may take long to close the connections of a killed process, so a client that seems present
 * is checked again after its action. *waited is the word of the last place whose action this
 * function has awaited. Returns false if there is no place to take over. */
static bool
join(struct hr_worker *w, struct hr_unread_action *mine, uint64_t *waited)
{
	struct hr_unread *u = &w->board->unread;
	struct hr_unread_action its, next;
	size_t i = 0;

	while (hr_unread_find(u, mine->client, hr_now_ms(), &i, &its, &w->unread)) {
		if (its.digest != mine->digest) {
			i++;
			continue;
		}
		if (memcmp(its.id, mine->id, HR_UNREAD_ID) != 0 &&
		    !is_left(w, &w->unread, &its.peer)) {
			if (*waited == w->unread.word) {
				i++; /* that worker is dead; nginx sends the action again */
				continue;
			}
			*waited = w->unread.word;
			hr_unread_wait(w->board_fd, &w->unread);
			if (hr_peer_look(&w->peers, &mine->peer) == 0)
				return false; /* this request's client has left */
			continue;
		}
		next = *mine;
		memcpy(next.id, its.id, HR_UNREAD_ID);
		if (!hr_unread_take(u, w->board_fd, &w->unread, &next))
			continue;
		if (memcmp(its.id, mine->id, HR_UNREAD_ID) != 0)
			hr_log(HR_LOG_INFO,
			    "request %.*s was repeated as %.*s, which gets the first one's answer",
			    HR_UNREAD_ID, its.id, HR_UNREAD_ID, mine->id);
		*mine = next;
		return true;
	}
	return false;
}

bool
hr_repeat_enter(struct hr_worker *w, const struct hr_request *r, const char *session,
    struct hr_buf *key, struct hr_answer *ret)
{
	struct hr_unread_action mine = {.pid = getpid()};
	uint64_t waited = 0;

	if (w->unread.place != NULL) { /* the first plugin did not take the action */
		become(key, w->repeat_id);
		return true;
	}
	if (key->len == 0 || key->p[0] != HR_KEY_OF_NGINX ||
	    strlen(r->request_id) != HR_UNREAD_ID || !hr_peer_parse(r->connection, &mine.peer) ||
	    hr_peer_look(&w->peers, &mine.peer) != 1)
		return true;
	memcpy(mine.id, r->request_id, HR_UNREAD_ID);
	w->peer = mine.peer;
	mine.client = client_of(w, r);
	mine.digest = digest_of(w, r, session, mine.client);
	if (join(w, &mine, &waited)) {
		become(key, mine.id);
	} else {
		w->unread = (struct hr_unread_hold){NULL, 0};
		/* the client may have sent the action again, and the repetition may be finished */
		if (waited != 0 && hr_peer_look(&w->peers, &w->peer) == 0)
			return hr_answer_later(
			    ret, "The client left before the action began; nothing was done.");
		(void)hr_unread_add(&w->board->unread, w->board_fd, &mine, hr_now_ms(), &w->unread);
	}
	memcpy(w->repeat_id, mine.id, HR_UNREAD_ID);
	return true;
}

void
hr_repeat_answering(struct hr_worker *w)
{
	w->cut = w->unread.place != NULL && hr_peer_look(&w->peers, &w->peer) == 0;
	if (!w->cut)
		hr_unread_answering(&w->unread);
}

bool
hr_repeat_sent(struct hr_worker *w, bool sent)
{
	bool was_read = sent && !w->cut;

	/* another worker that now has the place needs the answer in the journal */
	if (was_read && w->unread.place != NULL)
		was_read = hr_unread_free(w->board_fd, &w->unread);
	else if (!was_read)
		hr_unread_keep(w->board_fd, &w->unread, hr_now_ms());
	w->unread = (struct hr_unread_hold){NULL, 0};
	w->cut = false;
	return was_read;
}
