// Edits a text file in a field. The saved text has the line ends that the file had.
import {foreign, h, plain} from "./dom.js";

// Returns the file's text as a field holds it, or null if the field could not return it: other line ends than LF or CR LF.
export function editable(data) {
	let text;

	try {
		text = new TextDecoder("utf-8", {fatal: true, ignoreBOM: true}).decode(data);
	} catch {
		return null;
	}
	const crlf = text.includes("\r"), shown = crlf ? text.replaceAll("\r\n", "\n") : text;

	return shown.includes("\r") || crlf && shown.replaceAll("\n", "\r\n") !== text ? null : {text, shown, crlf};
}

// save(text): writes the whole file; left(): the editor is closed without it.
export function createEditor(name, {shown, crlf}, {save, left}) {
	const field = h("textarea", {class: "mono", spellcheck: "false", autocomplete: "off", wrap: "off", "aria-label": "Text of " + plain(name)});
	const keep = h("button", {type: "button", onclick: () => void store()}, "Save");
	const element = h("div", {class: "editor"}, h("div", {class: "bar"}, foreign(name, {class: "title mono"}), keep,
		h("button", {type: "button", onclick: left}, "Cancel")), field);

	// Saves, and takes no keys meanwhile, since the file would not get them.
	async function store() {
		keep.disabled = field.readOnly = true;
		await save(crlf ? field.value.replaceAll("\n", "\r\n") : field.value);
		keep.disabled = field.readOnly = false;
	}

	field.value = shown;
	return {
		element,
		focus: () => field.focus(),
		changed: () => field.value !== shown,
		renamed: (to) => element.querySelector(".title").replaceWith(foreign(to, {class: "title mono"})),
	};
}
