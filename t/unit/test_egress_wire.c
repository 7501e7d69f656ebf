/* First bytes of connections from a box: DNS questions, TLS greetings, and heads for proxies. */
#include "config.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "egress/wire.h"
#include "lines.h"

#define BYTES(text) (text), sizeof(text) - 1

/* ---- DNS ---- */

#define DNS_HEAD "\x12\x34\x01\0\0\1\0\0\0\0\0\0"
#define DNS_NAME "\3WwW\7example\3org\0"
#define DNS_A DNS_HEAD DNS_NAME "\0\1\0\1"

static bool
dns(const char *p, size_t len, struct egress_question *q)
{
	HR_FREE char *copy = (char *)malloc(len); /* so that a read beyond the end is seen */

	memcpy(copy, p, len);
	return egress_dns_read(copy, len, q);
}

START_TEST(question)
{
	struct egress_question q;

	ck_assert(dns(BYTES(DNS_A), &q));
	ck_assert_str_eq(q.name, "www.example.org");
	ck_assert_int_eq(q.type, EGRESS_DNS_A);
	ck_assert_uint_eq(q.end, sizeof(DNS_A) - 1);
	/* with an additional record, as resolvers send it */
	ck_assert(dns(BYTES("\x12\x34\x01\0\0\1\0\0\0\0\0\1" DNS_NAME "\0\x1C\0\1"
			    "\0\0\x29\x10\0\0\0\0\0\0\0"),
	    &q));
	ck_assert_int_eq(q.type, EGRESS_DNS_AAAA);
	ck_assert_uint_eq(q.end, sizeof(DNS_A) - 1);
	ck_assert(dns(BYTES(DNS_HEAD "\0\0\2\0\1"), &q)); /* the root */
	ck_assert_str_eq(q.name, "");
	ck_assert_int_eq(q.type, 2);
	ck_assert(dns(BYTES(DNS_HEAD "\3a.b\3org\0\0\1\0\1"), &q)); /* a dot in a label */
	ck_assert_str_eq(q.name, "");
	ck_assert(dns(BYTES(DNS_HEAD "\3a b\0\0\1\0\1"), &q));
	ck_assert_str_eq(q.name, "");
	ck_assert(dns(BYTES(DNS_HEAD "\3a\0b\0\0\1\0\1"), &q));
	ck_assert_str_eq(q.name, "");
	ck_assert(dns(BYTES(DNS_HEAD "\0012\0010\00218\003198\7in-addr\4arpa\0\0\14\0\1"), &q));
	ck_assert_str_eq(q.name, "2.0.18.198.in-addr.arpa");
	ck_assert_int_eq(q.type, EGRESS_DNS_PTR);
}
END_TEST

START_TEST(no_question)
{
	static const struct {
		const char *p;
		size_t len;
	} rows[] = {
	    {BYTES("\x12\x34\x81\0\0\1\0\0\0\0\0\0" DNS_NAME "\0\1\0\1")}, /* an answer */
	    {BYTES("\x12\x34\x28\0\0\1\0\0\0\0\0\0" DNS_NAME "\0\1\0\1")}, /* an update */
	    {BYTES("\x12\x34\x01\0\0\0\0\0\0\0\0\0" DNS_NAME "\0\1\0\1")},
	    {BYTES("\x12\x34\x01\0\0\2\0\0\0\0\0\0" DNS_NAME "\0\1\0\1" DNS_NAME "\0\1\0\1")},
	    {BYTES("\x12\x34\x01\0\0\1\0\1\0\0\0\0" DNS_NAME "\0\1\0\1")},
	    {BYTES("\x12\x34\x01\0\0\1\0\0\0\1\0\0" DNS_NAME "\0\1\0\1")},
	    {BYTES(DNS_HEAD DNS_NAME "\0\1\0\3")},   /* class CHAOS */
	    {BYTES(DNS_HEAD "\1a\xC0\x0C\0\1\0\1")}, /* compressed */
	    {BYTES(DNS_HEAD "\100aaaa\0\0\1\0\1")},  /* a label of 64 bytes */
	    {BYTES(DNS_HEAD "\7a\0\0\1\0\1")},       /* a label beyond the end */
	};
	struct egress_question q;
	HR_BUF(b, 4096);
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		ck_assert_msg(!dns(rows[i].p, rows[i].len, &q), "row %zu", i);
	for (i = 0; i < sizeof(DNS_A) - 1; i++)
		ck_assert_msg(!dns(DNS_A, i, &q), "%zu bytes", i);
	hr_buf_add(&b, BYTES(DNS_A));
	while (b.len < EGRESS_DNS_MAX)
		hr_buf_addc(&b, 0);
	ck_assert(dns(b.p, b.len, &q));
	hr_buf_addc(&b, 0);
	ck_assert(!dns(b.p, b.len, &q));
}
END_TEST

