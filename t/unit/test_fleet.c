/* fleet: states, quotas, recovery, idleness and routes with an engine that is made up: it holds a
 * call back for as long as the test wants, and keeps what it "made" beyond a "crash". A crash is a
 * process that ends without a word (a child of this one). */
#include "config.h"

#include <arpa/inet.h>
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>

#include "fleet/api/api.h"
#include "fleet/copies.h"
#include "fleet/fleet_int.h"
#include "fleet/network.h"
#include "fleet/request.h"
#include "fleet/store/sqlite.h"
#include "fleet/store/sqlite_int.h"
#include "base/err.h"
#include "proto/json.h"

/* the headers of the E2B API, which a request of another API has not */
#define ABSENT_E2B                                                                                 \
	.e2b_id = "", .e2b_port = "", .access_token = "", .traffic_token = "",                     \
	.idempotency_key = "", .authorization = "", .origin = ""
#define MADE_MAX 64
#define SHAPE "a shape"

/* In memory that child processes share. */
struct made {
	char id[HR_FLEET_ID];
	char state[32];
	char request[64]; /* it was claimed with */
};
static struct world {
	struct made made[MADE_MAX];
	int starts, stops, pauses, resumes;
	int hold;       /* calls of start() wait for a byte */
	int fail_start; /* so many */
	int claims, fail_claim;
	int clears;
	int fail_state; /* so many */
	int hold_state; /* state() that is to fail so many times waits for a byte */
	int fail_pause; /* so many */
	enum hr_fleet_pause how;
	int fail_stop;  /* so many */
	const char *at; /* addresses; NULL: "127.0.0.1:1" */
	int networks;   /* calls of network() */
	int hold_network, fail_network;
	char rules[256]; /* the last request that network() was given */
} * world;
static int gate[2];
static pthread_mutex_t world_lock = PTHREAD_MUTEX_INITIALIZER; /* two jobs are done at a time */

/* With the lock. */
static struct made *
look_up(const char *id)
{
	size_t i;

	for (i = 0; i < MADE_MAX; i++)
		if (strcmp(world->made[i].id, id) == 0)
			return &world->made[i];
	return NULL;
}

static struct made *
find_made(const char *id)
{
	struct made *m;

	(void)pthread_mutex_lock(&world_lock);
	m = look_up(id);
	(void)pthread_mutex_unlock(&world_lock);
	return m;
}

static int
fake_start(void *self, struct hr_fleet_row *row, struct hr_err *err)
{
	struct made *m;
	bool fails;
	char c;

	(void)self;
	__atomic_add_fetch(&world->starts, 1, __ATOMIC_SEQ_CST);
	if (world->hold)
		ck_assert_int_eq(read(gate[0], &c, 1), 1);
	(void)pthread_mutex_lock(&world_lock);
	fails = world->fail_start > 0;
	world->fail_start -= fails;
	if (!fails) {
		m = look_up(row->id);
		if (m == NULL)
			m = look_up("");
		ck_assert_ptr_nonnull(m);
		(void)snprintf(m->state, sizeof(m->state), "running");
		(void)snprintf(m->id, sizeof(m->id), "%s", row->id);
	}
	(void)pthread_mutex_unlock(&world_lock);
	if (fails)
		return hr_err_set(err, HR_E_RUNTIME, "no image");
	(void)snprintf(
	    row->at, sizeof(row->at), "%s", world->at != NULL ? world->at : "127.0.0.1:1");
	(void)snprintf(row->server_key, sizeof(row->server_key), "inner");
	row->app_ports[0] = 7001;
	return 0;
}

static int
fake_claim(void *self, struct hr_fleet_row *row, struct hr_err *err)
{
	struct made *m = find_made(row->id);

	(void)self;
	if (world->fail_claim || m == NULL)
		return hr_err_set(err, HR_E_RUNTIME, "it does not answer");
	world->claims++;
	(void)snprintf(m->request, sizeof(m->request), "%s", row->request);
	return 0;
}

static int
set_state(const char *id, const char *state, int *counter)
{
	struct made *m = find_made(id);

	__atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST);
	if (m != NULL)
		(void)snprintf(m->state, sizeof(m->state), "%s", state);
	return 0;
}

static int
fake_pause(void *self, const char *id, enum hr_fleet_pause how, struct hr_err *err)
{
	(void)self;
	world->how = how;
	if (__atomic_load_n(&world->fail_pause, __ATOMIC_SEQ_CST) > 0) {
		__atomic_sub_fetch(&world->fail_pause, 1, __ATOMIC_SEQ_CST);
		return hr_err_set(err, HR_E_RUNTIME, "it does not run");
	}
	return set_state(id, "paused", &world->pauses);
}

static int
fake_resume(void *self, struct hr_fleet_row *row, struct hr_err *err)
{
	(void)self;
	(void)err;
	return set_state(row->id, "running", &world->resumes);
}

static int
fake_stop(void *self, const char *id, struct hr_err *err)
{
	struct made *m;

	(void)self;
	__atomic_add_fetch(&world->stops, 1, __ATOMIC_SEQ_CST);
	(void)pthread_mutex_lock(&world_lock);
	if (world->fail_stop > 0) {
		world->fail_stop--;
		(void)pthread_mutex_unlock(&world_lock);
		return hr_err_set(err, HR_E_RUNTIME, "it cannot be removed");
	}
	m = look_up(id);
	if (m != NULL)
		memset(m, 0, sizeof(*m));
	(void)pthread_mutex_unlock(&world_lock);
	return 0;
}

static int
fake_state(void *self, const char *id, char ret[32], struct hr_err *err)
{
	struct made *m = find_made(id);
	int left = __atomic_load_n(&world->fail_state, __ATOMIC_SEQ_CST);
	char c;

	(void)self;
	if (left > 0 && left == world->hold_state)
		ck_assert_int_eq(read(gate[0], &c, 1), 1);
	if (left > 0) {
		__atomic_sub_fetch(&world->fail_state, 1, __ATOMIC_SEQ_CST);
		return hr_err_set(err, HR_E_RUNTIME, "the Engine does not answer");
	}
	(void)snprintf(ret, 32, "%s", m != NULL ? m->state : "gone");
	return 0;
}

static int
fake_list(void *self, hr_fleet_id_fn *fn, void *arg, struct hr_err *err)
{
	size_t i;

	(void)self;
	(void)err;
	for (i = 0; i < MADE_MAX; i++)
		if (world->made[i].id[0] != '\0')
			fn(arg, world->made[i].id);
	return 0;
}

static int
fake_image(void *self, const char *name, char **ret_json, struct hr_err *err)
{
	(void)self;
	*ret_json = strdup(strcmp(name, "there") == 0 ? "{\"exists\":true}" : "{\"exists\":false}");
	return *ret_json != NULL ? 0 : hr_err_nomem(err);
}

static const struct hr_fleet_engine fake = {
    .image = fake_image,
    .start = fake_start,
    .claim = fake_claim,
    .pause = fake_pause,
    .resume = fake_resume,
    .stop = fake_stop,
    .state = fake_state,
    .list = fake_list,
};

static int
fake_clear(void *self, const char *id, bool (*sure)(void *arg), void *arg, struct hr_err *err)
{
	(void)self;
	(void)id;
	(void)err;
	ck_assert(sure(arg));
	__atomic_add_fetch(&world->clears, 1, __ATOMIC_SEQ_CST);
	return 0;
}

/* It keeps the files of those that died. */
static const struct hr_fleet_engine keeper = {
    .start = fake_start,
    .stop = fake_stop,
    .clear = fake_clear,
    .state = fake_state,
    .list = fake_list,
};
static const struct hr_fleet_engine *engine;

static int
fake_network(void *self, const struct hr_fleet_row *row, struct hr_err *err)
{
	int stops = __atomic_load_n(&world->stops, __ATOMIC_SEQ_CST);
	char c;

	(void)self;
	(void)__atomic_add_fetch(&world->networks, 1, __ATOMIC_SEQ_CST);
	if (world->hold_network)
		ck_assert_int_eq(read(gate[0], &c, 1), 1);
	/* no other call for the sandbox took place meanwhile */
	ck_assert_int_eq(__atomic_load_n(&world->stops, __ATOMIC_SEQ_CST), stops);
	if (world->fail_network)
		return hr_err_set(err, HR_E_RUNTIME, "port 1 is taken");
	(void)snprintf(world->rules, sizeof(world->rules), "%s", row->request);
	return 0;
}

/* It enforces rules for networks. */
static const struct hr_fleet_engine ruled = {
    .start = fake_start,
    .stop = fake_stop,
    .state = fake_state,
    .list = fake_list,
    .rules = true,
    .network = fake_network,
};

static int
fake_copies(void *self, const char *what, const char *id, const char *args, char **ret_json,
    struct hr_err *err)
{
	(void)self;
	(void)id;
	(void)args;
	ck_assert_str_eq(what, HR_COPIES_FORK);
	*ret_json = strdup("{}");
	return *ret_json != NULL ? 0 : hr_err_nomem(err);
}

/* It forks sandboxes. */
static const struct hr_fleet_engine copying = {
    .start = fake_start,
    .stop = fake_stop,
    .state = fake_state,
    .list = fake_list,
    .copies = fake_copies,
};

static size_t
made_count(void)
{
	size_t n = 0, i;

	for (i = 0; i < MADE_MAX; i++)
		n += world->made[i].id[0] != '\0';
	return n;
}

/* ---- a fleet ---- */

static char dir[64];
static struct hr_fleet fleet;
static struct hr_fleet_key key = {.scopes = 7}, other = {.scopes = 3};

static const struct hr_fleet_settings few = {.jobs = 2, .waiting = 4, .patience_s = 20};

static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/test-fleet-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	world =
	    mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert(world != MAP_FAILED);
	ck_assert_int_eq(pipe(gate), 0);
	engine = &fake;
}

static void
teardown(void)
{
	char path[96];
	size_t i;
	static const char *const files[] = {
	    "fleet.db", "fleet.db-wal", "fleet.db-shm", "fleet.lock"};

	for (i = 0; i < 4; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		(void)unlink(path);
	}
	(void)rmdir(dir);
}

static struct hr_store *
open_store(void)
{
	struct hr_err err = {0};
	struct hr_store *s = hr_sqlite_open(dir, true, &err);

	ck_assert_msg(s != NULL, "%s", err.msg);
	return s;
}

static void
begin(const struct hr_fleet_settings *set)
{
	struct hr_store *s = open_store();
	struct hr_err err = {0};
	char text[64];

	if (key.id == 0) {
		(void)snprintf(key.name, sizeof(key.name), "a");
		ck_assert_int_eq(s->ops->key_make(s, &key, text, &err), 0);
		ck_assert_int_eq(s->ops->key_make(s, &other, text, &err), 0);
	}
	ck_assert_msg(hr_fleet_init(&fleet, set, s, engine, NULL, &err) == 0, "%s", err.msg);
}

static enum hr_fleet_result
start(const struct hr_fleet_key *k, const char *session, struct hr_fleet_row *row)
{
	struct hr_err err = {0};

	return hr_fleet_start(&fleet, k, session, "{}", 1, SHAPE, NULL, row, &err);
}

/* Of one that is there by now. */
static void
up(const char *session, char id[HR_FLEET_ID])
{
	struct hr_fleet_row row;
	struct hr_err err = {0};

	ck_assert_int_eq(start(&key, session, &row), HR_FLEET_OK);
	(void)snprintf(id, HR_FLEET_ID, "%s", row.id);
	hr_fleet_row_done(&row);
	ck_assert_int_eq(hr_fleet_wait(&fleet, id, &row, &err), HR_FLEET_OK);
	ck_assert_int_eq(row.state, HR_FLEET_RUNNING);
	hr_fleet_row_done(&row);
}

/* Until it is in that state. */
static void
until(const char *id, enum hr_fleet_state state)
{
	struct hr_fleet_row row = {.request = NULL};

	(void)pthread_mutex_lock(&fleet.lock);
	for (;;) {
		ck_assert_int_eq(fleet.store->ops->find(fleet.store, id, &row, NULL), 1);
		if (row.state == state)
			break;
		hr_fleet_row_done(&row);
		(void)pthread_cond_wait(&fleet.changed, &fleet.lock);
	}
	(void)pthread_mutex_unlock(&fleet.lock);
	hr_fleet_row_done(&row);
}

static void
change(const char *id, enum hr_fleet_change what, enum hr_fleet_result want)
{
	struct hr_fleet_row row;
	struct hr_err err = {0};

	ck_assert_int_eq(hr_fleet_change(&fleet, key.id, id, what, &row, &err), want);
	hr_fleet_row_done(&row);
}

/* ---- tests ---- */

START_TEST(a_second_start_is_given_the_first_one)
{
	struct hr_fleet_row a, b, c;

	begin(&few);
	world->hold = 1;
	ck_assert_int_eq(start(&key, "s", &a), HR_FLEET_OK);
	ck_assert_int_eq(start(&key, "s", &b), HR_FLEET_OK);
	ck_assert_str_eq(a.id, b.id);
	ck_assert_str_eq(a.session_key, b.session_key);
	/* the same name of another key is another one */
	ck_assert_int_eq(start(&other, "s", &c), HR_FLEET_OK);
	ck_assert_str_ne(a.id, c.id);
	ck_assert_int_eq(write(gate[1], "xx", 2), 2);
	until(a.id, HR_FLEET_RUNNING);
	until(c.id, HR_FLEET_RUNNING);
	ck_assert_int_eq(world->starts, 2);
	hr_fleet_row_done(&a);
	hr_fleet_row_done(&b);
	hr_fleet_row_done(&c);
}
END_TEST

START_TEST(a_stop_that_comes_late_meets_nothing_newer)
{
	char first[HR_FLEET_ID], second[HR_FLEET_ID];

	begin(&few);
	up("s", first);
	change(first, HR_FLEET_STOP, HR_FLEET_OK);
	until(first, HR_FLEET_STOPPED);
	up("s", second);
	ck_assert_str_ne(first, second);
	change(first, HR_FLEET_STOP, HR_FLEET_OK);
	change(first, HR_FLEET_PAUSE, HR_FLEET_CONFLICT);
	ck_assert_ptr_nonnull(find_made(second));
	until(second, HR_FLEET_RUNNING);
}
END_TEST

START_TEST(stopped_while_it_starts)
{
	struct hr_fleet_row row;

	begin(&few);
	world->hold = 1;
	ck_assert_int_eq(start(&key, "s", &row), HR_FLEET_OK);
	change(row.id, HR_FLEET_STOP, HR_FLEET_OK);
	ck_assert_int_eq(write(gate[1], "x", 1), 1);
	until(row.id, HR_FLEET_STOPPED);
	ck_assert_uint_eq(made_count(), 0);
	hr_fleet_row_done(&row);
}
END_TEST

