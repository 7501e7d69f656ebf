/* Lists the latest commits and the files that a commit changed, as the agent server of OpenHands V1
 * does, with all names and subjects. */
#include "config.h"

#include "git/git.h"

#include <stdio.h>
#include <string.h>

#include "git/git_int.h"

static int
settle(const struct hr_buf *json, struct hr_buf *why)
{
	return json->fail == HR_OK ? 0 : hr_git_fail(why, "out of memory");
}

/* Appends the object of a commit, whose fields, but the last one, end with the unit separator. */
static void
put_commit(struct hr_buf *json, const char *p)
{
	static const char *const names[] = {"sha", "short_sha", "author", "timestamp", "subject"};
	size_t i, n, count = sizeof(names) / sizeof(names[0]);

	for (i = 0; i < count; i++) {
		n = i + 1 < count ? strcspn(p, "\x1f") : strlen(p);
		hr_buf_addf(json, "%s\"%s\": ", i == 0 ? "{" : ", ", names[i]);
		hr_git_put_ascii(json, p, n);
		p += n + (p[n] != '\0');
	}
	hr_buf_addc(json, '}');
}

int
hr_git_v1_commits(const char *directory, unsigned limit, struct hr_buf *json, struct hr_buf *why)
{
	HR_BUF(head, HR_GIT_OUTPUT_MAX);
	HR_BUF(out, HR_GIT_OUTPUT_MAX);
	const char *p = hr_buf_str(&out);
	char most[16];
	unsigned n = 0;

	(void)snprintf(most, sizeof(most), "%u", limit + 1);
	hr_buf_adds(json, "{\"commits\": [");
	if (hr_git_is_repository(directory) && hr_git_is_ref(directory, "", "HEAD", &head)) {
		if (HR_GIT_RUN_EXACT(&out, directory, "log", "-z", "--no-show-signature",
			"--format=%H%x1f%h%x1f%an%x1f%aI%x1f%s", "-n", most, head.p) < 0)
			return hr_git_fail(why, hr_buf_str(&out));
		for (p = hr_buf_str(&out); p < out.p + out.len && n < limit; p += strlen(p) + 1) {
			hr_buf_adds(json, n++ > 0 ? ", " : "");
			put_commit(json, p);
		}
	}
	hr_buf_addf(json, "], \"has_more\": %s}", *p != '\0' ? "true" : "false");
	return settle(json, why);
}

int
hr_git_v1_commit_changes(
    const char *directory, const char *commit, struct hr_buf *json, struct hr_buf *why)
{
	HR_CLEAN(hr_git_changes_done) struct hr_buf list = {0};
	HR_BUF(sha, HR_GIT_OUTPUT_MAX);
	HR_BUF(parent, HR_GIT_OUTPUT_MAX);
	HR_BUF(out, HR_GIT_OUTPUT_MAX);

	hr_buf_init(&list, HR_GIT_OUTPUT_MAX);
	if (hr_git_is_repository(directory)) {
		if (!hr_git_is_commit(directory, commit, &sha))
			return hr_git_fail(why, HR_GIT_NO_COMMIT);
		if (!hr_git_is_ref(directory, sha.p, "^", &parent)) {
			hr_buf_reset(&parent);
			hr_buf_adds(&parent, HR_GIT_EMPTY_TREE);
		}
		if (HR_GIT_RUN_EXACT(&out, directory, "diff", "--name-status", "-z",
			hr_buf_str(&parent), sha.p) < 0)
			return hr_git_fail(why, hr_buf_str(&out));
		hr_git_changes_take(&list, false, NULL, &out);
	}
	if (list.fail != HR_OK)
		return hr_git_fail(why, "out of memory");
	hr_git_changes_put(&list, NULL, json);
	return settle(json, why);
}
