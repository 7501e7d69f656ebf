/* envd_calls: the calls of process.Process. */
#ifndef HR_PLUGINS_ENVD_CALLS_H
#define HR_PLUGINS_ENVD_CALLS_H

#include "plugins/envd/rpc.h"

struct envd_process;

/* messages.c */
extern const struct hr_message envd_start_request;
extern const struct hr_message envd_connect_request;
extern const struct hr_message envd_close_request;
extern const struct hr_message envd_signal_request;
extern const struct hr_message envd_send_request;
extern const struct hr_message envd_stream_request;
extern const struct hr_message envd_update_request;
extern const struct hr_message envd_list_request;

/* Finds the process that the member "process" names. Returns NULL with *e. */
struct envd_process *
envd_select(struct envd *envd, struct json_object *in, bool ended, struct hr_connect_error *e);

/* input.c: SendInput and StreamInput */
void envd_call_input(struct envd_call *c);
void envd_call_stream(struct envd_call *c);

#endif