START_TEST(pause_and_resume_keep_their_order)
{
	char id[HR_FLEET_ID];

	begin(&few);
	up("s", id);
	change(id, HR_FLEET_PAUSE, HR_FLEET_OK);
	change(id, HR_FLEET_RESUME, HR_FLEET_OK);
	change(id, HR_FLEET_RESUME, HR_FLEET_OK);
	until(id, HR_FLEET_RUNNING);
	ck_assert_str_eq(find_made(id)->state, "running");
	change(id, HR_FLEET_PAUSE, HR_FLEET_OK);
	until(id, HR_FLEET_PAUSED);
	ck_assert_str_eq(find_made(id)->state, "paused");
	ck_assert_int_eq(world->how, HR_PAUSE_USUAL);
	change(id, HR_FLEET_PAUSE, HR_FLEET_OK);
	change(id, HR_FLEET_STOP, HR_FLEET_OK);
	until(id, HR_FLEET_STOPPED);
}
END_TEST

START_TEST(a_start_of_a_paused_one_resumes_it)
{
	char id[HR_FLEET_ID], again[HR_FLEET_ID];

	begin(&few);
	up("s", id);
	change(id, HR_FLEET_PAUSE, HR_FLEET_OK);
	until(id, HR_FLEET_PAUSED);
	up("s", again);
	ck_assert_str_eq(id, again);
	ck_assert_int_eq(world->starts, 1);
}
END_TEST

START_TEST(quotas_are_counted_where_they_are_taken)
{
	struct hr_fleet_settings set = few;
	struct hr_fleet_row row;
	int i;

	set.limits.sandboxes = 3;
	begin(&set);
	key.limits.sandboxes = 2;
	world->hold = 1;
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(start(&key, i == 0 ? "a" : "b", &row), HR_FLEET_OK);
		hr_fleet_row_done(&row);
	}
	ck_assert_int_eq(start(&key, "c", &row), HR_FLEET_QUOTA);
	hr_fleet_row_done(&row);
	ck_assert_int_eq(start(&other, "a", &row), HR_FLEET_OK);
	hr_fleet_row_done(&row);
	ck_assert_int_eq(start(&other, "b", &row), HR_FLEET_NO_ROOM);
	hr_fleet_row_done(&row);
	/* one that is there needs no room */
	ck_assert_int_eq(start(&key, "a", &row), HR_FLEET_OK);
	hr_fleet_row_done(&row);
	ck_assert_int_eq(write(gate[1], "xxx", 3), 3);
	key.limits.sandboxes = 0;
}
END_TEST

START_TEST(one_that_cannot_be_made_has_died_and_says_why)
{
	struct hr_fleet_row row, again;

	begin(&few);
	world->fail_start = 1;
	ck_assert_int_eq(start(&key, "s", &row), HR_FLEET_OK);
	until(row.id, HR_FLEET_DIED);
	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_int_eq(
	    fleet.store->ops->find_session(fleet.store, key.id, "s", true, &again, NULL), 1);
	(void)pthread_mutex_unlock(&fleet.lock);
	ck_assert_str_eq(again.reason, "no image");
	hr_fleet_row_done(&again);
	/* and is not replaced but by a start */
	ck_assert_int_eq(start(&key, "s", &again), HR_FLEET_OK);
	ck_assert_str_ne(row.id, again.id);
	until(again.id, HR_FLEET_RUNNING);
	hr_fleet_row_done(&row);
	hr_fleet_row_done(&again);
}
END_TEST

START_TEST(requests_wake_what_is_paused)
{
	struct hr_fleet_row row;
	struct hr_err err = {0};
	char id[HR_FLEET_ID];

	begin(&few);
	up("s", id);
	change(id, HR_FLEET_PAUSE, HR_FLEET_OK);
	ck_assert_int_eq(hr_fleet_route(&fleet, id, true, &row, &err), HR_FLEET_OK);
	ck_assert_str_eq(row.at, "127.0.0.1:1");
	hr_fleet_row_done(&row);
	ck_assert_str_eq(find_made(id)->state, "running");
	change(id, HR_FLEET_STOP, HR_FLEET_OK);
	ck_assert_int_eq(hr_fleet_route(&fleet, id, true, &row, &err), HR_FLEET_CONFLICT);
	hr_fleet_row_done(&row);
	ck_assert_int_eq(
	    hr_fleet_route(&fleet, "00000000000000000000000000000000", true, &row, &err),
	    HR_FLEET_NOT_FOUND);
}
END_TEST

START_TEST(who_waits_is_bounded)
{
	struct hr_fleet_settings set = few;
	struct hr_fleet_row row;
	struct hr_err err = {0};
	char id[HR_FLEET_ID];

	set.waiting = 0;
	begin(&set);
	world->hold = 1;
	ck_assert_int_eq(start(&key, "s", &row), HR_FLEET_OK);
	(void)snprintf(id, sizeof(id), "%s", row.id);
	hr_fleet_row_done(&row);
	ck_assert_int_eq(hr_fleet_route(&fleet, id, true, &row, &err), HR_FLEET_LATE);
	hr_fleet_row_done(&row);
	ck_assert_int_eq(write(gate[1], "x", 1), 1);
	until(id, HR_FLEET_RUNNING);
}
END_TEST

/* A server that cannot be asked is not paused; one that was used just now neither. */
START_TEST(an_answer_decides_what_is_idle)
{
	struct hr_fleet_settings set = few;
	struct hr_fleet_row row = {.request = NULL};
	char id[HR_FLEET_ID];

	set.idle_pause_s = 1;
	begin(&set);
	up("s", id);
	(void)snprintf(row.at, sizeof(row.at), "127.0.0.1:1");
	ck_assert_int_eq(hr_fleet_ask_active(&row), -1);
	ck_assert_int_eq(world->pauses, 0);
}
END_TEST

/* As a request through nginx that lasts: two ends of a connection to a port where nobody listens
 * any more. */
static int
open_stream(int ret[2], bool counts)
{
	struct sockaddr_in a = {
	    .sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6};
	socklen_t len = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port;
	char want[64];
	HR_BUF(way, 64);

	ck_assert_int_eq(bind(listener, (struct sockaddr *)&a, len), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	port = ntohs(a.sin_port);
	hr_fleet_put_way(&way, "127.0.0.1:1", port, counts);
	(void)snprintf(want, sizeof(want), counts ? "[::ffff:127.0.0.1]:%d" : "127.0.0.1:%d", port);
	ck_assert_str_eq(hr_buf_str(&way), want);
	ck_assert_int_eq(inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr), 1);
	mapped.sin6_port = a.sin_port;
	ret[0] = socket(counts ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(
	    connect(ret[0], counts ? (struct sockaddr *)&mapped : (struct sockaddr *)&a,
		counts ? sizeof(mapped) : sizeof(a)),
	    0);
	ret[1] = accept(listener, NULL, NULL);
	ck_assert_int_ge(ret[1], 0);
	(void)close(listener);
	return port;
}

START_TEST(an_open_stream_is_activity)
{
	struct hr_fleet_row row = {.request = NULL};
	int stream[2], keyless[2], port = open_stream(stream, true);

	(void)snprintf(row.at, sizeof(row.at), "127.0.0.1:%d", port);
	ck_assert_int_gt(hr_fleet_ask_active(&row), 0);
	(void)snprintf(row.at, sizeof(row.at), "127.0.0.1:1");
	ck_assert_int_eq(hr_fleet_ask_active(&row), -1);
	row.app_ports[1] = port;
	ck_assert_int_gt(hr_fleet_ask_active(&row), 0);
	(void)close(stream[0]);
	ck_assert_int_eq(hr_fleet_ask_active(&row), -1);
	(void)close(stream[1]);
	/* one without a key */
	row.app_ports[0] = open_stream(keyless, false);
	ck_assert_int_eq(hr_fleet_ask_active(&row), -1);
	(void)close(keyless[0]);
	(void)close(keyless[1]);
}
END_TEST

/* With net.ipv6.bindv6only=1 the IPv6 form of an IPv4 address reaches nobody. */
START_TEST(no_ipv6_form_where_it_is_forbidden)
{
	FILE *f = NULL;
	HR_BUF(way, 64);

	if (unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) != 0 ||
	    (f = fopen("/proc/sys/net/ipv6/bindv6only", "we")) == NULL) {
		(void)printf(
		    "skipped: no network namespace with IPv6 of its own: run it as root\n");
		return;
	}
	ck_assert_int_eq(fputs("1\n", f), 1);
	ck_assert_int_eq(fclose(f), 0);
	hr_fleet_put_way(&way, "127.0.0.1:1", 80, true);
	ck_assert_str_eq(hr_buf_str(&way), "127.0.0.1:80");
}
END_TEST

START_TEST(what_ended_long_ago_is_forgotten)
{
	struct hr_fleet_settings set = few;
	struct hr_fleet_row row = {.request = NULL};
	char old[HR_FLEET_ID], fresh[HR_FLEET_ID], runs[HR_FLEET_ID];
	int found[3];

	set.keep_ended_s = 1000;
	begin(&set);
	up("runs", runs);
	up("old", old);
	change(old, HR_FLEET_STOP, HR_FLEET_OK);
	until(old, HR_FLEET_STOPPED);
	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_int_eq(hr_sqlite_run((struct hr_sqlite *)(void *)fleet.store, NULL,
			     "UPDATE sandboxes SET active = 1", ""),
	    0);
	(void)pthread_mutex_unlock(&fleet.lock);
	up("fresh", fresh);
	change(fresh, HR_FLEET_STOP, HR_FLEET_OK);
	until(fresh, HR_FLEET_STOPPED);
	(void)pthread_mutex_lock(&fleet.lock);
	found[0] = fleet.store->ops->find(fleet.store, old, &row, NULL);
	found[1] = fleet.store->ops->find(fleet.store, fresh, &row, NULL);
	hr_fleet_row_done(&row);
	found[2] = fleet.store->ops->find(fleet.store, runs, &row, NULL);
	hr_fleet_row_done(&row);
	(void)pthread_mutex_unlock(&fleet.lock);
	ck_assert_int_eq(found[0], 0);
	ck_assert_int_eq(found[1], 1);
	ck_assert_int_eq(found[2], 1);
}
END_TEST

/* ---- pools ---- */

/* Of a size, for what start() asks for. */
static void
set_pool(int size, int want)
{
	HR_PUT struct json_object *pools = NULL;
	struct hr_json_error why;
	struct hr_err err = {0};
	char text[200];

	(void)snprintf(text, sizeof(text),
	    "[{\"name\":\"p\",\"size\":%d,\"request\":{\"image\":\"i\"}}]", size);
	ck_assert_int_eq(hr_json_decode(text, strlen(text), &pools, &why), 0);
	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_int_eq(hr_fleet_set_pools(&fleet, pools, &err), want);
	(void)pthread_mutex_unlock(&fleet.lock);
}

/* Until so many wait and none is being made. */
static void
until_warm(int64_t want)
{
	char id[HR_FLEET_ID];
	int64_t n[2];

	(void)pthread_mutex_lock(&fleet.lock);
	for (;;) {
		ck_assert_int_eq(
		    fleet.store->ops->pooled(fleet.store, fleet.pools->shape, n, id, NULL), 0);
		if (n[0] == 0 && n[1] == want)
			break;
		ck_assert_int_le(n[0] + n[1], fleet.pools->size > want ? fleet.pools->size : 9);
		(void)pthread_cond_wait(&fleet.changed, &fleet.lock);
	}
	(void)pthread_mutex_unlock(&fleet.lock);
}

static enum hr_fleet_result
start_image(const struct hr_fleet_key *k, const char *session, struct hr_fleet_row *row)
{
	struct hr_err err = {0};

	return hr_fleet_start(
	    &fleet, k, session, "{\"environment\":{}}", 1, fleet.pools->shape, NULL, row, &err);
}

START_TEST(a_warm_one_is_claimed_and_replaced)
{
	struct hr_fleet_row row, again;

	begin(&few);
	set_pool(2, 0);
	until_warm(2);
	ck_assert_int_eq(world->starts, 2);
	ck_assert_int_eq(start_image(&key, "s", &row), HR_FLEET_OK);
	ck_assert_str_eq(row.at, "127.0.0.1:1");
	until(row.id, HR_FLEET_RUNNING);
	ck_assert_int_eq(world->claims, 1);
	ck_assert_str_eq(find_made(row.id)->request, "{\"environment\":{}}");
	/* its clock is its own */
	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_int_eq(fleet.store->ops->find(fleet.store, row.id, &again, NULL), 1);
	(void)pthread_mutex_unlock(&fleet.lock);
	ck_assert_int_eq(again.key, key.id);
	ck_assert_str_eq(again.session_key, row.session_key);
	ck_assert_int_ge(again.active, row.created);
	hr_fleet_row_done(&again);
	until_warm(2);
	ck_assert_int_eq(world->starts, 3);
	/* another shape is made */
	ck_assert_int_eq(start(&key, "t", &again), HR_FLEET_OK);
	until(again.id, HR_FLEET_RUNNING);
	ck_assert_int_eq(world->starts, 4);
	ck_assert_int_eq(world->claims, 1);
	hr_fleet_row_done(&row);
	hr_fleet_row_done(&again);
	set_pool(0, 0);
	until_warm(0);
	set_pool(-1, -1);
}
END_TEST

/* The server of one that waits has been told already. */
START_TEST(whose_client_comes_settles_the_shape)
{
	size_t i;

	static const struct {
		const char *command;
		int v1;
	} starts[] = {
	    {"[\"/openhands/micromamba/bin/micromamba\",\"run\"]", 0},
	    {"\"/usr/local/bin/openhands-agent-server --port 60000\"", 1},
	    {"\"/agent-server/.venv/bin/python -m openhands.agent_server --port 60000\"", 1},
	    {"[\"openhands-agent-server\",\"--port\",\"60000\"]", 1},
	    {"\"/usr/bin/my-openhands-agent-server\"", 0},
	    {"null", 0},
	};
	char text[300], shape[2][HR_FLEET_SHAPE], got[HR_FLEET_SHAPE];
	struct hr_strv plugins = {0};
	struct json_object *q;
	struct hr_json_error why;

	for (i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		(void)snprintf(
		    text, sizeof(text), "{\"image\":\"i\",\"command\":%s}", starts[i].command);
		ck_assert_int_eq(hr_json_decode(text, strlen(text), &q, &why), 0);
		ck_assert_int_eq(hr_fleet_request_is_v1(q), starts[i].v1);
		hr_fleet_request_plugins(q, &plugins);
		ck_assert_uint_eq(plugins.n, (size_t)starts[i].v1);
		if (starts[i].v1 > 0)
			ck_assert_str_eq(plugins.v[0], "agent-server");
		hr_strv_done(&plugins);
		ck_assert_int_eq(hr_fleet_request_shape(q, NULL, got, NULL), 0);
		if (i < 2) /* the first of each */
			memcpy(shape[i], got, sizeof(got));
		ck_assert_str_eq(got, shape[starts[i].v1]);
		json_object_put(q);
	}
	ck_assert_str_ne(shape[0], shape[1]);
}
END_TEST

