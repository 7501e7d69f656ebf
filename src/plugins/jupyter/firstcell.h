/* hr_first_cell: prepares a Python kernel of the code interpreter. */
#ifndef HR_PLUGINS_JUPYTER_FIRSTCELL_H
#define HR_PLUGINS_JUPYTER_FIRSTCELL_H

/* First cell of a Python kernel: no colours, the forms of results that clients know, and the
 * pictures of Pillow that a cell shows or saves to a path, as in E2B's template. It leaves no name
 * behind. */
extern const char hr_first_cell[];

#endif