START_TEST(longest_question)
{
	struct egress_question q;
	int i;
	HR_BUF(b, 4096);

	hr_buf_add(&b, BYTES(DNS_HEAD));
	for (i = 0; i < 126; i++)
		hr_buf_add(&b, BYTES("\1a"));
	hr_buf_add(&b, BYTES("\1a\0\0\1\0\1"));
	ck_assert(dns(b.p, b.len, &q)); /* 255 bytes */
	ck_assert_uint_eq(strlen(q.name), 253);
	b.len -= 5;
	hr_buf_add(&b, BYTES("\1a\0\0\1\0\1"));
	ck_assert(!dns(b.p, b.len, &q)); /* 257 bytes */
	b.len = 12;
	hr_buf_addc(&b, 63); /* the longest label */
	for (i = 0; i < 63; i++)
		hr_buf_addc(&b, 'a');
	hr_buf_add(&b, BYTES("\0\0\1\0\1"));
	ck_assert(dns(b.p, b.len, &q));
	ck_assert_uint_eq(strlen(q.name), 63);
}
END_TEST

START_TEST(answers)
{
	static const char query[] = DNS_A;
	struct in_addr a = {htonl(0xC6120002)};
	struct egress_question q;
	uint8_t out[EGRESS_DNS_MAX];
	size_t n;

	ck_assert(dns(BYTES(DNS_A), &q));
	n = egress_dns_answer(query, &q, EGRESS_DNS_OK, &a, sizeof(a), out);
	ck_assert_uint_eq(n, q.end + 16);
	ck_assert_mem_eq(out, "\x12\x34\x81\x80\0\1\0\1\0\0\0\0", 12);
	ck_assert_mem_eq(out + 12, query + 12, q.end - 12); /* with its upper-case letters */
	ck_assert_mem_eq(out + q.end, "\xC0\x0C\0\1\0\1\0\0\0\5\0\4\xC6\x12\0\2", 16);
	n = egress_dns_answer(query, &q, EGRESS_DNS_REFUSED, NULL, 0, out);
	ck_assert_uint_eq(n, q.end);
	ck_assert_mem_eq(out, "\x12\x34\x81\x85\0\1\0\0\0\0\0\0", 12);
	ck_assert(egress_dns_reverse("2.0.18.198.in-addr.arpa", &a));
	ck_assert_uint_eq(ntohl(a.s_addr), 0xC6120002);
	ck_assert(!egress_dns_reverse("18.198.in-addr.arpa", &a));
	ck_assert(!egress_dns_reverse("2.0.18.198.in-addr.arpa.x", &a));
	ck_assert(!egress_dns_reverse("1.2.0.18.198.in-addr.arpa", &a));
	ck_assert_uint_eq(egress_dns_name("a.example", out), 11);
	ck_assert_mem_eq(out, "\1a\7example", 11);
	/* without a wish for recursion */
	egress_dns_answer("\0\0\0\0\0\1\0\0\0\0\0\1\0\0\1\0\1",
	    &(struct egress_question){.end = 17}, EGRESS_DNS_NXDOMAIN, NULL, 0, out);
	ck_assert_mem_eq(out, "\0\0\x80\x83\0\1\0\0\0\0\0\0", 12);
}
END_TEST

/* ---- TLS ---- */

static void
put_len(struct hr_buf *b, size_t n, size_t bytes)
{
	while (bytes-- > 0)
		hr_buf_addc(b, (char)(n >> 8 * bytes));
}

/* Appends an extension server_name with these bytes as its list, lengths included. */
static void
put_ext(struct hr_buf *b, unsigned type, const char *p, size_t len)
{
	put_len(b, type, 2);
	put_len(b, len, 2);
	hr_buf_add(b, p, len);
}

