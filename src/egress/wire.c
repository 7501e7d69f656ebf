/* Reads the first bytes of connections from a box. All functions check every length before they use
 * it, and refuse whatever a second reader could understand differently. */
#include "config.h"

#include "egress/wire.h"

#include <arpa/inet.h>
#include <byteswap.h>
#include <string.h>

#define HEAD_MAX 16384 /* bytes of a TLS greeting with its record headers, or of an HTTP head */
#define DNS_HEAD 12
#define TTL_S 5

/* Unread bytes of a message. A read beyond the end sets `bad` and gives zeros. */
struct reader {
	const uint8_t *p;
	size_t len;
	bool bad;
};

static const uint8_t *
take(struct reader *r, size_t n)
{
	const uint8_t *p = r->p;

	if (n > r->len) {
		r->bad = true;
		r->len = 0;
		return NULL;
	}
	if (n > 0) /* a part that could not be read has no bytes, and no address */
		r->p += n;
	r->len -= n;
	return p;
}

/* Reads a number of 1 to 4 bytes in network order. */
static uint32_t
number(struct reader *r, size_t bytes)
{
	const uint8_t *p = take(r, bytes);
	uint32_t v = 0;

	while (p != NULL && bytes-- > 0)
		v = v << 8 | *p++;
	return v;
}

/* Returns a reader of the next bytes, whose length is written before them in `bytes` bytes. */
static struct reader
part(struct reader *r, size_t bytes)
{
	size_t n = number(r, bytes);
	struct reader ret = {.p = take(r, n), .bad = r->bad};

	ret.len = ret.bad ? 0 : n;
	return ret;
}

/* ---- DNS ---- */

/* Reads the labels of a question as "a.b.c". Returns false if they are malformed or compressed.
 * *ret_len is 0 where a label contains a dot, since the text would then mean another name. */
static bool
labels(struct reader *r, char ret[EGRESS_DNS_NAME], size_t *ret_len)
{
	size_t n = 0, start = r->len;
	bool dotted = false;
	struct reader label;

	for (;;) {
		label = part(r, 1);
		if (r->bad || label.len > 63 || start - r->len > EGRESS_DNS_NAME)
			return false;
		if (label.len == 0)
			break;
		dotted = dotted || memchr(label.p, '.', label.len) != NULL;
		if (n > 0)
			ret[n++] = '.';
		memcpy(ret + n, label.p, label.len);
		n += label.len;
	}
	*ret_len = dotted ? 0 : n;
	return true;
}

bool
egress_dns_read(const void *p, size_t len, struct egress_question *ret)
{
	struct reader r = {.p = (const uint8_t *)p, .len = len};
	uint32_t flags, questions, records;
	char name[EGRESS_DNS_NAME];
	size_t n;

	number(&r, 2); /* the identifier */
	flags = number(&r, 2);
	questions = number(&r, 2);
	records = number(&r, 4); /* answers and authorities */
	number(&r, 2);           /* additional records */
	if (r.bad || len > EGRESS_DNS_MAX || (flags & 0xF800) != 0 || questions != 1 ||
	    records != 0 || !labels(&r, name, &n))
		return false;
	ret->type = (int)number(&r, 2);
	if (number(&r, 2) != 1 || r.bad)
		return false;
	ret->end = len - r.len;
	if (!egress_name(name, n, ret->name))
		ret->name[0] = '\0';
	return true;
}

static uint8_t *
put(uint8_t *to, uint32_t v, size_t bytes)
{
	while (bytes-- > 0)
		*to++ = (uint8_t)(v >> 8 * bytes);
	return to;
}

size_t
egress_dns_answer(const void *query, const struct egress_question *q, int code, const void *data,
    size_t len, uint8_t ret[EGRESS_DNS_MAX])
{
	uint8_t *at = ret + q->end;

	memcpy(ret, query, q->end);
	/* QR and RA are set, and RD is the query's */
	put(ret + 2, 0x8080 | (ret[2] & 1u) << 8 | (unsigned)code, 2);
	put(ret + 6, len > 0, 2);
	put(ret + 8, 0, 4);
	if (len > 0) {
		at = put(at, 0xC000 | DNS_HEAD, 2); /* the name of the question */
		at = put(at, (uint32_t)q->type, 2);
		at = put(at, 1, 2);
		at = put(at, TTL_S, 4);
		at = put(at, (uint32_t)len, 2);
		memcpy(at, data, len);
	}
	return (size_t)(at - ret) + len;
}

bool
egress_dns_reverse(const char *name, struct in_addr *ret)
{
	static const char end[] = ".in-addr.arpa";
	const char *at = strstr(name, end);
	char text[INET_ADDRSTRLEN] = "";

	if (at == NULL || at[sizeof(end) - 1] != '\0' || (size_t)(at - name) >= sizeof(text))
		return false;
	memcpy(text, name, (size_t)(at - name));
	if (inet_pton(AF_INET, text, ret) != 1)
		return false;
	ret->s_addr = bswap_32(ret->s_addr);
	return true;
}

