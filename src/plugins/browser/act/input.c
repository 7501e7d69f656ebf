#include "config.h"

#include "plugins/browser/act/input.h"

#include <string.h>

#include "plugins/browser/act/keys.h"
#include "plugins/browser/program/program.h"

#define HELD_MAX 32

static const char *
page(struct br_tab *tab)
{
	return br_page(tab)->id;
}

static int64_t
bit(const char *button)
{
	return strcmp(button, "left") == 0     ? 1
	       : strcmp(button, "right") == 0  ? 2
	       : strcmp(button, "middle") == 0 ? 4
					       : 0;
}

int
br_mouse_move(
    struct browser *b, struct br_tab *tab, double x, double y, const char *held, unsigned modifiers)
{
	b->mouse_x = x;
	b->mouse_y = y;
	return br_do(b, page(tab), "Input.dispatchMouseEvent",
	    "{\"type\":\"mouseMoved\",\"x\":$f,\"y\":$f,\"button\":$s,\"buttons\":$d,"
	    "\"modifiers\":$d}",
	    x, y, held, bit(held), (int64_t)modifiers);
}

int
br_mouse_button(
    struct browser *b, struct br_tab *tab, bool down, const char *button, unsigned modifiers)
{
	return br_do(b, page(tab), "Input.dispatchMouseEvent",
	    "{\"type\":$s,\"x\":$f,\"y\":$f,\"button\":$s,\"buttons\":$d,\"clickCount\":1,"
	    "\"modifiers\":$d}",
	    down ? "mousePressed" : "mouseReleased", b->mouse_x, b->mouse_y, button,
	    down ? bit(button) : (int64_t)0, (int64_t)modifiers);
}

int
br_wheel(struct browser *b, struct br_tab *tab, double dx, double dy)
{
	return br_do(b, page(tab), "Input.dispatchMouseEvent",
	    "{\"type\":\"mouseWheel\",\"x\":$f,\"y\":$f,\"deltaX\":$f,\"deltaY\":$f,"
	    "\"modifiers\":0}",
	    b->mouse_x, b->mouse_y, dx, dy);
}

static int
send_key(struct browser *b, struct br_tab *tab, const struct br_key *k, bool down, bool again,
    unsigned modifiers)
{
	/* keys with a modifier other than Shift type nothing */
	const char *text = (modifiers & ~(unsigned)BR_SHIFT) != 0 ? "" : k->text;

	if (!down)
		return br_do(b, page(tab), "Input.dispatchKeyEvent",
		    "{\"type\":\"keyUp\",\"modifiers\":$d,\"key\":$s,\"windowsVirtualKeyCode\":$d,"
		    "\"code\":$s,\"location\":$d}",
		    (int64_t)modifiers, k->key, (int64_t)k->number, k->code, (int64_t)k->location);
	return br_do(b, page(tab), "Input.dispatchKeyEvent",
	    "{\"type\":$s,\"modifiers\":$d,\"windowsVirtualKeyCode\":$d,\"code\":$s,\"key\":$s,"
	    "\"text\":$s,\"unmodifiedText\":$s,\"location\":$d,\"isKeypad\":$r,\"autoRepeat\":$r}",
	    text[0] != '\0' ? "keyDown" : "rawKeyDown", (int64_t)modifiers, (int64_t)k->number,
	    k->code, k->key, text, text, (int64_t)k->location, k->location == 3 ? "true" : "false",
	    again ? "true" : "false");
}

int
br_keys_down(struct browser *b, struct br_tab *tab, unsigned modifiers, bool down)
{
	static const char *const names[] = {"Alt", "Control", "Meta", "Shift"};
	unsigned held = down ? 0 : modifiers;
	char target[BR_ID];
	struct br_key k;
	size_t i;

	memcpy(target, tab->target, sizeof(target));
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if ((modifiers & 1u << i) == 0)
			continue;
		held ^= 1u << i;
		tab = br_tab_find(b, target);
		if (tab == NULL)
			return 0; /* the key closed the page */
		if (!br_key_find(&k, names[i], strlen(names[i]), false) ||
		    send_key(b, tab, &k, down, false, held) != 0)
			return -1;
	}
	return 0;
}

static int
unknown(struct hr_buf *why, const char *p, size_t len)
{
	hr_buf_adds(why, "Unknown key: \"");
	hr_buf_add(why, p, len);
	hr_buf_adds(why, "\"");
	return 1;
}

/* Returns true if the last key of `held` is held already, as in "a+a". */
static bool
is_held(const struct br_key *held, size_t last)
{
	size_t i;

	for (i = 0; i < last; i++)
		if (strcmp(held[i].code, held[last].code) == 0)
			return true;
	return false;
}

int
br_press(struct browser *b, struct br_tab *tab, const char *keys, size_t len, struct hr_buf *why)
{
	struct br_key held[HELD_MAX];
	unsigned modifiers = 0;
	size_t n = 0, at = 0, end;
	char target[BR_ID];
	int r = 0;

	memcpy(target, tab->target, sizeof(target));
	for (;;) {
		end = at + 1;
		while (end < len && keys[end] != '+')
			end++;
		if (end > len)
			end = len;
		if (n == HELD_MAX ||
		    !br_key_find(&held[n], keys + at, end - at, (modifiers & BR_SHIFT) != 0)) {
			r = unknown(why, keys + at, end - at);
			break;
		}
		modifiers |= held[n].modifier;
		tab = br_tab_find(b, target);
		if (tab == NULL)
			return 0; /* the key closed the page */
		if (send_key(b, tab, &held[n], true, is_held(held, n), modifiers) != 0)
			return -1;
		n++;
		if (end >= len)
			break;
		at = end + 1;
		if (at == len) { /* the name is only "a+" */
			r = unknown(why, "", 0);
			break;
		}
	}
	while (n > 0 && (tab = br_tab_find(b, target)) != NULL) {
		modifiers &= ~held[--n].modifier;
		if (send_key(b, tab, &held[n], false, false, modifiers) != 0)
			return -1;
	}
	return r;
}