static enum hr_fleet_result
may(void *arg, struct hr_err *err)
{
	(void)arg;
	(void)err;
	return HR_FLEET_OK;
}

/* The clock of one that waited begins in the step that claims it. */
START_TEST(a_claimed_one_has_a_clock_of_its_own)
{
	static const struct hr_fleet_limits none;
	struct hr_store *s = open_store();
	struct hr_fleet_row warm = {.id = "w",
	    .state = HR_FLEET_WARMING,
	    .shape = SHAPE,
	    .request = (char *)(uintptr_t) "{}",
	    .created = 5,
	    .active = 5};
	struct hr_fleet_row row = {.id = "r",
				.key = 1,
				.session = "s",
				.shape = SHAPE,
				.request = (char *)(uintptr_t) "{}",
				.created = 777,
				.active = 777},
			    now;
	bool moved;

	ck_assert_int_eq(s->ops->reserve(s, &warm, &none, &none, may, NULL, NULL), HR_FLEET_OK);
	ck_assert_int_eq(s->ops->move(s, &warm, HR_FLEET_WARMING, HR_FLEET_WARM, NULL,
			     HR_MOVE_PLACED, &moved, NULL),
	    0);
	ck_assert(moved);
	ck_assert_int_eq(s->ops->reserve(s, &row, &none, &none, may, NULL, NULL), HR_FLEET_OK);
	ck_assert_str_eq(row.id, "w");
	ck_assert_int_eq(s->ops->find(s, "w", &now, NULL), 1);
	ck_assert_int_eq(now.active, 777);
	ck_assert_int_eq(now.created, 777);
	ck_assert_int_eq(now.state, HR_FLEET_STARTING);
	hr_fleet_row_done(&now);
	hr_store_close(s);
}
END_TEST

/* A move fails if the row was given to a key, restarted or used since it was read. */
START_TEST(a_move_means_the_row_that_was_read)
{
	static const struct hr_fleet_limits none;
	struct hr_store *s = open_store();
	struct hr_fleet_row row = {.id = "r",
				.key = 1,
				.session = "s",
				.session_key = "one",
				.request = (char *)(uintptr_t) "{}",
				.created = 5,
				.active = 5},
			    again = row;
	bool moved;

	ck_assert_int_eq(s->ops->reserve(s, &row, &none, &none, may, NULL, NULL), HR_FLEET_OK);
	again.key = 2;
	ck_assert_int_eq(
	    s->ops->move(s, &again, HR_FLEET_STARTING, HR_FLEET_DIED, NULL, 0, &moved, NULL), 0);
	ck_assert(!moved);
	again = row;
	(void)snprintf(again.session_key, sizeof(again.session_key), "two");
	ck_assert_int_eq(
	    s->ops->move(s, &again, HR_FLEET_STARTING, HR_FLEET_DIED, NULL, 0, &moved, NULL), 0);
	ck_assert(!moved);
	again = row;
	again.resumed = 1;
	ck_assert_int_eq(
	    s->ops->move(s, &again, HR_FLEET_STARTING, HR_FLEET_DIED, NULL, 0, &moved, NULL), 0);
	ck_assert(!moved);
	ck_assert_int_eq(s->ops->active(s, "r", 6, NULL), 0);
	ck_assert_int_eq(s->ops->move(s, &row, HR_FLEET_STARTING, HR_FLEET_DIED, NULL,
			     HR_MOVE_UNUSED, &moved, NULL),
	    0);
	ck_assert(!moved);
	row.active = 6;
	ck_assert_int_eq(s->ops->move(s, &row, HR_FLEET_STARTING, HR_FLEET_DIED, NULL,
			     HR_MOVE_UNUSED, &moved, NULL),
	    0);
	ck_assert(moved);
	hr_store_close(s);
}
END_TEST

START_TEST(a_failed_create_stops_no_refill)
{
	begin(&few);
	world->fail_start = 2;
	set_pool(3, 0);
	until_warm(3);
	ck_assert_uint_eq(made_count(), 3);
	ck_assert_int_eq(world->starts, 5);
}
END_TEST

/* Until that change, of those that there are. */
static void
until_told(size_t n, enum hr_fleet_alert what, bool firing, const char *detail)
{
	const struct hr_fleet_alerts *a = &fleet.alerts;

	(void)pthread_mutex_lock(&fleet.lock);
	while (a->past_n < n)
		(void)pthread_cond_wait(&fleet.changed, &fleet.lock);
	ck_assert_int_eq(a->past[n - 1].what, what);
	ck_assert_int_eq(a->past[n - 1].firing, firing);
	ck_assert_ptr_nonnull(strstr(a->past[n - 1].detail, detail));
	(void)pthread_mutex_unlock(&fleet.lock);
}

START_TEST(what_is_wrong_is_told_until_it_is_over)
{
	struct hr_fleet_row row;
	char id[HR_FLEET_ID];
	int i;

	begin(&few);
	world->fail_start = 1;
	set_pool(1, 0);
	until_told(1, HR_ALERT_POOL_FAILING, true, "pool p: no image");
	until_told(2, HR_ALERT_POOL_FAILING, false, "pool p: no image");
	until_warm(1);
	/* a start of its shape is given none that waits, for as long as there is none */
	world->hold = 1;
	ck_assert_int_eq(start_image(&key, "one", &row), HR_FLEET_OK);
	until(
	    row.id, HR_FLEET_RUNNING); /* its end is a success, which a count of failures ends at */
	hr_fleet_row_done(&row);
	ck_assert_int_eq(start_image(&key, "two", &row), HR_FLEET_OK);
	until_told(3, HR_ALERT_POOL_EMPTY, true, "pool p");
	world->hold = 0;
	ck_assert_int_eq(write(gate[1], "xx", 2), 2);
	until_told(4, HR_ALERT_POOL_EMPTY, false, "pool p");
	until(row.id, HR_FLEET_RUNNING);
	until_warm(1);
	hr_fleet_row_done(&row);
	/* one failure is a request's; more in a row are the engine's */
	world->fail_start = 4;
	for (i = 0; i < 4; i++) {
		(void)snprintf(id, sizeof(id), "bad%d", i);
		ck_assert_int_eq(start(&key, id, &row), HR_FLEET_OK);
		until(row.id, HR_FLEET_DIED);
		hr_fleet_row_done(&row);
		ck_assert_uint_eq(fleet.alerts.past_n, i < 2 ? 4 : 5);
	}
	until_told(5, HR_ALERT_ENGINE, true, "no image");
	up("good", id);
	until_told(6, HR_ALERT_ENGINE, false, "no image");
	ck_assert_uint_eq(fleet.alerts.now_n, 0);
}
END_TEST

START_TEST(alerts_are_bounded)
{
	char of[16];
	int i;

	begin(&few);
	(void)pthread_mutex_lock(&fleet.lock);
	for (i = 0; i < 100; i++) {
		(void)snprintf(of, sizeof(of), "%d", i);
		hr_fleet_alert(&fleet, HR_ALERT_QUOTA, of, "x");
		hr_fleet_alert(&fleet, HR_ALERT_QUOTA, of, "said already");
	}
	ck_assert_uint_eq(fleet.alerts.changes, HR_FLEET_ALERTS);
	for (i = 99; i >= 0; i--) {
		(void)snprintf(of, sizeof(of), "%d", i);
		hr_fleet_alert(&fleet, HR_ALERT_QUOTA, of, NULL);
		hr_fleet_alert(&fleet, HR_ALERT_ROOM, "", "x");
		hr_fleet_alert(&fleet, HR_ALERT_ROOM, "", NULL);
	}
	ck_assert_uint_eq(fleet.alerts.now_n, 0);
	ck_assert_uint_eq(fleet.alerts.past_n, HR_FLEET_ALERTS_PAST);
	(void)pthread_mutex_unlock(&fleet.lock);
}
END_TEST

/* As if the last change was so many minutes ago. */
static void
minutes_ago(int64_t minutes)
{
	(void)pthread_mutex_lock(&fleet.lock);
	fleet.history.minute -= 60 * minutes;
	(void)pthread_mutex_unlock(&fleet.lock);
}

START_TEST(an_hour_is_kept_of_how_much_there_was)
{
	struct hr_fleet_history *h = &fleet.history;
	char id[HR_FLEET_ID];
	int64_t first, ago;
	size_t i;

	begin(&few);
	up("s", id);
	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_uint_le(h->n, 1); /* the minute may have ended by itself */
	h->n = 0;
	(void)pthread_mutex_unlock(&fleet.lock);
	minutes_ago(3);
	change(id, HR_FLEET_PAUSE, HR_FLEET_OK);
	until(id, HR_FLEET_PAUSED);
	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_uint_ge(h->n, 1);
	ck_assert_int_eq(h->v[0].states[HR_FLEET_RUNNING], 1); /* as it was before the change */
	ck_assert_int_eq(h->v[0].factors, 1);
	first = h->v[0].time;
	(void)pthread_mutex_unlock(&fleet.lock);
	minutes_ago(1);
	(void)pthread_mutex_lock(&fleet.lock);
	hr_fleet_history_keep(&fleet);
	ck_assert_int_eq(h->v[h->n - 1].states[HR_FLEET_PAUSED], 1);
	ck_assert_int_gt(h->v[h->n - 1].time, first);
	/* a clock that is set back, and one that goes on for more than an hour */
	for (i = 0; i < h->n; i++)
		h->v[i].time += 86400;
	h->minute += 86400;
	hr_fleet_history_keep(&fleet);
	ck_assert_uint_eq(h->n, 1);
	h->n = 0;
	first = h->minute;
	for (ago = 200; ago > 0; ago--) {
		h->minute = first - 60 * ago;
		hr_fleet_history_keep(&fleet);
	}
	ck_assert_uint_eq(h->n, HR_FLEET_HISTORY);
	ck_assert_int_eq(h->v[h->n - 1].time, first - 60);
	(void)pthread_mutex_unlock(&fleet.lock);
}
END_TEST

START_TEST(a_warm_one_of_no_use_is_made_anew)
{
	struct hr_fleet_row row;

	begin(&few);
	set_pool(1, 0);
	until_warm(1);
	world->fail_claim = 1;
	ck_assert_int_eq(start_image(&key, "s", &row), HR_FLEET_OK);
	until(row.id, HR_FLEET_RUNNING);
	ck_assert_int_eq(world->claims, 0);
	hr_fleet_row_done(&row);
}
END_TEST

/* A member that a start does not know counts, too: the whole request is kept. */
START_TEST(a_pool_with_a_request_that_is_too_long)
{
	HR_PUT struct json_object *pools = NULL;
	struct hr_json_error why;
	struct hr_err err = {0};
	HR_BUF(text, 4u << 20);
	int i;

	begin(&few);
	hr_buf_adds(&text, "[{\"name\":\"p\",\"size\":1,\"request\":{\"image\":\"i\",\"x\":\"");
	for (i = 0; i < 1 << 20; i++)
		hr_buf_addc(&text, 'x');
	hr_buf_adds(&text, "\"}}]");
	ck_assert_int_eq(hr_json_decode(hr_buf_str(&text), text.len, &pools, &why), 0);
	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_int_eq(hr_fleet_set_pools(&fleet, pools, &err), -1);
	(void)pthread_mutex_unlock(&fleet.lock);
	ck_assert_str_eq(err.msg, "pool p: its request is too long");
}
END_TEST

START_TEST(a_pool_gives_way_and_counts_for_nobody)
{
	struct hr_fleet_settings set = few;
	struct hr_fleet_row row;
	struct hr_fleet_key one = key;

	set.limits.sandboxes = 2;
	begin(&set);
	one.id = key.id;
	one.limits.sandboxes = 1;
	set_pool(2, 0);
	until_warm(2);
	/* the quota of the key holds for a warm one as well */
	ck_assert_int_eq(start_image(&one, "a", &row), HR_FLEET_OK);
	hr_fleet_row_done(&row);
	ck_assert_int_eq(start_image(&one, "b", &row), HR_FLEET_QUOTA);
	hr_fleet_row_done(&row);
	/* one of another shape finds no room, and does soon */
	ck_assert_int_eq(start(&other, "c", &row), HR_FLEET_NO_ROOM);
	hr_fleet_row_done(&row);
	until_warm(0);
	(void)pthread_mutex_lock(&fleet.lock);
	while (fleet.jobs != NULL)
		(void)pthread_cond_wait(&fleet.work, &fleet.lock);
	(void)pthread_mutex_unlock(&fleet.lock);
}
END_TEST

START_TEST(a_drain_and_pools_outlive_a_process)
{
	struct hr_fleet_row row;
	struct hr_err err = {0};
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		begin(&few);
		set_pool(1, 0);
		until_warm(1);
		(void)pthread_mutex_lock(&fleet.lock);
		ck_assert_int_eq(hr_fleet_drain(&fleet, true, &err), 0);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	key.id = 1;
	begin(&few);
	ck_assert_int_eq(start(&key, "s", &row), HR_FLEET_DRAINED);
	hr_fleet_row_done(&row);
	until_warm(1);
	ck_assert_int_eq(world->starts, 1);
	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_int_eq(hr_fleet_drain(&fleet, false, &err), 0);
	(void)pthread_mutex_unlock(&fleet.lock);
	ck_assert_int_eq(start_image(&key, "s", &row), HR_FLEET_OK);
	until(row.id, HR_FLEET_RUNNING);
	ck_assert_int_eq(world->claims, 1);
	hr_fleet_row_done(&row);
}
END_TEST

/* What a process left at a random place is found by the next one. */
static void
crash(int which)
{
	struct hr_fleet_row row;
	char id[HR_FLEET_ID];
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		begin(&few);
		up("running", id);
		/* a copy of its files outlives the service that has begun it */
		if (which == 0)
			(void)snprintf(
			    find_made(id)->state, sizeof(find_made(id)->state), "copying");
		up("paused", id);
		change(id, HR_FLEET_PAUSE, HR_FLEET_OK);
		until(id, HR_FLEET_PAUSED);
		/* an engine reports a container that was stopped for a pause so */
		if (which == 0)
			(void)snprintf(
			    find_made(id)->state, sizeof(find_made(id)->state), "exited");
		if (which == 1) {
			up("lost", id);
			fake_stop(NULL, id, NULL); /* and nobody saw it */
		}
		world->hold = 1;
		(void)start(&key, "starting", &row);
		if (which == 2)
			(void)snprintf(world->made[9].id, HR_FLEET_ID, "nobody-knows-this");
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	world->hold = 0;
}

static enum hr_fleet_state
state_of(const char *session, char id[HR_FLEET_ID])
{
	struct hr_fleet_row row;
	enum hr_fleet_state state;

	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_int_eq(
	    fleet.store->ops->find_session(fleet.store, 1, session, true, &row, NULL), 1);
	(void)pthread_mutex_unlock(&fleet.lock);
	state = row.state;
	(void)snprintf(id, HR_FLEET_ID, "%s", row.id);
	hr_fleet_row_done(&row);
	return state;
}

