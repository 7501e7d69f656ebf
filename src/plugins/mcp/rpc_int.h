/* Connects rpc.c and list.c. */
#ifndef HR_PLUGINS_MCP_RPC_INT_H
#define HR_PLUGINS_MCP_RPC_INT_H

#include "plugins/mcp/hub.h"

#define MCP_METHOD_NOT_FOUND (-32601)

enum mcp_rpc_kind { MCP_RPC_LIST, MCP_RPC_TOOL, MCP_RPC_PROMPT, MCP_RPC_RESOURCE };

struct mcp_method {
	const char *name;
	enum mcp_rpc_kind kind;
	const char *items; /* the member of a list's result */
	const char *label; /* the member of an item that gets the prefix */
};

/* Replies on req, or on the session stream if req is NULL. Takes ownership of result; NULL means
 * that memory was short. */
void mcp_reply_result(struct mcp_session *s, struct hr_serve_request *req, struct json_object *id,
    struct json_object *result);
void mcp_reply_error(struct mcp_session *s, struct hr_serve_request *req, struct json_object *id,
    int code, const char *text);

/* Returns NULL if out of memory, after it has sent the error. */
struct mcp_call *mcp_call_new(struct mcp_session *s, struct hr_serve_request *req,
    struct json_object *id, const struct mcp_method *method, size_t parts);
void mcp_call_free(struct mcp_call *call);

/* Queries all servers (list.c); prefixes names if there are several. */
void mcp_list(struct mcp_session *s, struct hr_serve_request *req, struct json_object *id,
    const struct mcp_method *method);
bool mcp_has_several(const struct mcp_hub *hub);

#endif
