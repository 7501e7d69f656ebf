/* What rpc.c and list.c share. */
#ifndef HR_PLUGINS_MCP_RPC_INT_H
#define HR_PLUGINS_MCP_RPC_INT_H

#include "plugins/mcp/hub.h"

#define MCP_METHOD_NOT_FOUND (-32601)

enum mcp_rpc_kind { MCP_RPC_LIST, MCP_RPC_TOOL, MCP_RPC_PROMPT, MCP_RPC_RESOURCE };

struct mcp_method {
	const char *name;
	enum mcp_rpc_kind kind;
	const char *items; /* of a list: the member of its result */
	const char *label; /* of an item: what is prefixed */
};

/* Answers to req, NULL: on the session's stream. result is taken over; NULL: there was no memory.
 */
void mcp_reply_result(struct mcp_session *s, struct evhttp_request *req, struct json_object *id,
    struct json_object *result);
void mcp_reply_error(struct mcp_session *s, struct evhttp_request *req, struct json_object *id,
    int code, const char *text);

/* NULL: no memory, which is answered. */
struct mcp_call *mcp_call_new(struct mcp_session *s, struct evhttp_request *req,
    struct json_object *id, const struct mcp_method *method, size_t parts);
void mcp_call_free(struct mcp_call *call);

/* list.c: asks all servers; names are prefixed where there are several. */
void mcp_list(struct mcp_session *s, struct evhttp_request *req, struct json_object *id,
    const struct mcp_method *method);
bool mcp_has_several(const struct mcp_hub *hub);

#endif
