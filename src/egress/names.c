/* Keeps the names in records of one size, of which the number is the address. The table in memory
 * has hashes only: a hostile box can fill the file, but not the memory. */
#include "config.h"

#include "egress/names.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/path.h"
#include "base/random.h"

#define RECORD 256
#define FIRST 0xc6120002u /* 198.18.0.2; the one before is the name server */
#define RANGE 0xfffe0000u
#define SLOTS 256 /* number of slots at first */

struct slot {
	uint32_t hash;
	uint32_t at; /* number of the record + 1; 0: free */
};

struct egress_names {
	int fd;
	uint32_t count;
	uint64_t seed; /* a box that knew it could make every look-up slow */
	struct slot *slots;
	size_t nslots; /* a power of two, more than twice the count */
};

static bool
read_record(const struct egress_names *n, uint32_t at, char ret[EGRESS_NAME_MAX + 1])
{
	char text[RECORD];

	return hr_fd_pread_full(n->fd, text, RECORD, (off_t)at * RECORD) == 0 &&
	       memchr(text, '\0', RECORD) != NULL && egress_name(text, strlen(text), ret);
}

static uint32_t
hash(const struct egress_names *n, const char *name)
{
	uint64_t h = hr_hash(n->seed, name, strlen(name));

	return (uint32_t)(h ^ h >> 32);
}

/* Returns the slot of a name, or the free one where it belongs. */
static struct slot *
find(const struct egress_names *n, const char *name, uint32_t h)
{
	char there[EGRESS_NAME_MAX + 1];
	size_t i = h & (n->nslots - 1);

	for (; n->slots[i].at != 0; i = (i + 1) & (n->nslots - 1))
		if (n->slots[i].hash == h && read_record(n, n->slots[i].at - 1, there) &&
		    strcmp(there, name) == 0)
			break;
	return &n->slots[i];
}

static int
grow(struct egress_names *n)
{
	size_t more = n->nslots * 2, i, j;
	struct slot *v = calloc(more, sizeof(*v));

	if (v == NULL)
		return -1;
	for (i = 0; i < n->nslots; i++) {
		if (n->slots[i].at == 0)
			continue;
		for (j = n->slots[i].hash & (more - 1); v[j].at != 0;)
			j = (j + 1) & (more - 1);
		v[j] = n->slots[i];
	}
	free(n->slots);
	n->slots = v;
	n->nslots = more;
	return 0;
}

/* Enters the record that follows the last one. */
static int
enter(struct egress_names *n, const char *name)
{
	uint32_t h = hash(n, name);
	struct slot *s;

	if (n->count * 2 + 2 > n->nslots && grow(n) < 0)
		return -1;
	s = find(n, name, h);
	if (s->at == 0)
		*s = (struct slot){h, n->count + 1};
	return 0;
}

struct egress_names *
egress_names_open(const char *path, struct hr_err *err)
{
	struct egress_names *n = calloc(1, sizeof(*n));
	char name[EGRESS_NAME_MAX + 1];
	off_t size;

	if (n == NULL)
		return hr_err_null(err);
	n->nslots = SLOTS;
	n->slots = calloc(n->nslots, sizeof(*n->slots));
	n->fd = hr_path_open_own(path, O_RDWR | O_CREAT, 0600, err);
	if (n->slots == NULL || n->fd < 0 || hr_random(&n->seed, sizeof(n->seed), err) < 0) {
		if (n->slots == NULL)
			(void)hr_err_nomem(err);
		egress_names_free(n);
		return NULL;
	}
	size = lseek(n->fd, 0, SEEK_END);
	/* a record that was cut is overwritten by the next one */
	for (; n->count < EGRESS_NAMES_MAX && (off_t)(n->count + 1) * RECORD <= size; n->count++)
		if (read_record(n, n->count, name) && enter(n, name) < 0) {
			egress_names_free(n);
			return hr_err_null(err);
		}
	return n;
}

void
egress_names_free(struct egress_names *n)
{
	if (n == NULL)
		return;
	hr_fd_close(&n->fd);
	free(n->slots);
	free(n);
}

int
egress_names_address(struct egress_names *n, const char *name, struct in_addr *ret)
{
	char text[RECORD] = {0};
	uint32_t at = find(n, name, hash(n, name))->at;

	if (at == 0) {
		memcpy(text, name, strnlen(name, EGRESS_NAME_MAX));
		if (n->count >= EGRESS_NAMES_MAX ||
		    hr_fd_pwrite_full(n->fd, text, RECORD, (off_t)n->count * RECORD) < 0 ||
		    enter(n, name) < 0)
			return -1;
		at = ++n->count;
	}
	ret->s_addr = htonl(FIRST + at - 1);
	return 0;
}

bool
egress_names_has(struct in_addr a)
{
	return (ntohl(a.s_addr) & RANGE) == (FIRST & RANGE);
}

bool
egress_names_find(const struct egress_names *n, struct in_addr a, char ret[EGRESS_NAME_MAX + 1])
{
	uint32_t at = ntohl(a.s_addr) - FIRST;

	return at < n->count && read_record(n, at, ret);
}

size_t
egress_names_count(const struct egress_names *n)
{
	return n->count;
}
