/* Defines the table that handrail-zip.so exports. */
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
    .tree_open = hr_tree_open,
    .tree_send = hr_tree_send,
    .tree_free = hr_tree_free,
    .tree_unpack = hr_tree_unpack,
};
