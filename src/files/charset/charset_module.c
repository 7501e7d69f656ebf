/* Defines the struct that handrail-charset.so exports. */
#include "config.h"

#include "files/charset/detect.h"

const struct hr_detector hr_charset_module = {
    .version = HR_DETECT_VERSION,
    .ask = hr_detect_charset,
};
