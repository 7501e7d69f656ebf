/* Declares the scripts page.js and world.js as strings, which the build generates. */
#ifndef HR_PLUGINS_BROWSER_SCRIPTS_H
#define HR_PLUGINS_BROWSER_SCRIPTS_H

extern const char br_page_js[], br_world_js[];

#endif
