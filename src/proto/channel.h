/* hr_channel: the worker's end of its channel to the supervisor (PROTOCOL): a SOCK_SEQPACKET
 * socket, one message a packet, the first byte its type. One question at a time. */
#ifndef HR_PROTO_CHANNEL_H
#define HR_PROTO_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define HR_CHANNEL_MAX 4096         /* bytes of a packet, its type included */
#define HR_CHANNEL_ANSWER_MAX 65536 /* ... of an answer */

enum hr_channel_type {
	HR_CHANNEL_KEYS = 'H', /* -> 'h' */
	HR_CHANNEL_KEYS_ANSWER = 'h',
	HR_CHANNEL_FULL = 'F',   /* worker -> supervisor, no answer */
	HR_CHANNEL_STATIC = 'S', /* -> 's' */
	HR_CHANNEL_STATIC_ANSWER = 's',
	HR_CHANNEL_READY = 'R', /* -> 'r' */
	HR_CHANNEL_READY_ANSWER = 'r',
	HR_CHANNEL_SESSION_NEW = 'N',  /* -> 'n' */
	HR_CHANNEL_SESSION_KILL = 'K', /* -> 'n' */
	HR_CHANNEL_SESSION_ANSWER = 'n',
	HR_CHANNEL_SESSIONS = 'L', /* -> 'l' */
	HR_CHANNEL_SESSIONS_ANSWER = 'l',
	HR_CHANNEL_ALERTS = 'A', /* -> 'a' */
	HR_CHANNEL_ALERTS_ANSWER = 'a',
	HR_CHANNEL_LOG = 'G', /* -> 'g' */
	HR_CHANNEL_LOG_ANSWER = 'g',
};

/* First byte of the text of 'n'; the rest says why, "" if it was done. */
enum hr_session_verdict {
	HR_SESSION_OK = '+',
	HR_SESSION_EXISTS = 'x',
	HR_SESSION_UNKNOWN = 'u',
	HR_SESSION_FULL = 'f',
	HR_SESSION_LATER = 'l',
	HR_SESSION_FAILED = '-',
};

#define HR_SESSION_NAME_MAX 32

/* Letters, digits, '_', '.' and '-', a letter or a digit first; not one that we give ourselves. */
bool hr_session_name_fits(const char *p, size_t len);

/* A message without an answer. Never blocks: a message that finds no room is dropped, since the
 * supervisor sees the same in the scoreboard. */
void hr_channel_tell(int fd, enum hr_channel_type type);

struct hr_channel_answer {
	char text[HR_CHANNEL_ANSWER_MAX]; /* without the type, NUL behind it */
	size_t len;
	int fd; /* passed with it, the caller's; or -1 */
};

/* Sends a question and waits for the answer of type `want`, at most timeout_ms. Answers to earlier
 * questions that were given up are thrown away first. -1: HR_E_TOOLARGE (the question), HR_E_GONE
 * (no supervisor), HR_E_TIMEOUT, HR_E_PROTO, HR_E_SYS. */
int hr_channel_ask(int fd, enum hr_channel_type type, const char *p, size_t len,
    enum hr_channel_type want, int timeout_ms, struct hr_channel_answer *ret, struct hr_err *err);

#endif
