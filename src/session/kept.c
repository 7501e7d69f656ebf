/* Implements the store. A datagram stays in the socket and is only peeked at, so it survives a
 * process that dies while it handles the datagram. */
#include "config.h"

#include "session/kept.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

union control {
	char bytes[CMSG_SPACE(HR_KEPT_FDS * sizeof(int))];
	struct cmsghdr align;
};

void
hr_kept_layout(char text[64])
{
	memset(text, 0, 64);
	/* the 2 counts the layouts, since a new one may have the size of an older one */
	(void)snprintf(
	    text, 64, "%s 2 %zu %zu", PACKAGE_VERSION, sizeof(struct hr_kept), sizeof(void *));
}

static struct hr_kept *
map(int fd)
{
	void *p = mmap(NULL, sizeof(struct hr_kept), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p != MAP_FAILED ? p : NULL;
}

static int
make_page(struct hr_kept_store *s, struct hr_err *err)
{
	s->page_fd = memfd_create("handrail-session", MFD_CLOEXEC);
	if (s->page_fd >= 0 && ftruncate(s->page_fd, sizeof(*s->page)) == 0)
		s->page = map(s->page_fd);
	if (s->page == NULL) {
		(void)hr_err_sys(err, errno, "memory for the session");
		hr_fd_close(&s->page_fd);
		return -1;
	}
	hr_kept_layout(s->page->layout);
	return 0;
}

/* Puts each descriptor at the index named by a byte of the message. */
static bool
sort_fds(const struct msghdr *m, const unsigned char *kinds, size_t n, int fds[HR_KEPT_FDS])
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(m);
	size_t i, got = 0;
	int fd;

	if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		got = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (i = 0; i < got; i++) {
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		if (i < n && kinds[i] < HR_KEPT_FDS && fds[kinds[i]] < 0)
			fds[kinds[i]] = fd;
		else
			(void)close(fd);
	}
	return got == n && (m->msg_flags & MSG_CTRUNC) == 0;
}

/* Returns 1 if the store has a state; 0: it has none, or that of another build; -1: not available
 * now. */
static int
find(struct hr_kept_store *s, int fds[HR_KEPT_FDS], struct hr_err *err)
{
	unsigned char kinds[HR_KEPT_FDS];
	union control control;
	struct iovec part = {kinds, sizeof(kinds)};
	struct msghdr m = {.msg_iov = &part,
	    .msg_iovlen = 1,
	    .msg_control = control.bytes,
	    .msg_controllen = sizeof(control.bytes)};
	char want[64];
	struct stat st;
	ssize_t n;

	do
		n = recvmsg(s->in, &m, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < 0)
		return hr_err_sys(err, errno, "cannot take over from the last keeper");
	if (!sort_fds(&m, kinds, (size_t)n, fds) || fds[HR_KEPT_PAGE] < 0)
		return hr_err_set(err, HR_E_SYS, "the last keeper left no descriptors");
	if (fstat(fds[HR_KEPT_PAGE], &st) < 0 || st.st_size != (off_t)sizeof(*s->page))
		return 0;
	s->page = map(fds[HR_KEPT_PAGE]);
	if (s->page == NULL)
		return hr_err_sys(err, errno, "cannot map the memory of the last keeper");
	hr_kept_layout(want);
	if (memcmp(s->page->layout, want, sizeof(want)) != 0) {
		(void)munmap(s->page, sizeof(*s->page));
		s->page = NULL;
		return 0;
	}
	s->page_fd = fds[HR_KEPT_PAGE];
	fds[HR_KEPT_PAGE] = -1;
	return 1;
}

int
hr_kept_open(struct hr_kept_store *s, int fds[HR_KEPT_FDS], bool *ret_found, struct hr_err *err)
{
	int found, i;

	for (i = 0; i < HR_KEPT_FDS; i++)
		fds[i] = -1;
	found = s->in >= 0 ? find(s, fds, err) : 0;
	*ret_found = found > 0;
	if (found > 0)
		return 0;
	for (i = 0; i < HR_KEPT_FDS; i++)
		hr_fd_close(&fds[i]);
	if (found < 0)
		return -1;
	hr_kept_clear(s);
	return make_page(s, err);
}

void
hr_kept_clear(struct hr_kept_store *s)
{
	char kinds[HR_KEPT_FDS];
	ssize_t n;

	if (s->page != NULL)
		hr_kept_sure(s->page, false);
	if (s->in < 0)
		return;
	do /* the kernel closes descriptors for which recv() has no room */
		n = recv(s->in, kinds, sizeof(kinds), MSG_DONTWAIT);
	while (n > 0 || (n < 0 && errno == EINTR));
}

int
hr_kept_put(struct hr_kept_store *s, const int fds[HR_KEPT_FDS], struct hr_err *err)
{
	unsigned char kinds[HR_KEPT_FDS];
	union control control = {{0}};
	struct iovec part = {kinds, 0};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes};
	struct cmsghdr *c = &control.align;
	size_t n = 0;
	ssize_t sent;
	int i, fd;

	hr_kept_clear(s);
	if (s->in < 0)
		return 0;
	for (i = 0; i < HR_KEPT_FDS; i++) {
		fd = i == HR_KEPT_PAGE ? s->page_fd : fds[i];
		if (fd < 0)
			continue;
		kinds[n] = (unsigned char)i;
		memcpy(CMSG_DATA(c) + n * sizeof(int), &fd, sizeof(int));
		n++;
	}
	part.iov_len = n;
	m.msg_controllen = CMSG_SPACE(n * sizeof(int));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	do
		sent = sendmsg(s->out, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (sent < 0 && errno == EINTR);
	return sent >= 0 ? 0 : hr_err_sys(err, errno, "descriptors cannot be kept");
}

/* ---- tries ---- */

static struct hr_kept *tried; /* static, since signal handlers have no argument */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static struct sigaction faults_were[sizeof(faults) / sizeof(faults[0])];

static void
on_fault(int sig)
{
	size_t i;

	atomic_fetch_add(&tried->tries, HR_KEPT_CRASH - 1);
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		(void)sigaction(faults[i], &faults_were[i], NULL);
	(void)raise(sig);
}

void
hr_kept_try(struct hr_kept *page)
{
	const struct sigaction act = {.sa_handler = on_fault};
	size_t i;

	atomic_fetch_add(&page->tries, 1);
	tried = page;
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		(void)sigaction(faults[i], &act, &faults_were[i]);
}

void
hr_kept_succeeded(struct hr_kept *page)
{
	size_t i;

	for (i = 0; tried != NULL && i < sizeof(faults) / sizeof(faults[0]); i++)
		(void)sigaction(faults[i], &faults_were[i], NULL);
	tried = NULL;
	atomic_store(&page->tries, 0);
}

void
hr_kept_close(struct hr_kept_store *s)
{
	if (s->page != NULL)
		(void)munmap(s->page, sizeof(*s->page));
	s->page = NULL;
	hr_fd_close(&s->page_fd);
	hr_fd_close(&s->in);
	hr_fd_close(&s->out);
}
