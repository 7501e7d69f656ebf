/* The calls of filesystem.Filesystem that watch: streams of events, and watchers that keep events
 * until a client asks for them. */
#include "config.h"

#include "plugins/envd/rpc.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/plain.h"
#include "base/random.h"
#include "base/text/quote.h"
#include "e2b/entry.h"
#include "e2b/path.h"
#include "plugins/envd/watch.h"
#include "proto/json.h"

#define KEPT_MAX (4u << 20)    /* bytes of events that no client has taken */
#define PENDING_MAX (4u << 20) /* bytes of a stream that its client has not read */
#define ID_DIGITS 20
#define KEEPALIVE "{\"keepalive\":{}}"

/* A client's watcher: one that is asked, or a stream. */
struct kept {
	LIST_ENTRY(kept) entry;
	char id[1 + ID_DIGITS + 1]; /* "": a stream */
	struct envd_watcher *watcher;
	struct envd_call *call; /* the stream; NULL: none */
	bool entries;           /* events have EntryInfo */
	bool lost;              /* events were lost since the client has asked */
	struct hr_buf events;   /* separated by commas */
};

static LIST_HEAD(, kept) all = LIST_HEAD_INITIALIZER(all);

static void
kept_free(struct kept *k)
{
	if (k->watcher != NULL)
		envd_watcher_close(k->watcher);
	hr_buf_done(&k->events);
	LIST_REMOVE(k, entry);
	free(k);
}

static int
fail_lost(struct hr_connect_error *e)
{
	return hr_connect_fail(e, HR_CONNECT_RESOURCE_EXHAUSTED,
	    "events were lost, since more came than could be kept: look at the directory again");
}

/* ---- events ---- */

static void
put_entry(struct hr_buf *b, const char *path)
{
	HR_CLOSE int fd = hr_plain_open(AT_FDCWD, path, O_PATH | O_NOFOLLOW);
	HR_CLOSE int target = -1;
	size_t before = b->len;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	if (S_ISLNK(st.st_mode))
		target = hr_plain_open(AT_FDCWD, path, O_PATH);
	hr_buf_adds(b, ",\"entry\":");
	if (hr_e2b_entry_put(b, path, fd, target) < 0)
		b->len = before;
}

static void
put_event(struct kept *k, struct hr_buf *b, const char *name, const char *path, const char *type)
{
	hr_buf_adds(b, "{\"name\":");
	hr_quote_json(b, name, strlen(name));
	hr_buf_addf(b, ",\"type\":\"EVENT_TYPE_%s\"", type);
	if (k->entries && strcmp(type, "REMOVE") != 0 && strcmp(type, "RENAME") != 0)
		put_entry(b, path);
	hr_buf_addc(b, '}');
}

static void
on_event(void *arg, const char *name, const char *path, const char *type)
{
	HR_BUF(text, KEPT_MAX);
	struct kept *k = arg;

	if (k->lost)
		return;
	if (type == NULL) {
		k->lost = true;
		if (k->call != NULL) /* stream_drained() follows */
			envd_call_send(k->call, hr_span_of(KEEPALIVE));
	} else if (k->call == NULL) {
		put_event(k, &text, name, path, type);
		if (k->events.len > 0)
			hr_buf_addc(&k->events, ',');
		hr_buf_add(&k->events, hr_buf_str(&text), text.len);
		k->lost = k->events.fail != HR_OK || text.fail != HR_OK;
	} else if (envd_call_pending(k->call) > PENDING_MAX) {
		k->lost = true;
	} else {
		hr_buf_adds(&text, "{\"filesystem\":");
		put_event(k, &text, name, path, type);
		hr_buf_addc(&text, '}');
		envd_call_send(k->call, hr_span_of_buf(&text));
	}
}

/* ---- calls ---- */

/* Starts to watch the path of the call's message. Returns NULL after the call was ended. */
static struct kept *
open_watcher(struct envd_call *c, struct envd_call *stream)
{
	const struct envd_watch_options o = {
	    .recursive = hr_json_true_at(c->in, "recursive"),
	    .network = hr_json_true_at(c->in, "allowNetworkMounts"),
	};
	struct hr_connect_error e = {.code = HR_CONNECT_OK};
	struct kept *k = calloc(1, sizeof(*k));
	struct hr_err err = {0};
	HR_BUF(path, HR_E2B_PATH_MAX);
	HR_BUF(why, HR_E2B_PATH_MAX);

	if (k != NULL) {
		hr_buf_init(&k->events, KEPT_MAX);
		LIST_INSERT_HEAD(&all, k, entry);
		k->entries = hr_json_true_at(c->in, "includeEntry");
		k->id[0] = 'w';
	}
	if (c->envd->watchers == NULL)
		c->envd->watchers = envd_watchers_new(c->envd->loop, &err);
	if (k == NULL)
		(void)hr_connect_fail(&e, HR_CONNECT_INTERNAL, "out of memory");
	else if (c->envd->watchers == NULL || hr_random_hex(k->id + 1, ID_DIGITS, &err) < 0)
		(void)hr_connect_fail(
		    &e, HR_CONNECT_INTERNAL, "error creating watcher: %s", err.msg);
	else if (hr_e2b_path(&path, hr_json_span_or(c->in, "path", ""), &c->who,
		     c->envd->setup.directory, &why) < 0)
		(void)hr_connect_fail(&e, HR_CONNECT_INVALID_ARGUMENT, "%s", hr_buf_str(&why));
	else
		k->watcher =
		    envd_watcher_open(c->envd->watchers, hr_buf_str(&path), &o, on_event, k, &e);
	if (k != NULL && k->watcher != NULL) {
		k->call = stream;
		return k;
	}
	if (k != NULL)
		kept_free(k);
	envd_call_end(c, &e);
	return NULL;
}

