/* Finds the changes of a work tree, and the revision to compare it with. */
#include "config.h"

#include "git/git.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "git/git_int.h"
#include "proto/json.h"
#include "proto/python/repr.h"
#include "base/text/utf8.h"

int
hr_git_fail(struct hr_buf *why, const char *text)
{
	hr_buf_adds(why, text);
	return -1;
}

/* ---- JSON as json.dumps() prints it: ASCII only ---- */

void
hr_git_put_ascii(struct hr_buf *json, const char *p, size_t len)
{
	const char *end;
	HR_BUF(raw, HR_GIT_OUTPUT_MAX);
	size_t n;
	int32_t cp;

	(void)hr_json_put_str(&raw, p, len, HR_JSON_REPLACE); /* HR_JSON_REPLACE cannot fail */
	p = hr_buf_str(&raw);
	for (end = p + raw.len; p < end; p += n) {
		cp = hr_utf8_next(p, end, &n);
		if (cp < 0x80)
			hr_buf_add(json, p, n);
		else if (cp < 0x10000)
			hr_buf_addf(json, "\\u%04x", (unsigned)cp);
		else
			hr_buf_addf(json, "\\u%04x\\u%04x", 0xD7C0u + ((unsigned)cp >> 10),
			    0xDC00u | ((unsigned)cp & 0x3FF));
	}
	if (raw.fail != HR_OK)
		json->fail = raw.fail;
}

/* ---- the revision to compare with ---- */

/* Finds the last word of the line "HEAD branch: main". */
bool
hr_git_remote_head(const char *repo, struct hr_buf *name)
{
	HR_BUF(out, HR_GIT_OUTPUT_MAX);
	const char *line, *word;
	size_t n;

	hr_buf_reset(name);
	if (HR_GIT_RUN(&out, repo, "remote", "show", "origin") == 0) {
		line = strstr(hr_buf_str(&out), "HEAD branch");
		n = line != NULL ? strcspn(line, "\n") : 0;
		while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'))
			n--;
		for (word = line + n; n > 0 && word > line && word[-1] != ' ' && word[-1] != '\t';)
			word--;
		if (n > 0)
			hr_buf_add(name, word, (size_t)(line + n - word));
	}
	return name->len > 0;
}

bool
hr_git_is_repository(const char *directory)
{
	HR_BUF(out, HR_GIT_OUTPUT_MAX);

	return HR_GIT_RUN(&out, directory, "rev-parse", "--git-dir") == 0;
}

bool
hr_git_is_ref(const char *repo, const char *prefix, const char *name, struct hr_buf *ref)
{
	HR_BUF(full, PATH_MAX);

	hr_buf_adds(&full, prefix);
	hr_buf_adds(&full, name);
	return full.fail == HR_OK &&
	       HR_GIT_RUN(ref, repo, "rev-parse", "--verify", hr_buf_str(&full)) == 0 &&
	       ref->len > 0;
}

bool
hr_git_is_commit(const char *repo, const char *name, struct hr_buf *ref)
{
	HR_BUF(full, PATH_MAX);

	if (name[0] == '^') /* rev-parse would print "^" and the excluded commit */
		return false;
	hr_buf_addf(&full, "%s^{commit}", name);
	return full.fail == HR_OK && hr_git_is_ref(repo, "", hr_buf_str(&full), ref);
}

/* Asks the remote side for the default branch only if the other candidates fail. */
bool
hr_git_reference(const char *repo, const char *wanted, struct hr_buf *ref)
{
	HR_BUF(name, HR_GIT_OUTPUT_MAX);
	HR_BUF(base, HR_GIT_OUTPUT_MAX);
	bool found;

	if (wanted != NULL)
		return hr_git_is_commit(repo, wanted, ref);
	found = HR_GIT_RUN(&name, repo, "rev-parse", "--abbrev-ref", "HEAD") == 0 && name.len > 0 &&
		hr_git_is_ref(repo, "origin/", name.p, ref);
	if (!found && hr_git_remote_head(repo, &name)) {
		HR_BUF(remote, PATH_MAX);

		hr_buf_addf(&remote, "origin/%s", name.p);
		found = remote.fail == HR_OK &&
			HR_GIT_RUN(&base, repo, "merge-base", "HEAD", hr_buf_str(&remote)) == 0 &&
			base.len > 0 && hr_git_is_ref(repo, "", base.p, ref);
		if (!found)
			found = hr_git_is_ref(repo, "origin/", name.p, ref);
	}
	if (!found)
		found = hr_git_is_ref(repo, "", HR_GIT_EMPTY_TREE, ref);
	return found;
}

