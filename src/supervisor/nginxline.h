/* hr_nginx_line: level and text of a line of nginx's log, for hr_child. */
#ifndef HR_SUPERVISOR_NGINXLINE_H
#define HR_SUPERVISOR_NGINXLINE_H

#include <stddef.h>

/* A hr_child_line_fn. What nginx only notes is of our level debug: all is well. */
int hr_nginx_line(const char *line, size_t len, size_t *ret_skip);

#endif