START_TEST(a_crash_loses_and_doubles_nothing)
{
	char id[HR_FLEET_ID];

	crash(_i);
	key.id = 1; /* the child made it */
	begin(&few);
	ck_assert_int_eq(state_of("running", id), HR_FLEET_RUNNING);
	ck_assert_int_eq(state_of("paused", id), HR_FLEET_PAUSED);
	(void)state_of("starting", id);
	until(id, HR_FLEET_RUNNING);
	if (_i == 1)
		ck_assert_int_eq(state_of("lost", id), HR_FLEET_DIED);
	if (_i == 2) {
		(void)pthread_mutex_lock(&fleet.lock);
		while (fleet.jobs != NULL)
			(void)pthread_cond_wait(&fleet.work, &fleet.lock);
		(void)pthread_mutex_unlock(&fleet.lock);
		ck_assert_ptr_null(find_made("nobody-knows-this"));
	}
	ck_assert_uint_eq(made_count(), 3);
}
END_TEST

/* A process that dies with a sandbox "lost" that has ended, and may have one that runs. */
static void
crash_with_a_lost_one(bool one_runs)
{
	char id[HR_FLEET_ID];
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		begin(&few);
		if (one_runs)
			up("running", id);
		up("lost", id);
		(void)set_state(id, "exited", &world->pauses);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	key.id = 1;
}

/* It keeps no other one from being served, and is looked at again until the engine answers. */
START_TEST(one_whose_engine_does_not_answer)
{
	char id[HR_FLEET_ID];

	crash_with_a_lost_one(true);
	world->fail_state = 3; /* of both while the service starts, and of one afterwards */
	begin(&few);
	(void)state_of("lost", id);
	until(id, HR_FLEET_DIED);
	ck_assert_int_eq(state_of("running", id), HR_FLEET_RUNNING);
	ck_assert_int_eq(world->fail_state, 0);
}
END_TEST

/* The pause that comes while a sandbox is looked at takes the look's place, and fails. */
START_TEST(one_that_is_looked_at_cannot_be_paused)
{
	char id[HR_FLEET_ID];

	crash_with_a_lost_one(false);
	world->fail_state = 2; /* while the service starts, and afterwards */
	world->hold_state = world->fail_pause = 1;
	begin(&few);
	(void)state_of("lost", id);
	change(id, HR_FLEET_PAUSE, HR_FLEET_OK);
	ck_assert_int_eq(write(gate[1], "", 1), 1);
	until(id, HR_FLEET_DIED);
	ck_assert_int_eq(world->fail_pause, 0);
}
END_TEST

/* ---- rules for networks ---- */

static struct json_object *
parsed(const char *text)
{
	struct json_object *o = NULL;

	ck_assert_msg(hr_json_decode(text, strlen(text), &o, NULL) == 0, "%s", text);
	return o;
}

/* Sets rules; the error must contain `named`, NULL: any. */
static void
set_rules(
    int64_t by, const char *id, const char *text, enum hr_fleet_result want, const char *named)
{
	HR_PUT struct json_object *rules = parsed(text);
	struct hr_fleet_row row;
	struct hr_err err = {0};
	enum hr_fleet_result r = hr_fleet_network_set(&fleet, by, id, rules, &row, &err);

	ck_assert_msg(r == want && (named == NULL || strstr(err.msg, named) != NULL), "%s: %d: %s",
	    text, r, err.msg);
	hr_fleet_row_done(&row);
}

static void
kept_rules(const char *id, const char *want)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	HR_PUT struct json_object *rules = NULL, *wanted = parsed(want);

	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_int_eq(fleet.store->ops->find(fleet.store, id, &row, NULL), 1);
	(void)pthread_mutex_unlock(&fleet.lock);
	rules = hr_fleet_network_of(&row);
	ck_assert_msg(json_object_equal(rules, wanted), "%s", row.request);
}

static void
up_with_rules(char id[HR_FLEET_ID])
{
	struct hr_fleet_row row;
	struct hr_err err = {0};

	ck_assert_int_eq(hr_fleet_start(&fleet, &key, "s", "{\"a\":1,\"network\":{}}", 1, SHAPE,
			     NULL, &row, &err),
	    HR_FLEET_OK);
	(void)snprintf(id, HR_FLEET_ID, "%s", row.id);
	hr_fleet_row_done(&row);
	until(id, HR_FLEET_RUNNING);
}

static void
limit(const char *text)
{
	HR_PUT struct json_object *o = text != NULL ? parsed(text) : NULL;
	struct hr_err err = {0};

	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_msg(hr_fleet_network_limit(&fleet, key.id, o, &err) == 0, "%s", err.msg);
	(void)pthread_mutex_unlock(&fleet.lock);
}

START_TEST(rules_are_in_force_and_kept_or_neither)
{
	HR_PUT struct json_object *body = parsed("{}");
	struct hr_err err = {0};
	char id[HR_FLEET_ID];

	engine = &ruled;
	begin(&few);
	up_with_rules(id);
	set_rules(key.id, id, "{\"allowOut\":[\"a.org\"]}", HR_FLEET_OK, NULL);
	kept_rules(id, "{\"allowOut\":[\"a.org\"]}");
	ck_assert_str_eq(world->rules, "{\"a\":1,\"network\":{\"allowOut\":[\"a.org\"]}}");
	world->fail_network = 1;
	set_rules(key.id, id, "{}", HR_FLEET_INVALID, "network: port 1 is taken");
	world->fail_network = 0;
	set_rules(key.id, id, "{\"allowed\":[]}", HR_FLEET_INVALID, "allowed");
	set_rules(key.id, id, "{\"allowOut\":[\"10.0.0.0/8\"]}", HR_FLEET_INVALID, "10.0.0.0/8");
	set_rules(other.id, id, "{}", HR_FLEET_NOT_FOUND, NULL);
	set_rules(0, "none", "{}", HR_FLEET_NOT_FOUND, NULL);
	kept_rules(id, "{\"allowOut\":[\"a.org\"]}");
	ck_assert_int_eq(world->networks, 2);
	/* the limit of the key holds for everyone, and is a start's rules */
	limit("{\"allowOut\":[\"a.org\",\"10.0.0.0/8\"]}");
	set_rules(0, id, "{\"allowOut\":[\"b.org\"]}", HR_FLEET_REFUSED, "allowOut b.org");
	set_rules(key.id, id, "{\"allowOut\":[\"10.1.0.0/16\"]}", HR_FLEET_OK, NULL);
	kept_rules(id, "{\"allowOut\":[\"10.1.0.0/16\"]}");
	/* the broker of the sandbox has the limit, too; a client gives none */
	ck_assert_ptr_nonnull(strstr(world->rules, "\"limit\":{\"allowOut\":[\"a.org\","));
	set_rules(key.id, id, "{\"limit\":{}}", HR_FLEET_INVALID, "limit");
	ck_assert_int_eq(hr_fleet_network_check(&fleet, other.id, body, &err), HR_FLEET_OK);
	ck_assert_str_eq(json_object_to_json_string(body), "{ }");
	ck_assert_int_eq(hr_fleet_network_check(&fleet, key.id, body, &err), HR_FLEET_OK);
	ck_assert_uint_eq(hr_json_count(hr_json_at(hr_json_at(body, "network"), "allowOut")), 2);
	ck_assert_int_eq(
	    hr_json_set(body, "network", parsed("{\"allowOut\":[\"a.org:1\"]}"), NULL), 0);
	ck_assert_int_eq(hr_fleet_network_check(&fleet, key.id, body, &err), HR_FLEET_REFUSED);
	/* a limit that cannot be read allows nothing */
	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_int_eq(fleet.store->ops->note_set(fleet.store, "network-of-key-1", "{", &err), 0);
	(void)pthread_mutex_unlock(&fleet.lock);
	ck_assert_int_eq(key.id, 1);
	ck_assert_int_eq(hr_fleet_network_check(&fleet, key.id, body, &err), HR_FLEET_BROKEN);
	limit(NULL);
	ck_assert_int_eq(hr_fleet_network_check(&fleet, key.id, body, &err), HR_FLEET_INVALID);
	ck_assert_ptr_nonnull(strstr(err.msg, "limit"));
	json_object_object_del(body, "network");
	ck_assert_int_eq(hr_fleet_network_check(&fleet, key.id, body, &err), HR_FLEET_OK);
	ck_assert_str_eq(json_object_to_json_string(body), "{ }");
	change(id, HR_FLEET_STOP, HR_FLEET_OK);
	until(id, HR_FLEET_STOPPED);
	set_rules(key.id, id, "{}", HR_FLEET_CONFLICT, NULL);
}
END_TEST

/* A limit is still one where an engine enforces no rules. */
START_TEST(a_limit_of_no_use_starts_nothing)
{
	HR_PUT struct json_object *body = parsed("{}");
	struct hr_err err = {0};

	engine = &ruled;
	begin(&few);
	limit("{}");
	fleet.engine = &fake;
	ck_assert_int_eq(hr_fleet_network_check(&fleet, other.id, body, &err), HR_FLEET_OK);
	ck_assert_int_eq(hr_fleet_network_check(&fleet, key.id, body, &err), HR_FLEET_INVALID);
}
END_TEST

static void *
allow_a(void *id)
{
	set_rules(key.id, id, "{\"allowOut\":[\"a.org\"]}", HR_FLEET_OK, NULL);
	return NULL;
}

static void *
leave_instead(void *id)
{
	set_rules(key.id, id, "{}", HR_FLEET_LEAVING, NULL);
	return NULL;
}

static void
until_waiting(unsigned n)
{
	bool there = false;

	while (!there) {
		(void)pthread_mutex_lock(&fleet.lock);
		there = fleet.waiting == n;
		(void)pthread_mutex_unlock(&fleet.lock);
		(void)sched_yield();
	}
}

/* A stop and another change wait for the one that the engine makes. */
START_TEST(rules_change_one_after_another)
{
	char id[HR_FLEET_ID];
	pthread_t first, second;

	engine = &ruled;
	begin(&few);
	up_with_rules(id);
	world->hold_network = 1;
	ck_assert_int_eq(pthread_create(&first, NULL, allow_a, id), 0);
	while (__atomic_load_n(&world->networks, __ATOMIC_SEQ_CST) == 0)
		(void)sched_yield();
	ck_assert_int_eq(pthread_create(&second, NULL, _i == 0 ? leave_instead : allow_a, id), 0);
	until_waiting(2);
	ck_assert_int_eq(world->networks, 1);
	if (_i == 0) {
		hr_fleet_leave(&fleet);
		ck_assert_int_eq(pthread_join(second, NULL), 0);
	} else {
		ck_assert_int_eq(write(gate[1], "x", 1), 1);
	}
	ck_assert_int_eq(write(gate[1], "x", 1), 1);
	ck_assert_int_eq(pthread_join(first, NULL), 0);
	if (_i != 0)
		ck_assert_int_eq(pthread_join(second, NULL), 0);
	ck_assert_int_eq(world->networks, 1 + _i);
	kept_rules(id, "{\"allowOut\":[\"a.org\"]}");
}
END_TEST

START_TEST(a_stop_waits_for_new_rules)
{
	char id[HR_FLEET_ID];
	pthread_t first;

	engine = &ruled;
	begin(&few);
	up_with_rules(id);
	world->hold_network = 1;
	ck_assert_int_eq(pthread_create(&first, NULL, allow_a, id), 0);
	while (__atomic_load_n(&world->networks, __ATOMIC_SEQ_CST) == 0)
		(void)sched_yield();
	change(id, HR_FLEET_STOP, HR_FLEET_OK);
	ck_assert_int_eq(write(gate[1], "x", 1), 1);
	ck_assert_int_eq(pthread_join(first, NULL), 0);
	until(id, HR_FLEET_STOPPED);
	ck_assert_int_eq(world->stops, 1);
	kept_rules(id, "{\"allowOut\":[\"a.org\"]}");
}
END_TEST

START_TEST(one_store_has_one_service)
{
	struct hr_store *s = open_store();
	struct hr_err err = {0};
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(hr_sqlite_open(dir, true, &err) == NULL && err.code == HR_E_BUSY ? 0 : 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	hr_store_close(s);
	s = open_store();
	hr_store_close(s);
}
END_TEST

START_TEST(a_store_of_another_version_is_left_alone)
{
	char command[160];
	struct hr_err err = {0};
	FILE *f;

	hr_store_close(open_store());
	/* the version stands at offset 60 of the file */
	(void)snprintf(command, sizeof(command), "%s/fleet.db", dir);
	f = fopen(command, "r+");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fseek(f, 60, SEEK_SET), 0);
	ck_assert_uint_eq(fwrite("\0\0\0\7", 1, 4, f), 4);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_ptr_null(hr_sqlite_open(dir, true, &err));
	ck_assert_int_eq(err.code, HR_E_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(err.msg, "version 7"));
}
END_TEST

/* What was killed before its first transaction is made anew where one may be made. */
START_TEST(a_store_that_was_only_begun)
{
	char path[96];
	struct hr_err err = {0};
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/fleet.db", dir);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_ptr_null(hr_sqlite_open(dir, false, &err));
	ck_assert_int_eq(err.code, HR_E_NOTFOUND);
	(void)snprintf(path, sizeof(path), "\"handrail fleet init %s\" makes one", dir);
	ck_assert_msg(strstr(err.msg, path) != NULL, "%s", err.msg);
	/* the attempt has left what a killed one leaves: a file in WAL mode without a table */
	hr_store_close(open_store());
	ck_assert_ptr_nonnull((fleet.store = hr_sqlite_open(dir, false, &err)));
	hr_store_close(fleet.store);
}
END_TEST

START_TEST(notes_are_kept)
{
	struct hr_store *s = open_store();
	HR_FREE char *value = NULL;

	ck_assert_int_eq(s->ops->note_get(s, "drained", &value, NULL), 0);
	ck_assert_ptr_null(value);
	ck_assert_int_eq(s->ops->note_set(s, "drained", "a", NULL), 0);
	ck_assert_int_eq(s->ops->note_set(s, "drained", "true", NULL), 0);
	hr_store_close(s);
	s = open_store();
	ck_assert_int_eq(s->ops->note_get(s, "drained", &value, NULL), 0);
	ck_assert_str_eq(value, "true");
	hr_store_close(s);
}
END_TEST

