#include "config.h"

#include "plugins/envd/record.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC 0x48454e31u

struct head {
	uint32_t magic, uid, gid, ngroups, argc, envc;
	uint32_t identity, pty, has_stdin, has_tag;
	int64_t deadline_ms;
	uint64_t strings, tag, config; /* bytes */
};

static uint32_t
put_strings(struct hr_buf *b, char *const *list)
{
	uint32_t n = 0;

	for (; list[n] != NULL; n++)
		hr_buf_add(b, list[n], strlen(list[n]) + 1);
	return n;
}

void
envd_record_put(struct hr_buf *b, const struct envd_record *r)
{
	struct head h = {MAGIC, r->uid, r->gid, r->ngroups, 0, 0, r->identity, r->pty, r->has_stdin,
	    r->tag.p != NULL, r->deadline_ms, 0, r->tag.len, r->config.len};
	HR_BUF(strings, ENVD_RECORD_MAX);

	h.argc = put_strings(&strings, r->argv);
	h.envc = put_strings(&strings, r->env);
	h.strings = strings.len;
	if (strings.fail != HR_OK)
		b->fail = strings.fail;
	hr_buf_add(b, &h, sizeof(h));
	hr_buf_add(b, r->groups, r->ngroups * sizeof(*r->groups));
	hr_buf_add(b, r->tag.p, r->tag.len);
	hr_buf_add(b, r->config.p, r->config.len);
	hr_buf_add(b, hr_buf_str(&strings), strings.len);
}

/* Takes n strings off *p; end is the end of the bytes. */
static bool
get_strings(const char **p, const char *end, char **ret, uint32_t n)
{
	const char *nul;
	uint32_t i;

	for (i = 0; i < n; i++) {
		nul = memchr(*p, '\0', (size_t)(end - *p));
		if (nul == NULL)
			return false;
		ret[i] = (char *)(uintptr_t)*p; /* exec does not change the strings */
		*p = nul + 1;
	}
	return true;
}

int
envd_record_get(struct envd_record *r, struct hr_span data, void **store)
{
	const char *p = data.p, *end;
	struct head h;
	uint64_t groups;
	char **lists;

	*store = NULL;
	if (data.len < sizeof(h))
		return -1;
	memcpy(&h, p, sizeof(h));
	groups = (uint64_t)h.ngroups * sizeof(gid_t);
	if (h.magic != MAGIC || h.tag > ENVD_RECORD_MAX || h.config > ENVD_RECORD_MAX ||
	    h.strings > ENVD_RECORD_MAX || h.argc > h.strings || h.envc > h.strings ||
	    sizeof(h) + groups + h.tag + h.config + h.strings != data.len)
		return -1;
	lists = calloc((size_t)h.argc + h.envc + 2, sizeof(*lists));
	if (lists == NULL)
		return -1;
	*r = (struct envd_record){.uid = h.uid,
	    .gid = h.gid,
	    .groups = (const void *)(p + sizeof(h)),
	    .ngroups = h.ngroups,
	    .identity = h.identity != 0,
	    .pty = h.pty != 0,
	    .has_stdin = h.has_stdin != 0,
	    .deadline_ms = h.deadline_ms};
	p += sizeof(h) + groups;
	r->tag = (struct hr_span){h.has_tag != 0 ? p : NULL, h.tag};
	r->config = (struct hr_span){p + h.tag, h.config};
	p += h.tag + h.config;
	end = data.p + data.len;
	*store = lists;
	r->argv = lists;
	r->env = lists + h.argc + 1;
	if (get_strings(&p, end, lists, h.argc) && get_strings(&p, end, lists + h.argc + 1, h.envc))
		return 0;
	free(lists);
	*store = NULL;
	return -1;
}
