/* Talks to the service manager's notification socket. */
#include "config.h"

#include "base/process/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/fd.h"

int
hr_notify_open(struct hr_notify *n, const char *name, struct hr_err *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t len;

	n->fd = -1;
	if (name == NULL || name[0] == '\0')
		return 0;
	len = strlen(name);
	if ((name[0] != '/' && name[0] != '@') || len >= sizeof(addr.sun_path))
		return hr_err_set(err, HR_E_INVAL, "NOTIFY_SOCKET is not the name of a socket");
	memcpy(addr.sun_path, name, len);
	if (name[0] == '@')
		addr.sun_path[0] = '\0';
	n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (n->fd < 0)
		return hr_err_sys(err, errno, "NOTIFY_SOCKET");
	/* an abstract name ends with its length, not with a NUL */
	if (connect(n->fd, (const struct sockaddr *)&addr,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) != 0) {
		(void)hr_err_sys(err, errno, "NOTIFY_SOCKET %s", name);
		hr_fd_close(&n->fd);
		return -1;
	}
	return 0;
}

void
hr_notify_send(const struct hr_notify *n, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int len;

	if (n->fd < 0)
		return;
	va_start(ap, fmt);
	len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (len > 0 && (size_t)len < sizeof(text))
		(void)hr_fd_send(n->fd, text, (size_t)len, -1, NULL);
}

void
hr_notify_close(struct hr_notify *n)
{
	hr_fd_close(&n->fd);
}
