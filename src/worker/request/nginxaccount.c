/* Opens files as nginx's account. */
#include "config.h"

#include "worker/request/nginxaccount.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/account.h"
#include "base/fd.h"

bool
hr_nginx_account_reads(const struct hr_nginx_account *e, const char *path)
{
	const struct hr_account nginx = {
	    .uid = e->uid, .gid = e->gid, .groups = {e->gid}, .ngroups = 1};
	struct hr_account_own own;
	HR_CLOSE int fd = -1;

	if (!e->known)
		return false;
	if (geteuid() != 0)
		return true;
	if (hr_account_enter(&nginx, &own) < 0)
		return false;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
	hr_account_leave(&own);
	return fd >= 0;
}
