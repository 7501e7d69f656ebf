/* hr_worker: holds the state of one worker process. No client depends on it: any worker can take
 * any request. */
#ifndef HR_WORKER_WORKER_H
#define HR_WORKER_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "actions/action.h"
#include "base/buf.h"
#include "base/span.h"
#include "files/archive/unpack.h"
#include "proto/auth.h"
#include "proto/journal.h"
#include "proto/scoreboard.h"
#include "worker/request/nginxaccount.h"
#include "worker/request/request.h"
#include "worker/stats.h"

struct hr_worker {
	const char *run_dir;
	const char *work_dir;
	uid_t user_id;           /* owner of the files that actions create */
	const char *libexec_dir; /* directory of the modules; "": none, as in tests */
	const char *office;      /* see files/document.h */
	const char *network_log; /* the setting; NULL or "": none */
	int channel;             /* descriptor of the supervisor's channel; -1: none, as in tests */
	int shell_fd; /* connection of the default session's keeper; -1: not connected yet */
	struct hr_scoreboard *board;
	int board_fd; /* the scoreboard's descriptor; -1: none, as in tests */
	struct hr_worker_slot *slot;
	struct hr_auth auth;
	struct hr_stats stats;
	struct hr_unpack_limits unpack_limits;
	struct hr_nginx_account nginx;
	enum hr_page_rights page_rights; /* upper limit of a page's rights */
	int64_t page_lifetime_s;
	struct hr_hub *hub; /* NULL outside the pool "page" */
	bool was_ready;     /* this process has seen the server ready */
	struct hr_journal journal;
	struct hr_journal_entry once; /* entry of the current request, see worker/once.h */
	bool once_forget;
	bool once_again;              /* see hr_once_try() */
	struct hr_unread_hold unread; /* place of the current action, see worker/repeat.h */
	struct hr_peer peer;          /* connection of the current client */
	bool cut;                     /* the client's connection has ended */
	char repeat_id[HR_UNREAD_ID]; /* id of the request that started the action */
	int peers;                    /* socket for hr_peer_look() */
	uid_t shell_uid;              /* account whose rights the file viewer uses */

	/* ---- reused by all requests to save allocations ---- */
	struct hr_buf body;
	struct hr_buf path;
	struct hr_buf session; /* name of the requested session */
};

/* Initialises w. It borrows board and slot. */
void hr_worker_init(struct hr_worker *w, const char *run_dir, const char *work_dir,
    struct hr_scoreboard *board, struct hr_worker_slot *slot);
void hr_worker_done(struct hr_worker *w);

/* Writes the stage to the scoreboard. */
void hr_worker_stage(struct hr_worker *w, enum hr_worker_stage stage);

/* Reads the whole body into w->body (valid until the next request). Returns false after sending an
 * error if the body exceeds `cap` (413), or memory runs out. */
bool
hr_worker_body(struct hr_worker *w, const struct hr_request *r, size_t cap, struct hr_answer *ret);

/* Handles the body of POST /execute_action by the given rules. `session` is a named one, which
 * takes only `run`; NULL: the default one. */
void hr_execute(struct hr_worker *w, const struct hr_request *r, const char *session,
    enum hr_rules rules, struct hr_answer *ret);

/* Performs one action by the given rules in `session` (as above). `key` is its name for "at most
 * once"; "": the request's own. */
struct json_object;
void hr_execute_action(struct hr_worker *w, const struct hr_request *r, const char *session,
    struct json_object *action, struct hr_span key, enum hr_rules rules, struct hr_answer *ret);

