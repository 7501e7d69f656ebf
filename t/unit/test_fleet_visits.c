/* fleet/visits: which connections of nginx are reset when a sandbox ends. */
#include "config.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fleet/visits.h"

/* a connection as nginx and its client have it */
struct connection {
	int client, server;
	char ends[64];
};

static in_port_t
bind_to(int fd, in_port_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = port};
	socklen_t len = sizeof(a);
	int on = 1;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	return a.sin_port;
}

/* Connects from *port, which is chosen if it is 0, to a server of its own. */
static void
connect_from(struct connection *c, in_port_t *port)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in to = {.sin_family = AF_INET};

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to.sin_port = bind_to(listener, 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	c->client = socket(AF_INET, SOCK_STREAM, 0);
	*port = bind_to(c->client, *port);
	ck_assert_int_eq(connect(c->client, (struct sockaddr *)&to, sizeof(to)), 0);
	c->server = accept(listener, NULL, NULL);
	ck_assert_int_ge(c->server, 0);
	(void)close(listener);
	(void)snprintf(c->ends, sizeof(c->ends), "127.0.0.1 %d 127.0.0.1 %d", ntohs(*port),
	    ntohs(to.sin_port));
}

/* Starts a process whose only child has the connections. The end of `alive` ends both. */
static pid_t
start_nginx(int alive[2])
{
	int ready[2];
	char c;
	pid_t pid;

	ck_assert_int_eq(pipe(ready), 0);
	ck_assert_int_eq(pipe(alive), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		(void)close(alive[1]);
		if (fork() == 0 && write(ready[1], "", 1) != 1)
			_exit(1);
		_exit(read(alive[0], &c, 1) == 0 ? (wait(NULL), 0) : 1);
	}
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	return pid;
}

static bool
is_reset(const struct connection *c)
{
	char byte;

	return recv(c->client, &byte, 1, MSG_DONTWAIT) < 0 && errno == ECONNRESET;
}

/* Two clients have one address and port if they are connected to two addresses. */
START_TEST(both_ends_count)
{
	struct connection one, two;
	in_port_t port = 0;
	int alive[2];
	pid_t nginx;

	connect_from(&one, &port);
	connect_from(&two, &port);
	nginx = start_nginx(alive);
	(void)close(one.server);
	(void)close(two.server);
	hr_fleet_visit(one.ends, "first");
	hr_fleet_visit(two.ends, "second");
	hr_fleet_visits_reset(nginx, "neither");
	ck_assert(!is_reset(&one) && !is_reset(&two));
	hr_fleet_visits_reset(nginx, "second");
	ck_assert(!is_reset(&one) && is_reset(&two));
	hr_fleet_visits_reset(nginx, "first");
	ck_assert(is_reset(&one));
	(void)close(alive[1]);
	ck_assert_int_eq(waitpid(nginx, NULL, 0), nginx);
	(void)close(alive[0]);
	(void)close(one.client);
	(void)close(two.client);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("fleet_visits");
	TCase *tc = tcase_create("visits");
	SRunner *sr;
	int failed;

	tcase_set_tags(tc, "no-valgrind"); /* it knows no pidfd_open */
	tcase_add_test(tc, both_ends_count);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
