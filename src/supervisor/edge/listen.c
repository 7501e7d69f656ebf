/* Chooses and opens the listening address. Invariant: a Unix socket listens before it gets its
 * path. */
#include "config.h"

#include "supervisor/edge/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/random.h"
#include "base/text/template.h"
#include "base/trust.h"
#include "supervisor/settings/settings.h"

#define BACKLOG 4096
#define UNIX_PREFIX "unix:"
#define BOUND_DIGITS 6
/* bytes of the suffix: the bound name is PATH~XXXXXX, which must fit as well */
#define BOUND_SUFFIX (sizeof("~") - 1 + BOUND_DIGITS)
#define SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) - 1 - BOUND_SUFFIX)

static const char *
unix_path(const struct hr_listen *l)
{
	return ((const struct sockaddr_un *)&l->addr)->sun_path;
}

/* Writes the directory of `path`, without the slash after it. */
static void
directory_of(const char *path, char ret[SOCKET_PATH_MAX + 1])
{
	size_t n = (size_t)(hr_path_leaf(path) - path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	(void)snprintf(ret, SOCKET_PATH_MAX + 1, "%.*s", (int)n, path);
}

static int
unix_parse(struct hr_listen *l, const char *path, struct hr_err *err)
{
	const struct hr_place place = {"listen", path, false};
	struct sockaddr_un *un = (struct sockaddr_un *)&l->addr;
	char dir[SOCKET_PATH_MAX + 1];
	HR_BUF(checked, 256);

	memset(l, 0, sizeof(*l));
	if (path[0] != '/' || *hr_path_leaf(path) == '\0')
		return hr_err_set(err, HR_E_INVAL,
		    "listen: must be unix: and the absolute path of a socket, such as "
		    "unix:/run/box/server.sock, not \"unix:%.64s\"",
		    path);
	if (strlen(path) > SOCKET_PATH_MAX)
		return hr_err_set(err, HR_E_INVAL,
		    "listen: the path of a socket may have at most %zu bytes, not %zu: %.160s",
		    SOCKET_PATH_MAX, strlen(path), path);
	directory_of(path, dir);
	if (hr_template_fill(&checked, "@listen@", sizeof("@listen@") - 1, &place, 1, err) < 0)
		return -1;
	if (hr_trust_directory(dir, err) < 0)
		return hr_err_prefix(err, "listen");
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, path, strlen(path) + 1);
	l->len = sizeof(*un);
	(void)snprintf(l->text, sizeof(l->text), UNIX_PREFIX "%s", un->sun_path);
	return 0;
}

/* Opens a socket that does not block: nginx uses an inherited socket as it is, and with a blocking
 * one its worker would block when another worker was faster to accept. */
static int
open_socket(const struct hr_listen *l, struct hr_err *err)
{
	int fd = socket(l->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd >= 0 ? fd : hr_err_sys(err, errno, "%s: socket", l->text);
}

static int
is_busy(const struct hr_listen *l, struct hr_err *err)
{
	return hr_err_set(err, HR_E_BUSY, "address %s is already in use", l->text);
}

/* Checks that the path is free, or has the socket of a dead server, which refuses connections.
 * *ret_dead is the status of that socket; its st_ino is 0 if there is none. */
static int
unix_check(const struct hr_listen *l, struct stat *ret_dead, struct hr_err *err)
{
	HR_CLOSE int fd = -1;

	*ret_dead = (struct stat){.st_ino = 0};
	if (lstat(unix_path(l), ret_dead) != 0)
		return errno == ENOENT ? 0 : hr_err_sys(err, errno, "address %s", l->text);
	if (!S_ISSOCK(ret_dead->st_mode))
		return hr_err_set(err, HR_E_INVAL,
		    "address %s: a file that is not a socket has this name; remove it, or choose "
		    "another path",
		    l->text);
	fd = open_socket(l, err);
	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)&l->addr, l->len) == 0 || errno == EAGAIN)
		return is_busy(l, err);
	return errno == ECONNREFUSED || errno == ENOENT
		   ? 0
		   : hr_err_sys(err, errno, "address %s", l->text);
}

/* Returns the mode bits that a socket of this path must not have: only the owner may connect, and
 * the group of a directory that gives its group to its files. */
static mode_t
unix_mask(const char *path)
{
	char dir[SOCKET_PATH_MAX + 1];
	struct stat st;

	directory_of(path, dir);
	return stat(dir, &st) == 0 && (st.st_mode & S_ISGID) != 0 ? 0117 : 0177;
}

static bool
same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Gives the socket its path, in place of a dead one that was seen there, but of no other: two
 * servers may have seen the same. Returns 0, or an error number. */
