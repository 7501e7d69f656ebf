/* Asks a sandbox about its activity. The agent in the sandbox can forge these answers. */
#include "config.h"

#include "fleet/fleet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include <json-c/json_object.h>

#include "base/fd.h"
#include "base/path.h"
#include "fleet/edge.h"
#include "host/client/rest.h"
#include "proto/json.h"

#define PATIENCE_S 5
#define SOCKETS_MAX (64u << 20)
/* the IPv4-mapped prefix, as the kernel prints its words, in the machine's byte order */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define MAPPED " 0000000000000000FFFF0000"
#else
#define MAPPED " 00000000000000000000FFFF"
#endif

struct hr_rest *
hr_fleet_asker(const char *at)
{
	bool is_unix = hr_fleet_is_unix(at);
	char url[300];
	struct hr_rest_options o = {.url = url,
	    .unix_socket = is_unix ? at + strlen(HR_FLEET_UNIX) : NULL,
	    .rules = hr_rest_once,
	    .timeout_s = PATIENCE_S,
	    .total_s = PATIENCE_S,
	    .answer_max = 1u << 16,
	    .watch_fd = -1};

	(void)snprintf(url, sizeof(url), "http://%s", is_unix ? "localhost" : at);
	return hr_rest_new(&o, NULL);
}

/* ---- connections ---- */

static bool has_ipv6;

static void
look_for_ipv6(void)
{
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), only = 1;
	socklen_t len = sizeof(only);

	/* net.ipv6.bindv6only=1 forbids the IPv6 form of an IPv4 address */
	has_ipv6 =
	    fd >= 0 && getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &len) == 0 && only == 0;
	hr_fd_close(&fd);
}

/* Splits a sandbox's address. Returns true if a connection to it can be marked: one made by the
 * IPv4-mapped IPv6 address appears in another table of the kernel than all others. */
static bool
can_mark(const char *at, struct in_addr *ret)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const char *colon = strrchr(at, ':');
	char host[INET_ADDRSTRLEN];

	(void)pthread_once(&once, look_for_ipv6);
	(void)snprintf(host, sizeof(host), "%.*s", colon != NULL ? (int)(colon - at) : 0, at);
	return inet_pton(AF_INET, host, ret) == 1 && has_ipv6;
}

void
hr_fleet_put_way(struct hr_buf *b, const char *at, int port, bool counts)
{
	const char *colon = strrchr(at, ':');
	bool marked;
	struct in_addr a;

	if (hr_fleet_is_unix(at)) {
		hr_buf_addf(
		    b, HR_FLEET_UNIX "/proc/self/fd/%d/%s:", HR_FLEET_SOCKETS_FD, hr_path_leaf(at));
		if (port > 0)
			hr_buf_addf(b, "/port/%d", port);
		return;
	}
	hr_assert(colon != NULL);
	marked = counts && can_mark(at, &a);
	hr_buf_addf(b, "%s%.*s%s:%d", marked ? "[::ffff:" : "", (int)(colon - at), at,
	    marked ? "]" : "", port);
}

bool
hr_fleet_listens(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	HR_CLOSE int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(a.sun_path))
		return false;
	memcpy(a.sun_path, path, strlen(path) + 1);
	/* the kernel refuses the type of this socket, unless the path has no open socket at all */
	return connect(fd, (const struct sockaddr *)&a, sizeof(a)) != 0 && errno == EPROTOTYPE;
}

/* Returns true if this machine's socket table has an open connection that counts to one of its
 * ports. nginx keeps one for as long as each request lasts, and no others. */
static bool
is_connected(const struct hr_fleet_row *row)
{
	const char *colon = strrchr(row->at, ':');
	struct in_addr a = {0};
	bool marked = can_mark(row->at, &a), found = false;
	int ports[] = {0, row->vscode_port, row->app_ports[0], row->app_ports[1]};
	char text[64];
	HR_BUF(b, SOCKETS_MAX);
	size_t i;

	if (a.s_addr == 0 ||
	    hr_path_read(marked ? "/proc/net/tcp6" : "/proc/net/tcp", &b, NULL) != 0)
		return false;
	ports[0] = (int)strtol(colon + 1, NULL, 10);
	for (i = 0; !found && i < sizeof(ports) / sizeof(*ports); i++) {
		/* the remote end, and the state "established" */
		(void)snprintf(text, sizeof(text), "%s%08X:%04X 01 ", marked ? MAPPED : " ",
		    a.s_addr, (unsigned)ports[i]);
		found = ports[i] > 0 && strstr(hr_buf_str(&b), text) != NULL;
	}
	return found;
}

int64_t
hr_fleet_ask_active(const struct hr_fleet_row *row)
{
	HR_CLEAN(hr_rest_clean) struct hr_rest *r = hr_fleet_asker(row->at);
	HR_PUT struct json_object *info = NULL;
	HR_PUT struct json_object *session = NULL;
	int64_t now = (int64_t)time(NULL);
	double idle;

	/* comes first, since the request below opens a connection, too */
	if (is_connected(row))
		return now;
	if (r == NULL || hr_rest_header(r, "X-Session-API-Key", row->server_key, true, NULL) != 0 ||
	    hr_rest_get(r, "/server_info", &info, NULL) != 0)
		return -1;
	/* a running command is activity; other servers perhaps report none */
	if (hr_rest_get(r, "/handrail/v1/session", &session, NULL) == 0 &&
	    hr_json_true_at(session, "running"))
		return now;
	idle = hr_json_number_at(info, "idle_time");
	return idle > 0 && idle < (double)now ? now - (int64_t)idle : now;
}

int
hr_fleet_ask_usage(const struct hr_fleet_row *row, struct hr_buf *ret)
{
	static const struct {
		const char *name;
		int digits;
	} members[] = {{"time", 3}, {"processes", 0}, {"memory_bytes", 0}, {"cpu_seconds", 2}};
	HR_CLEAN(hr_rest_clean) struct hr_rest *r = hr_fleet_asker(row->at);
	HR_PUT struct json_object *o = NULL;
	double n;
	size_t i;

	if (r == NULL || hr_rest_header(r, "X-Session-API-Key", row->server_key, true, NULL) != 0 ||
	    hr_rest_get(r, "/handrail/v1/usage", &o, NULL) != 0)
		return -1;
	for (i = 0; i < sizeof(members) / sizeof(*members); i++) {
		n = hr_json_number_at(o, members[i].name);
		if (!(n >= 0 && n < 1e15)) /* a program in the sandbox may have answered */
			return -1;
		hr_buf_addf(ret, "%s\"%s\":%.*f", i == 0 ? "{" : ",", members[i].name,
		    members[i].digits, n);
	}
	hr_buf_addc(ret, '}');
	return 0;
}
