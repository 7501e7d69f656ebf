/* hr_size_parse: sizes as settings have them. */
#ifndef HR_HOST_CONFIG_SIZE_H
#define HR_HOST_CONFIG_SIZE_H

/* "4G" to bytes; -1 for what is no size. "" is 0. */
long long hr_size_parse(const char *text);

#endif