/* ---- changes ---- */

struct changes {
	bool any;           /* true: report the changes as hr_git_any_changes() does */
	struct hr_buf list; /* a list of hr_git_changes_add() */
	struct hr_buf why;  /* reason of a failure; empty: there is none */
};

static void
changes_done(struct changes *c)
{
	hr_git_changes_done(&c->list);
	hr_buf_done(&c->why);
}

/* Formats "unexpected_value_in_git_diff:['A\ta.txt', 'A\tb b.txt']". */
static void
fail_lines(struct changes *c, const char *what, const char *text)
{
	size_t n;

	hr_buf_addf(&c->why, "%s:[", what);
	for (; *text != '\0'; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		hr_pyrepr_str(&c->why, text, n);
		if (text[n] == '\n')
			hr_buf_adds(&c->why, ", ");
	}
	hr_buf_addc(&c->why, ']');
}

/* Splits up to four words off a line. */
static size_t
split_words(const char *p, size_t len, const char *words[4], size_t lens[4])
{
	size_t n = 0, i = 0;

	for (;;) {
		while (i < len && strchr(" \t\r\v\f", p[i]) != NULL)
			i++;
		if (i == len || n == 4)
			return n;
		words[n] = p + i;
		while (i < len && strchr(" \t\r\v\f", p[i]) == NULL)
			i++;
		lens[n] = (size_t)(p + i - words[n]);
		n++;
	}
}

/* Parses one line of diff --name-status. Returns false on failure. */
static bool
parse_line(struct changes *c, const char *prefix, const char *p, size_t len, const char *all)
{
	const char *w[4];
	size_t l[4], n = split_words(p, len, w, l);
	char status = '\0';

	if (n == 3 && (w[0][0] == 'R' || w[0][0] == 'C')) {
		if (w[0][0] == 'R')
			hr_git_changes_add(&c->list, 'D', prefix, w[1], l[1]);
		hr_git_changes_add(&c->list, 'A', prefix, w[2], l[2]);
		return true;
	}
	if (n != 2) {
		fail_lines(c, "unexpected_value_in_git_diff", all);
		return false;
	}
	if (l[0] == 1 && strchr("MADU", w[0][0]) != NULL)
		status = w[0][0];
	else if (l[0] == 1 && w[0][0] == '*')
		status = 'M';
	else if (l[0] == 2 && memcmp(w[0], "??", 2) == 0)
		status = 'A';
	if (status == '\0') {
		fail_lines(c, "unexpected_status_in_git_diff", all);
		return false;
	}
	hr_git_changes_add(&c->list, status, prefix, w[1], l[1]);
	return true;
}

/* Returns true in a repository; false with the reason in c->why if git refuses to answer. */
static bool
is_repository(struct changes *c, const char *repo)
{
	HR_BUF(out, HR_GIT_OUTPUT_MAX);

	if (HR_GIT_RUN(&out, repo, "rev-parse", "--is-inside-work-tree") == 0)
		return strcmp(hr_buf_str(&out), "true") == 0;
	if (strstr(hr_buf_str(&out), "not a git repository") == NULL)
		hr_buf_add(&c->why, hr_buf_str(&out), out.len);
	return false;
}

static void
any_changes_of(struct changes *c, const char *repo, const char *prefix, const char *wanted)
{
	HR_BUF(ref, HR_GIT_OUTPUT_MAX);
	HR_BUF(out, HR_GIT_OUTPUT_MAX);
	const char *p;

	if (!is_repository(c, repo))
		return;
	/* the empty tree's name differs in a SHA-256 repository */
	if (!hr_git_reference(repo, wanted, &ref) &&
	    (wanted != NULL ||
		HR_GIT_RUN(&ref, repo, "hash-object", "-t", "tree", "/dev/null") < 0)) {
		if (wanted == NULL)
			hr_buf_add(&c->why, hr_buf_str(&ref), ref.len);
		return;
	}
	if (HR_GIT_RUN_EXACT(&out, repo, "diff", "--relative", "--name-status", "-z", ref.p) < 0) {
		hr_buf_add(&c->why, hr_buf_str(&out), out.len);
		return;
	}
	hr_git_changes_take(&c->list, true, prefix, &out);
	if (HR_GIT_RUN_EXACT(&out, repo, "ls-files", "--others", "--exclude-standard", "-z") < 0) {
		hr_buf_add(&c->why, hr_buf_str(&out), out.len);
		return;
	}
	for (p = hr_buf_str(&out); p < hr_buf_str(&out) + out.len; p += strlen(p) + 1)
		hr_git_changes_add(&c->list, 'A', prefix, p, strlen(p));
}

