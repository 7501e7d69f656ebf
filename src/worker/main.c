/* handrail-worker: answers HTTP requests that nginx passes by FastCGI (proto/PROTOCOL). */
#include "config.h"

#include <argp.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "files/charset/detect.h"
#include "files/place/reach.h"
#include "proto/workerargs.h"
#include "worker/request/fcgi.h"
#include "worker/harden.h"
#include "worker/hub.h"
#include "worker/page.h"
#include "worker/worker.h"

_Static_assert((int)HR_WORKER_HIDDEN == (int)HR_REACH_HIDDEN, "both have one number");

enum worker_fd { CHANNEL_FD = 3, BOARD_FD = 4 };

const char *argp_program_version = "handrail-worker " PACKAGE_VERSION;

#define FIRST_KEY 256 /* smaller option keys are letters */

static error_t
parse_option(int key, char *arg, struct argp_state *state)
{
	struct hr_worker_args *a = state->input;
	size_t n = key >= FIRST_KEY ? (size_t)key - FIRST_KEY : SIZE_MAX;
	struct hr_err err = {0};

	if (key == ARGP_KEY_END) {
		if (hr_worker_args_check(a, &err) != 0)
			argp_error(state, "%s", err.msg);
		return 0;
	}
	if (n >= hr_worker_options_n)
		return ARGP_ERR_UNKNOWN;
	if (hr_worker_args_set(a, &hr_worker_options[n], arg, &err) != 0)
		argp_error(state, "%s", err.msg);
	return 0;
}

static int
parse(int argc, char **argv, struct hr_worker_args *a)
{
	struct argp_option options[hr_worker_options_n + 1];
	const struct argp argp = {.options = options,
	    .parser = parse_option,
	    .doc = "Answers the requests that nginx passes by FastCGI on descriptor 0. Started by "
		   "handraild with the descriptors that it needs; of no use by itself."};
	size_t i;

	memset(options, 0, sizeof(options));
	for (i = 0; i < hr_worker_options_n; i++) {
		options[i].name = hr_worker_options[i].name + strlen("--");
		options[i].key = FIRST_KEY + (int)i;
		options[i].arg = hr_worker_options[i].value;
		options[i].doc = hr_worker_options[i].help;
	}
	return argp_parse(&argp, argc, argv, 0, NULL, a);
}

static int
take_journal(struct hr_journal *j, const struct hr_worker_args *a, struct hr_err *err)
{
	j->entries_max = (int64_t)a->journal_entries;
	j->bytes_max = (int64_t)a->journal_bytes;
	j->age_max_ms = (int64_t)a->journal_age * 1000;
	j->sync = a->journal_sync;
	j->required = a->journal_required;
	return a->journal == NULL ? 0 : hr_journal_open(j, a->journal, err);
}

static int
work(const struct hr_worker_args *a, const struct hr_reach *reach, struct hr_worker *w,
    struct hr_err *err)
{
	struct hr_scoreboard *board;
	HR_FREE char *office = NULL;
	int r = -1;

	hr_reach_rules(reach);
	board = hr_scoreboard_attach(BOARD_FD, err);
	if (board == NULL || hr_fd_cloexec(BOARD_FD, err) < 0)
		return -1;
	hr_worker_init(w, a->run_dir, a->work_dir, board, &board->slots[a->slot]);
	w->board_fd = BOARD_FD;
	hr_tempfiles_use(&board->scraps[a->slot]);
	w->libexec_dir = a->libexec_dir;
	office = hr_path_join(a->libexec_dir, "handrail-office");
	if (office == NULL)
		return hr_err_nomem(err);
	w->office = a->office_converter != NULL ? a->office_converter : office;
	w->network_log = a->network_log;
	hr_detect_from(a->libexec_dir);
	w->channel = CHANNEL_FD;
	w->unpack_limits = (struct hr_unpack_limits){a->unpack_bytes, a->unpack_entries};
	w->nginx = (struct hr_nginx_account){.known = a->edge_uid != HR_WORKER_UNKNOWN,
	    .uid = (uid_t)a->edge_uid,
	    .gid = (gid_t)a->edge_gid};
	w->page_rights = hr_page_rights_of(a->page_rights);
	w->page_lifetime_s = (int64_t)a->page_lifetime;
	w->user_id = (uid_t)a->user_id;
	w->shell_uid = (uid_t)a->shell_uid;
	if (strcmp(a->pool, "page") == 0) {
		w->hub = hr_hub_new(w, err);
		if (w->hub == NULL)
			return -1;
	}
	if (take_journal(&w->journal, a, err) >= 0 && hr_fd_cloexec(CHANNEL_FD, err) >= 0 &&
	    hr_fcgi_setup(err) >= 0 && hr_auth_ask(&w->auth, CHANNEL_FD, err) >= 0)
		r = hr_fcgi_loop(w, a->max_requests, err);
	hr_hub_free(w->hub);
	w->hub = NULL;
	return r;
}

int
main(int argc, char **argv)
{
	struct hr_worker_args a =
	    HR_WORKER_ARGS_NONE; /* the shell's account is nobody unless an option sets it */
	struct hr_reach reach = {0};
	struct hr_worker w = {.channel = -1, .shell_fd = -1, .board_fd = -1, .peers = -1};
	struct hr_err err = {.code = HR_OK};
	int r;

	/* harden first: until then other processes of the account can read this one */
	r = hr_harden(&err);
	if (parse(argc, argv, &a) != 0)
		return EXIT_FAILURE;
	reach.shell = (uid_t)a.shell_uid;
	reach.run_dir = a.run_dir;
	memcpy(reach.hidden, a.hidden, sizeof(reach.hidden));
	hr_log_setup(a.pool, HR_LOG_CHILD, HR_LOG_INFO);
	/* libarchive takes the encoding of names from the locale. Without such a locale it takes
	 * the names in archives that are not ASCII as they are. */
	if (setlocale(LC_CTYPE, "C.UTF-8") == NULL && setlocale(LC_CTYPE, "en_US.UTF-8") == NULL)
		hr_log(HR_LOG_WARNING, "no locale C.UTF-8: names in archives may be wrong");
	if (r == 0)
		r = work(&a, &reach, &w, &err);
	if (r < 0)
		hr_log(HR_LOG_ERROR, "%s", err.msg);
	/* the worker ends before the scoreboard is detached, where the journal counts */
	hr_worker_done(&w);
	hr_scoreboard_detach(w.board);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
