/* Makes and opens the places that a sandbox shares with its sidecars. */
#include "config.h"

#include "host/sidecar/sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/random.h"
#include "base/text/text.h"

#define NAME_DIGITS 12 /* hexadecimal digits of a new name */

char *
hr_sidecar_path(const struct hr_sidecars *s, const char *name)
{
	return hr_path_join(s->dir, name);
}

int
hr_sidecar_make_directory(const char *path, bool *ret_new, struct hr_err *err)
{
	struct stat st;

	*ret_new = mkdir(path, 0700) == 0;
	if (*ret_new)
		return 0;
	if (errno != EEXIST || lstat(path, &st) != 0)
		return hr_err_sys(err, errno, "create %s", path);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return hr_err_set(
		    err, HR_E_INVAL, "%s must be a directory that belongs to you", path);
	return chmod(path, 0700) == 0 ? 0 : hr_err_sys(err, errno, "change the mode of %s", path);
}

int
hr_sidecar_make_edge(const char *path, struct hr_err *err)
{
	HR_FREE char *old = NULL;
	char digits[NAME_DIGITS + 1];

	if (hr_path_remove(path, NULL) < 0) {
		if (hr_random_hex(digits, NAME_DIGITS, err) < 0 ||
		    hr_text_setf(&old, err, "%s.%s", path, digits) != 0)
			return -1;
		if (rename(path, old) != 0)
			return hr_err_sys(err, errno, "rename %s", path);
	}
	return mkdir(path, 0700) == 0 ? 0 : hr_err_sys(err, errno, "create %s", path);
}

int
hr_sidecar_open_socket(struct hr_sidecars *s, const char *edge, struct hr_err *err)
{
	HR_FREE char *path = hr_path_join(edge, HR_SIDECAR_SOCKET);
	struct stat st;

	if (path == NULL)
		return hr_err_nomem(err);
	hr_fd_close(&s->socket);
	s->socket = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (s->socket < 0)
		return hr_err_sys(err, errno, "open %s", path);
	if (fstat(s->socket, &st) != 0 || !S_ISSOCK(st.st_mode)) {
		hr_fd_close(&s->socket);
		return hr_err_set(err, HR_E_DISCONNECTED,
		    "%s is not the socket of the sandbox's server: a program in the sandbox has "
		    "replaced "
		    "it",
		    path);
	}
	(void)snprintf(s->at, sizeof(s->at), "/proc/self/fd/%d", s->socket);
	return 0;
}