static void
put_name(struct hr_buf *b, const char *name)
{
	HR_BUF(list, 4096);

	put_len(&list, strlen(name) + 3, 2);
	hr_buf_addc(&list, 0);
	put_len(&list, strlen(name), 2);
	hr_buf_adds(&list, name);
	put_ext(b, 0, list.p, list.len);
}

/* Appends a ClientHello with these extensions; NULL: without the block of extensions. */
static void
put_hello(struct hr_buf *b, const struct hr_buf *extensions)
{
	size_t n = 2 + 32 + 1 + 32 + 2 + 4 + 2 + (extensions != NULL ? 2 + extensions->len : 0);
	int i;

	hr_buf_addc(b, 1);
	put_len(b, n, 3);
	hr_buf_add(b, BYTES("\3\3"));
	for (i = 0; i < 32; i++)
		hr_buf_addc(b, 'r');
	hr_buf_addc(b, 32);
	for (i = 0; i < 32; i++)
		hr_buf_addc(b, 's');
	hr_buf_add(b, BYTES("\0\4\x13\1\x13\2\1\0"));
	if (extensions != NULL) {
		put_len(b, extensions->len, 2);
		hr_buf_add(b, hr_buf_str(extensions), extensions->len);
	}
}

/* Reads the greeting in records of `size` bytes, and byte by byte before its end. */
static int
hello(const struct hr_buf *b, size_t size, char *name)
{
	HR_BUF(wire, 1 << 17);
	size_t at, n;
	int got;

	for (at = 0; at < b->len; at += n) {
		n = b->len - at < size ? b->len - at : size;
		hr_buf_add(&wire, BYTES("\x16\3\1"));
		put_len(&wire, n, 2);
		hr_buf_add(&wire, b->p + at, n);
	}
	got = egress_hello_name(wire.p, wire.len, name);
	for (n = 0; got == 1 && n < wire.len; n++)
		ck_assert_msg(egress_hello_name(wire.p, n, name) == 0, "%zu bytes", n);
	hr_buf_addc(&wire, 0x14); /* a later record does not matter */
	ck_assert_int_eq(egress_hello_name(wire.p, wire.len, name), got);
	return got;
}

static int
hello_with(const struct hr_buf *extensions, char *name)
{
	HR_BUF(b, 1 << 17);

	put_hello(&b, extensions);
	return hello(&b, 1 << 14, name);
}

START_TEST(named_greeting)
{
	char name[EGRESS_NAME_MAX + 1];
	HR_BUF(e, 1 << 17);
	HR_BUF(b, 1 << 17);

	put_ext(&e, 0x2B, BYTES("\2\3\4"));
	put_name(&e, "Api.Example.ORG");
	put_ext(&e, 0x10, BYTES("\0\3\2h2"));
	ck_assert_int_eq(hello_with(&e, name), 1);
	ck_assert_str_eq(name, "api.example.org");
	put_hello(&b, &e);
	ck_assert_int_eq(hello(&b, 1, name), 1); /* in 1-byte records */
	ck_assert_int_eq(hello(&b, 7, name), 1);
	ck_assert_str_eq(name, "api.example.org");
}
END_TEST

START_TEST(nameless_greeting)
{
	char name[EGRESS_NAME_MAX + 1] = "x";
	HR_BUF(e, 4096);

	ck_assert_int_eq(hello_with(NULL, name), 1);
	ck_assert_str_eq(name, "");
	memcpy(name, "x", 2);
	ck_assert_int_eq(hello_with(&e, name), 1);
	ck_assert_str_eq(name, "");
	put_ext(&e, 0x2B, BYTES("\2\3\4"));
	ck_assert_int_eq(hello_with(&e, name), 1);
	ck_assert_str_eq(name, "");
}
END_TEST

START_TEST(bad_names)
{
	static const struct {
		const char *p;
		size_t len;
	} rows[] = {
	    {BYTES("")},
	    {BYTES("\0\0")},
	    {BYTES("\0\4\0\0\1a"
		   "x")}, /* a byte after the list */
	    {BYTES("\0\5\0\0\1a"
		   "x")},                   /* a byte after the name */
	    {BYTES("\0\6\0\0\1a")},         /* a list beyond the end */
	    {BYTES("\0\4\0\0\2a")},         /* a name beyond the end */
	    {BYTES("\0\4\1\0\1a")},         /* another type */
	    {BYTES("\0\10\0\0\1a\0\0\1a")}, /* two names */
	    {BYTES("\0\10\0\0\1a\1\0\1a")},
	    {BYTES("\0\3\0\0\0")},
	    {BYTES("\0\6\0\0\3a\0b")},
	    {BYTES("\0\6\0\0\3a b")},
	    {BYTES("\0\6\0\0\3a/b")},
	    {BYTES("\0\12\0\0\7"
		   "1.2.3.4")},
	};
	char name[EGRESS_NAME_MAX + 1];
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		HR_BUF(e, 4096);

		put_ext(&e, 0, rows[i].p, rows[i].len);
		ck_assert_msg(hello_with(&e, name) == -1, "row %zu", i);
	}
}
END_TEST

