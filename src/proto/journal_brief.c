/* Entries of requests that only nginx can repeat: in a slot, or in a file as all others. Invariant:
 * whoever does the action has seen, when his entry stood in the one place, that there is none in
 * the other. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/journal_int.h"

static bool
has_file(const struct hr_journal *j, uint64_t digest)
{
	char name[JOURNAL_NAME];
	struct stat st;

	journal_name(name, digest);
	return fstatat(j->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

void
journal_brief_over(struct hr_journal_entry *e)
{
	if (e->elsewhere != NULL)
		(void)atomic_fetch_sub(e->elsewhere, 1);
	e->elsewhere = NULL;
}

/* By a file. 1: somebody has the key in its slot by now; look again. */
static int
enter_file(struct hr_journal *j, const char *key, size_t key_len, struct hr_journal_entry *ret,
    enum hr_journal_found *ret_found, uint32_t *ret_tag, struct hr_buf *answer, struct hr_err *err)
{
	_Atomic uint32_t *elsewhere = journal_slot_elsewhere(j, ret->digest);
	int r;

	/* first: who has the slot and sees no file must not miss one */
	(void)atomic_fetch_add(elsewhere, 1);
	r = hr_journal_enter(j, key, key_len, ret, ret_found, ret_tag, answer, err);
	ret->elsewhere = elsewhere;
	if (r == 0 && *ret_found == HR_JOURNAL_NEW) {
		if (!journal_slot_has(j, ret))
			return 0;
		hr_journal_undo(j, ret);
		return 1;
	}
	/* nothing was made, or whoever made it is in that number, too */
	journal_brief_over(ret);
	return r;
}

/* The answer was too long for the slot. */
static int
enter_filed(struct hr_journal *j, const char *key, size_t key_len, struct hr_journal_entry *ret,
    enum hr_journal_found *ret_found, uint32_t *ret_tag, struct hr_buf *answer, struct hr_err *err)
{
	if (hr_journal_enter(j, key, key_len, ret, ret_found, ret_tag, answer, err) < 0)
		return -1;
	if (*ret_found == HR_JOURNAL_NEW) { /* and for a file, or that was dropped */
		hr_journal_undo(j, ret);
		*ret_found = HR_JOURNAL_DROPPED;
	}
	return 0;
}

int
hr_journal_enter_brief(struct hr_journal *j, const char *key, size_t key_len,
    struct hr_journal_entry *ret, enum hr_journal_found *ret_found, uint32_t *ret_tag,
    struct hr_buf *answer, struct hr_err *err)
{
	/* what a loss of power must not take, or what must not be done without room, is a file */
	bool make = !j->sync && !j->required;
	enum journal_slot_found slot;
	int r;

	if (j->slots == NULL || key_len == 0)
		return hr_journal_enter(j, key, key_len, ret, ret_found, ret_tag, answer, err);
	hr_assert(key_len <= HR_JOURNAL_KEY_MAX);
	do {
		*ret = (struct hr_journal_entry){
		    .fd = -1, .digest = journal_digest(key, key_len), .key_len = key_len};
		memcpy(ret->key, key, key_len);
		*ret_found = HR_JOURNAL_NEW;
		if (journal_slot_enter(j, ret, make, &slot, ret_tag, answer) != 0)
			return hr_err_sys(err, errno, "journal");
		switch (slot) {
		case JOURNAL_SLOT_DONE: *ret_found = HR_JOURNAL_DONE; return 0;
		case JOURNAL_SLOT_BEGUN: *ret_found = HR_JOURNAL_BEGUN; return 0;
		case JOURNAL_SLOT_FILED:
			return enter_filed(j, key, key_len, ret, ret_found, ret_tag, answer, err);
		case JOURNAL_SLOT_NEW:
			if (atomic_load(journal_slot_elsewhere(j, ret->digest)) == 0 ||
			    !has_file(j, ret->digest))
				return 0;
			journal_slot_undo(j, ret);
			break;
		case JOURNAL_SLOT_TAKEN: break;
		}
		r = enter_file(j, key, key_len, ret, ret_found, ret_tag, answer, err);
	} while (r == 1);
	return r;
}

/* Killed before the slot says so, the action is still one that was begun. */
void
journal_brief_done(
    struct hr_journal *j, struct hr_journal_entry *e, uint32_t tag, const void *p, size_t len)
{
	struct hr_journal_entry file;
	enum hr_journal_found found;
	uint32_t its_tag;
	HR_BUF(its, (size_t)j->bytes_max);

	if (journal_slot_done(j, e, tag, p, len))
		return;
	if (hr_journal_enter(j, e->key, e->key_len, &file, &found, &its_tag, &its, NULL) == 0) {
		/* DONE: by one that was killed then; nobody has had either answer */
		if (found == HR_JOURNAL_NEW || found == HR_JOURNAL_BEGUN)
			hr_journal_done(j, &file, tag, p, len);
		e->fd = file.fd;
		e->ino = file.ino;
		e->bytes = file.bytes;
	}
	journal_slot_filed(j, e);
}
