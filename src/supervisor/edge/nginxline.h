/* hr_nginx_line: level and text of a line of nginx's log, for hr_child. */
#ifndef HR_SUPERVISOR_EDGE_NGINXLINE_H
#define HR_SUPERVISOR_EDGE_NGINXLINE_H

#include <stddef.h>

/* The level; *ret_skip is set to where the text begins. What nginx only notes is of our level
 * debug: all is well. */
int hr_nginx_line(const char *line, size_t len, size_t *ret_skip);

/* A text that says that all connections of a worker process are taken, or nearly: how many that is.
 * 0: it says something else. */
long long hr_nginx_line_full(const char *text, size_t len);

#endif
