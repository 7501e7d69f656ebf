/* hr_size_parse: sizes in settings. */
#ifndef HR_HOST_CONFIG_SIZE_H
#define HR_HOST_CONFIG_SIZE_H

/* Converts "4G" to bytes; -1 if it is no size. "" is 0. */
long long hr_size_parse(const char *text);

#endif
