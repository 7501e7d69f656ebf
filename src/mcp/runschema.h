/* hr_mcp_runschema: what run and wait answer, as a JSON schema. */
#ifndef HR_MCP_RUNSCHEMA_H
#define HR_MCP_RUNSCHEMA_H

#define HR_MCP_RUN_SCHEMA                                                                          \
	"{\"type\":\"object\",\"properties\":{\"output\":{\"type\":\"string\"},\"running\":{"      \
	"\"type\":\"boolean\"},\"exit_code\":{\"type\":[\"integer\",\"null\"]},\"working_dir\":{"  \
	"\"type\":[\"string\",\"null\"]},\"handle\":{\"type\":[\"string\",\"null\"]}},"            \
	"\"required\":[\"output\",\"running\",\"exit_code\"]}"

#endif
