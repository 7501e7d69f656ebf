/* hr_channel: serves the worker's end of its channel to the supervisor (PROTOCOL), a SOCK_SEQPACKET
 * socket with one message per packet, whose first byte is its type. Only one question is pending at
 * a time. */
#ifndef HR_PROTO_CHANNEL_H
#define HR_PROTO_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define HR_CHANNEL_MAX 4096         /* bytes of a packet, its type included */
#define HR_CHANNEL_ANSWER_MAX 65536 /* bytes of an answer, its type included */

enum hr_channel_type {
	HR_CHANNEL_KEYS = 'H', /* answered by 'h' */
	HR_CHANNEL_KEYS_ANSWER = 'h',
	HR_CHANNEL_FULL = 'F',   /* sent by a worker; there is no answer */
	HR_CHANNEL_STATIC = 'S', /* answered by 's' */
	HR_CHANNEL_STATIC_ANSWER = 's',
	HR_CHANNEL_READY = 'R', /* answered by 'r' */
	HR_CHANNEL_READY_ANSWER = 'r',
	HR_CHANNEL_SESSION_NEW = 'N',  /* answered by 'n' */
	HR_CHANNEL_SESSION_KILL = 'K', /* answered by 'n' */
	HR_CHANNEL_SESSION_ANSWER = 'n',
	HR_CHANNEL_SESSIONS = 'L', /* answered by 'l' */
	HR_CHANNEL_SESSIONS_ANSWER = 'l',
	HR_CHANNEL_ALERTS = 'A', /* answered by 'a' */
	HR_CHANNEL_ALERTS_ANSWER = 'a',
	HR_CHANNEL_LOG = 'G', /* answered by 'g' */
	HR_CHANNEL_LOG_ANSWER = 'g',
};

/* First byte of the text of 'n'; the rest is the reason, "" on success. */
enum hr_session_verdict {
	HR_SESSION_OK = '+',
	HR_SESSION_EXISTS = 'x',
	HR_SESSION_UNKNOWN = 'u',
	HR_SESSION_FULL = 'f',
	HR_SESSION_LATER = 'l',
	HR_SESSION_FAILED = '-',
};

#define HR_SESSION_NAME_MAX 32

/* Returns true for letters, digits, '_', '.' and '-' after a letter or a digit, unless handrail
 * itself gives that name. */
bool hr_session_name_fits(const char *p, size_t len);

/* Sends a message without an answer. Never blocks: a message that finds no room is dropped, since
 * the supervisor sees the same in the scoreboard. */
void hr_channel_tell(int fd, enum hr_channel_type type);

struct hr_channel_answer {
	/* bytes of the text, without the type byte; NUL-terminated */
	char text[HR_CHANNEL_ANSWER_MAX];
	size_t len;
	int fd; /* descriptor passed with the answer, the caller's; -1: none */
};

/* Sends a question and waits for the answer of type `want`, at most timeout_ms. Drops answers to
 * earlier, abandoned questions first. -1: HR_E_TOOLARGE (the question), HR_E_GONE (no supervisor),
 * HR_E_TIMEOUT, HR_E_PROTO, HR_E_SYS. */
int hr_channel_ask(int fd, enum hr_channel_type type, const char *p, size_t len,
    enum hr_channel_type want, int timeout_ms, struct hr_channel_answer *ret, struct hr_err *err);

#endif
