/* Prints the log and the use of a container of the back-end "docker", and runs programs inside. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "host/command.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/strv.h"
#include "host/common/payload.h"
#include "host/docker/docker_int.h"
#include "host/docker/engine.h"
#include "proto/json.h"

int
hr_docker_logs(void *self, bool follow, hr_line_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_docker *d = self;
	HR_CLEAN(hr_demux_done) struct hr_demux demux = {0};
	char path[512];
	int r;

	if (hr_docker_engine(d, err) < 0)
		return -1;
	d->engine.watch_fd = d->h->stop_fd; /* the descriptor may belong to this call alone */
	(void)snprintf(path, sizeof(path),
	    "/containers/%s/logs?stderr=1&stdout=1&timestamps=0&follow=%d&tail=all",
	    hr_docker_ref(d), follow);
	hr_demux_init(&demux, fn, arg);
	r = hr_engine_stream(&d->engine, "GET", path, NULL, NULL, hr_demux_sink, &demux, 0, err);
	if (hr_fd_is_readable(d->h->stop_fd)) {
		demux.stopped = true;
		r = 0;
	}
	return r;
}

/* Replaces numbers that JSON cannot represent. */
static double
finite_or_0(double n)
{
	return isfinite(n) ? n : 0;
}

/* Reports the usage; "cpu" is the share of the machine's time that the container used, in percent
 * of one processor. */
int
hr_docker_stats(void *self, char **ret_json, struct hr_err *err)
{
	struct hr_docker *d = self;
	struct json_object *cpu, *before, *mem, *parts;
	HR_PUT struct json_object *o = NULL;
	double used, had, bytes, limit;
	HR_BUF(b, 4096);

	if (hr_docker_call(d, "GET", "/stats?stream=false&one-shot=false", &o, err) < 0)
		return -1;
	cpu = hr_json_at(o, "cpu_stats");
	before = hr_json_at(o, "precpu_stats");
	mem = hr_json_at(o, "memory_stats");
	parts = hr_json_at(mem, "stats");
	used = hr_json_number_at(hr_json_at(cpu, "cpu_usage"), "total_usage") -
	       hr_json_number_at(hr_json_at(before, "cpu_usage"), "total_usage");
	had = hr_json_number_at(cpu, "system_cpu_usage") -
	      hr_json_number_at(before, "system_cpu_usage");
	bytes = hr_json_number_at(mem, "usage");
	bytes -= hr_json_at(parts, "total_inactive_file") != NULL
		     ? hr_json_number_at(parts, "total_inactive_file")
		     : hr_json_number_at(parts, "inactive_file");
	limit = hr_json_number_at(mem, "limit");
	hr_buf_addf(&b,
	    "{\"cpu_percent\":%.1f,\"mem_bytes\":%.0f,\"mem_limit_bytes\":%.0f,\"mem_percent\":%."
	    "1f,"
	    "\"pids\":%.0f}",
	    had > 0 ? finite_or_0(used / had * hr_json_number_at(cpu, "online_cpus") * 100) : 0,
	    finite_or_0(bytes), limit, limit > 0 ? finite_or_0(bytes / limit * 100) : 0,
	    hr_json_number_at(hr_json_at(o, "pids_stats"), "current"));
	return (*ret_json = hr_buf_end(&b, err)) != NULL ? 0 : -1;
}

/* Returns true if handrail's programs are mounted, with a bash outside the image's PATH. */
static bool
has_payload(struct hr_docker *d)
{
	HR_PUT struct json_object *o = NULL;

	return hr_docker_call(d, "GET", "/json", &o, NULL) == 0 &&
	       hr_json_find(hr_json_at(o, "Mounts"), "Destination", HR_PAYLOAD_PLACE) != NULL;
}

/* Leaves the terminal to the docker program, which handles it well. */
int
hr_docker_exec(void *self, const char *const *argv, int *ret_status, struct hr_err *err)
{
	struct hr_docker *d = self;
	HR_CLEAN(hr_strv_done) struct hr_strv words = {0};
	struct hr_err e = {0};
	int r;

	hr_strv_add(&words, "docker");
	hr_strv_add(&words, "exec");
	hr_strv_add(&words, isatty(0) && isatty(1) ? "-it" : "-i");
	hr_strv_add(&words, hr_docker_ref(d));
	if (strcmp(argv[0], "bash") == 0 && has_payload(d)) {
		hr_strv_add(&words, HR_PAYLOAD_PLACE "/bin/bash");
		argv++;
	}
	hr_strv_add_all(&words, argv);
	r = hr_command_here(&words, d->h->environ, ret_status, &e);
	if (r != 0)
		(void)hr_err_set(err, HR_E_RUNTIME,
		    "a terminal needs the program docker (Debian: docker.io): %s", e.msg);
	return r;
}