static int
unix_place(const char *from, const char *path, const struct stat *dead)
{
	struct stat was;

	if (renameat2(AT_FDCWD, from, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno == EEXIST && dead->st_ino == 0)
		return EADDRINUSE;
	if (errno == EEXIST && renameat2(AT_FDCWD, from, AT_FDCWD, path, RENAME_EXCHANGE) == 0) {
		if (lstat(from, &was) == 0 && same_file(&was, dead))
			return unlink(from) == 0 ? 0 : errno;
		return renameat2(AT_FDCWD, from, AT_FDCWD, path, RENAME_EXCHANGE) == 0 ? EADDRINUSE
										       : errno;
	}
	/* not every file system has these two */
	return errno == EINVAL && rename(from, path) == 0 ? 0 : errno;
}

static int
unix_bind(struct hr_listen *l, struct hr_err *err)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	const char *path = unix_path(l);
	char digits[BOUND_DIGITS + 1];
	struct stat dead;
	bool bound;
	mode_t old;
	int fd, sys;

	if (unix_check(l, &dead, err) < 0 || hr_random_hex(digits, BOUND_DIGITS, err) < 0)
		return -1;
	(void)snprintf(
	    un.sun_path, sizeof(un.sun_path), "%.*s~%s", (int)SOCKET_PATH_MAX, path, digits);
	fd = open_socket(l, err);
	if (fd < 0)
		return -1;
	old = umask(unix_mask(path));
	bound = bind(fd, (const struct sockaddr *)&un, sizeof(un)) == 0;
	(void)umask(old);
	/* listens first: a socket that has its path and refuses connections is a dead one */
	sys = bound && listen(fd, BACKLOG) == 0 && lstat(un.sun_path, &l->file) == 0
		  ? unix_place(un.sun_path, path, &dead)
		  : errno;
	if (sys != 0) {
		(void)(sys == EADDRINUSE ? is_busy(l, err)
					 : hr_err_sys(err, sys, "address %s", l->text));
		if (bound)
			(void)unlink(un.sun_path);
		hr_fd_close(&fd);
	}
	(void)snprintf(l->nginx, sizeof(l->nginx), UNIX_PREFIX "%s", un.sun_path);
	return fd;
}

/* Returns true if the path still has the socket that this process opened. */
static bool
unix_is_there(const struct hr_listen *l)
{
	struct stat st;

	return lstat(unix_path(l), &st) == 0 && same_file(&st, &l->file);
}

/* Returns true for a socket of the previous image that was bound to this path and can be reached by
 * it. A socket of another path is that of an earlier setting. */
static bool
unix_take(struct hr_listen *l, struct sockaddr_un *is)
{
	const char *path = unix_path(l);
	size_t n = strnlen(is->sun_path, sizeof(is->sun_path) - 1);
	char bound[HR_LISTEN_TEXT];
	struct stat st;

	(void)snprintf(bound, sizeof(bound), UNIX_PREFIX "%.*s", (int)n, is->sun_path);
	is->sun_path[n > BOUND_SUFFIX ? n - BOUND_SUFFIX : 0] = '\0';
	if (lstat(is->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode))
		return false;
	if (l->addr.ss_family != AF_UNIX || strcmp(is->sun_path, path) != 0) {
		(void)unlink(is->sun_path);
		return false;
	}
	memcpy(l->nginx, bound, sizeof(bound));
	l->file = st;
	return true;
}

static bool
is_loopback(const struct hr_listen *l)
{
	if (l->addr.ss_family == AF_UNIX)
		return true;
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
	if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0)
		return unix_parse(l, text + strlen(UNIX_PREFIX), err);
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
		    "listen: must be a numeric address, such as 127.0.0.1 or ::1, or unix: and the "
		    "path of a socket, not \"%.64s\"",
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

	/* the server refuses clients without a certificate of the authority in tls_client_ca */
	has_key = has_key || c->tls_client_ca[0] != '\0';
	if (text[0] == '\0')
		text = has_key || c->allow_unauthenticated ? "0.0.0.0" : "127.0.0.1";
	if (address_parse(l, text, c->port, err) < 0)
		return -1;
	(void)snprintf(l->nginx, sizeof(l->nginx), "%s", l->text);
	l->public = !is_loopback(l);
	if (l->public && !has_key && !c->allow_unauthenticated)
		return hr_err_set(err, HR_E_INVAL,
		    "%s can be reached from other machines and there is no session key: set "
		    "SESSION_API_KEY, or give --allow-unauthenticated",
		    l->text);
	return 0;
}

static int
tcp_bind(const struct hr_listen *l, struct hr_err *err)
{
	int fd = open_socket(l, err), on = 1;

	if (fd < 0)
		return -1;
	/* nginx's IPv6 sockets exclude IPv4 by default */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    (l->addr.ss_family == AF_INET6 &&
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) != 0) ||
	    bind(fd, (const struct sockaddr *)&l->addr, l->len) != 0) {
		int sys = errno;

		hr_fd_close(&fd);
		if (sys == EADDRINUSE)
			return is_busy(l, err);
		return hr_err_sys(err, sys, "address %s", l->text);
	}
	return fd;
}

int
hr_listen_bind(struct hr_listen *l, struct hr_err *err)
{
	return l->addr.ss_family == AF_UNIX ? unix_bind(l, err) : tcp_bind(l, err);
}

int
hr_listen_start(int fd, const struct hr_listen *l, struct hr_err *err)
{
	/* another process that started at the same time has replaced the file */
	if (l->addr.ss_family == AF_UNIX)
		return unix_is_there(l) ? 0 : is_busy(l, err);
	if (listen(fd, BACKLOG) == 0)
		return 0;
	if (errno == EADDRINUSE) /* another process had also bound it, and listened first */
		return is_busy(l, err);
	return hr_err_sys(err, errno, "address %s", l->text);
}

int
hr_listen_take(struct hr_listen *l, int fd)
{
	union {
		struct sockaddr_storage any;
		struct sockaddr_un un;
	} is;
	socklen_t len = sizeof(is);
	bool same;

	memset(&is, 0, sizeof(is));
	if (fd < 0 || getsockname(fd, (struct sockaddr *)&is, &len) != 0)
		same = false;
	else if (is.any.ss_family == AF_UNIX)
		same = unix_take(l, &is.un);
	else
		same = len == l->len && memcmp(&is, &l->addr, len) == 0;
	if (!same)
		hr_fd_close(&fd);
	return fd;
}

void
hr_listen_close(const struct hr_listen *l, int *fd)
{
	if (*fd >= 0 && l->addr.ss_family == AF_UNIX && unix_is_there(l))
		(void)unlink(unix_path(l));
	hr_fd_close(fd);
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
