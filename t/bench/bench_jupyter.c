/* The floor of run_ipython: cells sent to an IPython kernel over ZeroMQ and waited for, with
 * nothing between. bench_jupyter PYTHON DIR CODE COUNT: microseconds of each on stdout, sorted. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zmq.h>

#include "plugins/jupyter/kernel.h"

#define WARM_UP 20

extern char **environ;

static double
now_us(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int
finish(struct hr_kernel *k)
{
	zmq_pollitem_t items[] = {
	    {.socket = k->shell, .events = ZMQ_POLLIN}, {.socket = k->iopub, .events = ZMQ_POLLIN}};

	while (!hr_kernel_receive(k))
		if (zmq_poll(items, 2, 60000) <= 0)
			return -1;
	return 0;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int
measure(struct hr_kernel *k, const char *code, double *us, int n)
{
	struct hr_err err = {0};
	double began;
	int i;

	if (hr_kernel_ask(k, &err) != 0 || finish(k) != 0)
		return -1;
	for (i = -WARM_UP; i < n; i++) {
		began = now_us();
		if (hr_kernel_execute(k, HR_KERNEL_UNCOUNTED, code, strlen(code), &err) != 0 ||
		    finish(k) != 0)
			return -1;
		if (i >= 0)
			us[i] = now_us() - began;
	}
	qsort(us, (size_t)n, sizeof(*us), compare);
	return 0;
}

int
main(int argc, char **argv)
{
	int n = argc == 5 ? (int)strtol(argv[4], NULL, 10) : 0, i, r = -1;
	double *us = n > 0 ? calloc((size_t)n, sizeof(*us)) : NULL;
	const char *args[] = {n > 0 ? argv[1] : NULL, "-m", "ipykernel_launcher", "-f", NULL, NULL};
	struct hr_kernel k;
	struct hr_err err = {0};

	if (us == NULL) {
		(void)fprintf(stderr, "usage: bench_jupyter PYTHON DIR CODE COUNT\n");
		return 2;
	}
	if (hr_kernel_init(&k, argv[2], &err) == 0) {
		args[4] = k.file;
		if (hr_kernel_start(&k,
			&(const struct hr_kernel_program){.argv = args, .envp = environ},
			&err) == 0)
			r = measure(&k, argv[3], us, n);
	}
	hr_kernel_done(&k);
	for (i = 0; r == 0 && i < n; i++)
		(void)printf("%.1f\n", us[i]);
	if (r != 0)
		(void)fprintf(
		    stderr, "bench_jupyter: %s\n", err.msg[0] != '\0' ? err.msg : "no answer");
	free(us);
	return r == 0 ? 0 : 1;
}
