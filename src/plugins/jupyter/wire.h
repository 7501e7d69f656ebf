/* hr_wire: messages of the Jupyter protocol over ZeroMQ sockets: framed, signed and checked. */
#ifndef HR_PLUGINS_JUPYTER_WIRE_H
#define HR_PLUGINS_JUPYTER_WIRE_H

#include <stddef.h>

#include "base/err.h"

struct json_object;

#define HR_WIRE_ID 33  /* 32 hexadecimal digits and a NUL */
#define HR_WIRE_MAC 65 /* 64 of them */

struct hr_wire {
	char key[HR_WIRE_ID]; /* of the signatures; also in the connection file */
	char session[HR_WIRE_ID];
};

struct hr_wire_part {
	const void *p;
	size_t len;
};

/* One that came. The caller frees with hr_wire_message_done. */
struct hr_wire_message {
	struct json_object *header, *parent, *content;
	const char *type;      /* "" if it has none; borrowed from header, as these: */
	const char *parent_id; /* msg_id of what it answers; "" */
};

int hr_wire_init(struct hr_wire *w, struct hr_err *err); /* a new key and a new session */

/* Sends content (JSON text) under a fresh id. */
int hr_wire_send(const struct hr_wire *w, void *sock, const char *type, const char *content,
    size_t len, char ret_id[HR_WIRE_ID], struct hr_err *err);

/* 1: a message, its signature was right; 0: none is there; -1: what came was none of the kernel's
 * (thrown away). Never waits. */
int hr_wire_receive(
    const struct hr_wire *w, void *sock, struct hr_wire_message *ret, struct hr_err *err);
/* The same of frames that were received. 0 or -1; nothing of them is kept. */
int hr_wire_take(const struct hr_wire *w, const struct hr_wire_part *frames, size_t n,
    struct hr_wire_message *ret, struct hr_err *err);
void hr_wire_message_done(struct hr_wire_message *m);

/* HMAC-SHA256 over all parts, in hexadecimal. */
int hr_wire_sign(const char *key, const struct hr_wire_part *parts, size_t n, char ret[HR_WIRE_MAC],
    struct hr_err *err);

#endif
