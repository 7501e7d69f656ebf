#include "config.h"

#include "plugins/browser/act/keys.h"

#include <stdio.h>
#include <string.h>

#include "plugins/browser/program/program.h"

struct row {
	const char *code, *key, *shifted; /* shifted NULL: the same as key */
	int number, location;
};

static const struct row rows[] = {
    {"Escape", "Escape", NULL, 27, 0},
    {"F1", "F1", NULL, 112, 0},
    {"F2", "F2", NULL, 113, 0},
    {"F3", "F3", NULL, 114, 0},
    {"F4", "F4", NULL, 115, 0},
    {"F5", "F5", NULL, 116, 0},
    {"F6", "F6", NULL, 117, 0},
    {"F7", "F7", NULL, 118, 0},
    {"F8", "F8", NULL, 119, 0},
    {"F9", "F9", NULL, 120, 0},
    {"F10", "F10", NULL, 121, 0},
    {"F11", "F11", NULL, 122, 0},
    {"F12", "F12", NULL, 123, 0},
    {"Backquote", "`", "~", 192, 0},
    {"Digit1", "1", "!", 49, 0},
    {"Digit2", "2", "@", 50, 0},
    {"Digit3", "3", "#", 51, 0},
    {"Digit4", "4", "$", 52, 0},
    {"Digit5", "5", "%", 53, 0},
    {"Digit6", "6", "^", 54, 0},
    {"Digit7", "7", "&", 55, 0},
    {"Digit8", "8", "*", 56, 0},
    {"Digit9", "9", "(", 57, 0},
    {"Digit0", "0", ")", 48, 0},
    {"Minus", "-", "_", 189, 0},
    {"Equal", "=", "+", 187, 0},
    {"Backslash", "\\", "|", 220, 0},
    {"Backspace", "Backspace", NULL, 8, 0},
    {"Tab", "Tab", NULL, 9, 0},
    {"BracketLeft", "[", "{", 219, 0},
    {"BracketRight", "]", "}", 221, 0},
    {"CapsLock", "CapsLock", NULL, 20, 0},
    {"Semicolon", ";", ":", 186, 0},
    {"Quote", "'", "\"", 222, 0},
    {"Enter", "Enter", NULL, 13, 0},
    {"ShiftLeft", "Shift", NULL, 16, 1},
    {"Comma", ",", "<", 188, 0},
    {"Period", ".", ">", 190, 0},
    {"Slash", "/", "?", 191, 0},
    {"ShiftRight", "Shift", NULL, 16, 2},
    {"ControlLeft", "Control", NULL, 17, 1},
    {"MetaLeft", "Meta", NULL, 91, 1},
    {"AltLeft", "Alt", NULL, 18, 1},
    {"Space", " ", NULL, 32, 0},
    {"AltRight", "Alt", NULL, 18, 2},
    {"AltGraph", "AltGraph", NULL, 225, 0},
    {"MetaRight", "Meta", NULL, 92, 2},
    {"ContextMenu", "ContextMenu", NULL, 93, 0},
    {"ControlRight", "Control", NULL, 17, 2},
    {"PrintScreen", "PrintScreen", NULL, 44, 0},
    {"ScrollLock", "ScrollLock", NULL, 145, 0},
    {"Pause", "Pause", NULL, 19, 0},
    {"PageUp", "PageUp", NULL, 33, 0},
    {"PageDown", "PageDown", NULL, 34, 0},
    {"Insert", "Insert", NULL, 45, 0},
    {"Delete", "Delete", NULL, 46, 0},
    {"Home", "Home", NULL, 36, 0},
    {"End", "End", NULL, 35, 0},
    {"ArrowLeft", "ArrowLeft", NULL, 37, 0},
    {"ArrowUp", "ArrowUp", NULL, 38, 0},
    {"ArrowRight", "ArrowRight", NULL, 39, 0},
    {"ArrowDown", "ArrowDown", NULL, 40, 0},
    {"NumLock", "NumLock", NULL, 144, 0},
    {"NumpadDivide", "/", NULL, 111, 3},
    {"NumpadMultiply", "*", NULL, 106, 3},
    {"NumpadSubtract", "-", NULL, 109, 3},
    {"Numpad7", "Home", "7", 36, 3},
    {"Numpad8", "ArrowUp", "8", 38, 3},
    {"Numpad9", "PageUp", "9", 33, 3},
    {"Numpad4", "ArrowLeft", "4", 37, 3},
    {"Numpad5", "Clear", "5", 12, 3},
    {"Numpad6", "ArrowRight", "6", 39, 3},
    {"NumpadAdd", "+", NULL, 107, 3},
    {"Numpad1", "End", "1", 35, 3},
    {"Numpad2", "ArrowDown", "2", 40, 3},
    {"Numpad3", "PageDown", "3", 34, 3},
    {"Numpad0", "Insert", "0", 45, 3},
    {"NumpadDecimal", "\x7f", ".", 46, 3},
    {"NumpadEnter", "Enter", NULL, 13, 3},
};