START_TEST(keys_are_kept_as_sums)
{
	struct hr_store *s = open_store();
	struct hr_fleet_key k = {.name = "k", .scopes = 1}, found;
	struct hr_fleet_key past = {.name = "old", .scopes = 1, .expires = 1};
	char text[64], old[64], path[96], all[65536];
	bool there = false;
	size_t n;
	FILE *f;
	int i;

	ck_assert_int_eq(s->ops->key_make(s, &k, text, NULL), 0);
	ck_assert_int_eq(s->ops->key_make(s, &past, old, NULL), 0);
	ck_assert_int_eq(s->ops->key_find(s, text, &found, NULL), 1);
	ck_assert_int_eq(found.id, k.id);
	ck_assert_int_eq(s->ops->key_find(s, old, &found, NULL), 0);
	ck_assert_int_eq(s->ops->key_find(s, "hrk_", &found, NULL), 0);
	ck_assert_int_eq(s->ops->key_find(s, "' OR 1=1 --", &found, NULL), 0);
	for (i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "%s/fleet.db%s", dir, i == 0 ? "" : "-wal");
		f = fopen(path, "r");
		ck_assert_ptr_nonnull(f);
		n = fread(all, 1, sizeof(all), f);
		(void)fclose(f);
		ck_assert_ptr_null(memmem(all, n, text, strlen(text)));
	}
	ck_assert_int_eq(s->ops->key_revoke(s, k.id, &there, NULL), 0);
	ck_assert(there);
	ck_assert_int_eq(s->ops->key_find(s, text, &found, NULL), 0);
	hr_store_close(s);
}
END_TEST

/* Where a request goes, by its URI, host and headers. %s is the id. */
static const struct {
	const char *uri, *host, *id, *port, *at;
	int status;
} routes[] = {
    {"/%s/alive?a=/b", "h", "", "", "127.0.0.1:1/alive?a=/b", 200},
    {"/%s", "h", "", "", "127.0.0.1:1/", 200},
    {"/%s/health", "h", "", "", "127.0.0.1:1/alive", 200},
    {"/health", "7001-%s.dom.example", "", "", "127.0.0.1:7001/health", 200},
    {"/%s?x", "h", "", "", "127.0.0.1:1/?x", 200},
    {"/%sx/alive", "h", "", "", "", 404},
    {"//%s/alive", "h", "", "", "", 404},
    {"/a%%2F", "7001-%s.dom.example", "", "", "127.0.0.1:7001/a%%2F", 200},
    {"/a", "7001-%s.dom.example:80", "", "", "127.0.0.1:7001/a", 200},
    {"/a", "work-1-%s.dom.example", "", "", "127.0.0.1:7001/a", 200},
    {"/a", "22-%s.dom.example", "", "", "", 404},
    {"/a", "%s.dom.example:80", "", "", "127.0.0.1:1/a", 200},
    {"/a", "%s.dom.example.evil", "", "", "", 404},
    {"/a", "%sx.dom.example", "", "", "", 404},
    {"/a", "vscode-%s.dom.example", "", "", "", 404}, /* it has none */
    {"/a", "7001-%s.dom.example.evil", "", "", "", 404},
    {"/a", "7001-%s-client.dom.example", "", "", "127.0.0.1:7001/a", 200},
    {"/a", "7001-%s-client.x.dom.example", "", "", "", 404},
    {"/a", "7001-%s.other.example", "", "", "", 404},
    {"/start", "h", "%s", "", "127.0.0.1:1/start", 200},
    {"/start", "h", "%s", "7001", "127.0.0.1:7001/start", 200},
    {"/start", "h", "%s", "22", "", 404},
    {"/start", "h", "%s0", "", "", 404},
    {"/start", "h", "%s", "169.254.169.254:80/", "", 404},
    {"/00000000000000000000000000000000/", "h", "", "", "", 404},
};

START_TEST(routes_lead_to_ports_of_the_sandbox_alone)
{
	struct hr_fleet_api api = {.fleet = &fleet, .domain = "dom.example", .registry_prefix = ""};
	char id[HR_FLEET_ID], uri[128], host[128], by[128], at[128];
	struct hr_fleet_request q = {.method = "GET",
	    ABSENT_E2B,
	    .uri = uri,
	    .host = host,
	    .sandbox_id = by,
	    .sandbox_port = routes[_i].port,
	    .session_key = "wrong",
	    .scheme = "http",
	    .api_key = "",
	    .accept = "",
	    .last_event_id = "",
	    .route = HR_FLEET_ROUTE_ASK};
	struct hr_fleet_answer a;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	begin(&few);
	up("s", id);
	(void)snprintf(uri, sizeof(uri), routes[_i].uri, id);
	(void)snprintf(host, sizeof(host), routes[_i].host, id);
	(void)snprintf(by, sizeof(by), routes[_i].id, id);
	(void)snprintf(at, sizeof(at), routes[_i].at, id);
#pragma GCC diagnostic pop
	hr_fleet_handle(&api, &q, &a);
	ck_assert_int_eq(a.status, routes[_i].status);
	ck_assert_str_eq(hr_buf_str(&a.at), at);
	(void)snprintf(at, sizeof(at), "/%s", id);
	ck_assert_str_eq(
	    a.prefix, strncmp(routes[_i].uri, "/%s", 3) == 0 && a.status == 200 ? at : "");
	ck_assert_str_eq(a.server_key, "");
	hr_fleet_answer_done(&a);
}
END_TEST

/* Where a request goes without a key if the server has a socket; `rest` follows its name. */
static const struct {
	const char *name, *uri, *rest;
	int status;
} socket_routes[] = {
    {"", "/a?b", "/a?b", 200},
    {"7001-", "/a%2Fb//c?x=/..", "/port/7001/a%2Fb//c?x=/..", 200},
    {"work-1-", "/.a/...", NULL, 400},
    {"work-1-", "/..", NULL, 400},
    {"work-1-", "/a/%2e%2E/b", NULL, 400},
    {"work-1-", "/a%2f../b", NULL, 400},
    {"work-1-", "/a%00/../b", NULL, 400},
    {"0-", "/", NULL, 404},
    {"vscode-", "/", NULL, 404},
    {"work-2-", "/", NULL, 404},
};

START_TEST(routes_lead_to_a_socket)
{
	struct hr_fleet_api api = {.fleet = &fleet, .domain = "dom.example", .registry_prefix = ""};
	bool program = socket_routes[_i].status == 200 && *socket_routes[_i].name != '\0';
	struct hr_fleet_answer a;
	char id[HR_FLEET_ID], host[128], want[128] = "";
	struct hr_fleet_request q = {.method = "GET",
	    ABSENT_E2B,
	    .uri = socket_routes[_i].uri,
	    .host = host,
	    .sandbox_id = "",
	    .sandbox_port = "",
	    .session_key = "wrong",
	    .scheme = "http",
	    .route = HR_FLEET_ROUTE_ASK};

	world->at = "unix:/state/run/sockets/name";
	begin(&few);
	up("s", id);
	(void)snprintf(host, sizeof(host), "%s%s.dom.example", socket_routes[_i].name, id);
	if (socket_routes[_i].rest != NULL)
		(void)snprintf(
		    want, sizeof(want), "unix:/proc/self/fd/7/name:%s", socket_routes[_i].rest);
	hr_fleet_handle(&api, &q, &a);
	ck_assert_int_eq(a.status, socket_routes[_i].status);
	ck_assert_str_eq(hr_buf_str(&a.at), want);
	ck_assert_int_eq(a.own_origin, program);
	ck_assert_str_eq(a.server_key, program ? "inner" : "");
	hr_fleet_answer_done(&a);
}
END_TEST

/* Searches by a signature are open to all: only few wait, and no key's turn is taken. */
START_TEST(few_searches_without_a_key_wait)
{
	struct hr_fleet_api api = {.fleet = &fleet, .registry_prefix = ""};
	struct hr_fleet_place waiting[3], turn;
	struct hr_fleet_request q = {.method = "GET",
	    ABSENT_E2B,
	    .uri = "/files?path=x&signature=y",
	    .host = "h",
	    .sandbox_id = "",
	    .sandbox_port = "",
	    .session_key = "",
	    .scheme = "http",
	    .route = HR_FLEET_ROUTE_ASK};
	int i, statuses[2];

	begin(&few);
	for (i = 0; i < 3; i++)
		waiting[i] =
		    (struct hr_fleet_place){i > 0 ? &waiting[i - 1] : NULL, HR_FLEET_NO_KEY};
	for (i = 0; i < 2; i++) {
		struct hr_fleet_answer a;

		fleet.turns = i == 0 ? &waiting[2] : NULL;
		hr_fleet_handle(&api, &q, &a);
		statuses[i] = a.status;
		hr_fleet_answer_done(&a);
	}
	fleet.turns = &waiting[2];
	for (i = -1; i < 2; i += 2) {
		ck_assert(hr_fleet_turn_take(&fleet, &turn, i));
		hr_fleet_turn_give(&fleet, &turn);
	}
	fleet.turns = NULL;
	ck_assert_int_eq(statuses[0], 429);
	ck_assert_int_eq(statuses[1], 401);
}
END_TEST

static char api_key[64];

static void
make_key(void)
{
	struct hr_fleet_key k = {.name = "k", .scopes = 7};

	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_int_eq(fleet.store->ops->key_make(fleet.store, &k, api_key, NULL), 0);
	(void)pthread_mutex_unlock(&fleet.lock);
}

static int
knows_nothing(struct hr_store *base, const char *id, struct hr_fleet_row *ret, struct hr_err *err)
{
	(void)base;
	(void)id;
	(void)ret;
	(void)err;
	return 0;
}

/* A distant store is asked for an id that is not known here, which needs no key. */
START_TEST(few_searches_for_unknown_ids_wait)
{
	struct hr_fleet_api api = {.fleet = &fleet, .domain = "dom.example", .registry_prefix = ""};
	const struct hr_store_ops *near;
	struct hr_store_ops far;
	struct hr_fleet_place waiting[3];
	struct hr_fleet_request q = {.method = "GET",
	    ABSENT_E2B,
	    .sandbox_id = "",
	    .sandbox_port = "",
	    .session_key = "k",
	    .api_key = api_key,
	    .scheme = "http",
	    .accept = "",
	    .last_event_id = ""};
	static const char *const hosts[] = {
	    "h", "49983-00000000000000000000000000000000.dom.example", "h"};
	static const char *const uris[] = {"/00000000000000000000000000000000/x", "/x",
	    "/handrail/v1/usage?runtime_id=00000000000000000000000000000000"};
	static const int statuses[] = {404, 502, 404};
	struct hr_fleet_answer a;
	size_t i;

	begin(&few);
	make_key();
	near = fleet.store->ops;
	far = *near;
	far.known = knows_nothing;
	fleet.store->ops = &far;
	for (i = 0; i < 3; i++)
		waiting[i] =
		    (struct hr_fleet_place){i > 0 ? &waiting[i - 1] : NULL, HR_FLEET_NO_KEY};
	for (i = 0; i < 6; i++) {
		bool waits = i % 2 == 0;

		q.host = hosts[i / 2];
		q.uri = uris[i / 2];
		q.route = i / 2 < 2 ? HR_FLEET_ROUTE_ASK : HR_FLEET_ROUTE_NONE;
		fleet.turns = waits ? &waiting[2] : NULL;
		hr_fleet_handle(&api, &q, &a);
		fleet.turns = NULL;
		ck_assert_msg(a.status == (waits ? 503 : statuses[i / 2]), "%zu: %d %s", i,
		    a.status, hr_buf_str(&a.body));
		ck_assert_int_eq(a.retry_after_s > 0, waits);
		ck_assert_int_eq(
		    strstr(hr_buf_str(&a.body), "unknown sandboxes wait") != NULL, waits);
		hr_fleet_answer_done(&a);
	}
	fleet.store->ops = near;
}
END_TEST

/* The engine gave no port. */
START_TEST(without_an_address_there_is_no_port)
{
	struct hr_fleet_api api = {.fleet = &fleet, .domain = "dom.example", .registry_prefix = ""};
	struct hr_fleet_answer a;
	char id[HR_FLEET_ID], host[128];
	struct hr_fleet_request q = {.method = "GET",
	    ABSENT_E2B,
	    .uri = "/",
	    .host = host,
	    .sandbox_id = "",
	    .sandbox_port = "",
	    .session_key = "",
	    .scheme = "http",
	    .route = HR_FLEET_ROUTE_ASK};

	world->at = "";
	begin(&few);
	up("s", id);
	(void)snprintf(host, sizeof(host), "work-1-%s.dom.example", id);
	hr_fleet_handle(&api, &q, &a);
	ck_assert_int_eq(a.status, 404);
	hr_fleet_answer_done(&a);
}
END_TEST

/* ---- events ---- */

static void
get(const char *uri, const char *accept, struct hr_fleet_answer *ret)
{
	const struct hr_fleet_api api = {.fleet = &fleet, .registry_prefix = ""};
	struct hr_fleet_request q = {.method = "GET",
	    ABSENT_E2B,
	    .uri = uri,
	    .host = "h",
	    .scheme = "http",
	    .api_key = api_key,
	    .accept = accept,
	    .last_event_id = ""};

	hr_fleet_handle(&api, &q, ret);
}

static void
post(const char *uri, const char *body, struct hr_fleet_answer *ret)
{
	const struct hr_fleet_api api = {.fleet = &fleet, .registry_prefix = ""};
	struct hr_fleet_request q = {.method = "POST",
	    ABSENT_E2B,
	    .uri = uri,
	    .host = "h",
	    .scheme = "http",
	    .api_key = api_key,
	    .accept = "",
	    .last_event_id = "",
	    .body = body,
	    .body_len = strlen(body)};

	hr_fleet_handle(&api, &q, ret);
}

static void
revoke_key(const char *want)
{
	struct hr_fleet_answer a = {.status = 0};
	char body[64];

	make_key();
	(void)snprintf(body, sizeof(body), "{\"id\":%lld,\"stop\":true}", (long long)key.id);
	post("/handrail/v1/keys/revoke", body, &a);
	ck_assert_int_eq(a.status, 200);
	ck_assert_str_eq(hr_buf_str(&a.body), want);
	hr_fleet_answer_done(&a);
}

static void
die(char id[HR_FLEET_ID])
{
	struct hr_fleet_row row;

	world->fail_start = 1;
	ck_assert_int_eq(start(&key, "s", &row), HR_FLEET_OK);
	(void)snprintf(id, HR_FLEET_ID, "%s", row.id);
	hr_fleet_row_done(&row);
}

/* Its files are deleted once, when its time is over, and not when it dies. */
START_TEST(files_of_one_that_died_have_an_end)
{
	struct hr_fleet_settings set = few;
	char id[HR_FLEET_ID];

	engine = &keeper;
	set.idle_stop_s = 1;
	begin(&set);
	die(id);
	until(id, HR_FLEET_STOPPED);
	ck_assert_int_eq(world->clears, 1);
	ck_assert_int_eq(world->stops, 1);
}
END_TEST

