/* Tells files, directories and links of a sandbox apart. */
#ifndef HR_HOST_TRANSFER_WHAT_H
#define HR_HOST_TRANSFER_WHAT_H

/* HR_CP_UNKNOWN: the server cannot say. A link that leads nowhere, and whatever else is no
 * directory, is HR_CP_FILE. */
enum hr_cp_what { HR_CP_NOTHING, HR_CP_FILE, HR_CP_DIRECTORY, HR_CP_UNKNOWN };

#endif