/* A handler, one per file; route.c has the table. */
typedef void hr_handler_fn(struct hr_worker *w, struct hr_request *r, struct hr_answer *ret);
hr_handler_fn hr_handle_alerts;
hr_handler_fn hr_handle_alive;
hr_handler_fn hr_handle_auth;
hr_handler_fn hr_handle_bearer;
hr_handler_fn hr_handle_door;
hr_handler_fn hr_handle_door_key;
hr_handler_fn hr_handle_download;
hr_handler_fn hr_handle_download_one;
hr_handler_fn hr_handle_e2b; /* handles all paths below /handrail/e2b/ */
hr_handler_fn hr_handle_events;
hr_handler_fn hr_handle_execute;
hr_handler_fn hr_handle_files;
hr_handler_fn hr_handle_rename;
hr_handler_fn hr_handle_remove;
hr_handler_fn hr_handle_info;
hr_handler_fn hr_handle_usage;
hr_handler_fn hr_handle_list;
hr_handler_fn hr_handle_live_browser;
hr_handler_fn hr_handle_live_cells;
hr_handler_fn hr_handle_live_commands;
hr_handler_fn hr_handle_live_create;
hr_handler_fn hr_handle_live_input;
hr_handler_fn hr_handle_live_keys;
hr_handler_fn hr_handle_live_kill;
hr_handler_fn hr_handle_live_network;
hr_handler_fn hr_handle_live_output;
hr_handler_fn hr_handle_live_resize;
hr_handler_fn hr_handle_live_run;
hr_handler_fn hr_handle_live_session;
hr_handler_fn hr_handle_live_sessions;
hr_handler_fn hr_handle_live_signal;
hr_handler_fn hr_handle_log;
hr_handler_fn hr_handle_mcp;
hr_handler_fn hr_handle_me;
hr_handler_fn hr_handle_metrics;
hr_handler_fn hr_handle_pack;
hr_handler_fn hr_handle_port;
hr_handler_fn hr_handle_ready;
hr_handler_fn hr_handle_refused;
hr_handler_fn hr_handle_rex; /* handles all paths below /swerex/ */
hr_handler_fn hr_handle_rex_key;
hr_handler_fn hr_handle_signin;
hr_handler_fn hr_handle_signout;
hr_handler_fn hr_handle_stat;
hr_handler_fn hr_handle_token;
hr_handler_fn hr_handle_unpack;
hr_handler_fn hr_handle_upload;
hr_handler_fn hr_handle_v1; /* handles all requests for which hr_v1_is() is true */
hr_handler_fn hr_handle_view;
hr_handler_fn hr_handle_viewer;

bool hr_e2b_is(const struct hr_request *r); /* Returns true for /handrail/e2b/. */
/* Returns true for /api/ and /health if the endpoint is enabled. */
bool hr_v1_is(const struct hr_request *r);

/* Writes the body's part "file" to that absolute path, whatever its own file name is, and creates
 * missing directories; path NULL: only checks that the body has a file. Returns true with the size
 * in *ret_size, or false after sending an error; ret_field gets a text that is sent in place of the
 * file. */
bool hr_upload_to(struct hr_worker *w, const struct hr_request *r, const struct hr_buf *path,
    uint64_t *ret_size, struct hr_buf *ret_field, struct hr_answer *ret);
/* Sets the header with the name of a file, the last part of path and a suffix, as Starlette does.
 */
void hr_answer_disposition(struct hr_answer *ret, const char *path, const char *suffix);

/* Parts of GET /download_file. */

/* Opens the file at that absolute path, and sets the type and the name. Returns true with a
 * descriptor that the caller closes, or false after sending an error. */
bool hr_download_open(const char *path, int *ret_fd, struct stat *ret_st, struct hr_answer *ret);
/* Sends the file as the request asks: whole, a part, or not again. Takes *fd, if it needs it. */
void hr_download_send(const struct hr_worker *w, const struct hr_request *r, int *fd,
    const struct stat *st, struct hr_answer *ret);
/* Sets the headers that describe the file, and appends ETag and Last-Modified. */
void hr_download_describe(
    const struct stat *st, struct hr_answer *ret, struct hr_buf *etag, struct hr_buf *date);
/* Sends a part of a file with `size` bytes, with Content-Range if the status is 206. Takes *fd. */
void hr_download_part(int *fd, off_t size, off_t from, off_t len, struct hr_answer *ret);
/* Sends several parts in the form of hr_byteparts_start(). Takes *fd. */
struct hr_bytepart;
void hr_download_parts(int *fd, off_t size, const struct hr_bytepart *parts, size_t n,
    bool starlette, struct hr_answer *ret);

#endif
