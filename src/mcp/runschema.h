/* hr_mcp_runschema: defines the JSON schema of the results of run and wait. */
#ifndef HR_MCP_RUNSCHEMA_H
#define HR_MCP_RUNSCHEMA_H

#define HR_MCP_RUN_SCHEMA                                                                          \
	"{\"type\":\"object\",\"properties\":{\"output\":{\"type\":\"string\"},\"running\":{"      \
	"\"type\":\"boolean\"},\"exit_code\":{\"type\":[\"integer\",\"null\"]},\"working_dir\":{"  \
	"\"type\":[\"string\",\"null\"]},\"handle\":{\"type\":[\"string\",\"null\"]}},"            \
	"\"required\":[\"output\",\"running\",\"exit_code\"]}"

#endif