START_TEST(bad_greetings)
{
	char name[EGRESS_NAME_MAX + 1];
	HR_BUF(e, 1 << 17);
	HR_BUF(b, 1 << 17);
	size_t i;

	put_name(&e, "a.org");
	put_name(&e, "a.org");
	ck_assert_int_eq(hello_with(&e, name), -1); /* the extension twice */
	hr_buf_reset(&e);
	hr_buf_add(&e, BYTES("\0\x2B\0\4\3")); /* an extension beyond the end */
	ck_assert_int_eq(hello_with(&e, name), -1);
	hr_buf_reset(&e);
	hr_buf_addc(&e, 0); /* half a type */
	ck_assert_int_eq(hello_with(&e, name), -1);

	ck_assert_int_eq(egress_hello_name(BYTES("GET / HTTP/1.1\r\n"), name), -1);
	ck_assert_int_eq(egress_hello_name(BYTES("\x17\3\1"), name), -1);
	ck_assert_int_eq(egress_hello_name(BYTES("\x16\2"), name), -1);
	ck_assert_int_eq(egress_hello_name(BYTES("\x16\3\1\0\0"), name), -1);         /* empty */
	ck_assert_int_eq(egress_hello_name(BYTES("\x16\3\1\0\4\2\0\0\0"), name), -1); /* no hello */
	ck_assert_int_eq(egress_hello_name(BYTES("\x16\3\1\0\4\1\0\x40\0"), name), -1); /* 16 KB */
	ck_assert_int_eq(egress_hello_name(BYTES(""), name), 0);

	/* each byte of the fixed part that makes the greeting malformed */
	hr_buf_reset(&e);
	put_name(&e, "a.org");
	/* the fewest bytes: no session, one suite */
	hr_buf_add(&b, BYTES("\1\0\0\x29\3\3"
			     "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr"
			     "\0\0\2\x13\1\1\0"));
	ck_assert_int_eq(hello(&b, 1 << 14, name), 1);
	hr_buf_reset(&b);
	put_hello(&b, &e);
	for (i = 0; i < 4; i++) {
		static const size_t at[] = {38, 71, 72, 77}; /* lengths: session, suites, methods */
		char old = b.p[at[i]];

		b.p[at[i]] = (char)(old + 1);
		ck_assert_msg(hello(&b, 1 << 14, name) == -1, "byte %zu", at[i]);
		b.p[at[i]] = old;
	}
	ck_assert_int_eq(hello(&b, 1 << 14, name), 1);
	hr_buf_addc(&b, 0); /* another message in the same record */
	ck_assert_int_eq(hello(&b, 1 << 14, name), -1);
}
END_TEST

START_TEST(big_greetings)
{
	char name[EGRESS_NAME_MAX + 1], *zeros = (char *)calloc(1, 1 << 14);
	size_t fixed = 4 + 2 + 32 + 33 + 6 + 2 + 2 + 4; /* without the bytes of the extension */
	HR_BUF(e, 1 << 17);
	HR_BUF(b, 1 << 17);

	put_ext(&e, 0x15, zeros, (1 << 14) - 5 - fixed);
	ck_assert_int_eq(hello_with(&e, name), 1);
	put_hello(&b, &e);
	ck_assert_int_eq(hello(&b, 64, name), -1); /* the heads of its records count, too */
	hr_buf_reset(&e);
	put_ext(&e, 0x15, zeros, (1 << 14) - fixed + 1);
	ck_assert_int_eq(hello_with(&e, name), -1);
	/* never complete */
	hr_buf_reset(&b);
	hr_buf_add(&b, BYTES("\x16\3\1\x40\0\1\0\x3F\xFC"));
	hr_buf_add(&b, zeros, (1 << 14) - b.len - 1);
	ck_assert_int_eq(egress_hello_name(b.p, b.len, name), 0);
	hr_buf_addc(&b, 0);
	ck_assert_int_eq(egress_hello_name(b.p, b.len, name), -1);
	free(zeros);
}
END_TEST

