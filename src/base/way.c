#include "config.h"

#include "base/way.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process/spawn.h"

/* Forks a child that takes the account's identity and tries, since access lists and groups count
 * too. If the attempt is not possible, the account counts as admitted. */
static bool
enters(const struct hr_account *account, const char *dir)
{
	struct hr_account_own own;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(hr_account_enter(account, &own) == 0 && chdir(dir) != 0 && errno == EACCES);
	return pid < 0 || hr_spawn_end(pid, &status) != 0 || hr_exit_code(status) != 1;
}

/* Cuts off the last component. Returns false if nothing but "/" was left. */
static bool
cut(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash == NULL || slash[1] == '\0')
		return false;
	slash[slash == path ? 1 : 0] = '\0';
	return true;
}

/* Resolves the existing part of `path`, without links. */
static bool
resolve(const char *path, char ret[PATH_MAX])
{
	char name[PATH_MAX];

	if (snprintf(name, sizeof(name), "%s", path) >= (int)sizeof(name))
		return false;
	while (realpath(name, ret) == NULL) {
		if (!cut(name))
			return false;
	}
	return true;
}

bool
hr_way_barred(const char *path, const struct hr_account *account, char ret_dir[PATH_MAX])
{
	struct stat st;

	if (!resolve(path, ret_dir))
		return false;
	do {
		if (stat(ret_dir, &st) == 0 && (st.st_mode & S_IXOTH) == 0 &&
		    (account == NULL || !enters(account, ret_dir)))
			return true;
	} while (cut(ret_dir));
	return false;
}

const char *
hr_way_base(const char *const *bases, size_t n, bool others, size_t longest)
{
	char way[PATH_MAX];
	size_t i;

	for (i = 0; i + 1 < n; i++) {
		if (bases[i] != NULL && bases[i][0] == '/' && strlen(bases[i]) <= longest &&
		    resolve(bases[i], way) && access(way, W_OK | X_OK) == 0 &&
		    !(others && hr_way_barred(bases[i], NULL, way)))
			return bases[i];
	}
	return bases[i];
}