size_t
egress_dns_name(const char *name, uint8_t ret[EGRESS_DNS_NAME])
{
	size_t at = 0, n;

	do {
		n = strcspn(name, ".");
		ret[at++] = (uint8_t)n;
		memcpy(ret + at, name, n);
		at += n;
		name += n + (name[n] == '.');
	} while (n > 0);
	return at;
}

/* ---- TLS ---- */

/* Joins the records of the greeting in buf. Returns 1 with the body of the ClientHello, 0 or -1. */
static int
greeting(const uint8_t *p, size_t len, uint8_t buf[HEAD_MAX], struct reader *ret)
{
	struct reader r = {.p = p, .len = len < HEAD_MAX ? len : HEAD_MAX}, record;
	size_t n = 0, want = 4;

	while (n < want) {
		if ((r.len > 0 && r.p[0] != 0x16) || (r.len > 1 && r.p[1] != 3))
			return -1;
		number(&r, 3); /* type and version */
		record = part(&r, 2);
		if (r.bad)
			return len < HEAD_MAX ? 0 : -1;
		if (record.len == 0 || record.len > HEAD_MAX - n)
			return -1;
		memcpy(buf + n, record.p, record.len);
		n += record.len;
		if (n < 4)
			continue;
		want = 4 + ((size_t)buf[1] << 16 | (size_t)buf[2] << 8 | buf[3]);
		if (buf[0] != 1 || want > HEAD_MAX)
			return -1;
	}
	*ret = (struct reader){.p = buf + 4, .len = n - 4};
	return n == want ? 1 : -1;
}

/* Reads the extension server_name: a list with exactly one host name. */
static bool
server_name(struct reader ext, char ret[EGRESS_NAME_MAX + 1])
{
	struct reader list = part(&ext, 2), name;
	uint32_t type = number(&list, 1);

	name = part(&list, 2);
	return !name.bad && ext.len == 0 && list.len == 0 && type == 0 &&
	       egress_name((const char *)name.p, name.len, ret);
}

int
egress_hello_name(const void *p, size_t len, char ret[EGRESS_NAME_MAX + 1])
{
	struct reader r, session, suites, methods, all, ext;
	uint8_t buf[HEAD_MAX];
	bool named = false;
	uint32_t type;
	int got = greeting((const uint8_t *)p, len, buf, &r);

	if (got != 1)
		return got;
	ret[0] = '\0';
	take(&r, 2 + 32); /* version and random bytes */
	session = part(&r, 1);
	suites = part(&r, 2);
	methods = part(&r, 1);
	if (r.bad || session.len > 32 || suites.len < 2 || suites.len % 2 != 0 || methods.len < 1)
		return -1;
	if (r.len == 0)
		return 1;
	all = part(&r, 2);
	if (r.bad || r.len != 0)
		return -1;
	while (all.len > 0) {
		type = number(&all, 2);
		ext = part(&all, 2);
		if (all.bad || (type == 0 && (named || !server_name(ext, ret))))
			return -1;
		named = named || type == 0;
	}
	return 1;
}

/* ---- proxies ---- */

/* Reads the host of a target, an IPv4 address or a name. */
static bool
host(const void *p, size_t len, struct egress_target *ret)
{
	char text[INET_ADDRSTRLEN];

	ret->name[0] = '\0';
	if (len > 0 && len < sizeof(text) && memchr(p, '\0', len) == NULL) {
		memcpy(text, p, len);
		text[len] = '\0';
		if (inet_pton(AF_INET, text, &ret->address) == 1)
			return true;
	}
	return egress_name((const char *)p, len, ret->name);
}

bool
egress_port(const char *p, size_t len, int *ret)
{
	int v = 0;

	if (len == 0 || len > 5 || *p == '0')
		return false;
	for (; len > 0; len--, p++) {
		if (*p < '0' || *p > '9')
			return false;
		v = v * 10 + (*p - '0');
	}
	*ret = v;
	return v <= 65535;
}

/* Returns true if all lines end with CR LF, have a colon after their name and no other control
 * character than a tab. */
static bool
is_header(const char *p, const char *end)
{
	const char *line, *stop;

	for (line = p; line < end; line = stop + 2) {
		stop = (const char *)memmem(line, (size_t)(end - line), "\r\n", 2);
		if (stop == NULL || *line == ':' || *line == ' ' || *line == '\t' ||
		    memchr(line, ':', (size_t)(stop - line)) == NULL)
			return false;
		for (p = line; p < stop; p++)
			if (((unsigned char)*p < ' ' && *p != '\t') || *p == 0x7F)
				return false;
	}
	return true;
}

