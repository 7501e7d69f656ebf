/* hr_channel: the worker's end of its channel to the supervisor (PROTOCOL): a SOCK_SEQPACKET
 * socket, one message a packet, the first byte its type. One question at a time. */
#ifndef HR_PROTO_CHANNEL_H
#define HR_PROTO_CHANNEL_H

#include <stddef.h>

#include "base/err.h"

#define HR_CHANNEL_MAX 4096 /* bytes of a packet, its type included */

enum hr_channel_type {
	HR_CHANNEL_FULL = 'F',   /* worker -> supervisor, no answer */
	HR_CHANNEL_STATIC = 'S', /* -> 's' */
	HR_CHANNEL_STATIC_ANSWER = 's',
	HR_CHANNEL_READY = 'R', /* -> 'r' */
	HR_CHANNEL_READY_ANSWER = 'r',
};

/* A message without an answer. Never blocks: a message that finds no room is dropped, since the
 * supervisor sees the same in the scoreboard. */
void hr_channel_tell(int fd, enum hr_channel_type type);

struct hr_channel_answer {
	char text[HR_CHANNEL_MAX]; /* without the type, NUL behind it */
	size_t len;
	int fd; /* passed with it, the caller's; or -1 */
};

/* Sends a question and waits for the answer of type `want`, at most timeout_ms. Answers to earlier
 * questions that were given up are thrown away first. -1: HR_E_TOOLARGE (the question), HR_E_GONE
 * (no supervisor), HR_E_TIMEOUT, HR_E_PROTO, HR_E_SYS. */
int hr_channel_ask(int fd, enum hr_channel_type type, const char *p, size_t len,
    enum hr_channel_type want, int timeout_ms, struct hr_channel_answer *ret, struct hr_err *err);

#endif