/* ---- proxies ---- */

START_TEST(ports)
{
	int port;

	ck_assert(egress_port(BYTES("1"), &port) && port == 1);
	ck_assert(egress_port(BYTES("65535"), &port) && port == 65535);
	ck_assert(!egress_port(BYTES("65536"), &port) && !egress_port(BYTES("99999"), &port));
	ck_assert(!egress_port(BYTES("0"), &port) && !egress_port(BYTES("080"), &port));
	ck_assert(!egress_port(BYTES(""), &port) && !egress_port(BYTES("+80"), &port));
	ck_assert(!egress_port(BYTES("80 "), &port) && !egress_port(BYTES("000080"), &port));
}
END_TEST

static int
connects(const char *p, size_t len, struct egress_target *t)
{
	HR_FREE char *copy = (char *)malloc(len + 1);

	memcpy(copy, p, len);
	return egress_connect_read(copy, len, t);
}

START_TEST(connect_heads)
{
	static const char head[] =
	    "CONNECT Api.Example.org:8443 HTTP/1.1\r\nHost: x\r\nUser-Agent:\r\n\r\n";
	struct egress_target t;
	size_t i;
	HR_BUF(b, 1 << 15);

	ck_assert_int_eq(connects(BYTES(head), &t), 1);
	ck_assert_str_eq(t.name, "api.example.org");
	ck_assert_int_eq(t.port, 8443);
	ck_assert_uint_eq(t.used, sizeof(head) - 1);
	for (i = 0; i < sizeof(head) - 1; i++)
		ck_assert_msg(connects(head, i, &t) == 0, "%zu bytes", i);
	ck_assert_int_eq(connects(BYTES("CONNECT 10.1.2.3:1 HTTP/1.0\r\n\r\n\x16\3"), &t), 1);
	ck_assert_str_eq(t.name, "");
	ck_assert_int_eq(ntohl(t.address.s_addr), 0x0A010203);
	ck_assert_uint_eq(t.used, 31);
	/* the longest address, and names that are as long and longer */
	ck_assert_int_eq(connects(BYTES("CONNECT 223.123.123.123:1 HTTP/1.0\r\n\r\n"), &t), 1);
	ck_assert_str_eq(t.name, "");
	ck_assert_uint_eq(ntohl(t.address.s_addr), 0xDF7B7B7Bu);
	ck_assert_int_eq(connects(BYTES("CONNECT abcdefg.example:1 HTTP/1.0\r\n\r\n"), &t), 1);
	ck_assert_str_eq(t.name, "abcdefg.example");
	ck_assert_int_eq(connects(BYTES("CONNECT abcdefgh.example:1 HTTP/1.0\r\n\r\n"), &t), 1);
	ck_assert_str_eq(t.name, "abcdefgh.example");

	hr_buf_adds(&b, "CONNECT a:1 HTTP/1.1\r\nX: ");
	while (b.len < 16384 - 4)
		hr_buf_addc(&b, 'x');
	hr_buf_adds(&b, "\r\n\r\n");
	ck_assert_int_eq(connects(b.p, b.len, &t), 1);
	ck_assert_int_eq(connects(b.p, b.len - 1, &t), 0);
	b.len -= 4;
	hr_buf_adds(&b, "x\r\n\r\n");
	ck_assert_int_eq(connects(b.p, b.len, &t), -1);
}
END_TEST

