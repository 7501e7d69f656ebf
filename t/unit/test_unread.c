/* base/peer and proto/unread: whether a client still waits, and which answers wait for theirs. */
#include "config.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/peer.h"
#include "connection.h"
#include "lines.h"
#include "proto/unread.h"

/* ---- peer ---- */

static int looker = -1;

START_TEST(a_client_that_left)
{
	int listener = connection_listener(), client, other, fd, second;
	struct hr_peer p, q;
	char text[128];

	fd = connection_open(listener, &client, text);
	ck_assert(hr_peer_parse(text, &p));
	ck_assert_int_eq(hr_peer_look(&looker, &p), 1);
	ck_assert_int_eq(hr_peer_look(&looker, &p), 1);
	second = connection_open(listener, &other, text);
	ck_assert(hr_peer_parse(text, &q));
	(void)close(client);
	ck_assert_int_eq(hr_peer_look(&looker, &p), 0);
	ck_assert_int_eq(hr_peer_look(&looker, &q), 1);
	(void)close(fd);
	ck_assert_int_eq(hr_peer_look(&looker, &p), 0);
	q.cookie++; /* of an earlier one with the same addresses */
	ck_assert_int_eq(hr_peer_look(&looker, &q), 0);
	(void)close(second); /* the server was killed */
	ck_assert_int_eq(hr_peer_look(&looker, &q), 0);
	(void)close(other);
	(void)close(listener);
}
END_TEST

START_TEST(addresses)
{
	struct hr_peer p;

	ck_assert(hr_peer_parse("::1 65535 ::1 1", &p));
	ck_assert_int_eq(p.family, AF_INET6);
	ck_assert(!hr_peer_parse("", &p));
	ck_assert(!hr_peer_parse("unix:  unix:/run/nginx.sock ", &p));
	ck_assert(!hr_peer_parse("127.0.0.1 65536 127.0.0.1 80", &p));
	ck_assert(!hr_peer_parse("127.0.0.1 1 127.0.0 80", &p));
	ck_assert(!hr_peer_parse("127.0.0.1 1 ::1 80", &p));
}
END_TEST

/* Opens a socket at a port of any address; IPv6 sockets also take IPv4 unless `six_alone`. */
static int
bound(int family, bool six_alone, unsigned *ret_port)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	struct sockaddr_in four = {.sin_family = AF_INET};
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), only = six_alone;
	socklen_t len = family == AF_INET6 ? sizeof(six) : sizeof(four);
	struct sockaddr *a =
	    family == AF_INET6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;

	if (family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
	ck_assert_int_eq(bind(fd, a, len), 0);
	ck_assert_int_eq(getsockname(fd, a, &len), 0);
	*ret_port = ntohs(family == AF_INET6 ? six.sin6_port : four.sin_port);
	return fd;
}

static bool no_netlink;
int __real_socket(int family, int type, int protocol);
int __wrap_socket(int family, int type, int protocol);

int
__wrap_socket(int family, int type, int protocol)
{
	if (!no_netlink || family != AF_NETLINK)
		return __real_socket(family, type, protocol);
	errno = EPROTONOSUPPORT;
	return -1;
}

/* 0: the kernel finds them; 1: its lists have them, where one of [::] may take IPv4 or not. */
START_TEST(listeners)
{
	static const struct {
		int family;
		bool six_alone;
		int four, six;
	} rows[] = {{AF_INET, false, 1, 0}, {AF_INET6, true, 0, 1}, {AF_INET6, false, 1, 1}};
	unsigned port;
	size_t i;
	int fd;

	no_netlink = _i != 0;
	/* under valgrind all tests share one process */
	if (looker >= 0)
		(void)close(looker);
	looker = -1;
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		fd = socket(rows[i].family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			continue; /* a kernel without IPv6 */
		(void)close(fd);
		fd = bound(rows[i].family, rows[i].six_alone, &port);
		ck_assert_int_eq(hr_peer_listens(&looker, "127.0.0.1", port), 0);
		ck_assert_int_eq(hr_peer_listens(&looker, "::1", port), 0);
		ck_assert_int_eq(listen(fd, 1), 0);
		ck_assert_int_eq(hr_peer_listens(&looker, "127.0.0.1", port),
		    rows[i].four && (_i == 0 || rows[i].family == AF_INET));
		ck_assert_int_eq(hr_peer_listens(&looker, "::1", port), rows[i].six);
		(void)close(fd);
		ck_assert_int_eq(hr_peer_listens(&looker, "127.0.0.1", port), 0);
	}
	ck_assert_int_eq(hr_peer_listens(&looker, "127.0.0.1", 65536), 0);
}
END_TEST

