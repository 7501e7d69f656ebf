#include "config.h"

#include "plugins/browser/observation.h"

#include <string.h>

#include "base/text/quote.h"
#include "proto/json.h"
#include "proto/python/repr.h"

#define TEXT_MAX (192u << 20)

static void
put_error(struct hr_buf *b, const struct br_observation *o)
{
	hr_buf_adds(b, "================ BEGIN error message ===============\n");
	hr_buf_adds(b, o->interactive
			   ? "The following error occurred when executing the last action:\n"
			   : "The following error occurred when trying to visit the URL:\n");
	hr_buf_add(b, hr_buf_str(o->why), o->why->len);
	hr_buf_adds(b, "\n================ END error message ===============\n");
}

/* Appends the tree. Returns 1 if there is none, with the reason in `why`. */
static int
put_tree(struct hr_buf *b, const struct br_observation *o, struct hr_buf *why)
{
	HR_BUF(tree, TEXT_MAX);
	int r = 1;

	if (o->ax == NULL)
		hr_buf_add(why, hr_buf_str(o->no_tree), o->no_tree->len);
	else
		r = br_ax_text(o->ax, o->props, &tree, why);
	if (r < 0) {
		hr_buf_adds(
		    why, tree.fail == HR_E_TOOLARGE ? "the tree is too large" : "out of memory");
		r = 1;
	}
	if (r == 0) {
		hr_buf_adds(b, "Accessibility tree of the COMPLETE webpage:\n"
			       "Note: [bid] is the unique alpha-numeric identifier at the "
			       "beginning of lines for "
			       "each element in the AXTree. Always use bid to refer to elements in "
			       "your actions.\n"
			       "============== BEGIN accessibility tree ==============\n");
		hr_buf_add(b, hr_buf_str(&tree), tree.len);
		hr_buf_adds(b, "\n============== END accessibility tree ==============\n");
	}
	return r;
}

static void
put_content(struct hr_buf *b, const struct br_observation *o)
{
	HR_BUF(why, 65536);

	hr_buf_addf(b, "[Current URL: %s]\n", o->url);
	if (!o->interactive) {
		if (o->error)
			put_error(b, o);
		hr_buf_adds(b, "============== BEGIN webpage content ==============\n");
		hr_buf_add(b, hr_buf_str(o->text), o->text->len);
		hr_buf_adds(b, "\n============== END webpage content ==============\n");
		return;
	}
	hr_buf_addf(
	    b, "[Focused element bid: %s]\n", o->focused != NULL ? hr_buf_str(o->focused) : "None");
	if (o->png_path != NULL)
		hr_buf_addf(b, "[Screenshot saved to: %s]\n", o->png_path);
	if (o->note[0] != '\0')
		hr_buf_addf(b, "[%s]\n", o->note);
	hr_buf_adds(b, "\n");
	if (o->error)
		put_error(b, o);
	else
		hr_buf_adds(b, "[Action executed successfully.]\n");
	if (put_tree(b, o, &why) != 0) {
		hr_buf_adds(b, "\n[Error encountered when processing the accessibility tree: ");
		hr_buf_add(b, hr_buf_str(&why), why.len);
		hr_buf_adds(b, "]");
	}
}

static void
put_text(struct hr_buf *b, const char *name, const char *p, size_t len)
{
	hr_buf_addf(b, ",\"%s\":", name);
	(void)hr_json_put_str(b, p, len, HR_JSON_REPLACE);
}

static void
put_picture(struct hr_buf *b, const char *name, const struct hr_buf *png)
{
	hr_buf_addf(b, ",\"%s\":", name);
	if (png == NULL) {
		hr_buf_adds(b, "null");
	} else if (png->len == 0) {
		hr_buf_adds(b, "\"\"");
	} else {
		hr_buf_adds(b, "\"data:image/png;base64,");
		hr_quote_base64(b, png->p, png->len);
		hr_buf_adds(b, "\"");
	}
}

