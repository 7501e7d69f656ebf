/* Opens the viewer's port, and writes the file with its address. */
#include "config.h"

#include "supervisor/edge/viewer.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/random.h"
#include "supervisor/run/rundir.h"
#include "supervisor/settings/settings.h"

#define TRIES 10
#define RANGE 1024
#define BACKLOG 128
#define KEPT_FILE "www/viewer"

/* Binds without SO_REUSEADDR: a port that is bound but not listening yet is not free. */
static int
bind_one(uint32_t address, int port)
{
	const struct sockaddr_in in = {.sin_family = AF_INET,
	    .sin_port = htons((in_port_t)port),
	    .sin_addr.s_addr = htonl(address)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&in, sizeof(in)) != 0)
		hr_fd_close(&fd);
	return fd;
}

/* Finds a port that is free on every address, as the original does, and takes it on loopback. */
static void
choose(struct hr_viewer *v, long long base)
{
	long long last = base + RANGE < 65535 ? base + RANGE : 65535;
	uint32_t pick;
	int i, probe, port;

	for (i = 0; v->fd < 0 && i < TRIES && last > base; i++) {
		if (hr_random(&pick, sizeof(pick), NULL) < 0)
			continue;
		port = (int)(base + 1 + (long long)(pick % (uint32_t)(last - base)));
		probe = bind_one(INADDR_ANY, port);
		if (probe < 0)
			continue;
		hr_fd_close(&probe);
		v->fd = bind_one(INADDR_LOOPBACK, port);
		if (v->fd >= 0 && listen(v->fd, BACKLOG) != 0)
			hr_fd_close(&v->fd);
		if (v->fd >= 0)
			v->port = port;
	}
}

/* Takes over the listening socket `fd` if its port is in the viewer's range; else closes it. */
static void
take(struct hr_viewer *v, long long base, int fd)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in), size = sizeof(int);
	int listening = 0, port;

	if (fd < 0)
		return;
	if (getsockname(fd, (struct sockaddr *)&in, &len) == 0 && in.sin_family == AF_INET &&
	    in.sin_addr.s_addr == htonl(INADDR_LOOPBACK) &&
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening != 0) {
		port = ntohs(in.sin_port);
		if (port > base && port <= base + RANGE) {
			v->fd = fd;
			v->port = port;
			return;
		}
	}
	hr_fd_close(&fd);
}

void
hr_viewer_open(struct hr_viewer *v, const struct hr_settings *c, int handed)
{
	*v = (struct hr_viewer){.fd = -1, .port = -1};
	take(v, c->port, handed);
	if (v->fd < 0)
		choose(v, c->port);
	if (v->fd < 0)
		hr_log(HR_LOG_WARNING, "no file viewer: no port is free for it");
}

int
hr_viewer_choose(struct hr_viewer *v, const struct hr_rundir *r, struct hr_err *err)
{
	return hr_token_take(v->secret, r, KEPT_FILE, err);
}

/* Writes a new file over an old one: in /tmp any account may have put a link there. */
static int
write_file(struct hr_viewer *v, const struct hr_rundir *r, const char *name, uid_t reader,
    struct hr_err *err)
{
	HR_BUF(url, 128);
	HR_FREE char *path = hr_rundir_file(r, "%s", name);

	hr_buf_addf(&url, "http://localhost:%d", v->port);
	if (v->fd >= 0)
		hr_buf_addf(&url, "/%s", v->secret);
	if (path == NULL)
		return hr_err_nomem(err);
	if (hr_buf_check(&url, err) < 0 || hr_path_write_for(path, hr_buf_str(&url), url.len, 0600,
					       r->privileged ? reader : HR_PATH_OWN, err) < 0)
		return -1;
	if (lstat(path, &v->written) == 0) {
		v->file = path;
		path = NULL;
	}
	return 0;
}

void
hr_viewer_announce(
    struct hr_viewer *v, const struct hr_rundir *r, const struct hr_settings *c, uid_t reader)
{
	struct hr_err err = {0};

	if (hr_token_keep(v->secret, r, KEPT_FILE, &err) < 0)
		hr_log(HR_LOG_WARNING, "cannot save the file viewer's secret: %s", err.msg);
	if (c->viewer_url_file[0] != '\0' && write_file(v, r, c->viewer_url_file, reader, &err) < 0)
		hr_log(HR_LOG_WARNING,
		    "cannot write the file viewer's address (viewer_url_file): %s", err.msg);
}

/* Compares times, too, since the inode of a removed file can be reused. */
static bool
is_there(const struct hr_viewer *v)
{
	struct stat st;

	return lstat(v->file, &st) == 0 && st.st_dev == v->written.st_dev &&
	       st.st_ino == v->written.st_ino && st.st_mtim.tv_sec == v->written.st_mtim.tv_sec &&
	       st.st_mtim.tv_nsec == v->written.st_mtim.tv_nsec;
}

void
hr_viewer_close(struct hr_viewer *v)
{
	hr_fd_close(&v->fd);
	if (v->file != NULL && is_there(v) && unlink(v->file) != 0)
		hr_log(HR_LOG_WARNING, "%s cannot be removed: %s", v->file, strerror(errno));
	free(v->file);
	v->file = NULL;
}