static void
count(void *arg, const char *address, unsigned port)
{
	(void)address;
	(void)port;
	++*(unsigned *)arg;
}

START_TEST(tables_that_cannot_be_read)
{
	struct rlimit usual, none;
	struct hr_err err = {0};
	unsigned port, n = 0;
	int fd = bound(AF_INET, false, &port), sock = -1;

	ck_assert_int_eq(listen(fd, 1), 0);
	ck_assert_int_eq(hr_peer_listeners(count, &n, &err), 0);
	ck_assert_uint_gt(n, 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &usual), 0);
	none = usual;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert_int_eq(hr_peer_listeners(count, &n, &err), -1);
	ck_assert_str_eq(err.msg, "/proc/net/tcp: Too many open files");
	ck_assert_int_eq(hr_peer_listens(&sock, "127.0.0.1", port), -1);
	/* the checkers of memory open files at the end */
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
	ck_assert_int_eq(close(fd), 0);
}
END_TEST

/* ---- unread ---- */

static struct hr_unread u;

static struct hr_unread_action
action(uint64_t digest, const char *id, pid_t pid)
{
	struct hr_unread_action a = {.client = digest, .digest = digest, .pid = pid};

	(void)snprintf(a.id, sizeof(a.id), "%s", id);
	return a;
}

static struct hr_unread_hold
add(uint64_t digest, const char *id, pid_t pid)
{
	struct hr_unread_action a = action(digest, id, pid);
	struct hr_unread_hold h;

	ck_assert(hr_unread_add(&u, -1, &a, 0, &h));
	return h;
}

/* The ids of that digest at that time. */
static const char *
found(uint64_t digest, int64_t now_ms)
{
	static char ids[256];
	struct hr_unread_action a;
	struct hr_unread_hold h;
	size_t i;

	ids[0] = '\0';
	for (i = 0; hr_unread_find(&u, digest, now_ms, &i, &a, &h); i++)
		(void)snprintf(ids + strlen(ids), sizeof(ids) - strlen(ids), "%s ", a.id);
	return ids;
}

static void
setup(void)
{
	memset(&u, 0, sizeof(u));
}

START_TEST(read_ones_are_forgotten)
{
	struct hr_unread_hold a = add(1, "a", 1), b = add(1, "b", 2), c = add(2, "c", 3);

	ck_assert_str_eq(found(1, 0), "a b ");
	ck_assert_str_eq(found(3, 0), "");
	hr_unread_answering(&a);
	ck_assert_str_eq(found(1, 0), "a b ");
	ck_assert(hr_unread_free(-1, &a));
	ck_assert_str_eq(found(1, 0), "b ");
	hr_unread_keep(-1, &b, 1000);
	ck_assert_str_eq(found(1, 1000 + HR_UNREAD_MS), "b ");
	ck_assert_str_eq(found(1, 1001 + HR_UNREAD_MS), "");
	ck_assert_str_eq(found(2, INT64_MAX), "c ");
	ck_assert(hr_unread_free(-1, &c));
	ck_assert(!hr_unread_free(-1, &c));
	ck_assert_str_eq(found(2, 0), "");
}
END_TEST

/* A repetition has the first one's name, and what becomes of the first is nothing to the place. */
START_TEST(taken_by_a_repetition)
{
	struct hr_unread_hold first = add(1, "a", 1), again, late;
	struct hr_unread_action its, mine = action(1, "a", 2);
	size_t i = 0;

	ck_assert(hr_unread_find(&u, 1, 0, &i, &its, &again));
	late = again;
	ck_assert(hr_unread_take(&u, -1, &again, &mine));
	ck_assert(!hr_unread_take(&u, -1, &late, &mine));
	hr_unread_answering(&first);
	ck_assert(!hr_unread_free(-1, &first));
	hr_unread_keep(-1, &first, 5);
	hr_unread_bury(&u, 1, 5);
	ck_assert_str_eq(found(1, INT64_MAX), "a ");
	ck_assert(hr_unread_free(-1, &again));
	ck_assert_str_eq(found(1, 0), "");
}
END_TEST

