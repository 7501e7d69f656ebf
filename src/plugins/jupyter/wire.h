/* hr_wire: sends and receives messages of the Jupyter protocol on ZeroMQ sockets: framing, signing
 * and checking. */
#ifndef HR_PLUGINS_JUPYTER_WIRE_H
#define HR_PLUGINS_JUPYTER_WIRE_H

#include <stddef.h>

#include "base/err.h"

struct json_object;

#define HR_WIRE_ID 33  /* 32 hexadecimal digits and a NUL */
#define HR_WIRE_MAC 65 /* 64 digits and a NUL */

struct hr_wire {
	char key[HR_WIRE_ID]; /* key of signatures; also in the connection file */
	char session[HR_WIRE_ID];
};

struct hr_wire_part {
	const void *p;
	size_t len;
};

/* A received message. The caller frees it with hr_wire_message_done. */
struct hr_wire_message {
	struct json_object *header, *parent, *content;
	const char *type;      /* "" if there is none; borrowed from header, as are: */
	const char *parent_id; /* msg_id of the request; "" if there is none */
};

int hr_wire_init(struct hr_wire *w, struct hr_err *err); /* Makes a new key and session. */

/* Sends content (JSON text) under a new id. */
int hr_wire_send(const struct hr_wire *w, void *sock, const char *type, const char *content,
    size_t len, char ret_id[HR_WIRE_ID], struct hr_err *err);

/* Returns 1 for a message with a valid signature; 0 if there is none; -1 for a message that is not
 * from the kernel (dropped). Never blocks. */
int hr_wire_receive(
    const struct hr_wire *w, void *sock, struct hr_wire_message *ret, struct hr_err *err);
/* Decodes received frames. Returns 0 or -1; keeps no reference to them. */
int hr_wire_take(const struct hr_wire *w, const struct hr_wire_part *frames, size_t n,
    struct hr_wire_message *ret, struct hr_err *err);
void hr_wire_message_done(struct hr_wire_message *m);

/* Computes HMAC-SHA256 over all parts, in hexadecimal. */
int hr_wire_sign(const char *key, const struct hr_wire_part *parts, size_t n, char ret[HR_WIRE_MAC],
    struct hr_err *err);

#endif
