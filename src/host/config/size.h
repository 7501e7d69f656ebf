/* hr_size_parse: parses sizes in settings. */
#ifndef HR_HOST_CONFIG_SIZE_H
#define HR_HOST_CONFIG_SIZE_H

/* Converts "4G" to bytes; "" is 0. Returns -1 if the text is not a size. */
long long hr_size_parse(const char *text);

#endif
