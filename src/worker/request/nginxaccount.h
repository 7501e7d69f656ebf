/* hr_nginx_account: what the account of nginx's workers may read: only such files can be left to
 * nginx to send.
 */
#ifndef HR_WORKER_REQUEST_NGINXACCOUNT_H
#define HR_WORKER_REQUEST_NGINXACCOUNT_H

#include <stdbool.h>
#include <sys/types.h>

struct hr_nginx_account {
	bool known; /* else nothing is left to nginx */
	uid_t uid;
	gid_t gid;
};

/* Tried, not guessed: opens the file as that account, without its further groups. When we are not
 * root, nginx's workers are who we are. */
bool hr_nginx_account_reads(const struct hr_nginx_account *e, const char *path);

#endif
