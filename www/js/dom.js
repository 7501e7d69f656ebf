// Makes elements and texts. All text of a sandbox passes through this module or through a property that holds text:
// nothing is ever read as HTML.

// h("p", {class: "note", onclick: f}, "text", element): attributes, listeners, and properties of the DOM as they are.
export function h(name, attributes, ...children) {
	const e = document.createElement(name);

	for (const [key, value] of Object.entries(attributes || {})) {
		if (key.startsWith("on"))
			e.addEventListener(key.slice(2), value);
		else if (typeof value === "boolean")
			e.toggleAttribute(key, value);
		else if (value !== null && value !== undefined)
			e.setAttribute(key, value);
	}
	e.append(...children.filter((c) => c !== null && c !== undefined));
	return e;
}

// Returns foreign text on one line: control characters, and characters that reverse or hide text, become visible.
export function plain(text, most = 4000) {
	const s = String(text);

	return (s.length > most ? s.slice(0, most) + "…" : s).replace(
		// eslint-disable-next-line no-control-regex
		/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
		(c) => c === "\n" ? "⏎" : "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

// Returns an element with foreign text, whose direction does not affect the text beside it.
export function foreign(text, attributes) {
	return h("bdi", attributes, plain(text));
}

export function bytes(n) {
	const units = ["B", "kB", "MB", "GB", "TB"];
	let i = 0;

	for (; n >= 1000 && i < units.length - 1; i++)
		n /= 1000;
	return (i === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)) + " " + units[i];
}

// Returns a time in words; whole: without parts of a second.
export function duration(s, whole = false) {
	if (s < 10 && !whole)
		return s.toFixed(2) + " s";
	if (s < 60)
		return s.toFixed(0) + " s";
	if (s < 3600)
		return Math.floor(s / 60) + " min " + Math.floor(s % 60) + " s";
	return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
}

// Returns the time of day, with the date unless it is today.
export function clock(seconds) {
	const d = new Date(seconds * 1000), today = new Date();
	const time = d.toLocaleTimeString([], {hour12: false});

	return d.toDateString() === today.toDateString() ? time : d.toLocaleDateString() + " " + time;
}
