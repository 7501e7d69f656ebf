/* bench_fcgi: the emptiest FastCGI answer that libfcgi can give: the floor of every request that
 * goes through nginx to a worker.
 *
 *   bench_fcgi SOCKET [PROCESSES]
 *
 * Reads the body to its end, answers {"status":"ok"}. Prints a line when it listens; ends at
 * SIGTERM. */
#include "config.h"

#include <fcgiapp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char answer[] = "Status: 200\r\nContent-Type: application/json\r\n"
			     "Content-Length: 15\r\n\r\n{\"status\":\"ok\"}";

static int
serve(int sock)
{
	char body[8192];
	FCGX_Request r;

	if (FCGX_InitRequest(&r, sock, 0) != 0)
		return 1;
	while (FCGX_Accept_r(&r) >= 0) {
		while (FCGX_GetStr(body, sizeof(body), r.in) == (int)sizeof(body))
			;
		(void)FCGX_PutStr(answer, sizeof(answer) - 1, r.out);
		FCGX_Finish_r(&r);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	long processes = argc > 2 ? strtol(argv[2], NULL, 10) : 1, i;
	pid_t parent = getpid(), pid;
	int sock;

	if (argc < 2 || FCGX_Init() != 0)
		return 2;
	(void)unlink(argv[1]);
	sock = FCGX_OpenSocket(argv[1], 4096);
	if (sock < 0)
		return 1;
	(void)puts("listening");
	(void)fflush(stdout);
	for (i = 1; i < processes; i++) {
		pid = fork();
		if (pid < 0)
			return 1;
		if (pid > 0)
			continue;
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		return getppid() == parent ? serve(sock) : 0;
	}
	return serve(sock);
}