/* The parts of "METHOD TARGET HTTP/1.x" and its header lines. */
struct head {
	const char *target, *blank; /* the blank follows the target */
	size_t len;
};

/* Returns 1, 0 if more bytes are needed, or -1. */
static int
head_read(const char *p, size_t len, struct head *ret)
{
	const char *end, *line, *at;
	size_t verb = 0;

	while (verb < len && p[verb] >= 'A' && p[verb] <= 'Z')
		verb++;
	if (verb < len && (verb == 0 || p[verb] != ' '))
		return -1;
	end = (const char *)memmem(p, len < HEAD_MAX ? len : HEAD_MAX, "\r\n\r\n", 4);
	if (end == NULL)
		return len < HEAD_MAX ? 0 : -1;
	line = (const char *)memmem(p, len, "\r\n", 2);
	ret->target = p + verb + 1;
	ret->blank = (const char *)memchr(ret->target, ' ', (size_t)(line - ret->target));
	ret->len = (size_t)(end + 4 - p);
	for (at = ret->target; at < ret->blank; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7F)
			return -1;
	return ret->blank != NULL && line - ret->blank == 9 &&
		       memcmp(ret->blank, " HTTP/1.", 8) == 0 &&
		       (line[-1] == '0' || line[-1] == '1') && is_header(line + 2, end + 2)
		   ? 1
		   : -1;
}

/* Reads "HOST:PORT", or "HOST" if there is a default port. */
static bool
authority(const char *p, const char *end, int port, struct egress_target *ret)
{
	const char *colon = (const char *)memchr(p, ':', (size_t)(end - p));

	ret->port = port;
	return (colon == NULL ? port != 0
			      : egress_port(colon + 1, (size_t)(end - colon - 1), &ret->port)) &&
	       host(p, (size_t)((colon != NULL ? colon : end) - p), ret);
}

int
egress_connect_read(const void *p, size_t len, struct egress_target *ret)
{
	static const char verb[] = "CONNECT ";
	struct head h;
	int r;

	if (memcmp(p, verb, len < sizeof(verb) - 1 ? len : sizeof(verb) - 1) != 0)
		return -1;
	r = head_read((const char *)p, len, &h);
	if (r != 1)
		return r;
	ret->used = h.len;
	return authority(h.target, h.blank, 0, ret) ? 1 : -1;
}

int
egress_absolute_read(const void *p, size_t len, struct egress_target *ret)
{
	static const char scheme[] = "http://";
	const char *at = (const char *)p;
	struct head h;
	int r = head_read(at, len, &h);

	if (r != 1)
		return r;
	ret->used = h.len;
	ret->verb = (size_t)(h.target - at);
	if (strncasecmp(h.target, scheme, sizeof(scheme) - 1) != 0)
		return -1;
	h.target += sizeof(scheme) - 1;
	for (ret->path = (size_t)(h.target - at); at + ret->path < h.blank; ret->path++)
		if (at[ret->path] == '/' || at[ret->path] == '?')
			break;
	return authority(h.target, at + ret->path, 80, ret) ? 1 : -1;
}

int
egress_socks_greeting(const void *p, size_t len, size_t *ret_used)
{
	struct reader r = {.p = (const uint8_t *)p, .len = len}, methods;

	if (len > 0 && r.p[0] != 5)
		return -1;
	number(&r, 1);
	methods = part(&r, 1);
	if (r.bad)
		return 0;
	*ret_used = len - r.len;
	return methods.len > 0 && memchr(methods.p, 0, methods.len) != NULL ? 1 : -3;
}

int
egress_socks_request(const void *p, size_t len, struct egress_target *ret)
{
	struct reader r = {.p = (const uint8_t *)p, .len = len}, to;
	uint32_t version = number(&r, 1), command = number(&r, 1), zero = number(&r, 1),
		 type = number(&r, 1);

	if ((len > 0 && version != 5) || (len > 1 && (command < 1 || command > 3)) || zero != 0 ||
	    (len > 3 && type != 1 && type != 3 && type != 4))
		return -1;
	if (type == 3) {
		to = part(&r, 1);
	} else {
		to = (struct reader){.len = type == 1 ? 4 : 16};
		to.p = take(&r, to.len);
	}
	ret->port = (int)number(&r, 2);
	if (r.bad)
		return 0;
	ret->used = len - r.len;
	if (command != 1 || type == 4)
		return -2;
	if (ret->port == 0 || (type == 3 && !host(to.p, to.len, ret)))
		return -1;
	if (type == 1) {
		ret->name[0] = '\0';
		memcpy(&ret->address, to.p, sizeof(ret->address));
	}
	return 1;
}
