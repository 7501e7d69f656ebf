/* Remembers which connection of nginx leads to which sandbox, and resets the connections of an
 * ended one. */
#include "config.h"

#include "fleet/visits.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/process/pid.h"
#include "base/process/spawn.h"
#include "fleet/fleet.h"

#define END (INET6_ADDRSTRLEN + sizeof(" 65535")) /* one end of a connection, as a text */
#define CLIENT (2 * END)
#define VISITS 8192 /* connections of both workers (handrail-fleet.conf.in) */

/* A client has one place, so that its next request replaces the former one, and a number that
 * another client uses again leads to no reset. Two clients with the same place lose the older one.
 */
static struct visit {
	char client[CLIENT], id[HR_FLEET_ID];
} visits[VISITS];
static pthread_mutex_t visiting = PTHREAD_MUTEX_INITIALIZER;

static struct visit *
place_of(const char *client)
{
	return &visits[hr_hash(HR_HASH, client, strlen(client)) % VISITS];
}

void
hr_fleet_visit(const char *client, const char *id)
{
	struct visit *v = place_of(client);

	if (*client == '\0' || strlen(client) >= sizeof(v->client))
		return;
	(void)pthread_mutex_lock(&visiting);
	(void)snprintf(v->client, sizeof(v->client), "%s", client);
	(void)snprintf(v->id, sizeof(v->id), "%s", id);
	(void)pthread_mutex_unlock(&visiting);
}

static bool
is_visited(const char *id)
{
	bool found = false;
	size_t i;

	(void)pthread_mutex_lock(&visiting);
	for (i = 0; i < VISITS && !found; i++)
		found = strcmp(visits[i].id, id) == 0;
	(void)pthread_mutex_unlock(&visiting);
	return found;
}

static bool
is_visit_of(const char *client, const char *id)
{
	const struct visit *v = place_of(client);
	bool found;

	(void)pthread_mutex_lock(&visiting);
	found = strcmp(v->client, client) == 0 && strcmp(v->id, id) == 0;
	(void)pthread_mutex_unlock(&visiting);
	return found;
}

/* Returns false if the connection has no such end. */
static bool
put_end(char ret[END], const struct sockaddr_storage *a, socklen_t len)
{
	char host[INET6_ADDRSTRLEN], port[sizeof("65535")];

	if ((a->ss_family != AF_INET && a->ss_family != AF_INET6) ||
	    getnameinfo((const struct sockaddr *)a, len, host, sizeof(host), port, sizeof(port),
		NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return false;
	(void)snprintf(ret, END, "%s %s", host, port);
	return true;
}

/* Resets the connection `fd` of a process if it leads to the sandbox. nginx has connections to
 * sandboxes, too, which differ from those of clients in one of the ends. */
static void
reset_one(int pidfd, int fd, const char *id)
{
	HR_CLOSE int copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0u);
	struct sockaddr_storage peer, own;
	socklen_t peer_len = sizeof(peer), own_len = sizeof(own);
	char from[END], to[END], client[CLIENT];

	if (copy < 0 || getpeername(copy, (struct sockaddr *)&peer, &peer_len) != 0 ||
	    getsockname(copy, (struct sockaddr *)&own, &own_len) != 0 ||
	    !put_end(from, &peer, peer_len) || !put_end(to, &own, own_len))
		return;
	(void)snprintf(client, sizeof(client), "%s %s", from, to);
	/* a connect() to no address resets */
	if (is_visit_of(client, id))
		(void)connect(
		    copy, &(struct sockaddr){.sa_family = AF_UNSPEC}, sizeof(struct sockaddr));
}

static void
reset_of_worker(pid_t worker, pid_t nginx, const char *id)
{
	HR_CLOSE int pidfd = hr_pidfd_open(worker);
	HR_CLOSEDIR DIR *d = NULL;
	struct dirent *e;
	char text[HR_PID_STAT], path[48];

	if (pidfd < 0 ||
	    hr_pid_field(hr_pid_stat(worker, text), HR_PID_PARENT) != (unsigned long long)nginx)
		return;
	(void)snprintf(path, sizeof(path), "/proc/%ld/fd", (long)worker);
	d = opendir(path);
	while (d != NULL && (e = readdir(d)) != NULL)
		if (e->d_name[0] != '.')
			reset_one(pidfd, (int)strtol(e->d_name, NULL, 10), id);
}

void
hr_fleet_visits_reset(pid_t nginx, const char *id)
{
	char name[48], workers[256], *p = workers, *end;
	long worker;

	if (nginx <= 0 || !is_visited(id))
		return;
	(void)snprintf(name, sizeof(name), "task/%ld/children", (long)nginx);
	hr_pid_read(nginx, name, workers, sizeof(workers));
	while ((worker = strtol(p, &end, 10)) > 0) {
		reset_of_worker((pid_t)worker, nginx, id);
		p = end;
	}
}
