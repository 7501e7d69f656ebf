/* hr_nginx_line: finds level and text of a line of nginx's log, for hr_child. */
#ifndef HR_SUPERVISOR_EDGE_NGINXLINE_H
#define HR_SUPERVISOR_EDGE_NGINXLINE_H

#include <stddef.h>

/* Returns the level; *ret_skip is the start of the text. nginx's notices are of level debug here:
 * they report no problem. */
int hr_nginx_line(const char *line, size_t len, size_t *ret_skip);

/* Returns the number of connections if the text reports that a worker process has used all, or
 * nearly all, of them; otherwise 0. */
long long hr_nginx_line_full(const char *text, size_t len);

#endif
