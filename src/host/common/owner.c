#include "config.h"

#include "host/common/owner.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"

void
hr_owner(char ret[HR_OWNER])
{
	char id[40] = "";
	HR_BUF(b, sizeof(id));

	if (hr_path_read("/etc/machine-id", &b, NULL) == 0)
		(void)snprintf(id, sizeof(id), "%.*s", (int)strcspn(hr_buf_str(&b), "\n"), b.p);
	if (*id == '\0' && gethostname(id, sizeof(id) - 1) != 0)
		(void)snprintf(id, sizeof(id), "unknown");
	/* prints only a part: the machine id is confidential */
	(void)snprintf(ret, HR_OWNER, "%.12s-%u", id, (unsigned)geteuid());
}
