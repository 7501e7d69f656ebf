/* hr_mcp_rpc: messages of JSON-RPC 2.0 as MCP has them, read and written. */
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
	HR_RPC_HEADER = -32020,  /* a header says other than the body */
	HR_RPC_VERSION = -32022, /* a revision that we do not speak */
};

enum hr_rpc_kind { HR_RPC_CALL, HR_RPC_NOTE, HR_RPC_ANSWER };

/* Members are borrowed from `whole`, which is the caller's to put. */
struct hr_rpc {
	struct json_object *whole;
	enum hr_rpc_kind kind;
	struct json_object *id; /* a string or an integer; of HR_RPC_CALL */
	const char *method;
	struct json_object *params; /* an object, or NULL */
};

/* Reads one message. HR_RPC_OK, or what is wrong with it, *ret_why in words. ret may then have an
 * id; hr_rpc_done() in any case. */
enum hr_rpc_code hr_rpc_read(struct hr_span text, struct hr_rpc *ret, const char **ret_why);
void hr_rpc_done(struct hr_rpc *m);

/* {"jsonrpc":"2.0","id":ID, behind which the caller puts "result" or "error", and the brace that
 * closes it. */
void hr_rpc_open(struct hr_buf *b, struct json_object *id);
void
hr_rpc_error(struct hr_buf *b, struct json_object *id, enum hr_rpc_code code, const char *text);

#endif
