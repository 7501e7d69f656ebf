/* hr_mcp_rpc: reads and writes the JSON-RPC 2.0 messages of MCP. */
#ifndef HR_MCP_RPC_H
#define HR_MCP_RPC_H

#include "base/buf.h"
#include "base/span.h"

struct json_object;

enum hr_rpc_code {
	HR_RPC_OK = 0,
	HR_RPC_PARSE = -32700,
	HR_RPC_REQUEST = -32600,
	HR_RPC_METHOD = -32601,
	HR_RPC_PARAMS = -32602,
	HR_RPC_INTERNAL = -32603,
	HR_RPC_HEADER = -32020,  /* a header contradicts the body */
	HR_RPC_VERSION = -32022, /* unsupported protocol revision */
};

enum hr_rpc_kind { HR_RPC_CALL, HR_RPC_NOTE, HR_RPC_ANSWER };

/* The members are borrowed from `whole`, which the caller puts. */
struct hr_rpc {
	struct json_object *whole;
	enum hr_rpc_kind kind;
	struct json_object *id; /* a string or an integer; only for HR_RPC_CALL */
	const char *method;
	struct json_object *params; /* an object, or NULL */
};

/* Reads one message. Returns HR_RPC_OK, or an error code with *ret_why set; `ret` may have an id
 * even then. The caller always calls hr_rpc_done(). */
enum hr_rpc_code hr_rpc_read(struct hr_span text, struct hr_rpc *ret, const char **ret_why);
void hr_rpc_done(struct hr_rpc *m);

/* Appends {"jsonrpc":"2.0","id":ID, to which the caller adds "result" or "error" and the closing
 * brace. */
void hr_rpc_open(struct hr_buf *b, struct json_object *id);
void
hr_rpc_error(struct hr_buf *b, struct json_object *id, enum hr_rpc_code code, const char *text);

#endif
