/* Checks session keys. Invariant: all sums are present, or the caller got an error. */
#include "config.h"

#include "proto/auth.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "proto/channel.h"

/* milliseconds; they cover a supervisor that is busy with its own start */
#define ASK_MS 10000
#define SUMS_MAX (4u << 20)

int
hr_auth_take(struct hr_auth *a, const char *p, size_t len, struct hr_err *err)
{
	struct hr_keysum_head head;
	size_t n;

	if (len < sizeof(head))
		return hr_err_set(err, HR_E_PROTO, "an answer of %zu bytes about the keys", len);
	memcpy(&head, p, sizeof(head));
	p += sizeof(head);
	n = (len - sizeof(head)) / HR_KEYSUM;
	if (a->have == 0) {
		hr_auth_done(a);
		a->sums = calloc(head.count > 0 ? head.count : 1, sizeof(*a->sums));
		if (a->sums == NULL)
			return hr_err_nomem(err);
		a->head = head;
	}
	/* the keys changed between two parts of the answer; the next worker gets the new ones */
	if (memcmp(&head, &a->head, sizeof(head)) != 0 || n > head.count - a->have ||
	    (n == 0 && a->have < head.count))
		return hr_err_set(err, HR_E_PROTO, "the keys have changed meanwhile");
	memcpy(a->sums + a->have, p, n * HR_KEYSUM);
	a->have += n;
	return a->have == head.count ? 1 : 0;
}

int
hr_auth_ask(struct hr_auth *a, int channel, struct hr_err *err)
{
	struct hr_channel_answer answer;
	uint32_t from;
	int r = 0;

	while (r == 0) {
		from = (uint32_t)a->have;
		r = hr_channel_ask(channel, HR_CHANNEL_KEYS, (const char *)&from, sizeof(from),
		    HR_CHANNEL_KEYS_ANSWER, ASK_MS, &answer, err);
		if (r == 0) {
			hr_fd_close(&answer.fd);
			r = hr_auth_take(a, answer.text, answer.len, err);
		}
	}
	if (r < 0)
		hr_err_prefix(err, "keys");
	return r < 0 ? -1 : 0;
}

bool
hr_auth_read(struct hr_auth *a, int fd)
{
	HR_BUF(text, SUMS_MAX);
	struct stat st;
	char *p = fstat(fd, &st) == 0 && st.st_size > 0 && st.st_size < SUMS_MAX
		      ? hr_buf_reserve(&text, (size_t)st.st_size)
		      : NULL;
	ssize_t n = p != NULL ? pread(fd, p, (size_t)st.st_size, 0) : -1;

	return n > 0 && hr_auth_take(a, p, (size_t)n, NULL) == 1;
}

void
hr_auth_done(struct hr_auth *a)
{
	free(a->sums);
	memset(a, 0, sizeof(*a));
}

bool
hr_auth_knows(const struct hr_auth *a, const unsigned char sum[HR_KEYSUM])
{
	bool found = a->head.count == 0;
	size_t i;

	for (i = 0; i < a->head.count; i++)
		found |= hr_keysum_equal(a->sums[i], sum);
	return found;
}

bool
hr_auth_passes(const struct hr_auth *a, const char *value)
{
	unsigned char sum[HR_KEYSUM];

	return hr_auth_sum(a, value, sum);
}

bool
hr_auth_sum(const struct hr_auth *a, const char *value, unsigned char ret_sum[HR_KEYSUM])
{
	size_t len = strlen(value);

	memset(ret_sum, 0, HR_KEYSUM);
	if (a->head.count == 0)
		return true;
	while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
		len--;
	for (; len > 0 && (*value == ' ' || *value == '\t'); len--)
		value++;
	if (len >
	    a->head.longest) /* the length is no secret, and hashing a long value costs time */
		return false;
	hr_keysum(a->head.salt, value, len, ret_sum);
	return hr_auth_knows(a, ret_sum);
}
