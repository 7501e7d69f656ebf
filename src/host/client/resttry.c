/* What attempts at calls need of each other, whoever makes them: waits, and errors of requests
 * without an answer. */
#include "config.h"

#include <poll.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/err.h"
#include "host/client/rest.h"

bool
hr_rest_wait(int watch_fd, unsigned ms)
{
	struct pollfd p = {.fd = watch_fd, .events = POLLIN};
	int64_t end = hr_now_ms() + ms, left;

	while ((left = end - hr_now_ms()) > 0)
		if (poll(&p, watch_fd >= 0 ? 1 : 0, (int)left) > 0)
			return true;
	return false;
}

unsigned
hr_rest_back_off(unsigned first_ms, unsigned most_ms, unsigned percent, unsigned k)
{
	unsigned ms = first_ms, random = 0;

	while (--k > 0 && ms < most_ms)
		ms *= 2;
	ms = ms < most_ms ? ms : most_ms;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
		return ms;
	return ms - random % (unsigned)((unsigned long long)ms * percent / 100 + 1);
}

int
hr_rest_fault(const struct hr_http_answer *a, const struct hr_err *he, struct hr_err *err)
{
	enum hr_errc code = HR_E_RUNTIME;

	switch (a->fault) {
	case HR_HTTP_CONNECT:
	case HR_HTTP_READ:
	case HR_HTTP_WRITE: code = HR_E_HTTP_NETWORK; break;
	case HR_HTTP_CONNECT_TIMEOUT:
	case HR_HTTP_READ_TIMEOUT: code = HR_E_HTTP_TIMEOUT; break;
	case HR_HTTP_PROTOCOL: code = HR_E_PROTO; break;
	default: break;
	}
	(void)hr_err_from(err, code, he);
	if (err != NULL && code != HR_E_RUNTIME)
		err->cls = hr_http_fault_name(a->fault);
	return -1;
}