START_TEST(dead_workers)
{
	struct hr_unread_hold b;

	(void)add(1, "a", 1);
	b = add(2, "b", 1);
	(void)add(3, "c", 2);
	hr_unread_answering(&b);
	hr_unread_bury(&u, 1, 1000);
	ck_assert_str_eq(found(1, 1000), "a ");
	ck_assert_str_eq(found(1, 1001 + HR_UNREAD_MS), "");
	ck_assert_str_eq(found(2, 1000), "");
	ck_assert_str_eq(found(3, INT64_MAX), "c ");
}
END_TEST

static int tell[2]; /* the other worker how its action ends */
static char end;

static void
over(int sig)
{
	(void)sig;
	(void)!write(tell[1], &end, 1);
}

/* Another worker: does one action. */
static void
work(struct hr_unread *shared, int board, int began)
{
	struct hr_unread_action a = action(1, "a", 1);
	struct hr_unread_hold h;
	char c = (char)hr_unread_add(shared, board, &a, 0, &h);

	(void)!write(began, &c, 1);
	(void)!read(tell[0], &c, 1);
	if (c == 'k')
		hr_unread_keep(board, &h, 5);
	else if (c == 'f')
		(void)hr_unread_free(board, &h);
	if (c != 'd')
		(void)pause();
	_exit(0);
}

/* Until the action is kept or freed, or its worker dead; a signal does not end the wait. */
START_TEST(waited_for)
{
	static const char ends[] = "kfd";
	static const struct itimerval soon = {.it_value.tv_usec = 10000};
	const struct sigaction sa = {.sa_handler = over};
	int board = memfd_create("board", MFD_CLOEXEC), began[2];
	struct hr_unread_hold h;
	struct hr_unread *shared;
	pid_t pid;
	char c;

	end = ends[_i];
	ck_assert_int_eq(ftruncate(board, sizeof(u)), 0);
	shared = mmap(NULL, sizeof(u), PROT_READ | PROT_WRITE, MAP_SHARED, board, 0);
	ck_assert_ptr_ne(shared, MAP_FAILED);
	ck_assert_int_eq(pipe(began), 0);
	ck_assert_int_eq(pipe(tell), 0);
	ck_assert_int_eq(sigaction(SIGALRM, &sa, NULL), 0);
	pid = fork();
	if (pid == 0)
		work(shared, board, began[1]);
	ck_assert_int_eq(read(began[0], &c, 1), 1);
	ck_assert_int_eq(c, 1);
	h.place = &shared->v[0];
	h.word = atomic_load(&h.place->word);
	ck_assert_uint_ne(h.word, 0);
	ck_assert_int_eq(setitimer(ITIMER_REAL, &soon, NULL), 0);
	hr_unread_wait(board, &h);
	if (end != 'd')
		ck_assert_uint_ne(atomic_load(&h.place->word), h.word);
	hr_unread_wait(board, &h); /* does not block */
	hr_unread_wait(-1, &h);
	if (end != 'd')
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	(void)munmap(shared, sizeof(u));
	(void)close(board);
}
END_TEST

START_TEST(full)
{
	struct hr_unread_action a = action(7, "late", 9);
	struct hr_unread_hold h[HR_UNREAD], more;
	int i;

	for (i = 0; i < HR_UNREAD; i++)
		h[i] = add(1, "a", 1);
	ck_assert(!hr_unread_add(&u, -1, &a, 0, &more));
	hr_unread_answering(&more); /* of none */
	hr_unread_keep(-1, &more, 0);
	ck_assert(!hr_unread_free(-1, &more));
	hr_unread_keep(-1, &h[3], 1000);
	ck_assert(!hr_unread_add(&u, -1, &a, 1000 + HR_UNREAD_MS, &more));
	ck_assert(hr_unread_add(&u, -1, &a, 1001 + HR_UNREAD_MS, &more));
	ck_assert_str_eq(found(7, INT64_MAX), "late ");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("unread");
	TCase *c = tcase_create("unread");

	tcase_add_checked_fixture(c, setup, NULL);
	tcase_add_test(c, a_client_that_left);
	tcase_add_test(c, addresses);
	tcase_add_loop_test(c, listeners, 0, 2);
	tcase_add_test(c, tables_that_cannot_be_read);
	tcase_add_test(c, read_ones_are_forgotten);
	tcase_add_test(c, taken_by_a_repetition);
	tcase_add_test(c, dead_workers);
	tcase_add_loop_test(c, waited_for, 0, 3);
	tcase_add_test(c, full);
	suite_add_tcase(s, c);
	return lines_run(s);
}