START_TEST(no_connect)
{
	static const char *const heads[] = {"GET / HTTP/1.1\r\n\r\n", "CONNECT: ", "connect a:1 ",
	    "CONNECT  a:1 HTTP/1.1\r\n\r\n", "CONNECT a HTTP/1.1\r\n\r\n",
	    "CONNECT a: HTTP/1.1\r\n\r\n", "CONNECT a:0 HTTP/1.1\r\n\r\n",
	    "CONNECT :1 HTTP/1.1\r\n\r\n", "CONNECT a:1:1 HTTP/1.1\r\n\r\n",
	    "CONNECT a:1 HTTP/2.0\r\n\r\n", "CONNECT a:1 HTTP/1.2\r\n\r\n",
	    "CONNECT a:1 HTTP/1.11\r\n\r\n", "CONNECT a:1 HTTP/1.1 \r\n\r\n", "CONNECT a:1\r\n\r\n",
	    "CONNECT a:1 x HTTP/1.1\r\n\r\n", "CONNECT a:1 HTTP/1.1\nX: y\r\n\r\n",
	    "CONNECT a:1 HTTP/1.1\r\nX\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\n X: y\r\n\r\n",
	    "CONNECT a:1 HTTP/1.1\r\nA: b\r\n\tX: y\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\n: y\r\n\r\n",
	    "CONNECT a:1 HTTP/1.1\r\nX: y\rz\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nX: y\nz: y\r\n\r\n",
	    "CONNECT a:1 HTTP/1.1\r\nX: \x7F\r\n\r\n", "CONNECT [::1]:1 HTTP/1.1\r\n\r\n",
	    "CONNECT 1.2.3:1 HTTP/1.1\r\n\r\n", "CONNECT 1.2.3.04:1 HTTP/1.1\r\n\r\n",
	    "CONNECT http://a:1 HTTP/1.1\r\n\r\n", "CONNECT u@a:1 HTTP/1.1\r\n\r\n"};
	struct egress_target t;
	size_t i;

	for (i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		ck_assert_msg(connects(heads[i], strlen(heads[i]), &t) == -1, "%s", heads[i]);
	ck_assert_int_eq(connects(BYTES("CONNECT a:1 HTTP/1.1\r\nX: \0\r\n\r\n"), &t), -1);
	ck_assert_int_eq(connects(BYTES("CONNECT a\0:1 HTTP/1.1\r\n\r\n"), &t), -1);
	ck_assert_int_eq(connects(BYTES("CONNECT 1.2.3.4\0:1 HTTP/1.1\r\n\r\n"), &t), -1);
}
END_TEST

/* A request to a proxy that is no CONNECT. */
START_TEST(absolute)
{
	static const char head[] =
	    "GET http://Api.Example.org:8080?x HTTP/1.1\r\nHost: x\r\n\r\nrest";
	static const char *const wrong[] = {"GET / HTTP/1.1\r\n\r\n",
	    "get http://a/ HTTP/1.1\r\n\r\n", "GET https://a/ HTTP/1.1\r\n\r\n",
	    "GET http:/// HTTP/1.1\r\n\r\n", "GET http://u@a/ HTTP/1.1\r\n\r\n",
	    "GET http://a:0/ HTTP/1.1\r\n\r\n", "GET http://a:/ HTTP/1.1\r\n\r\n",
	    "GET http://[::1]/ HTTP/1.1\r\n\r\n", "GET http://a/\n HTTP/1.1\r\n\r\n",
	    "GET http://a/\r HTTP/1.1\r\n\r\n", "GET http://a/ x HTTP/1.1\r\n\r\n",
	    "GET http://a/ HTTP/2.0\r\n\r\n", "GET http://a/ HTTP/1.1\r\nX: y\nz: y\r\n\r\n",
	    "GET http://a#/ HTTP/1.1\r\n\r\n"};
	struct egress_target t;
	size_t i;

	ck_assert_int_eq(egress_absolute_read(BYTES(head), &t), 1);
	ck_assert_str_eq(t.name, "api.example.org");
	ck_assert_int_eq(t.port, 8080);
	ck_assert_uint_eq(t.used, sizeof(head) - 5);
	ck_assert_uint_eq(t.verb, 4);
	ck_assert(strncmp(head + t.path, "?x ", 3) == 0);
	ck_assert_int_eq(egress_absolute_read(BYTES("PUT HTTP://1.2.3.4 HTTP/1.0\r\n\r\n"), &t), 1);
	ck_assert_int_eq(ntohl(t.address.s_addr), 0x01020304);
	ck_assert_int_eq(t.port, 80);
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		ck_assert_msg(
		    egress_absolute_read(wrong[i], strlen(wrong[i]), &t) == -1, "%s", wrong[i]);
	ck_assert_int_eq(egress_absolute_read(BYTES("GET http://a/\0 HTTP/1.1\r\n\r\n"), &t), -1);
}
END_TEST

START_TEST(socks_greetings)
{
	size_t used = 0;

	ck_assert_int_eq(egress_socks_greeting(BYTES("\5\1\0"), &used), 1);
	ck_assert_uint_eq(used, 3);
	ck_assert_int_eq(egress_socks_greeting(BYTES("\5\3\1\2\0\5\1"), &used), 1);
	ck_assert_uint_eq(used, 5);
	ck_assert_int_eq(egress_socks_greeting(BYTES("\5\2\1\2\0"), &used), -3);
	ck_assert_int_eq(egress_socks_greeting(BYTES("\5\0"), &used), -3);
	ck_assert_int_eq(egress_socks_greeting(BYTES(""), &used), 0);
	ck_assert_int_eq(egress_socks_greeting(BYTES("\5"), &used), 0);
	ck_assert_int_eq(egress_socks_greeting(BYTES("\5\2\0"), &used), 0);
	ck_assert_int_eq(egress_socks_greeting(BYTES("\4\1"), &used), -1);
}
END_TEST

static int
socks(const char *p, size_t len, struct egress_target *t)
{
	HR_FREE char *copy = (char *)malloc(len + 1);
	size_t i;
	int got;

	memcpy(copy, p, len);
	got = egress_socks_request(copy, len, t);
	for (i = 0; got == 1 && i < t->used; i++) {
		struct egress_target less;

		ck_assert_int_eq(egress_socks_request(copy, i, &less), 0);
	}
	return got;
}

START_TEST(socks_requests)
{
	struct egress_target t;

	ck_assert_int_eq(socks(BYTES("\5\1\0\1\12\1\2\3\0\120rest"), &t), 1);
	ck_assert_str_eq(t.name, "");
	ck_assert_int_eq(ntohl(t.address.s_addr), 0x0A010203);
	ck_assert_int_eq(t.port, 80);
	ck_assert_uint_eq(t.used, 10);
	ck_assert_int_eq(socks(BYTES("\5\1\0\3\5A.org\x20\xFBx"), &t), 1);
	ck_assert_str_eq(t.name, "a.org");
	ck_assert_int_eq(t.port, 8443);
	ck_assert_uint_eq(t.used, 12);
	ck_assert_int_eq(socks(BYTES("\5\1\0\3\7"
				     "1.2.3.4\0\120"),
			     &t),
	    1);
	ck_assert_str_eq(t.name, "");
	ck_assert_int_eq(ntohl(t.address.s_addr), 0x01020304);
	ck_assert_int_eq(socks(BYTES("\5\2\0\1\12\1\2\3\0\120"), &t), -2); /* BIND */
	ck_assert_int_eq(socks(BYTES("\5\3\0\3\1a\0\120"), &t), -2);       /* UDP */
	ck_assert_int_eq(socks(BYTES("\5\1\0\4"
				     "0123456789abcdef\0\120"),
			     &t),
	    -2); /* IPv6 */
	ck_assert_int_eq(socks(BYTES("\4\1"), &t), -1);
	ck_assert_int_eq(socks(BYTES("\5\0"), &t), -1);
	ck_assert_int_eq(socks(BYTES("\5\4"), &t), -1);
	ck_assert_int_eq(socks(BYTES("\5\1\1"), &t), -1);
	ck_assert_int_eq(socks(BYTES("\5\1\0\2"), &t), -1);
	ck_assert_int_eq(socks(BYTES("\5\1\0\1\12\1\2\3\0\0"), &t), -1);
	ck_assert_int_eq(socks(BYTES("\5\1\0\3\0\0\120"), &t), -1);
	ck_assert_int_eq(socks(BYTES("\5\1\0\3\3a b\0\120"), &t), -1);
	ck_assert_int_eq(socks(BYTES("\5\1\0\3\3a\0b\0\120"), &t), -1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("egress_wire");
	TCase *t = tcase_create("wire");

	tcase_add_test(t, question);
	tcase_add_test(t, no_question);
	tcase_add_test(t, longest_question);
	tcase_add_test(t, answers);
	tcase_add_test(t, named_greeting);
	tcase_add_test(t, nameless_greeting);
	tcase_add_test(t, bad_names);
	tcase_add_test(t, bad_greetings);
	tcase_add_test(t, big_greetings);
	tcase_add_test(t, ports);
	tcase_add_test(t, connect_heads);
	tcase_add_test(t, no_connect);
	tcase_add_test(t, absolute);
	tcase_add_test(t, socks_greetings);
	tcase_add_test(t, socks_requests);
	suite_add_tcase(s, t);
	return lines_run(s);
}