START_TEST(keys_with_members_of_other_types)
{
	static const char *const bodies[] = {"\"sandboxes\":\"5\"", "\"sandboxes\":1.5",
	    "\"factors\":[]", "\"expires\":\"2100\"", "\"expires\":true", "\"scope\":[\"read\"]"};
	struct hr_fleet_answer a;
	char body[100];
	size_t i;

	begin(&few);
	make_key();
	for (i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
		(void)snprintf(body, sizeof(body), "{\"name\":\"n\",%s}", bodies[i]);
		post("/handrail/v1/keys", body, &a);
		ck_assert_msg(a.status == 400, "%s: %d", body, a.status);
		hr_fleet_answer_done(&a);
	}
	post("/handrail/v1/keys",
	    "{\"name\":\"n\",\"sandboxes\":5,\"factors\":null,\"scope\":\"read\"}", &a);
	ck_assert_int_eq(a.status, 200);
	hr_fleet_answer_done(&a);
	(void)snprintf(body, sizeof(body), "{\"id\":%lld,\"stop\":\"yes\"}", (long long)key.id);
	post("/handrail/v1/keys/revoke", body, &a);
	ck_assert_int_eq(a.status, 400);
	hr_fleet_answer_done(&a);
}
END_TEST

START_TEST(a_key_takes_the_files_of_those_that_died_with_it)
{
	char id[HR_FLEET_ID];

	engine = &keeper;
	begin(&few);
	die(id);
	until(id, HR_FLEET_DIED);
	revoke_key("{\"revoked\":true,\"sandboxes\":1,\"stopped\":true}");
	until(id, HR_FLEET_STOPPED);
	ck_assert_int_eq(world->stops, 1);
}
END_TEST

static int
move_nothing(struct hr_store *s, const struct hr_fleet_row *row, enum hr_fleet_state from,
    enum hr_fleet_state to, const char *reason, unsigned how, bool *ret_moved, struct hr_err *err)
{
	(void)s;
	(void)row;
	(void)from;
	(void)to;
	(void)reason;
	(void)how;
	(void)err;
	*ret_moved = false;
	return 0;
}

START_TEST(a_revocation_that_stopped_nothing_says_so)
{
	const struct hr_store_ops *ops;
	static struct hr_store_ops others;
	char id[HR_FLEET_ID];

	begin(&few);
	up("s", id);
	ops = fleet.store->ops;
	others = *ops;
	others.move = move_nothing;
	fleet.store->ops = &others;
	revoke_key("{\"revoked\":true,\"sandboxes\":1,\"stopped\":false}");
	fleet.store->ops = ops;
	until(id, HR_FLEET_RUNNING);
}
END_TEST

/* A store that asks a server: its calls wait without the lock until the test lets them go on. */
static const struct hr_store_ops *near;
static int reached[2];

static void
wait_outside(void)
{
	char c;

	(void)pthread_mutex_unlock(&fleet.lock);
	ck_assert_int_eq(write(reached[1], "x", 1), 1);
	ck_assert_int_eq(read(gate[0], &c, 1), 1);
	(void)pthread_mutex_lock(&fleet.lock);
}

static enum hr_fleet_result
far_reserve(struct hr_store *s, struct hr_fleet_row *row, const struct hr_fleet_limits *of_key,
    const struct hr_fleet_limits *of_all, hr_may_fn *fn, void *arg, struct hr_err *err)
{
	wait_outside();
	return near->reserve(s, row, of_key, of_all, fn, arg, err);
}

static int
far_find_session(struct hr_store *s, int64_t k, const char *session, bool last,
    struct hr_fleet_row *ret, struct hr_err *err)
{
	wait_outside();
	return near->find_session(s, k, session, last, ret, err);
}

/* Knows the sandbox as running and unused for long; a pause is over when it is asked again. */
static int
known_once(struct hr_store *s, const char *id, struct hr_fleet_row *ret, struct hr_err *err)
{
	static bool asked;
	bool moved, again = asked;
	int r;

	asked = true;
	(void)pthread_mutex_lock(&fleet.lock);
	r = near->find(s, id, ret, err);
	if (again && r == 1) {
		ck_assert_int_eq(
		    near->move(s, ret, HR_FLEET_RUNNING, HR_FLEET_PAUSED, "idle", 0, &moved, NULL),
		    0);
		ck_assert(moved);
		hr_fleet_row_done(ret);
		r = 0;
	}
	(void)pthread_mutex_unlock(&fleet.lock);
	ret->active = 1;
	return r;
}

/* A request that came while the pause was written is sent to a sandbox that runs again. */
START_TEST(a_request_during_an_idle_pause_wakes)
{
	struct hr_fleet_settings set = few;
	static struct hr_store_ops ops;
	struct hr_fleet_row row;
	struct hr_err err = {0};
	char id[HR_FLEET_ID];

	set.idle_pause_s = 1000;
	begin(&set);
	up("s", id);
	(void)pthread_mutex_lock(&fleet.lock);
	near = fleet.store->ops;
	ops = *near;
	ops.known = known_once;
	fleet.store->ops = &ops;
	(void)pthread_mutex_unlock(&fleet.lock);
	ck_assert_int_eq(hr_fleet_route(&fleet, id, true, &row, &err), HR_FLEET_OK);
	ck_assert_int_eq(row.state, HR_FLEET_RUNNING);
	ck_assert_int_eq(world->resumes, 1);
	hr_fleet_row_done(&row);
	(void)pthread_mutex_lock(&fleet.lock);
	fleet.store->ops = near;
	(void)pthread_mutex_unlock(&fleet.lock);
}
END_TEST

/* Another process of a shared store changes the row between a look at it and its change. */
static int ended_first; /* so many changes come too late: the sandbox has been stopped */
static int lost;        /* so many look-ups find nothing */
static int broken;      /* so many calls fail, the reservation after its effect */
static int unread;      /* so many looks for idle ones fail */
static int rekeyed;     /* before that look-up a resume gives the sandbox another session key */

static int
others_move(struct hr_store *s, const struct hr_fleet_row *row, enum hr_fleet_state from,
    enum hr_fleet_state to, const char *reason, unsigned how, bool *ret_moved, struct hr_err *err)
{
	int r;

	if (broken > 0) {
		broken--;
		return hr_err_set(err, HR_E_SYS, "the disk is full");
	}
	if (ended_first == 0)
		return near->move(s, row, from, to, reason, how, ret_moved, err);
	ended_first--;
	r = near->move(s, row, from, HR_FLEET_STOPPED, "by another process", 0, ret_moved, err);
	*ret_moved = false;
	return r;
}

static int
others_find(struct hr_store *s, const char *id, struct hr_fleet_row *ret, struct hr_err *err)
{
	if (rekeyed > 0 && --rekeyed == 0) {
		struct hr_fleet_row row = {.request = NULL};
		bool moved = false;

		ck_assert_int_eq(near->find(s, id, &row, err), 1);
		ck_assert_int_eq(hr_fleet_begin(&fleet, &row, HR_FLEET_RESUMING, HR_JOB_RESUME,
				     NULL, HR_MOVE_NEW_KEY, &moved, err),
		    0);
		ck_assert(moved);
		hr_fleet_row_done(&row);
	}
	if (lost == 0)
		return near->find(s, id, ret, err);
	return --lost > 0 ? near->find(s, id, ret, err) : 0;
}

static int
others_least(struct hr_store *s, enum hr_fleet_state state, char ret_id[HR_FLEET_ID],
    int64_t *ret_active, struct hr_err *err)
{
	int r = near->least_active(s, state, ret_id, ret_active, err);

	if (unread == 0 || r != 1)
		return r;
	unread--;
	return hr_err_set(err, HR_E_SYS, "the disk is gone");
}

static enum hr_fleet_result
others_reserve(struct hr_store *s, struct hr_fleet_row *row, const struct hr_fleet_limits *of_key,
    const struct hr_fleet_limits *of_all, hr_may_fn *fn, void *arg, struct hr_err *err)
{
	enum hr_fleet_result r = near->reserve(s, row, of_key, of_all, fn, arg, err);

	if (broken == 0)
		return r;
	broken--;
	(void)hr_err_set(err, HR_E_SYS, "no answer");
	return HR_FLEET_BROKEN;
}

static int
others_claim(struct hr_store *s, const struct hr_fleet_row *row, bool *ret_mine, struct hr_err *err)
{
	(void)s;
	(void)row;
	(void)err;
	*ret_mine = true;
	return 0;
}

static void
share_store(struct hr_store_ops *ops)
{
	(void)pthread_mutex_lock(&fleet.lock);
	near = fleet.store->ops;
	*ops = *near;
	ops->move = others_move;
	ops->find = others_find;
	ops->reserve = others_reserve;
	ops->claim = others_claim;
	fleet.store->ops = ops;
	(void)pthread_mutex_unlock(&fleet.lock);
}

static struct hr_store_ops shared_ops;

START_TEST(one_that_was_ended_meanwhile_is_not_resumed)
{
	struct hr_fleet_row row;
	struct hr_err err = {0};
	char id[HR_FLEET_ID];

	begin(&few);
	up("s", id);
	change(id, HR_FLEET_PAUSE, HR_FLEET_OK);
	until(id, HR_FLEET_PAUSED);
	share_store(&shared_ops);
	ended_first = 1;
	/* a start makes the next one */
	ck_assert_int_eq(start(&key, "s", &row), HR_FLEET_OK);
	ck_assert_int_eq(row.state, HR_FLEET_STARTING);
	ck_assert_str_ne(row.id, id);
	until(row.id, HR_FLEET_RUNNING);
	change(row.id, HR_FLEET_PAUSE, HR_FLEET_OK);
	until(row.id, HR_FLEET_PAUSED);
	(void)snprintf(id, sizeof(id), "%s", row.id);
	hr_fleet_row_done(&row);
	/* and a request is told */
	ended_first = 1;
	ck_assert_int_eq(hr_fleet_route(&fleet, id, true, &row, &err), HR_FLEET_CONFLICT);
	ck_assert_int_eq(row.state, HR_FLEET_STOPPED);
	hr_fleet_row_done(&row);
}
END_TEST

/* The key was right before the request waited for the resume. */
START_TEST(a_key_that_was_replaced_meanwhile_is_refused)
{
	struct hr_fleet_api api = {.fleet = &fleet, .registry_prefix = ""};
	struct hr_fleet_answer a;
	struct hr_fleet_row row;
	struct hr_err err = {0};
	char id[HR_FLEET_ID], uri[128], was[HR_FLEET_SESSION_KEY];
	struct hr_fleet_request q = {.method = "GET",
	    ABSENT_E2B,
	    .uri = uri,
	    .host = "h",
	    .sandbox_id = "",
	    .sandbox_port = "",
	    .session_key = was,
	    .scheme = "http",
	    .route = HR_FLEET_ROUTE_ASK};
	int times;

	begin(&few);
	up("s", id);
	(void)snprintf(uri, sizeof(uri), "/%s/alive", id);
	share_store(&shared_ops);
	for (times = 0; times < 4; times++) {
		if (times == 2) {
			q.e2b_id = id;
			q.e2b_port = "49983";
			q.uri = "/envs";
			q.access_token = was;
			q.session_key = "";
		}
		change(id, HR_FLEET_PAUSE, HR_FLEET_OK);
		until(id, HR_FLEET_PAUSED);
		(void)hr_fleet_look(&fleet, id, &row, &err);
		memcpy(was, row.session_key, sizeof(was));
		hr_fleet_row_done(&row);
		rekeyed = times % 2 == 0 ? 0 : 2; /* the first look is that of the check */
		hr_fleet_handle(&api, &q, &a);
		ck_assert_int_eq(rekeyed, 0);
		ck_assert_int_eq(a.status, times == 3 ? 401 : 200);
		ck_assert_str_eq(a.server_key, times % 2 == 0 ? "inner" : "");
		hr_fleet_answer_done(&a);
		(void)hr_fleet_look(&fleet, id, &row, &err);
		ck_assert_int_eq(strcmp(row.session_key, was) == 0, times % 2 == 0);
		hr_fleet_row_done(&row);
	}
}
END_TEST

START_TEST(one_that_was_removed_meanwhile_is_not_found)
{
	struct hr_fleet_settings set = few;
	struct hr_fleet_row row;
	struct hr_err err = {0};
	char id[HR_FLEET_ID];

	set.patience_s = 1;
	begin(&set);
	world->hold = 1;
	ck_assert_int_eq(start(&key, "s", &row), HR_FLEET_OK);
	(void)snprintf(id, sizeof(id), "%s", row.id);
	hr_fleet_row_done(&row);
	/* its job has found it */
	while (__atomic_load_n(&world->starts, __ATOMIC_SEQ_CST) == 0)
		(void)sched_yield();
	share_store(&shared_ops);
	lost = 2;
	ck_assert_int_eq(hr_fleet_wait(&fleet, id, &row, &err), HR_FLEET_NOT_FOUND);
	hr_fleet_row_done(&row);
	lost = 2;
	ended_first = 1;
	change(id, HR_FLEET_STOP, HR_FLEET_NOT_FOUND);
	ck_assert_int_eq(write(gate[1], "x", 1), 1);
}
END_TEST

static hr_fleet_news_fn *news;
static void *news_arg;

static int
fake_watch(void *self, hr_fleet_news_fn *fn, void *arg, struct hr_err *err)
{
	char c;

	(void)self;
	news_arg = arg;
	news = fn;
	ck_assert_int_eq(write(reached[1], "x", 1), 1);
	ck_assert_int_eq(read(gate[0], &c, 1), 1);
	return hr_err_set(err, HR_E_RUNTIME, "it ends");
}

/* An end is reported once: the service looks again for one that it could not write. */
START_TEST(an_end_that_is_told_once_is_not_lost)
{
	static struct hr_fleet_engine watched;
	struct hr_fleet_row row;
	char id[HR_FLEET_ID], c;

	watched = fake;
	watched.watch = fake_watch;
	engine = &watched;
	ck_assert_int_eq(pipe(reached), 0);
	begin(&few);
	ck_assert_int_eq(read(reached[0], &c, 1), 1);
	up("s", id);
	share_store(&shared_ops);
	(void)snprintf(find_made(id)->state, 32, "exited");
	broken = 1;
	ck_assert_int_eq(news(news_arg, id, "die", "exit status 1"), 0);
	until(id, HR_FLEET_DIED);
	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_int_eq(near->find(fleet.store, id, &row, NULL), 1);
	(void)pthread_mutex_unlock(&fleet.lock);
	ck_assert_str_eq(row.reason, "ended: the engine's state is \"exited\"");
	hr_fleet_row_done(&row);
	ck_assert_int_eq(write(gate[1], "x", 1), 1);
}
END_TEST

/* A failed read of the store is repeated without waiting for the next change. */
START_TEST(an_idle_one_is_found_after_an_error)
{
	struct hr_fleet_settings set = few;
	char id[HR_FLEET_ID];

	set.idle_stop_s = 1;
	begin(&set);
	up("s", id);
	share_store(&shared_ops);
	(void)pthread_mutex_lock(&fleet.lock);
	shared_ops.least_active = others_least;
	unread = 1;
	(void)pthread_mutex_unlock(&fleet.lock);
	change(id, HR_FLEET_PAUSE, HR_FLEET_OK);
	until(id, HR_FLEET_STOPPED);
	ck_assert_int_eq(unread, 0);
}
END_TEST

