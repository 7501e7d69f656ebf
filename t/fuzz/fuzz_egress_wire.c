/* First bytes of connections from a box. The first byte of the input chooses the reader. What was
 * read must be a host name or an address with a port, and must not change with more bytes. */
#include "config.h"

#include <string.h>

#include "egress/wire.h"
#include "fuzz.h"

static void
is_name(const char *name)
{
	char again[EGRESS_NAME_MAX + 1];

	must(name[0] == '\0' ||
	     (egress_name(name, strlen(name), again) && strcmp(name, again) == 0));
}

static void
dns(const uint8_t *p, size_t len)
{
	struct in_addr a = {0x020012C6};
	uint8_t out[EGRESS_DNS_MAX];
	struct egress_question q, again;

	if (!egress_dns_read(p, len, &q))
		return;
	is_name(q.name);
	must(q.end <= len &&
	     egress_dns_answer(p, &q, EGRESS_DNS_OK, &a, sizeof(a), out) == q.end + 16);
	must(egress_dns_answer(p, &q, EGRESS_DNS_REFUSED, NULL, 0, out) == q.end);
	must(!egress_dns_read(out, q.end, &again)); /* an answer is no question */
	must(egress_dns_read(p, q.end, &again) && again.type == q.type);
}

static void
hello(const uint8_t *p, size_t len)
{
	char name[EGRESS_NAME_MAX + 1], less[EGRESS_NAME_MAX + 1];
	int got = egress_hello_name(p, len, name);

	if (got == 1)
		is_name(name);
	if (len > 0 && egress_hello_name(p, len - 1, less) == 1)
		must(got == 1 && strcmp(name, less) == 0);
	must(got != 0 || len < 16384);
}

static void
target(const uint8_t *p, size_t len, int (*fn)(const void *p, size_t len, struct egress_target *t))
{
	struct egress_target t, again;

	if (fn(p, len, &t) != 1) /* a result must not depend on what follows the head */
		return;
	is_name(t.name);
	must(t.used <= len && t.port > 0 && t.port < 65536);
	must(fn(p, t.used, &again) == 1 && again.used == t.used && again.port == t.port &&
	     strcmp(again.name, t.name) == 0);
	must(fn(p, t.used - 1, &again) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t used;

	if (size == 0)
		return 0;
	switch (data[0] % 6) {
	case 0: dns(data + 1, size - 1); break;
	case 1: hello(data + 1, size - 1); break;
	case 2: target(data + 1, size - 1, egress_connect_read); break;
	case 3: target(data + 1, size - 1, egress_socks_request); break;
	case 4:
		if (egress_socks_greeting(data + 1, size - 1, &used) == 1)
			must(used <= size - 1);
		break;
	case 5: target(data + 1, size - 1, egress_absolute_read); break;
	}
	return 0;
}