static void
fill(struct br_key *ret, const struct row *r, const char *key)
{
	static const struct {
		const char *key;
		unsigned modifier;
	} held[] = {
	    {"Alt", BR_ALT}, {"Control", BR_CONTROL}, {"Meta", BR_META}, {"Shift", BR_SHIFT}};
	size_t i;

	memset(ret, 0, sizeof(*ret));
	ret->code = r->code;
	ret->number = r->number;
	ret->location = r->location;
	(void)snprintf(ret->key, sizeof(ret->key), "%s", key);
	if (strlen(key) == 1)
		(void)snprintf(ret->text, sizeof(ret->text), "%s", key);
	else if (strcmp(key, "Enter") == 0)
		(void)snprintf(ret->text, sizeof(ret->text), "\r");
	for (i = 0; i < sizeof(held) / sizeof(held[0]); i++)
		if (strcmp(held[i].key, key) == 0)
			ret->modifier = held[i].modifier;
}

static bool
is(const char *text, const char *name, size_t len)
{
	return text != NULL && strlen(text) == len && memcmp(text, name, len) == 0;
}

static bool
letter(struct br_key *ret, char c, bool shifted)
{
	static const char codes[] = "KeyA\0KeyB\0KeyC\0KeyD\0KeyE\0KeyF\0KeyG\0KeyH\0KeyI\0KeyJ\0"
				    "KeyK\0KeyL\0KeyM\0KeyN\0KeyO\0KeyP\0KeyQ\0KeyR\0KeyS\0KeyT\0"
				    "KeyU\0KeyV\0KeyW\0KeyX\0KeyY\0KeyZ";
	int i = (c | 0x20) - 'a';
	const struct row r = {codes + (size_t)i * 5, "", NULL, 'A' + i, 0};
	const char key[2] = {shifted ? (char)('A' + i) : (char)('a' + i), '\0'};

	fill(ret, &r, key);
	return true;
}

/* Returns true if `name` is a name of this row's key; *ret_key is the key's value. A key that
 * exists twice, such as Shift, has its name on the left; the right one and the keypad have only
 * codes. */
static bool
fits(const struct row *r, const char *name, size_t len, bool shifted, const char **ret_key)
{
	bool once = r->location < 2;

	*ret_key = shifted && r->shifted != NULL ? r->shifted : r->key;
	if (is(r->code, name, len))
		return true;
	if (once && is(r->key, name, len))
		return len == 1 || r->location == 1;
	*ret_key = r->shifted;
	return once && len == 1 && is(r->shifted, name, len);
}

/* Maps aliases to a key's usual name. */
static void
usual_name(const char **name, size_t *len)
{
	static const char *const other[][2] = {
	    {"ControlOrMeta", "Control"}, {"\n", "Enter"}, {"\r", "Enter"}};
	size_t i;

	for (i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		if (is(other[i][0], *name, *len)) {
			*name = other[i][1];
			*len = strlen(*name);
			return;
		}
	}
}

bool
br_key_find(struct br_key *ret, const char *name, size_t len, bool shifted)
{
	const char *key;
	size_t i;

	if (len == 4 && memcmp(name, "Key", 3) == 0 && name[3] >= 'A' && name[3] <= 'Z')
		return letter(ret, name[3], shifted);
	if (len == 1 && (name[0] | 0x20) >= 'a' && (name[0] | 0x20) <= 'z')
		return letter(ret, name[0], shifted || name[0] < 'a');
	usual_name(&name, &len);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (fits(&rows[i], name, len, shifted, &key)) {
			fill(ret, &rows[i], key);
			return true;
		}
	}
	return false;
}