static void
changes_of(struct changes *c, const char *repo, const char *prefix, const char *wanted)
{
	HR_BUF(ref, HR_GIT_OUTPUT_MAX);
	HR_BUF(out, HR_GIT_OUTPUT_MAX);
	const char *p;
	size_t n;

	if (c->any) {
		any_changes_of(c, repo, prefix, wanted);
		return;
	}
	if (!hr_git_reference(repo, wanted, &ref))
		return;
	if (HR_GIT_RUN(&out, repo, "diff", "--name-status", ref.p) < 0) {
		hr_buf_add(&c->why, hr_buf_str(&out), out.len);
		return;
	}
	for (p = hr_buf_str(&out); *p != '\0'; p += n + (p[n] == '\n')) {
		n = strcspn(p, "\n");
		if (!parse_line(c, prefix, p, n, hr_buf_str(&out)))
			return;
	}
	if (HR_GIT_RUN(&out, repo, "ls-files", "--others", "--exclude-standard") < 0) {
		hr_buf_add(&c->why, hr_buf_str(&out), out.len);
		return;
	}
	for (p = hr_buf_str(&out); *p != '\0'; p += n + (p[n] == '\n')) {
		n = strcspn(p, "\n");
		hr_git_changes_add(&c->list, 'A', prefix, p, n);
	}
}

/* Compares prefixes only: as in the original, "foobar.txt" is below "foo". */
static bool
begins_with(const char *path, const char *name)
{
	return strncmp(path, name, strlen(name)) == 0;
}

/* Returns true for a repository that lacks the requested commit. */
static bool
lacks(const char *repo, const char *wanted)
{
	HR_BUF(out, HR_GIT_OUTPUT_MAX);

	if (wanted == NULL)
		return false;
	return HR_GIT_RUN(&out, repo, "rev-parse", "--git-dir") == 0 &&
	       !hr_git_is_commit(repo, wanted, &out);
}

static int
list_changes(
    const char *directory, const char *wanted, bool any, struct hr_buf *json, struct hr_buf *why)
{
	HR_CLEAN(changes_done) struct changes c = {.any = any};
	HR_BUF(names, HR_GIT_OUTPUT_MAX);
	const char *name;
	char *repo;

	if (lacks(directory, wanted))
		return hr_git_fail(why, HR_GIT_NO_COMMIT);

	hr_buf_init(&c.list, HR_GIT_OUTPUT_MAX);
	hr_buf_init(&c.why, HR_GIT_OUTPUT_MAX);
	hr_git_nested(directory, &names);
	changes_of(&c, directory, NULL, wanted);
	hr_git_changes_drop(&c.list, &names, any ? hr_path_is_within : begins_with);
	for (name = names.p; c.why.len == 0 && name != NULL && name < names.p + names.len;
	     name += strlen(name) + 1) {
		repo = hr_path_join(directory, name);
		if (repo != NULL)
			changes_of(&c, repo, name, wanted);
		else
			c.list.fail = HR_E_NOMEM;
		free(repo);
	}
	if (c.list.fail != HR_OK || c.why.fail != HR_OK || names.fail != HR_OK) {
		hr_buf_reset(&c.why);
		hr_buf_adds(&c.why, "out of memory");
	}
	if (c.why.len > 0) {
		hr_buf_adds(json, "{\"error\": ");
		hr_git_put_ascii(json, c.why.p, c.why.len);
		hr_buf_addc(json, '}');
	} else {
		hr_git_changes_put(&c.list, hr_git_by_path, json);
	}
	return 0;
}

int
hr_git_changes(const char *directory, const char *wanted, struct hr_buf *json, struct hr_buf *why)
{
	return list_changes(directory, wanted, false, json, why);
}

int
hr_git_any_changes(
    const char *directory, const char *wanted, struct hr_buf *json, struct hr_buf *why)
{
	return list_changes(directory, wanted, true, json, why);
}
