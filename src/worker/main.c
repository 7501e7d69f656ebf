/* handrail-worker: answers HTTP requests that nginx passes by FastCGI (proto/PROTOCOL). */
#include "config.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "files/charset/detect.h"
#include "files/place/reach.h"
#include "worker/fcgi.h"
#include "worker/harden.h"
#include "worker/worker.h"

enum worker_fd { CHANNEL_FD = 3, BOARD_FD = 4 };

enum worker_option {
	OPT_POOL = 256,
	OPT_SLOT,
	OPT_RUN_DIR,
	OPT_WORK_DIR,
	OPT_USER_ID,
	OPT_LIBEXEC_DIR,
	OPT_MAX_REQUESTS,
	OPT_UNPACK_BYTES,
	OPT_UNPACK_ENTRIES,
	OPT_OFFICE,
	OPT_EDGE_UID,
	OPT_EDGE_GID,
	OPT_SHELL_UID,
	OPT_HIDE,
	OPT_JOURNAL,
	OPT_JOURNAL_ENTRIES,
	OPT_JOURNAL_BYTES,
	OPT_JOURNAL_AGE,
	OPT_JOURNAL_SYNC,
	OPT_JOURNAL_REQUIRED,
};

struct arguments {
	const char *pool;
	const char *run_dir;
	const char *work_dir;
	const char *journal; /* NULL: none */
	unsigned long journal_entries, journal_bytes, journal_age;
	bool journal_sync, journal_required;
	const char *libexec_dir;
	const char *office; /* NULL: handrail-office */
	unsigned long slot;
	unsigned long user_id;
	unsigned long max_requests;
	struct hr_unpack_limits unpack;
	struct hr_edge edge;
	struct hr_reach reach;
	unsigned hidden;
};

const char *argp_program_version = "handrail-worker " PACKAGE_VERSION;

static const struct argp_option options[] = {
    {"pool", OPT_POOL, "NAME", 0, "name of the pool, for the log", 0},
    {"slot", OPT_SLOT, "N", 0, "slot of the scoreboard", 0},
    {"run-dir", OPT_RUN_DIR, "DIR", 0, "directory of session.sock", 0},
    {"work-dir", OPT_WORK_DIR, "DIR", 0, "the server's working directory", 0},
    {"user-id", OPT_USER_ID, "UID", 0, "owner of the files that actions make", 0},
    {"libexec-dir", OPT_LIBEXEC_DIR, "DIR", 0, "directory of the modules", 0},
    {"max-requests", OPT_MAX_REQUESTS, "N", 0, "end after N requests (0: never)", 0},
    {"unpack-max-bytes", OPT_UNPACK_BYTES, "N", 0, "of an archive (0: no limit)", 0},
    {"unpack-max-entries", OPT_UNPACK_ENTRIES, "N", 0, "of an archive (0: no limit)", 0},
    {"office-converter", OPT_OFFICE, "PATH", 0, "in place of handrail-office", 0},
    {"edge-uid", OPT_EDGE_UID, "N", 0, "account of nginx's workers", 0},
    {"edge-gid", OPT_EDGE_GID, "N", 0, "its group", 0},
    {"journal", OPT_JOURNAL, "DIR", 0, "where actions are noted", 0},
    {"journal-entries", OPT_JOURNAL_ENTRIES, "N", 0, "keep so many of them", 0},
    {"journal-bytes", OPT_JOURNAL_BYTES, "N", 0, "... so many bytes", 0},
    {"journal-age", OPT_JOURNAL_AGE, "SECONDS", 0, "... for so long", 0},
    {"journal-sync", OPT_JOURNAL_SYNC, NULL, 0, "wait for the disk", 0},
    {"journal-required", OPT_JOURNAL_REQUIRED, NULL, 0, "do nothing that cannot be noted", 0},
    {"hide", OPT_HIDE, "FILE", 0, "a file that no action may open; may be repeated", 0},
    {"shell-uid", OPT_SHELL_UID, "N", 0, "account of the shell", 0},
    {0},
};

static unsigned long
parse_number(const char *arg, unsigned long max, struct argp_state *state)
{
	unsigned long v;
	char *end;

	errno = 0;
	v = strtoul(arg, &end, 10);
	if (errno != 0 || end == arg || *end != '\0' || arg[0] == '-' || v > max)
		argp_error(state, "\"%s\" is not a number up to %lu", arg, max);
	return v;
}