static void
stream_over(void *arg)
{
	struct kept *k = arg;
	struct envd_call *c = k->call;
	struct hr_connect_error e;

	kept_free(k);
	(void)hr_connect_fail(&e, HR_CONNECT_DEADLINE_EXCEEDED, "context deadline exceeded");
	envd_call_end(c, c->late ? &e : NULL);
}

/* Ends a stream whose client was too slow, once that has read the rest. */
static void
stream_drained(void *arg)
{
	struct kept *k = arg;
	struct envd_call *c = k->call;
	struct hr_connect_error e;

	if (!k->lost)
		return;
	kept_free(k);
	(void)fail_lost(&e);
	envd_call_end(c, &e);
}

static void
watch_dir(struct envd_call *c)
{
	static const struct envd_events events = {.drained = stream_drained, .over = stream_over};
	struct kept *k = open_watcher(c, c);

	if (k == NULL)
		return;
	k->id[0] = '\0';
	envd_call_wait(c, &events, k);
	envd_call_send(c, hr_span_of("{\"start\":{}}"));
}

static void
create_watcher(struct envd_call *c)
{
	const struct kept *k = open_watcher(c, NULL);
	HR_BUF(text, 128);

	if (k == NULL)
		return;
	hr_buf_addf(&text, "{\"watcherId\":\"%s\"}", k->id);
	envd_call_answer(c, hr_span_of_buf(&text));
}

/* Returns NULL after the call was ended. */
static struct kept *
find(struct envd_call *c)
{
	struct hr_span id = hr_json_span_or(c->in, "watcherId", "");
	struct hr_connect_error e;
	struct kept *k;

	LIST_FOREACH(k, &all, entry)
	if (k->id[0] != '\0' && hr_span_equal(hr_span_of(k->id), id))
		return k;
	(void)hr_connect_fail(
	    &e, HR_CONNECT_NOT_FOUND, "watcher with id %.*s not found", (int)id.len, id.p);
	envd_call_end(c, &e);
	return NULL;
}

static void
get_events(struct envd_call *c)
{
	struct kept *k = find(c);
	struct hr_connect_error e;
	HR_BUF(text, KEPT_MAX + 64);

	if (k == NULL)
		return;
	envd_watchers_drain(c->envd->watchers);
	if (k->lost) {
		(void)fail_lost(&e);
		envd_call_end(c, &e);
	} else {
		if (k->events.len > 0)
			hr_buf_addf(&text, "{\"events\":[%s]}", hr_buf_str(&k->events));
		else
			hr_buf_adds(&text, "{}");
		envd_call_answer(c, hr_span_of_buf(&text));
	}
	k->lost = false;
	hr_buf_reset(&k->events);
}

static void
remove_watcher(struct envd_call *c)
{
	struct kept *k = find(c);

	if (k == NULL)
		return;
	kept_free(k);
	envd_call_answer(c, hr_span_of("{}"));
}

#define STRING(id)                                                                                 \
	{                                                                                          \
		.name = id, .type = HR_MESSAGE_STRING                                              \
	}
#define BOOL(id)                                                                                   \
	{                                                                                          \
		.name = id, .type = HR_MESSAGE_BOOL                                                \
	}

static const struct hr_message_field watch_fields[] = {STRING("path"), BOOL("recursive"),
    BOOL("includeEntry"), BOOL("allowNetworkMounts"), {.name = NULL}};
static const struct hr_message_field id_fields[] = {STRING("watcherId"), {.name = NULL}};
static const struct hr_message dir_message = {"filesystem.WatchDirRequest", watch_fields},
			       create_message = {"filesystem.CreateWatcherRequest", watch_fields},
			       events_message = {"filesystem.GetWatcherEventsRequest", id_fields},
			       remove_message = {"filesystem.RemoveWatcherRequest", id_fields};

#define PATH(name) "/filesystem.Filesystem/" name
const struct envd_method envd_watch_methods[] = {
    {PATH("WatchDir"), ENVD_STREAM, &dir_message, watch_dir, KEEPALIVE},
    {PATH("CreateWatcher"), ENVD_UNARY, &create_message, create_watcher, NULL},
    {PATH("GetWatcherEvents"), ENVD_UNARY, &events_message, get_events, NULL},
    {PATH("RemoveWatcher"), ENVD_UNARY, &remove_message, remove_watcher, NULL},
    {.path = NULL},
};
