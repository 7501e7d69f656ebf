/* Finds the types of files in a sandbox. */
#ifndef HR_HOST_TRANSFER_WHAT_H
#define HR_HOST_TRANSFER_WHAT_H

/* HR_CP_UNKNOWN: the server cannot report the type. HR_CP_FILE: anything but a directory, including
 * a dangling link. */
enum hr_cp_what { HR_CP_NOTHING, HR_CP_FILE, HR_CP_DIRECTORY, HR_CP_UNKNOWN };

#endif