START_TEST(what_is_left_over_is_told)
{
	char id[HR_FLEET_ID];
	struct hr_fleet_row row;

	begin(&few);
	world->fail_start = 1;
	world->fail_stop = 3;
	ck_assert_int_eq(start(&key, "s", &row), HR_FLEET_OK);
	(void)snprintf(id, sizeof(id), "%s", row.id);
	hr_fleet_row_done(&row);
	until(id, HR_FLEET_DIED);
	until_told(1, HR_ALERT_ENGINE, true, "it cannot be removed");
	until_told(2, HR_ALERT_ENGINE, false, "it cannot be removed");
}
END_TEST

START_TEST(a_pools_sandbox_may_be_there_in_spite_of_an_error)
{
	begin(&few);
	share_store(&shared_ops);
	(void)pthread_mutex_lock(&fleet.lock);
	broken = 1;
	(void)pthread_mutex_unlock(&fleet.lock);
	set_pool(1, 0);
	until_warm(1);
	ck_assert_int_eq(world->starts, 1);
}
END_TEST

static void *
start_apart(void *arg)
{
	struct hr_fleet_row row;

	*(enum hr_fleet_result *)arg = start(&key, "s", &row);
	hr_fleet_row_done(&row);
	return NULL;
}

/* A start is decided when it takes effect: also by a drain or a revocation that came while it
 * waited for the store. 0: drained, 1: revoked, 2: revoked, and the session has a sandbox. */
START_TEST(a_start_under_way_passes_nothing)
{
	enum hr_fleet_result got = HR_FLEET_BROKEN;
	static struct hr_store_ops ops;
	char id[HR_FLEET_ID], c;
	struct hr_err err = {0};
	size_t before;
	pthread_t t;
	bool found;

	begin(&few);
	ck_assert_int_eq(pipe(reached), 0);
	if (_i == 2)
		up("s", id);
	before = made_count();
	near = fleet.store->ops;
	ops = *near;
	if (_i == 2)
		ops.find_session = far_find_session;
	else
		ops.reserve = far_reserve;
	fleet.store->ops = &ops;
	ck_assert_int_eq(pthread_create(&t, NULL, start_apart, &got), 0);
	ck_assert_int_eq(read(reached[0], &c, 1), 1);
	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_int_eq(_i == 0 ? hr_fleet_drain(&fleet, true, &err)
				 : near->key_revoke(fleet.store, key.id, &found, &err),
	    0);
	(void)pthread_mutex_unlock(&fleet.lock);
	ck_assert_int_eq(write(gate[1], "x", 1), 1);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert_int_eq(got, _i == 0 ? HR_FLEET_DRAINED : HR_FLEET_REVOKED);
	ck_assert_uint_eq(made_count(), before);
	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_ptr_null(fleet.jobs);
	fleet.store->ops = near;
	(void)pthread_mutex_unlock(&fleet.lock);
}
END_TEST

/* Lists the sandbox of a page of one, "" where there is none; ret_next: "" for the last page. */
static void
list_one(const char *after, char session[8], char id[HR_FLEET_ID], char ret_next[128])
{
	HR_PUT struct json_object *o = NULL;
	struct json_object *one;
	struct hr_fleet_answer a = {.status = 0};
	char uri[256];

	(void)snprintf(uri, sizeof(uri), "/list?limit=1&after=%s", after);
	get(uri, "", &a);
	ck_assert_int_eq(a.status, 200);
	ck_assert_int_eq(hr_json_decode(a.body.p, a.body.len, &o, NULL), 0);
	one = hr_json_entry(hr_json_at(o, "runtimes"), 0);
	(void)snprintf(session, 8, "%s", hr_json_text_or(one, "session_id", ""));
	(void)snprintf(id, HR_FLEET_ID, "%s", hr_json_text_or(one, "runtime_id", ""));
	(void)snprintf(ret_next, 128, "%s", hr_json_text_or(o, "next", ""));
	hr_fleet_answer_done(&a);
}

static void
read_id(void *arg, const struct hr_fleet_row *row)
{
	char(*id)[HR_FLEET_ID] = arg;

	ck_assert_str_eq(*id, ""); /* of one row a page */
	memcpy(*id, row->id, sizeof(*id));
}

/* Returns the steps that the store's statements have made since the last call. */
static int
steps(const struct hr_sqlite *s)
{
	int n = 0;
	size_t i;

	for (i = 0; i < s->n; i++)
		n += sqlite3_stmt_status(s->statements[i].st, SQLITE_STMTSTATUS_VM_STEP, 1);
	return n;
}

/* Pages of all keys together, of one row each. Ended sandboxes, of which there are many, do not
 * delay them. */
START_TEST(pages_of_all_keys)
{
	static const char ended[] =
	    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"
	    "INSERT INTO sandboxes (id, key, session, state, request, factor, session_key, created,"
	    " active) SELECT printf('%032x', i), 1, 's', 6, '{}', 1, 'k', i, 1 FROM n";
	struct hr_sqlite *s;
	struct hr_fleet_row row;
	struct hr_err err = {0};
	struct hr_fleet_key mine, second = {.name = "second", .scopes = HR_SCOPE_USE};
	char text[64], ids[4][HR_FLEET_ID] = {"", "", "", ""}, made[2][HR_FLEET_ID];
	int i;

	begin(&few);
	make_key();
	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_int_eq(fleet.store->ops->key_find(fleet.store, api_key, &mine, NULL), 1);
	ck_assert_int_eq(fleet.store->ops->key_make(fleet.store, &second, text, &err), 0);
	(void)pthread_mutex_unlock(&fleet.lock);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(start(i == 0 ? &mine : &second, "a", &row), HR_FLEET_OK);
		memcpy(made[i], row.id, sizeof(made[i]));
		until(row.id, HR_FLEET_RUNNING);
		hr_fleet_row_done(&row);
	}
	(void)pthread_mutex_lock(&fleet.lock);
	s = (struct hr_sqlite *)(void *)fleet.store;
	ck_assert_int_eq(sqlite3_exec(s->db, ended, NULL, NULL, NULL), SQLITE_OK);
	(void)steps(s);
	for (i = 1; i < 4; i++)
		ck_assert_int_eq(fleet.store->ops->page(
				     fleet.store, 0, true, ids[i - 1], 1, read_id, &ids[i], &err),
		    0);
	ck_assert_int_lt(steps(s), 1000);
	(void)pthread_mutex_unlock(&fleet.lock);
	ck_assert(strcmp(ids[1], made[0]) == 0
		      ? strcmp(ids[2], made[1]) == 0
		      : strcmp(ids[1], made[1]) == 0 && strcmp(ids[2], made[0]) == 0);
	ck_assert_str_eq(ids[3], "");
}
END_TEST

/* Lists the sandboxes as a client of the E2B API. Returns their ids in ascending order, as JSON. */
static void
list_e2b(const char *uri, struct hr_buf *ret_ids)
{
	const struct hr_fleet_options options = {.dir = dir};
	const struct hr_fleet_api api = {
	    .fleet = &fleet, .registry_prefix = "", .options = &options};
	struct hr_fleet_request q = {.method = "GET",
	    ABSENT_E2B,
	    .route = HR_FLEET_ROUTE_E2B,
	    .uri = uri,
	    .host = "h",
	    .scheme = "http",
	    .api_key = api_key,
	    .accept = "",
	    .last_event_id = ""};
	struct hr_fleet_answer a = {.status = 0};
	HR_PUT struct json_object *list = NULL;
	size_t i;

	hr_fleet_handle(&api, &q, &a);
	ck_assert_int_eq(a.status, 200);
	ck_assert_int_eq(hr_json_decode(a.body.p, a.body.len, &list, NULL), 0);
	hr_buf_reset(ret_ids);
	for (i = 0; i < hr_json_count(list); i++)
		hr_buf_addf(
		    ret_ids, "%s ", hr_json_text_or(hr_json_entry(list, i), "sandboxID", ""));
	hr_fleet_answer_done(&a);
}

/* The answer to a fork names branches that still start; the answer to a create, which has not come,
 * names none. */
START_TEST(branches_are_listed_before_they_run)
{
	static const char *const sessions[] = {"one", "two"}, *const lists[] = {
								  "/v2/sandboxes?order=asc",
								  "/sandboxes"};
	struct hr_fleet_settings set = few;
	struct hr_fleet_fork how = {.sessions = sessions, .n = 2};
	struct hr_fleet_row parent, created, branches[2];
	struct hr_fleet_key mine;
	HR_FREE char *json = NULL;
	struct hr_err err = {0};
	HR_BUF(ids, 4096);
	size_t i;

	engine = &copying;
	set.patience_s = 1; /* the fork waits no longer for its branches */
	begin(&set);
	make_key();
	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_int_eq(fleet.store->ops->key_find(fleet.store, api_key, &mine, NULL), 1);
	(void)pthread_mutex_unlock(&fleet.lock);
	ck_assert_int_eq(start(&mine, "s", &parent), HR_FLEET_OK);
	until(parent.id, HR_FLEET_RUNNING);
	world->hold = 1;
	how.id = parent.id;
	ck_assert_int_eq(hr_fleet_fork(&fleet, &mine, &how, branches, &json, &err), HR_FLEET_OK);
	ck_assert_int_eq(start(&mine, "t", &created), HR_FLEET_OK);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(branches[i].state, HR_FLEET_STARTING);
		list_e2b(lists[i], &ids);
		ck_assert_uint_eq(ids.len, 3 * HR_FLEET_ID);
		ck_assert_ptr_nonnull(strstr(ids.p, parent.id));
		ck_assert_ptr_nonnull(strstr(ids.p, branches[0].id));
		ck_assert_ptr_nonnull(strstr(ids.p, branches[1].id));
	}
	ck_assert_int_eq(write(gate[1], "xxx", 3), 3);
	until(created.id, HR_FLEET_RUNNING);
	list_e2b(lists[0], &ids);
	ck_assert_ptr_nonnull(strstr(ids.p, created.id));
	for (i = 0; i < 2; i++) {
		until(branches[i].id, HR_FLEET_RUNNING);
		hr_fleet_row_done(&branches[i]);
	}
	hr_fleet_row_done(&parent);
	hr_fleet_row_done(&created);
}
END_TEST

/* A fork whose parent ended before its turn is told what it would be told later. */
START_TEST(a_parent_that_was_removed_meanwhile_is_not_found)
{
	static const char *const sessions[] = {"one"};
	struct hr_fleet_fork how = {.sessions = sessions, .n = 1};
	struct hr_fleet_row parent, branch;
	HR_FREE char *json = NULL;
	struct hr_err err = {0};

	engine = &copying;
	begin(&few);
	ck_assert_int_eq(start(&key, "s", &parent), HR_FLEET_OK);
	until(parent.id, HR_FLEET_RUNNING);
	share_store(&shared_ops);
	how.id = parent.id;
	lost = 2; /* the first look finds it */
	ck_assert_int_eq(
	    hr_fleet_fork(&fleet, &key, &how, &branch, &json, &err), HR_FLEET_NOT_FOUND);
	ck_assert_int_eq(lost, 0);
	ck_assert_int_eq(hr_fleet_fork(&fleet, &key, &how, &branch, &json, &err), HR_FLEET_OK);
	hr_fleet_row_done(&branch);
	hr_fleet_row_done(&parent);
}
END_TEST

static int
forgetful_set_request(struct hr_store *s, const struct hr_fleet_row *row, const char *request,
    bool *ret_found, struct hr_err *err)
{
	(void)s;
	(void)row;
	(void)request;
	(void)err;
	*ret_found = false;
	return 0;
}

/* No record would say that its branches exist, and the next start would end them. */
START_TEST(a_fork_without_the_record_of_its_first_branch_fails)
{
	static struct hr_store_ops forgetful; /* the clock's thread outlives this function */
	static const char *const sessions[] = {"one", "two"};
	struct hr_fleet_fork how = {.sessions = sessions, .n = 2};
	struct hr_fleet_row parent, branches[2];
	struct hr_fleet_key mine;
	HR_FREE char *json = NULL;
	struct hr_err err = {0};
	size_t i;

	engine = &copying;
	begin(&few);
	make_key();
	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_int_eq(fleet.store->ops->key_find(fleet.store, api_key, &mine, NULL), 1);
	forgetful = *fleet.store->ops;
	forgetful.set_request = forgetful_set_request;
	fleet.store->ops = &forgetful;
	(void)pthread_mutex_unlock(&fleet.lock);
	ck_assert_int_eq(start(&mine, "s", &parent), HR_FLEET_OK);
	until(parent.id, HR_FLEET_RUNNING);
	how.id = parent.id;
	ck_assert_int_eq(
	    hr_fleet_fork(&fleet, &mine, &how, branches, &json, &err), HR_FLEET_BROKEN);
	ck_assert_ptr_nonnull(strstr(err.msg, "the record of the first branch"));
	for (i = 0; i < 2; i++) {
		until(branches[i].id, HR_FLEET_STOPPED);
		hr_fleet_row_done(&branches[i]);
	}
	hr_fleet_row_done(&parent);
}
END_TEST

/* With a store that has pages, and without. */
START_TEST(a_page_follows_one_that_has_ended)
{
	static struct hr_store_ops without; /* the clock's thread outlives this function */
	struct hr_fleet_answer a = {.status = 0};
	struct hr_fleet_row row;
	struct hr_err err = {0};
	char next[128], last[128], first[8], second[8], id[HR_FLEET_ID], other_id[HR_FLEET_ID];
	struct hr_fleet_key mine;
	int i;

	begin(&few);
	make_key();
	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_int_eq(fleet.store->ops->key_find(fleet.store, api_key, &mine, NULL), 1);
	without = *fleet.store->ops;
	without.page = NULL;
	if (_i == 1)
		fleet.store->ops = &without;
	(void)pthread_mutex_unlock(&fleet.lock);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(start(&mine, i == 0 ? "a" : "b", &row), HR_FLEET_OK);
		until(row.id, HR_FLEET_RUNNING);
		hr_fleet_row_done(&row);
	}
	list_one("", first, id, next);
	ck_assert_str_ne(next, "");
	ck_assert_int_eq(
	    hr_fleet_change(&fleet, mine.id, id, HR_FLEET_STOP, &row, &err), HR_FLEET_OK);
	hr_fleet_row_done(&row);
	until(id, HR_FLEET_STOPPED);
	list_one(next, second, other_id, last);
	ck_assert_str_eq(second, strcmp(first, "a") == 0 ? "b" : "a");
	ck_assert_str_eq(last, "");
	/* an id is a place as well */
	list_one(id, second, other_id, last);
	ck_assert_str_ne(second, "");
	if (_i == 1) {
		get("/list?after=nowhere", "", &a);
		ck_assert_int_eq(a.status, 400);
		hr_fleet_answer_done(&a);
	}
}
END_TEST

