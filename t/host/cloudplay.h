/* What the parts of cloudplay share. */
#ifndef T_HOST_CLOUDPLAY_H
#define T_HOST_CLOUDPLAY_H

#include "host/cloud/cloud.h"

struct play_provider {
	const char *name;
	const struct hr_sandbox_ops *(*entry)(unsigned abi);
	/* One thing; what is to be told goes into o. */
	int (*perform)(struct hr_cloud *c, const char *op, struct json_object *q,
	    struct json_object *o, struct hr_err *err);
};

/* By the table of functions alone. */
int play_any(struct hr_cloud *c, const char *op, struct json_object *q, struct json_object *o,
    struct hr_err *err);

extern const struct play_provider play_daytona, play_e2b, play_modal, play_runloop;

/* What a command printed. */
struct play_said {
	struct hr_buf out, err;
};

void play_put(struct json_object *o, const char *name, struct json_object *v);
void play_bytes(struct json_object *o, const char *name, const char *p, size_t len);
char *play_unbase64(struct json_object *o, const char *name, size_t *ret_len);
void play_env(struct hr_strv *v, struct json_object *o);
void play_output(void *arg, int stream, const char *p, size_t len);

#endif
