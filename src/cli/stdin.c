/* Examines standard input. A sandbox's shell has a terminal as its standard input. A program that
 * reads from there would wait for ever, and block the shell for all clients. */
#include "config.h"

#include "cli/stdin.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

bool
cli_stdin_has_data(void)
{
	struct pollfd p = {.fd = 0, .events = POLLIN};
	struct stat st;
	int n = 0;

	if (isatty(0) == 1 || fstat(0, &st) != 0)
		return false;
	if (S_ISREG(st.st_mode))
		return lseek(0, 0, SEEK_CUR) < st.st_size;
	/* such input is readable at its end, but has no data */
	if ((!S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode)) || poll(&p, 1, 0) <= 0)
		return false;
	return ioctl(0, FIONREAD, &n) == 0 && n > 0;
}

int
cli_stdin_refuse(void)
{
	return cli_usage("standard input is not passed to commands of this sandbox; copy it with "
			 "\"handrail write FILE\" and let the command read FILE, or give this "
			 "command </dev/null");
}
