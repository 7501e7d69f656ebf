/* hr_nginx_account: tests whether nginx's workers may read a file, because nginx can send only such
 * files. */
#ifndef HR_WORKER_REQUEST_NGINXACCOUNT_H
#define HR_WORKER_REQUEST_NGINXACCOUNT_H

#include <stdbool.h>
#include <sys/types.h>

struct hr_nginx_account {
	bool known; /* false: nginx sends no files */
	uid_t uid;
	gid_t gid;
};

/* Returns true if the account can open the file. It tries to, without the account's supplementary
 * groups. If we are not root, nginx's workers have our own account. */
bool hr_nginx_account_reads(const struct hr_nginx_account *e, const char *path);

#endif
