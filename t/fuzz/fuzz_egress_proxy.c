/* Answers of the operator's proxy. The first byte chooses the protocol, a login and the family of
 * the address, the second one where the answer is cut. The end of the talk must not depend on the
 * cut, no byte after the answer is read, and a password is sent to a proxy alone that asks for it.
 */
#include "config.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "egress/proxy.h"
#include "fuzz.h"

#define ANSWER_MAX 16384u /* a socket has room for it */
#define PASSWORD "hidden-password"
#define CODED "dXNlcjpoaWRkZW4tcGFzc3dvcmQ=" /* user:PASSWORD */

struct end {
	int r, left; /* bytes that nobody has read */
	char why[80];
};

static void
give(int fd, const uint8_t *p, size_t len)
{
	must(len == 0 || write(fd, p, len) == (ssize_t)len);
}

static struct end
talk(uint8_t kind, const uint8_t *p, size_t len, size_t cut, struct hr_buf *sent)
{
	struct egress_proxy proxy = {.http = (kind & 1) != 0, .user = (char *)(uintptr_t) "user"};
	struct egress_talk *t = egress_talk_new(&proxy, (kind & 2) != 0 ? PASSWORD : NULL);
	union egress_address to = {.in.sin_family = (kind & 4) != 0 ? AF_INET6 : AF_INET};
	struct end e = {.r = 0};
	const char *why = NULL;
	char chunk[4096];
	int pair[2];
	ssize_t n;

	must(t != NULL && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	must(egress_talk_start(t, pair[0], &to.any, &why) == 0);
	give(pair[1], p, cut);
	e.r = egress_talk(t, pair[0], &why);
	give(pair[1], p + cut, len - cut);
	must(shutdown(pair[1], SHUT_WR) == 0);
	if (e.r == 0)
		e.r = egress_talk(t, pair[0], &why);
	must(e.r == 1 || (e.r == -1 && strncmp(why, "egressProxy: ", 13) == 0));
	must(ioctl(pair[0], FIONREAD, &e.left) == 0);
	if (e.r < 0)
		(void)snprintf(e.why, sizeof(e.why), "%s", why);
	egress_talk_free(t);
	(void)close(pair[0]);
	while ((n = read(pair[1], chunk, sizeof(chunk))) > 0)
		hr_buf_add(sent, chunk, (size_t)n);
	(void)close(pair[1]);
	return e;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HR_BUF(whole, 8192);
	HR_BUF(parts, 8192);
	struct end e, again;
	const uint8_t *p;
	size_t len, used;

	if (size < 2 || size > ANSWER_MAX)
		return 0;
	p = data + 2;
	len = size - 2;
	e = talk(data[0], p, len, len, &whole);
	again = talk(data[0], p, len, data[1] % (len + 1), &parts);
	must(e.r == again.r && strcmp(e.why, again.why) == 0 && whole.len == parts.len);
	must(memcmp(whole.p, parts.p, whole.len) == 0);
	must(e.r < 0 || e.left == again.left);
	used = len - (size_t)e.left;
	must(e.r < 0 || (data[0] & 1) == 0 ||
	     (used > 12 && memcmp(p, "HTTP/1.", 7) == 0 &&
		 memcmp(p + used - 4, "\r\n\r\n", 4) == 0));
	must(e.r < 0 || (data[0] & 1) != 0 || (used >= 9 && p[0] == 5));
	if ((data[0] & 1) != 0)
		must((memmem(whole.p, whole.len, CODED, strlen(CODED)) != NULL) ==
		     ((data[0] & 2) != 0));
	else if (memmem(whole.p, whole.len, PASSWORD, strlen(PASSWORD)) != NULL)
		must((data[0] & 2) != 0 && len >= 2 && p[0] == 5 && p[1] == 2);
	return 0;
}
