/* hr_owner: who of all that share a provider has made something: this user of this machine. */
#ifndef HR_HOST_COMMON_OWNER_H
#define HR_HOST_COMMON_OWNER_H

#define HR_OWNER 48

void hr_owner(char ret[HR_OWNER]);

#endif