static void
put_extras(struct hr_buf *b, const struct br_observation *o)
{
	hr_buf_adds(b, "{\"url\":");
	(void)hr_json_put_str(b, o->url, strlen(o->url), HR_JSON_REPLACE);
	hr_buf_addf(
	    b, ",\"trigger_by_action\":\"%s\"", o->interactive ? "browse_interactive" : "browse");
	put_picture(b, "screenshot", o->png);
	if (o->png_path != NULL)
		put_text(b, "screenshot_path", o->png_path, strlen(o->png_path));
	else
		hr_buf_adds(b, ",\"screenshot_path\":null");
	put_picture(b, "set_of_marks", o->marked);
	hr_buf_addf(b, ",\"error\":%s,\"goal_image_urls\":[],\"open_pages_urls\":",
	    o->error ? "true" : "false");
	if (o->open_urls == NULL || hr_json_put(b, o->open_urls) != 0)
		hr_buf_adds(b, "[]");
	hr_buf_addf(b, ",\"active_page_index\":%lld,\"dom_object\":{},\"axtree_object\":",
	    (long long)o->active);
	if (o->whole_tree && o->ax != NULL)
		br_ax_json(o->ax, b);
	else
		hr_buf_adds(b, "{}");
	hr_buf_adds(b, ",\"extra_element_properties\":");
	if (o->whole_tree && o->ax != NULL)
		br_props_json(b, o->props);
	else
		hr_buf_adds(b, "{}");
	hr_buf_adds(b, ",\"last_browser_action\":");
	if (o->no_action)
		hr_buf_adds(b, "\"\"");
	else if (hr_json_type(o->action) == HR_PY_STR)
		(void)hr_json_put_str(b, json_object_get_string(o->action),
		    (size_t)json_object_get_string_len(o->action), HR_JSON_REPLACE);
	else if (hr_json_put(b, o->action) != 0)
		hr_buf_adds(b, "null");
	put_text(b, "last_browser_action_error", hr_buf_str(o->why), o->why->len);
	if (o->focused != NULL)
		put_text(b, "focused_element_bid", hr_buf_str(o->focused), o->focused->len);
	else
		hr_buf_adds(b, ",\"focused_element_bid\":null");
	hr_buf_adds(b, ",\"filter_visible_only\":false}");
}

void
br_observation_put(struct hr_buf *ret, const struct br_observation *o)
{
	HR_BUF(text, TEXT_MAX);

	hr_buf_addf(&text, "Visited %s", o->url);
	hr_buf_adds(ret, "{\"message\":");
	(void)hr_json_put_str(ret, hr_buf_str(&text), text.len, HR_JSON_REPLACE);
	hr_buf_adds(ret, ",\"observation\":\"browse\",\"content\":");
	hr_buf_reset(&text);
	put_content(&text, o);
	(void)hr_json_put_str(ret, hr_buf_str(&text), text.len, HR_JSON_REPLACE);
	if (text.fail != HR_OK)
		ret->fail = text.fail;
	hr_buf_adds(ret, ",\"extras\":");
	put_extras(ret, o);
	hr_buf_adds(ret, "}");
}

void
br_download_put(struct hr_buf *ret, struct json_object *action, const char *path)
{
	HR_BUF(text, TEXT_MAX);

	hr_buf_adds(ret, "{\"message\":");
	hr_buf_addf(&text, "Downloaded the file at location: %s", path);
	(void)hr_json_put_str(ret, hr_buf_str(&text), text.len, HR_JSON_REPLACE);
	hr_buf_adds(ret, ",\"observation\":\"download\",\"content\":");
	hr_buf_reset(&text);
	hr_buf_adds(&text, "Execution of the previous action ");
	if (hr_json_type(action) == HR_PY_STR)
		hr_buf_adds(&text, json_object_get_string(action));
	else
		hr_pyrepr(&text, action);
	hr_buf_addf(&text,
	    " resulted in a file download. The downloaded file is saved at location: %s", path);
	(void)hr_json_put_str(ret, hr_buf_str(&text), text.len, HR_JSON_REPLACE);
	hr_buf_adds(ret, ",\"extras\":{\"file_path\":");
	(void)hr_json_put_str(ret, path, strlen(path), HR_JSON_REPLACE);
	hr_buf_adds(ret, "}}");
}
