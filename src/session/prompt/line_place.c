/* Keeps the shell in its directory when the root of its mounts is exchanged under it, as a box does
 * whose files become a layer. "/" is another mount then, and the working directory stays in the
 * former root, which nothing can change any more: the shell enters the same path again before the
 * next command. Bash does not notice: its variables stay as they are. */
#include "config.h"

#include <limits.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/prompt/line_int.h"
#include "session/prompt/mount.h"

static uint64_t root;        /* the mount of "/"; 0: unknown */
static char place[PATH_MAX]; /* the directory at the last prompt; "": unknown */

void
line_place_setup(void)
{
	root = hr_root_mount();
}

void
line_place_note(void)
{
	/* Avoid the library's getcwd(), which does more if the directory is gone. The kernel
	 * reports a directory of a former root by another text than a path. */
	if (root == 0 || syscall(SYS_getcwd, place, sizeof(place)) <= 0 || place[0] != '/')
		place[0] = '\0';
}

void
line_place_return(void)
{
	const uint64_t now = root != 0 ? hr_root_mount() : 0;
	const char *path = place;

	if (now == 0 || now == root)
		return;
	root = now;
	if (path[0] == '\0')
		path = line_bash.value("PWD"); /* the command of the last prompt ran meanwhile */
	/* a shell whose directory is gone stays in the former one */
	if (path != NULL && path[0] == '/' && chdir(path) != 0)
		place[0] = '\0';
}
