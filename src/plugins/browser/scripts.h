/* The scripts page.js and world.js as text; made from them when handrail is built. */
#ifndef HR_PLUGINS_BROWSER_SCRIPTS_H
#define HR_PLUGINS_BROWSER_SCRIPTS_H

extern const char br_page_js[], br_world_js[];

#endif
