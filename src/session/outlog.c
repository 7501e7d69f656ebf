/* A ring. */
#include "config.h"

#include "session/outlog.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"

int
hr_outlog_init(struct hr_outlog *o, size_t cap, struct hr_err *err)
{
	void *p;

	memset(o, 0, sizeof(*o));
	if (cap == 0)
		return 0;
	p = mmap(NULL, cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return hr_err_sys(err, errno, "a log of %zu bytes for the output", cap);
	o->p = p;
	o->cap = cap;
	return 0;
}

void
hr_outlog_done(struct hr_outlog *o)
{
	if (o->p != NULL)
		(void)munmap(o->p, o->cap);
	memset(o, 0, sizeof(*o));
}

void
hr_outlog_add(struct hr_outlog *o, const char *p, size_t len)
{
	size_t at, n;

	if (len > o->cap) {
		o->end += len - o->cap;
		p += len - o->cap;
		len = o->cap;
	}
	while (len > 0) {
		at = (size_t)(o->end % o->cap);
		n = len < o->cap - at ? len : o->cap - at;
		memcpy(o->p + at, p, n);
		o->end += n;
		p += n;
		len -= n;
	}
}

uint64_t
hr_outlog_start(const struct hr_outlog *o)
{
	return o->end > o->cap ? o->end - o->cap : 0;
}

const char *
hr_outlog_at(const struct hr_outlog *o, uint64_t from, size_t *ret_len)
{
	size_t at;

	hr_assert(from >= hr_outlog_start(o) && from <= o->end);
	*ret_len = 0;
	if (from == o->end)
		return "";
	at = (size_t)(from % o->cap);
	*ret_len = o->end - from < o->cap - at ? (size_t)(o->end - from) : o->cap - at;
	return o->p + at;
}
