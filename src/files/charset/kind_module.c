/* Defines the struct that handrail-kind.so exports. */
#include "config.h"

#include "files/charset/detect.h"

const struct hr_detector hr_kind_module = {
    .version = HR_DETECT_VERSION,
    .ask = hr_detect_kind,
};
