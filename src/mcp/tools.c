/* Holds the table of tools, in a file of its own so that a test program can replace it
 * (t/e2e/mcp_worker.c). */
#include "config.h"

#include "mcp/call.h"

const struct hr_mcp_tool *const hr_mcp_tools[] = {&hr_mcp_run, &hr_mcp_wait, &hr_mcp_input,
    &hr_mcp_interrupt, &hr_mcp_sessions, &hr_mcp_end, &hr_mcp_read, &hr_mcp_write, &hr_mcp_edit,
    &hr_mcp_undo, &hr_mcp_list, &hr_mcp_glob, &hr_mcp_grep, &hr_mcp_ipython, &hr_mcp_browse,
    &hr_mcp_ports};
const size_t hr_mcp_tools_n = sizeof(hr_mcp_tools) / sizeof(hr_mcp_tools[0]);