static error_t
parse_option(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case OPT_POOL: a->pool = arg; break;
	case OPT_SLOT: a->slot = parse_number(arg, HR_SCOREBOARD_SLOTS - 1, state); break;
	case OPT_RUN_DIR: a->run_dir = arg; break;
	case OPT_WORK_DIR: a->work_dir = arg; break;
	case OPT_USER_ID: a->user_id = parse_number(arg, UINT32_MAX - 1UL, state); break;
	case OPT_LIBEXEC_DIR: a->libexec_dir = arg; break;
	case OPT_MAX_REQUESTS: a->max_requests = parse_number(arg, ULONG_MAX, state); break;
	case OPT_UNPACK_BYTES: a->unpack.bytes = parse_number(arg, ULONG_MAX, state); break;
	case OPT_UNPACK_ENTRIES: a->unpack.entries = parse_number(arg, ULONG_MAX, state); break;
	case OPT_OFFICE: a->office = arg; break;
	case OPT_EDGE_UID:
		a->edge.uid = (uid_t)parse_number(arg, UINT_MAX, state);
		a->edge.known = true;
		break;
	case OPT_EDGE_GID: a->edge.gid = (gid_t)parse_number(arg, UINT_MAX, state); break;
	case OPT_JOURNAL: a->journal = arg; break;
	case OPT_JOURNAL_ENTRIES: a->journal_entries = parse_number(arg, UINT_MAX, state); break;
	case OPT_JOURNAL_BYTES: a->journal_bytes = parse_number(arg, LONG_MAX, state); break;
	case OPT_JOURNAL_AGE: a->journal_age = parse_number(arg, UINT_MAX, state); break;
	case OPT_JOURNAL_SYNC: a->journal_sync = true; break;
	case OPT_JOURNAL_REQUIRED: a->journal_required = true; break;
	case OPT_SHELL_UID: a->reach.shell = (uid_t)parse_number(arg, UINT_MAX, state); break;
	case OPT_HIDE:
		if (a->hidden == HR_REACH_HIDDEN)
			argp_error(state, "at most %d files can be hidden", HR_REACH_HIDDEN);
		else
			a->reach.hidden[a->hidden++] = arg;
		break;
	case ARGP_KEY_END:
		if (a->pool == NULL || a->run_dir == NULL || a->work_dir == NULL ||
		    a->libexec_dir == NULL)
			argp_error(
			    state, "--pool, --run-dir, --work-dir and --libexec-dir are needed");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int
take_board(struct hr_scoreboard **ret, struct hr_err *err)
{
	int fd = BOARD_FD;

	*ret = hr_scoreboard_attach(fd, err);
	if (*ret == NULL)
		return -1;
	hr_fd_close(&fd);
	return 0;
}

static int
take_journal(struct hr_journal *j, const struct arguments *a, struct hr_err *err)
{
	j->entries_max = (int64_t)a->journal_entries;
	j->bytes_max = (int64_t)a->journal_bytes;
	j->age_max_ms = (int64_t)a->journal_age * 1000;
	j->sync = a->journal_sync;
	j->required = a->journal_required;
	return a->journal == NULL ? 0 : hr_journal_open(j, a->journal, err);
}

static int
work(const struct arguments *a, struct hr_worker *w, struct hr_err *err)
{
	struct hr_scoreboard *board;
	char *office;
	int r = -1;

	hr_reach_rules(&a->reach);
	if (take_board(&board, err) < 0)
		return -1;
	hr_worker_init(w, a->run_dir, a->work_dir, board, &board->slots[a->slot]);
	hr_tempfiles_use(&board->scraps[a->slot]);
	w->libexec_dir = a->libexec_dir;
	office = hr_path_join(a->libexec_dir, "handrail-office");
	if (office == NULL)
		return hr_err_nomem(err);
	w->office = a->office != NULL ? a->office : office;
	hr_detect_from(a->libexec_dir);
	w->channel = CHANNEL_FD;
	w->unpack_limits = a->unpack;
	w->edge = a->edge;
	w->user_id = (uid_t)a->user_id;
	w->shell_uid = a->reach.shell;
	if (take_journal(&w->journal, a, err) >= 0 && hr_fd_cloexec(CHANNEL_FD, true, err) >= 0 &&
	    hr_fcgi_setup(err) >= 0 && hr_auth_ask(&w->auth, CHANNEL_FD, err) >= 0)
		r = hr_fcgi_loop(w, a->max_requests, err);
	free(office);
	return r;
}

int
main(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
	    .parser = parse_option,
	    .doc = "Answers the requests that nginx passes by FastCGI on descriptor 0. Started by "
		   "handraild with the descriptors that it needs; of no use by itself."};
	/* nobody, unless we are told */
	struct arguments a = {.reach = {.shell = 65534}};
	struct hr_worker w = {.channel = -1, .shell_fd = -1};
	struct hr_err err = {.code = HR_OK};
	int r;

	/* first of all: until then everybody of our account may look into us */
	r = hr_harden(&err);
	if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0)
		return EXIT_FAILURE;
	hr_log_setup(a.pool, HR_LOG_CHILD, HR_LOG_INFO);
	/* libarchive asks the locale how names are encoded. Where there is no such one, names in
	 * archives that are not ASCII are taken as they are. */
	if (setlocale(LC_CTYPE, "C.UTF-8") == NULL && setlocale(LC_CTYPE, "en_US.UTF-8") == NULL)
		hr_log(HR_LOG_WARNING, "there is no locale C.UTF-8");
	if (r == 0)
		r = work(&a, &w, &err);
	if (r < 0)
		hr_log(HR_LOG_ERROR, "%s", err.msg);
	hr_worker_done(&w); /* the journal counts there */
	hr_scoreboard_detach(w.board);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
