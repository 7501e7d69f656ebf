/* The table that handrail-zip.so is. */
#include "config.h"

#include "files/archive/zip.h"

const struct hr_zip hr_zip_module = {
    .version = HR_ZIP_VERSION,
    .rules = hr_reach_rules,
    .pack_open = hr_pack_open,
    .pack_send = hr_pack_send,
    .pack_free = hr_pack_free,
    .is_zip = hr_unpack_is_zip,
    .unpack = hr_unpack,
};