/* What happened to a sandbox of somebody else's: its number. */
static int64_t
happens(const char *detail)
{
	int64_t seq;

	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_int_eq(fleet.store->ops->event(fleet.store, "other", "logs", detail, NULL), 0);
	seq = sqlite3_last_insert_rowid(((struct hr_sqlite *)(void *)fleet.store)->db);
	(void)pthread_mutex_unlock(&fleet.lock);
	return seq;
}

static void
expect(struct hr_fleet_answer *a, const char *format, int64_t seq)
{
	char want[64];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)snprintf(want, sizeof(want), format, (long long)seq);
#pragma GCC diagnostic pop
	hr_buf_reset(&a->body);
	ck_assert(hr_fleet_stream_next(a->stream, &a->body));
	ck_assert_str_eq(hr_buf_str(&a->body), want);
}

START_TEST(a_stream_passes_over_what_is_not_its_own)
{
	struct hr_fleet_answer of[8], more;
	int64_t seq;
	int i;

	begin(&few);
	make_key();
	seq = happens("");
	for (i = 0; i < 8; i++) {
		get("/handrail/v1/events", "text/event-stream", &of[i]);
		ck_assert_ptr_nonnull(of[i].stream);
	}
	/* another one makes all of them say something */
	get("/handrail/v1/events", "text/event-stream", &more);
	ck_assert_int_eq(more.status, 429);
	expect(&of[0], ":\nid: %lld\n\n", seq);
	seq = happens("");
	expect(&of[1], ":\nid: %lld\n\n", seq);
	/* what the store drops before it is told */
	(void)pthread_mutex_lock(&fleet.lock);
	ck_assert_int_eq(
	    hr_sqlite_run((struct hr_sqlite *)(void *)fleet.store, NULL,
		"UPDATE sqlite_sequence SET seq = seq + 30000 WHERE name = 'events'", ""),
	    0);
	(void)pthread_mutex_unlock(&fleet.lock);
	ck_assert_int_eq(happens(""), seq + 30001);
	expect(&of[1], "event: gap\nid: %lld\ndata: {}\n\n", seq + 30001 - 1);
	expect(&of[2], ":\nid: %lld\n\n", seq + 30001);
	for (i = 0; i < 8; i++)
		hr_fleet_answer_done(&of[i]);
	hr_fleet_answer_done(&more);
}
END_TEST

START_TEST(a_page_of_events_has_bounds)
{
	struct hr_fleet_answer a = {0};
	struct json_object *o, *list;
	char text[8193], uri[96];
	int64_t after = 0;
	int n = 0, pages = 0, found = 1, i;

	memset(text, 1, sizeof(text) - 1); /* six bytes each */
	text[sizeof(text) - 1] = '\0';
	begin(&few);
	make_key();
	for (i = 0; i < 30; i++)
		(void)happens(text);
	for (; found > 0; pages++, n += found) {
		(void)snprintf(uri, sizeof(uri),
		    "/handrail/v1/events?all=true&limit=1000&after=%lld", (long long)after);
		get(uri, "", &a);
		ck_assert_int_eq(a.status, 200);
		ck_assert_uint_le(a.body.len, (1u << 20) + 65536);
		ck_assert_int_eq(hr_json_decode(a.body.p, a.body.len, &o, NULL), 0);
		list = hr_json_at(o, "events");
		found = (int)hr_json_count(list);
		if (found > 0)
			after = hr_json_int_at(hr_json_entry(list, (size_t)found - 1), "id");
		json_object_put(o);
		hr_fleet_answer_done(&a);
	}
	ck_assert_int_eq(n, 30);
	ck_assert_int_eq(pages, 3); /* the last one is empty */
}
END_TEST

/* A client comes from a process of the same store that knew more. */
START_TEST(a_shared_store_may_know_less_for_a_moment)
{
	struct hr_fleet_answer of[9];
	static struct hr_store_ops shared; /* the clock's thread outlives this function */
	char uri[96], want[32];
	int64_t seq;
	int i;

	begin(&few);
	make_key();
	shared = *fleet.store->ops;
	shared.watch = (int (*)(struct hr_store *, void (*)(void *, const char *), void *,
	    struct hr_err *))(void (*)(void))fake_list; /* is not called */
	fleet.store->ops = &shared;
	seq = happens("");
	(void)snprintf(
	    uri, sizeof(uri), "/handrail/v1/events?all=true&after=%lld", (long long)seq + 2);
	for (i = 0; i < 9; i++)
		get(uri, "text/event-stream", &of[i]);
	ck_assert_int_eq(of[8].status, 429); /* so that the others say something */
	expect(&of[0], ":\nid: %lld\n\n", seq + 2);
	for (i = 0; i < 3; i++)
		(void)happens("");
	hr_buf_reset(&of[0].body);
	ck_assert(hr_fleet_stream_next(of[0].stream, &of[0].body));
	(void)snprintf(want, sizeof(want), "id: %lld\ndata: ", (long long)seq + 3);
	ck_assert_int_eq(strncmp(hr_buf_str(&of[0].body), want, strlen(want)), 0);
	for (i = 0; i < 9; i++)
		hr_fleet_answer_done(&of[i]);
}
END_TEST

START_TEST(who_asks_for_images_is_bounded)
{
	struct hr_fleet_answer a;

	begin(&few);
	make_key();
	get("/image_exists?image=there", "", &a);
	ck_assert_str_eq(hr_buf_str(&a.body), "{\"exists\":true}");
	hr_fleet_answer_done(&a);
	ck_assert_uint_eq(fleet.waiting, 0);
	fleet.waiting = few.waiting;
	get("/image_exists?image=there", "", &a);
	ck_assert_int_eq(a.status, 503);
	ck_assert_int_eq(a.retry_after_s, 2);
	hr_fleet_answer_done(&a);
	ck_assert_uint_eq(fleet.waiting, few.waiting);
}
END_TEST

static int
ask_route(const char *id, const char *session_key, struct hr_fleet_answer *ret)
{
	struct hr_fleet_api api = {.fleet = &fleet, .registry_prefix = ""};
	struct hr_fleet_request q = {.method = "GET",
	    ABSENT_E2B,
	    .host = "h",
	    .scheme = "http",
	    .api_key = "",
	    .session_key = session_key,
	    .sandbox_id = id,
	    .sandbox_port = "",
	    .uri = "/alive",
	    .route = HR_FLEET_ROUTE_ASK};
	int status;

	api.wakes = *session_key == '*';
	hr_fleet_handle(&api, &q, ret);
	status = ret->status;
	hr_fleet_answer_done(ret);
	return status;
}

/* Neither no key nor a wrong one; and what is there is reached without one, as a page is. */
START_TEST(without_its_key_nothing_is_woken)
{
	struct hr_fleet_answer a;
	struct hr_fleet_row row;
	char id[HR_FLEET_ID], key_of_it[65];
	struct hr_err err = {0};

	begin(&few);
	up("s", id);
	ck_assert_int_eq(hr_fleet_look(&fleet, id, &row, &err), HR_FLEET_OK);
	(void)snprintf(key_of_it, sizeof(key_of_it), "%s", row.session_key);
	hr_fleet_row_done(&row);
	ck_assert_int_eq(ask_route(id, "", &a), 200);
	ck_assert_str_eq(a.server_key, "");
	change(id, HR_FLEET_PAUSE, HR_FLEET_OK);
	until(id, HR_FLEET_PAUSED);
	ck_assert_int_eq(ask_route(id, "", &a), 409);
	ck_assert_int_eq(ask_route(id, "0123456789abcdef", &a), 409);
	until(id, HR_FLEET_PAUSED);
	ck_assert_uint_eq(fleet.counts.resumed, 0);
	ck_assert_int_eq(ask_route(id, key_of_it, &a), 200);
	ck_assert_str_ne(a.server_key, "");
	until(id, HR_FLEET_RUNNING);
	change(id, HR_FLEET_PAUSE, HR_FLEET_OK);
	until(id, HR_FLEET_PAUSED);
	/* where the operator says so */
	ck_assert_int_eq(ask_route(id, "*", &a), 200);
	ck_assert_str_eq(a.server_key, "");
	until(id, HR_FLEET_RUNNING);
	ck_assert_int_eq(ask_route("00000000000000000000000000000000", "", &a), 404);
}
END_TEST

START_TEST(who_waits_leaves_places_to_other_keys)
{
	struct hr_fleet_place p[16];
	unsigned i, n = 0;

	begin(&few);
	fleet.set.waiting = 8;
	for (i = 0; i < 8; i++)
		n += hr_fleet_place_take(&fleet, &p[n], 1);
	ck_assert_uint_eq(n, 4);
	for (i = 2; i < 6; i++)
		ck_assert(hr_fleet_place_take(&fleet, &p[n++], i));
	ck_assert_uint_eq(fleet.waiting, 8);
	ck_assert(!hr_fleet_place_take(&fleet, &p[n], 7));
	hr_fleet_place_give(&fleet, &p[0]);
	ck_assert(!hr_fleet_place_take(&fleet, &p[0], 1)); /* two of the four that others leave */
	ck_assert(hr_fleet_place_take(&fleet, &p[0], 7));
	for (i = 0; i < n; i++)
		hr_fleet_place_give(&fleet, &p[i]);
	ck_assert_uint_eq(fleet.waiting, 0);
}
END_TEST

#define COUNT(list) (int)(sizeof(list) / sizeof(*(list)))

int
main(void)
{
	Suite *s = suite_create("fleet");
	TCase *tc = tcase_create("fleet"), *store = tcase_create("store");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_checked_fixture(store, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_set_tags(tc, "no-valgrind"); /* its threads end with the process alone */
	tcase_add_test(tc, a_second_start_is_given_the_first_one);
	tcase_add_test(tc, a_stop_that_comes_late_meets_nothing_newer);
	tcase_add_test(tc, stopped_while_it_starts);
	tcase_add_test(tc, pause_and_resume_keep_their_order);
	tcase_add_test(tc, a_start_of_a_paused_one_resumes_it);
	tcase_add_test(tc, quotas_are_counted_where_they_are_taken);
	tcase_add_test(tc, one_that_cannot_be_made_has_died_and_says_why);
	tcase_add_test(tc, requests_wake_what_is_paused);
	tcase_add_test(tc, who_waits_is_bounded);
	tcase_add_test(tc, an_answer_decides_what_is_idle);
	tcase_add_test(tc, an_open_stream_is_activity);
	tcase_add_test(tc, no_ipv6_form_where_it_is_forbidden);
	tcase_add_test(tc, what_ended_long_ago_is_forgotten);
	tcase_add_test(tc, a_warm_one_is_claimed_and_replaced);
	tcase_add_test(store, whose_client_comes_settles_the_shape);
	tcase_add_test(store, a_claimed_one_has_a_clock_of_its_own);
	tcase_add_test(store, a_move_means_the_row_that_was_read);
	tcase_add_test(tc, a_failed_create_stops_no_refill);
	tcase_add_test(tc, what_is_wrong_is_told_until_it_is_over);
	tcase_add_test(tc, alerts_are_bounded);
	tcase_add_test(tc, an_hour_is_kept_of_how_much_there_was);
	tcase_add_test(tc, a_warm_one_of_no_use_is_made_anew);
	tcase_add_test(tc, a_pool_gives_way_and_counts_for_nobody);
	tcase_add_test(tc, a_pool_with_a_request_that_is_too_long);
	tcase_add_test(tc, a_drain_and_pools_outlive_a_process);
	tcase_add_loop_test(tc, a_crash_loses_and_doubles_nothing, 0, 3);
	tcase_add_test(tc, one_whose_engine_does_not_answer);
	tcase_add_test(tc, one_that_is_looked_at_cannot_be_paused);
	tcase_add_test(tc, rules_are_in_force_and_kept_or_neither);
	tcase_add_test(tc, a_limit_of_no_use_starts_nothing);
	tcase_add_loop_test(tc, rules_change_one_after_another, 0, 2);
	tcase_add_test(tc, a_stop_waits_for_new_rules);
	tcase_add_test(store, one_store_has_one_service);
	tcase_add_test(store, a_store_of_another_version_is_left_alone);
	tcase_add_test(store, a_store_that_was_only_begun);
	tcase_add_test(store, notes_are_kept);
	tcase_add_test(store, keys_are_kept_as_sums);
	tcase_add_loop_test(tc, routes_lead_to_ports_of_the_sandbox_alone, 0, COUNT(routes));
	tcase_add_loop_test(tc, routes_lead_to_a_socket, 0, COUNT(socket_routes));
	tcase_add_test(tc, few_searches_without_a_key_wait);
	tcase_add_test(tc, few_searches_for_unknown_ids_wait);
	tcase_add_test(tc, without_an_address_there_is_no_port);
	tcase_add_test(tc, a_stream_passes_over_what_is_not_its_own);
	tcase_add_test(tc, a_page_of_events_has_bounds);
	tcase_add_test(tc, a_shared_store_may_know_less_for_a_moment);
	tcase_add_test(tc, files_of_one_that_died_have_an_end);
	tcase_add_test(tc, keys_with_members_of_other_types);
	tcase_add_test(tc, a_key_takes_the_files_of_those_that_died_with_it);
	tcase_add_test(tc, a_revocation_that_stopped_nothing_says_so);
	tcase_add_loop_test(tc, a_start_under_way_passes_nothing, 0, 3);
	tcase_add_test(tc, a_request_during_an_idle_pause_wakes);
	tcase_add_test(tc, one_that_was_ended_meanwhile_is_not_resumed);
	tcase_add_test(tc, a_key_that_was_replaced_meanwhile_is_refused);
	tcase_add_test(tc, one_that_was_removed_meanwhile_is_not_found);
	tcase_add_test(tc, an_end_that_is_told_once_is_not_lost);
	tcase_add_test(tc, an_idle_one_is_found_after_an_error);
	tcase_add_test(tc, what_is_left_over_is_told);
	tcase_add_test(tc, a_pools_sandbox_may_be_there_in_spite_of_an_error);
	tcase_add_test(tc, pages_of_all_keys);
	tcase_add_test(tc, branches_are_listed_before_they_run);
	tcase_add_test(tc, a_parent_that_was_removed_meanwhile_is_not_found);
	tcase_add_test(tc, a_fork_without_the_record_of_its_first_branch_fails);
	tcase_add_loop_test(tc, a_page_follows_one_that_has_ended, 0, 2);
	tcase_add_test(tc, who_asks_for_images_is_bounded);
	tcase_add_test(tc, without_its_key_nothing_is_woken);
	tcase_add_test(tc, who_waits_leaves_places_to_other_keys);
	suite_add_tcase(s, tc);
	suite_add_tcase(s, store);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
