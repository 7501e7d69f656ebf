/* Writes and reads the options of a worker. A number is written if it is known, even 0. */
#include "config.h"

#include "proto/workerargs.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/scoreboard.h"

#define AT(member) offsetof(struct hr_worker_args, member)

const struct hr_worker_option hr_worker_options[] = {
    {"--pool", "NAME", "name of the pool, for the log", AT(pool), HR_WORKER_TEXT, 0, true},
    {"--slot", "N", "slot of the scoreboard", AT(slot), HR_WORKER_NUMBER, HR_SCOREBOARD_SLOTS - 1,
	false},
    {"--run-dir", "DIR", "directory of session.sock", AT(run_dir), HR_WORKER_TEXT, 0, true},
    {"--work-dir", "DIR", "the server's working directory", AT(work_dir), HR_WORKER_TEXT, 0, true},
    {"--libexec-dir", "DIR", "directory of the modules", AT(libexec_dir), HR_WORKER_TEXT, 0, true},
    {"--user-id", "UID", "owner of the files that actions make", AT(user_id), HR_WORKER_NUMBER,
	UINT32_MAX - 1UL, false},
    {"--shell-uid", "N", "account of the shell", AT(shell_uid), HR_WORKER_NUMBER, UINT_MAX, false},
    {"--edge-uid", "N", "account of nginx's workers", AT(edge_uid), HR_WORKER_NUMBER, UINT_MAX,
	false},
    {"--edge-gid", "N", "its group", AT(edge_gid), HR_WORKER_NUMBER, UINT_MAX, false},
    {"--hide", "FILE", "a file that no action may open; may be repeated", AT(hidden),
	HR_WORKER_FILES, 0, false},
    {"--max-requests", "N", "end after N requests (0: never)", AT(max_requests), HR_WORKER_NUMBER,
	ULONG_MAX, false},
    {"--unpack-max-bytes", "N", "of an archive (0: no limit)", AT(unpack_bytes), HR_WORKER_NUMBER,
	ULONG_MAX, false},
    {"--unpack-max-entries", "N", "of an archive (0: no limit)", AT(unpack_entries),
	HR_WORKER_NUMBER, ULONG_MAX, false},
    {"--office-converter", "PATH", "in place of handrail-office", AT(office_converter),
	HR_WORKER_TEXT, 0, false},
    {"--network-log", "FILE", "sentences about refused connections", AT(network_log),
	HR_WORKER_TEXT, 0, false},
    {"--page-rights", "act|look|none", "rights of a sign-in to the page", AT(page_rights),
	HR_WORKER_TEXT, 0, false},
    {"--page-lifetime", "SECONDS", "its lifetime", AT(page_lifetime), HR_WORKER_NUMBER, UINT_MAX,
	false},
    {"--journal", "DIR", "directory of the journal", AT(journal), HR_WORKER_TEXT, 0, false},
    {"--journal-entries", "N", "keep so many of them", AT(journal_entries), HR_WORKER_NUMBER,
	UINT_MAX, false},
    {"--journal-bytes", "N", "... so many bytes", AT(journal_bytes), HR_WORKER_NUMBER, LONG_MAX,
	false},
    {"--journal-age", "SECONDS", "... for so long", AT(journal_age), HR_WORKER_NUMBER, UINT_MAX,
	false},
    {"--journal-sync", NULL, "wait for the disk", AT(journal_sync), HR_WORKER_FLAG, 0, false},
    {"--journal-required", NULL, "refuse actions that cannot be recorded", AT(journal_required),
	HR_WORKER_FLAG, 0, false},
};
const size_t hr_worker_options_n = sizeof(hr_worker_options) / sizeof(hr_worker_options[0]);

static void
put(struct hr_worker_argv *to, const char *name, const char *value)
{
	hr_assert(to->n + 3 <= sizeof(to->v) / sizeof(to->v[0]));
	to->v[to->n++] = name;
	if (value != NULL)
		to->v[to->n++] = value;
	to->v[to->n] = NULL;
}

void
hr_worker_args_write(const struct hr_worker_args *a, struct hr_worker_argv *ret)
{
	const struct hr_worker_option *o;
	const char *const *texts;
	size_t i, numbers = 0, n;
	unsigned long number;
	const void *at;

	ret->n = 0;
	put(ret, "handrail-worker", NULL);
	for (o = hr_worker_options; o < hr_worker_options + hr_worker_options_n; o++) {
		at = (const char *)a + o->at;
		switch (o->kind) {
		case HR_WORKER_TEXT:
		case HR_WORKER_FILES:
			texts = at;
			n = o->kind == HR_WORKER_TEXT ? 1 : HR_WORKER_HIDDEN;
			for (i = 0; i < n; i++) {
				if (texts[i] != NULL && texts[i][0] != '\0')
					put(ret, o->name, texts[i]);
			}
			break;
		case HR_WORKER_NUMBER:
			number = *(const unsigned long *)at;
			if (number == HR_WORKER_UNKNOWN)
				break;
			hr_assert(numbers < sizeof(ret->numbers) / sizeof(ret->numbers[0]));
			(void)snprintf(
			    ret->numbers[numbers], sizeof(ret->numbers[0]), "%lu", number);
			put(ret, o->name, ret->numbers[numbers++]);
			break;
		case HR_WORKER_FLAG:
			if (*(const bool *)at)
				put(ret, o->name, NULL);
			break;
		}
	}
}

static int
set_number(
    unsigned long *ret, const struct hr_worker_option *o, const char *text, struct hr_err *err)
{
	unsigned long v;
	char *end;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || v > o->max)
		return hr_err_set(
		    err, HR_E_INVAL, "%s: \"%s\" is not a number up to %lu", o->name, text, o->max);
	*ret = v;
	return 0;
}

int
hr_worker_args_set(struct hr_worker_args *a, const struct hr_worker_option *o, const char *text,
    struct hr_err *err)
{
	void *at = (char *)a + o->at;
	const char **texts = at;
	size_t i;

	switch (o->kind) {
	case HR_WORKER_TEXT: texts[0] = text; return 0;
	case HR_WORKER_NUMBER: return set_number(at, o, text, err);
	case HR_WORKER_FLAG: *(bool *)at = true; return 0;
	case HR_WORKER_FILES: break;
	}
	for (i = 0; i < HR_WORKER_HIDDEN && texts[i] != NULL; i++)
		;
	if (i == HR_WORKER_HIDDEN)
		return hr_err_set(
		    err, HR_E_INVAL, "at most %d files can be hidden", HR_WORKER_HIDDEN);
	texts[i] = text;
	return 0;
}

int
hr_worker_args_check(const struct hr_worker_args *a, struct hr_err *err)
{
	const struct hr_worker_option *o;

	for (o = hr_worker_options; o < hr_worker_options + hr_worker_options_n; o++) {
		if (o->needed && *(const char *const *)((const char *)a + o->at) == NULL)
			return hr_err_set(err, HR_E_INVAL, "%s is needed", o->name);
	}
	return 0;
}
