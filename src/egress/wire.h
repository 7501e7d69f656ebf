/* egress_wire: reads the first bytes of foreign connections: DNS questions, the TLS greeting, and
 * the heads of the two proxy protocols. It makes no system call and keeps no state. */
#ifndef HR_EGRESS_WIRE_H
#define HR_EGRESS_WIRE_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include "egress/policy.h"

/* ---- DNS: one question, answered by ourselves ---- */

enum {
	EGRESS_DNS_A = 1,
	EGRESS_DNS_PTR = 12,
	EGRESS_DNS_AAAA = 28,
	EGRESS_DNS_SVCB = 64,
	EGRESS_DNS_HTTPS = 65,
};
enum {
	EGRESS_DNS_OK = 0,
	EGRESS_DNS_SERVFAIL = 2,
	EGRESS_DNS_NXDOMAIN = 3,
	EGRESS_DNS_REFUSED = 5
};
#define EGRESS_DNS_NAME 255 /* maximum bytes of a name, with lengths and the final zero */
#define EGRESS_DNS_MAX 1024 /* room of an answer: a longer question is no question */

struct egress_question {
	char name[EGRESS_NAME_MAX + 1]; /* lower case; "" if the question's name is no host name */
	int type;
	size_t end; /* bytes of header and question, which an answer repeats */
};

/* Reads a query with exactly one question of class IN; additional records are ignored. Returns
 * false if there is nothing to answer. */
bool egress_dns_read(const void *p, size_t len, struct egress_question *ret);
/* Writes an answer with that code, and with one record of the asked type, which has these data,
 * unless `len` is 0. Returns its length. */
size_t egress_dns_answer(const void *query, const struct egress_question *q, int code,
    const void *data, size_t len, uint8_t ret[EGRESS_DNS_MAX]);
/* Reads "4.3.2.1.in-addr.arpa" as 1.2.3.4. Returns false for any other name. */
bool egress_dns_reverse(const char *name, struct in_addr *ret);
/* Writes a name as the data of a record. Returns their length. */
size_t egress_dns_name(const char *name, uint8_t ret[EGRESS_DNS_NAME]);

/* ---- the name in a TLS greeting ---- */

/* Returns 1 with the server's name ("" if the greeting has none), 0 if more bytes are needed, or -1
 * if this is no TLS greeting, or one that two readers could read differently (two names, a name
 * that is no host name, a greeting of more than 16 KB). */
int egress_hello_name(const void *p, size_t len, char ret[EGRESS_NAME_MAX + 1]);

/* ---- proxies: CONNECT and SOCKS5 ---- */

struct egress_target {
	char name[EGRESS_NAME_MAX + 1]; /* "" for an address */
	struct in_addr address;
	int port;
	size_t used;       /* bytes of the head, which are not for the target */
	size_t verb, path; /* egress_absolute_read(): length of the method, offset of the path */
};

/* Reads a port of 1 to 65535 without sign and leading zeros. */
bool egress_port(const char *p, size_t len, int *ret);

/* Reads "CONNECT NAME:PORT HTTP/1.x" with its header lines. Returns 1, 0 if more bytes are needed
 * (at most 16 KB), or -1 for anything else. */
int egress_connect_read(const void *p, size_t len, struct egress_target *ret);
/* Does the same for "METHOD http://NAME[:PORT][/PATH] HTTP/1.x". */
int egress_absolute_read(const void *p, size_t len, struct egress_target *ret);
/* Reads the greeting of SOCKS5, which must offer "no authentication", and its request CONNECT. They
 * return the same, or -2 for a correct request for something else (the reply is 7), or -3 if no
 * authentication is acceptable. */
int egress_socks_greeting(const void *p, size_t len, size_t *ret_used);
int egress_socks_request(const void *p, size_t len, struct egress_target *ret);

#endif
