/* hr_owner: identifies this user of this machine among all that share a provider. */
#ifndef HR_HOST_COMMON_OWNER_H
#define HR_HOST_COMMON_OWNER_H

#define HR_OWNER 48

void hr_owner(char ret[HR_OWNER]);

#endif
