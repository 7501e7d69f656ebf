#include "config.h"

#include "e2b/path.h"

#include <string.h>

void
hr_e2b_path_clean(struct hr_buf *ret, const char *path)
{
	size_t start = ret->len, len;
	const char *slash;

	for (; *path != '\0'; path += len) {
		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (len == 0 || (len == 1 && path[0] == '.'))
			continue;
		if (len != 2 || memcmp(path, "..", 2) != 0) {
			hr_buf_addc(ret, '/');
			hr_buf_add(ret, path, len);
		} else if (ret->len > start && ret->fail == HR_OK) {
			slash = memrchr(ret->p + start, '/', ret->len - start);
			ret->len = (size_t)(slash - ret->p);
			ret->p[ret->len] = '\0';
		}
	}
	if (ret->len == start)
		hr_buf_addc(ret, '/');
}

int
hr_e2b_path(struct hr_buf *ret, struct hr_span path, const struct hr_e2b_who *who,
    const char *directory, struct hr_buf *why)
{
	HR_BUF(whole, HR_E2B_PATH_MAX);

	if (path.len == 0 && directory != NULL)
		path = hr_span_of(directory);
	if (path.len > 0 && memchr(path.p, '\0', path.len) != NULL) {
		hr_buf_adds(why, "the path contains a null character");
		return -1;
	}
	if (path.len > 1 && path.p[0] == '~' && path.p[1] != '/' && path.p[1] != '\\') {
		/* the original names no path here */
		hr_buf_addf(why,
		    "failed to expand path '' for user '%s': cannot expand user-specific home dir",
		    who->name);
		return -1;
	}
	if (path.len == 0 || path.p[0] != '/') {
		hr_buf_adds(&whole, who->home);
		hr_buf_addc(&whole, '/');
		if (path.len > 0 && path.p[0] == '~')
			path = (struct hr_span){path.p + 1, path.len - 1};
	}
	hr_buf_add(&whole, path.p, path.len);
	if (whole.fail != HR_OK) {
		hr_buf_adds(why, "the path is too long");
		return -1;
	}
	hr_e2b_path_clean(ret, hr_buf_str(&whole));
	return 0;
}
