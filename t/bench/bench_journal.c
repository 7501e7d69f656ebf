/* bench_journal DIR [N]: what the journal costs one action, in microseconds: as an action with a
 * name of its client's leaves it (kept), and as one without (forgotten when its answer is sent). */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/path.h"
#include "lat.h"
#include "proto/journal.h"

#define ANSWER 700 /* bytes of the observation of `true` */

enum kind { FORGOTTEN, KEPT };

static double
now_us(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int
compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* One action as its worker and the keeper of its shell see it. */
static int
one(struct hr_journal *worker, struct hr_journal *keeper, const char *key, enum kind kind,
    const char *answer, struct hr_err *err)
{
	struct hr_journal_entry e;
	enum hr_journal_found found;
	HR_BUF(old, ANSWER);
	uint32_t tag;
	int r;

	r = hr_journal_enter(worker, key, strlen(key), &e, &found, &tag, &old, err);
	if (r == 0 && found != HR_JOURNAL_NEW)
		r = hr_err_set(err, HR_E_INVAL, "%s is not new", key);
	if (r == 0 && !hr_journal_begin(keeper, key, strlen(key), e.attempt))
		r = hr_err_set(err, HR_E_INVAL, "%s may not begin", key);
	if (r == 0) {
		hr_journal_done(worker, &e, 200, answer, ANSWER);
		hr_journal_leave(worker, &e, kind != KEPT);
		hr_journal_tidy(worker, (int64_t)(now_us() / 1000));
	}
	return r;
}

static int
row(const char *dir, const char *name, bool sync, enum kind kind, int n, struct hr_err *err)
{
	struct hr_journal_counts counts = {0};
	struct hr_journal worker, keeper;
	char key[64], answer[ANSWER];
	double sum = 0, began;
	HR_FREE double *us = calloc((size_t)n, sizeof(*us));
	int i, r = -1;

	memset(answer, 'x', sizeof(answer));
	hr_journal_init(&worker);
	hr_journal_init(&keeper);
	worker.entries_max = 2048;
	worker.bytes_max = 32 << 20;
	worker.age_max_ms = 3600000;
	worker.counts = &counts;
	worker.sync = keeper.sync = sync;
	if (us == NULL)
		(void)hr_err_nomem(err);
	else if (hr_journal_open(&worker, dir, err) == 0 && hr_journal_open(&keeper, dir, err) == 0)
		r = 0;
	for (i = 0; r == 0 && i < n; i++) {
		(void)snprintf(key, sizeof(key), "x:%s-%d", name, i);
		began = now_us();
		r = one(&worker, &keeper, key, kind, answer, err);
		us[i] = now_us() - began;
		sum += us[i];
	}
	if (r == 0) {
		qsort(us, (size_t)n, sizeof(*us), compare);
		(void)printf("%-24s mean %.1f  p50 %.1f  p99 %.1f us\n", name, sum / n, us[n / 2],
		    us[n - 1 - n / 100]);
	}
	hr_journal_close(&worker);
	hr_journal_close(&keeper);
	return r;
}

int
main(int argc, char **argv)
{
	struct hr_err err = {0};
	char *dir;
	int n = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 20000, r;

	if (argc < 2 || n < 100) {
		(void)fprintf(stderr, "usage: bench_journal DIR [N]\n");
		return 2;
	}
	dir = hr_path_join(argv[1], "bench-journal-XXXXXX");
	if (dir == NULL || mkdtemp(dir) == NULL) {
		perror(argv[1]);
		return 1;
	}
	r = row(dir, "forgotten", false, FORGOTTEN, n, &err);
	if (r == 0)
		r = row(dir, "kept", false, KEPT, n, &err);
	if (r == 0)
		r = row(dir, "kept, journal_sync", true, KEPT, n / 100, &err);
	if (r != 0)
		(void)fprintf(stderr, "bench_journal: %s\n", err.msg);
	(void)hr_path_remove(dir, NULL);
	free(dir);
	return r == 0 ? 0 : 1;
}
