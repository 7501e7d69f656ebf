/* Follows bash 5.2's find_user_command(): the first executable file or, if there is none, the first
 * entry of that name unless it is a directory. */
#include "config.h"

#include "session/python.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/plain.h"

#define NAME "python"
#define TEXT_CAP (1u << 20)

enum found { NOTHING, A_DIRECTORY, A_FILE, A_PROGRAM };

static enum found
file_type(const char *name, const char *cwd)
{
	HR_BUF(full, TEXT_CAP);
	struct stat st;
	HR_CLOSE int fd = -1;

	if (name[0] != '/') {
		hr_buf_adds(&full, cwd);
		hr_buf_addc(&full, '/');
	}
	hr_buf_adds(&full, name);
	if (full.fail == HR_OK)
		fd = hr_plain_open(AT_FDCWD, full.p, O_PATH);
	if (fd < 0 || fstat(fd, &st) < 0)
		return NOTHING;
	return S_ISDIR(st.st_mode) ? A_DIRECTORY : hr_fd_may_run(fd) ? A_PROGRAM : A_FILE;
}

/* Appends "dir/python" for an entry of PATH. */
static void
add_name(const char *entry, size_t len, const char *home, struct hr_buf *out)
{
	size_t start = out->len;

	if (len > 0 && entry[0] == '~' && (len == 1 || entry[1] == '/')) {
		hr_buf_adds(out, home);
		entry++;
		len--;
	} else if (len == 0) {
		hr_buf_addc(out, '.');
	}
	hr_buf_add(out, entry, len);
	if (out->len == start || out->p[out->len - 1] != '/')
		hr_buf_addc(out, '/');
	hr_buf_adds(out, NAME);
}

/* Removes the appended text. */
static void
cut(struct hr_buf *out, size_t start)
{
	out->len = start;
	if (out->p != NULL)
		out->p[start] = '\0';
}

void
hr_python_find(const char *path, const char *cwd, const char *home, struct hr_buf *out)
{
	const char *end, *entry, *file = NULL;
	size_t start = out->len;
	enum found found, first = NOTHING;

	if (path[0] == '\0') {
		/* search the directory itself if there is no PATH */
		add_name(cwd, strlen(cwd), "", out);
		if (out->fail == HR_OK && file_type(out->p + start, "") != A_PROGRAM)
			cut(out, start);
		return;
	}
	for (entry = path;; entry = end + 1) {
		end = strchrnul(entry, ':');
		add_name(entry, (size_t)(end - entry), home, out);
		if (out->fail != HR_OK)
			return;
		found = file_type(out->p + start, cwd);
		if (found == A_PROGRAM)
			return;
		if (first == NOTHING) {
			first = found;
			file = entry;
		}
		cut(out, start);
		if (*end == '\0')
			break;
	}
	if (first == A_FILE)
		add_name(file, (size_t)(strchrnul(file, ':') - file), home, out);
}
