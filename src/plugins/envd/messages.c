/* Describes the messages of process.Process. */
#include "config.h"

#include <signal.h>

#include "plugins/envd/calls.h"

static const struct hr_message_field selector_fields[] = {
    {.name = "pid", .type = HR_MESSAGE_UINT32, .oneof = "selector"},
    {.name = "tag", .type = HR_MESSAGE_STRING, .oneof = "selector"}, {.name = NULL}};
static const struct hr_message selector = {"process.ProcessSelector", selector_fields};

static const struct hr_message_field config_fields[] = {{.name = "cmd", .type = HR_MESSAGE_STRING},
    {.name = "args", .type = HR_MESSAGE_STRINGS}, {.name = "envs", .type = HR_MESSAGE_MAP},
    {.name = "cwd", .type = HR_MESSAGE_STRING}, {.name = NULL}};
static const struct hr_message config = {"process.ProcessConfig", config_fields};

static const struct hr_message_field size_fields[] = {{.name = "cols", .type = HR_MESSAGE_UINT32},
    {.name = "rows", .type = HR_MESSAGE_UINT32}, {.name = NULL}};
static const struct hr_message size = {"process.PTY.Size", size_fields};

static const struct hr_message_field pty_fields[] = {
    {.name = "size", .type = HR_MESSAGE_PART, .part = &size}, {.name = NULL}};
static const struct hr_message pty = {"process.PTY", pty_fields};

static const struct hr_message_field start_fields[] = {
    {.name = "process", .type = HR_MESSAGE_PART, .part = &config},
    {.name = "pty", .type = HR_MESSAGE_PART, .part = &pty},
    {.name = "tag", .type = HR_MESSAGE_STRING}, {.name = "stdin", .type = HR_MESSAGE_BOOL},
    {.name = NULL}};
const struct hr_message envd_start_request = {"process.StartRequest", start_fields};

static const struct hr_message_field select_fields[] = {
    {.name = "process", .type = HR_MESSAGE_PART, .part = &selector}, {.name = NULL}};
const struct hr_message envd_connect_request = {"process.ConnectRequest", select_fields};
const struct hr_message envd_close_request = {"process.CloseStdinRequest", select_fields};
static const struct hr_message stream_start = {
    "process.StreamInputRequest.StartEvent", select_fields};

static const struct hr_message_enum signals[] = {
    {"SIGNAL_UNSPECIFIED", 0}, {"SIGNAL_SIGTERM", SIGTERM}, {"SIGNAL_SIGKILL", SIGKILL}, {NULL, 0}};
static const struct hr_message_field signal_fields[] = {
    {.name = "process", .type = HR_MESSAGE_PART, .part = &selector},
    {.name = "signal", .type = HR_MESSAGE_ENUM, .values = signals}, {.name = NULL}};
const struct hr_message envd_signal_request = {"process.SendSignalRequest", signal_fields};

static const struct hr_message_field input_fields[] = {
    {.name = "stdin", .type = HR_MESSAGE_BYTES, .oneof = "input"},
    {.name = "pty", .type = HR_MESSAGE_BYTES, .oneof = "input"}, {.name = NULL}};
static const struct hr_message input = {"process.ProcessInput", input_fields};

static const struct hr_message_field send_fields[] = {
    {.name = "process", .type = HR_MESSAGE_PART, .part = &selector},
    {.name = "input", .type = HR_MESSAGE_PART, .part = &input}, {.name = NULL}};
const struct hr_message envd_send_request = {"process.SendInputRequest", send_fields};

static const struct hr_message_field data_fields[] = {
    {.name = "input", .type = HR_MESSAGE_PART, .part = &input}, {.name = NULL}};
static const struct hr_message stream_data = {"process.StreamInputRequest.DataEvent", data_fields};
static const struct hr_message_field stream_fields[] = {
    {.name = "start", .type = HR_MESSAGE_PART, .part = &stream_start, .oneof = "event"},
    {.name = "data", .type = HR_MESSAGE_PART, .part = &stream_data, .oneof = "event"},
    {.name = NULL}};
const struct hr_message envd_stream_request = {"process.StreamInputRequest", stream_fields};

static const struct hr_message_field update_fields[] = {
    {.name = "process", .type = HR_MESSAGE_PART, .part = &selector},
    {.name = "pty", .type = HR_MESSAGE_PART, .part = &pty}, {.name = NULL}};
const struct hr_message envd_update_request = {"process.UpdateRequest", update_fields};

static const struct hr_message_field no_fields[] = {{.name = NULL}};
const struct hr_message envd_list_request = {"process.ListRequest", no_fields};
