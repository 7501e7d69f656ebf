/* Connections between a client and a server of this process, with the text by which nginx names
 * one. */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

static inline int
connection_listener(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	ck_assert_int_eq(listen(fd, 4), 0);
	return fd;
}

/* Returns the server's end, with the client's end in *client and nginx's text in `text`. */
static inline int
connection_open(int listener, int *client, char text[128])
{
	struct sockaddr_in here, there;
	socklen_t len = sizeof(here);
	char a[INET_ADDRSTRLEN], b[INET_ADDRSTRLEN];
	int fd;

	*client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&here, &len), 0);
	ck_assert_int_eq(connect(*client, (struct sockaddr *)&here, len), 0);
	fd = accept(listener, (struct sockaddr *)&there, &len);
	ck_assert_int_ge(fd, 0);
	(void)snprintf(text, 128, "%s %u %s %u", inet_ntop(AF_INET, &there.sin_addr, a, sizeof(a)),
	    ntohs(there.sin_port), inet_ntop(AF_INET, &here.sin_addr, b, sizeof(b)),
	    ntohs(here.sin_port));
	return fd;
}

#endif
