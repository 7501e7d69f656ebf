/* Chooses and opens the listening address. */
#include "config.h"

#include "supervisor/edge/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "supervisor/settings/settings.h"

#define BACKLOG 4096

static bool
is_loopback(const struct hr_listen *l)
{
	if (l->addr.ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)&l->addr;

		return ntohl(in->sin_addr.s_addr) >> 24 == 127;
	}
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&l->addr)->sin6_addr);
}

static int
address_parse(struct hr_listen *l, const char *text, long long port, struct hr_err *err)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&l->addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&l->addr;
	char host[INET6_ADDRSTRLEN];
	size_t n = strlen(text);

	memset(l, 0, sizeof(*l));
	if (strcmp(text, "localhost") == 0)
		text = "127.0.0.1";
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons((in_port_t)port);
		l->len = sizeof(*in);
		(void)snprintf(l->text, sizeof(l->text), "%s:%lld",
		    inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host)), port);
		return 0;
	}
	if (n > 2 && n < sizeof(host) && text[0] == '[' && text[n - 1] == ']') {
		memcpy(host, text + 1, n - 2);
		host[n - 2] = '\0';
		text = host;
	}
	if (inet_pton(AF_INET6, text, &in6->sin6_addr) != 1)
		return hr_err_set(err, HR_E_INVAL,
		    "listen: must be a numeric address, such as 127.0.0.1 or ::1, not \"%.64s\"",
		    text);
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons((in_port_t)port);
	l->len = sizeof(*in6);
	(void)snprintf(l->text, sizeof(l->text), "[%s]:%lld",
	    inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host)), port);
	return 0;
}

int
hr_listen_choose(struct hr_listen *l, const struct hr_settings *c, bool has_key, struct hr_err *err)
{
	const char *text = c->listen;

	/* clients without a certificate of that authority are refused */
	has_key = has_key || c->tls_client_ca[0] != '\0';
	if (text[0] == '\0')
		text = has_key || c->allow_unauthenticated ? "0.0.0.0" : "127.0.0.1";
	if (address_parse(l, text, c->port, err) < 0)
		return -1;
	l->public = !is_loopback(l);
	if (l->public && !has_key && !c->allow_unauthenticated)
		return hr_err_set(err, HR_E_INVAL,
		    "%s can be reached from other machines and there is no session key: set "
		    "SESSION_API_KEY, or give --allow-unauthenticated",
		    l->text);
	return 0;
}

int
hr_listen_bind(const struct hr_listen *l, struct hr_err *err)
{
	/* nginx uses an inherited socket as it is: with a blocking one its worker would block when
	 * another worker was faster to accept */
	int fd = socket(l->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

	if (fd < 0)
		return hr_err_sys(err, errno, "%s: socket", l->text);
	/* nginx's IPv6 sockets exclude IPv4 by default */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    (l->addr.ss_family == AF_INET6 &&
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) != 0) ||
	    bind(fd, (const struct sockaddr *)&l->addr, l->len) != 0) {
		int sys = errno;

		hr_fd_close(&fd);
		if (sys == EADDRINUSE)
			return hr_err_set(err, HR_E_BUSY, "address %s is already in use", l->text);
		return hr_err_sys(err, sys, "address %s", l->text);
	}
	return fd;
}

int
hr_listen_start(int fd, const struct hr_listen *l, struct hr_err *err)
{
	if (listen(fd, BACKLOG) == 0)
		return 0;
	if (errno == EADDRINUSE) /* another process had also bound it, and listened first */
		return hr_err_set(err, HR_E_BUSY, "address %s is already in use", l->text);
	return hr_err_sys(err, errno, "address %s", l->text);
}

void
hr_listen_self(const struct hr_listen *l, struct sockaddr_storage *ret)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

	*ret = l->addr;
	if (ret->ss_family == AF_INET && in->sin_addr.s_addr == htonl(INADDR_ANY))
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (ret->ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
		in6->sin6_addr = in6addr_loopback;
}
