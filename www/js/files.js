// Shows files: directories as a tree, texts and pictures; downloads, uploads, edits, renames and deletes them. A file is never
// HTML of this page: text is text, a picture lies in a frame without an origin, and the rest is downloaded.
import {query} from "./api.js";
import {bytes, clock, foreign, h, plain} from "./dom.js";
import {createEditor, editable} from "./editor.js";
import {createTree} from "./tree.js";

const PAGE = 500, TEXT_MOST = 256 * 1024, PICTURE_MOST = 8 * 1024 * 1024;
const PICTURES = {png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp"};
const HIDDEN = /[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

function up(dir) {
	const at = dir.replace(/\/+$/, "").lastIndexOf("/");

	return at <= 0 ? "/" : dir.slice(0, at);
}

function base64(blob) {
	return new Promise((done, failed) => {
		const reader = new FileReader();

		reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
		reader.onerror = () => failed(reader.error);
		reader.readAsDataURL(blob);
	});
}

// Returns the element that shows a picture: a document of its own, without an origin, script or address.
async function picture(blob, mime) {
	const frame = h("iframe", {sandbox: "", title: "Picture", referrerpolicy: "no-referrer"});

	// only letters of base64 come into the frame
	frame.srcdoc = "<!DOCTYPE html><img alt=\"\" src=\"data:" + mime + ";base64," + await base64(blob) + "\">";
	return frame;
}

// A browser encodes these characters in the head of an upload, so the server would get another name.
const UNSENT = /["\r\n]/;

function nameOf(file) {
	return file.slice(file.lastIndexOf("/") + 1);
}

function folderOf(file) {
	return file.slice(0, file.lastIndexOf("/")) || "/";
}

function text(data, size) {
	if (data.subarray(0, 8192).includes(0))
		return h("p", {class: "note"}, "This is not a text file.");
	const pre = h("pre", {tabindex: "0", "aria-label": "Text"});
	pre.textContent = new TextDecoder().decode(data).replace(HIDDEN, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
	return size > data.length ? h("div", {}, h("p", {class: "note"}, "The first " + bytes(data.length) + ":"), pre) : pre;
}

// confirm: the page shows its element outside of this view, because an upload may ask while the view is hidden.
export function createFiles({api, rights, confirm}) {
	const path = h("input", {type: "text", class: "mono", "aria-label": "Directory", spellcheck: "false", autocomplete: "off"});
	const higher = h("button", {type: "button", title: "The directory above", "aria-label": "Up"}, "↑");
	const viewer = h("div", {class: "viewer", tabindex: "-1", "aria-label": "File", role: "region"},
		h("p", {class: "note"}, "Choose a file to see its content."));
	const note = h("p", {class: "note", role: "status"});
	const pick = h("input", {type: "file", multiple: true, "aria-label": "Files to upload", disabled: true});
	const to = foreign("", {class: "mono"});
	const tree = createTree("Files", {read, choose: look, moved, failed: (node, e) => say(e.message)});
	const button = (title, act) => h("button", {type: "button", disabled: true, onclick: () => { acting = act(chosen); }}, title);
	const rename = button("Rename", move), remove = button("Delete", erase), fresh = button("New file", make);
	let acting = Promise.resolve(), dir = null, here = null, turn = 0, chosen = null, editor = null, shown = null; // shown: path of the file in the viewer

	function say(text) {
		note.textContent = plain(text, 500);
	}

	function entryOf(e) {
		return {name: e.name, opens: e.type === "directory", link: e.type === "link",
			detail: e.type === "file" && e.size !== null ? bytes(e.size) : e.type === "directory" ? "" : e.type,
			title: e.modified !== null ? clock(e.modified) : null};
	}

	async function read(from, after) {
		const page = await api.get("files" + query({path: from, after, limit: PAGE}));

		say(page.unnamed > 0 ? page.unnamed + " names are not UTF-8 and are left out."
			: after === null && page.entries.length === 0 ? "The directory is empty." : "");
		return {path: page.path, next: page.next, entries: page.entries.map(entryOf)};
	}

	// Sets the target of uploads: the chosen directory, or the directory of the chosen file.
	function place(node) {
		here = node;
		to.textContent = plain(node ? node.path : dir, 200);
	}

	function choosing(node) {
		chosen = node && node.entry ? node : null;
		rename.disabled = remove.disabled = !chosen;
	}

	function moved(node) {
		choosing(node);
		place(node.entry && node.entry.opens ? node : node.parent.li ? node.parent : null);
	}

	async function go(where) {
		const mine = ++turn;

		try {
			const page = await read(where, null);
			if (mine !== turn)
				return;
			dir = path.value = page.path;
			higher.disabled = dir === "/";
			pick.disabled = fresh.disabled = rights() !== "act"; // a directory is known from now on
			choosing(null);
			place(null);
			tree.show(dir, page);
		} catch (e) {
			say(e.message);
		}
	}

	async function get(file, most) {
		const r = await api.request("download" + query({path: file}), most ? {headers: {Range: "bytes=0-" + (most - 1)}} : {});
		const range = /\/(\d+)$/.exec(r.headers.get("Content-Range") || "");

		return {r, size: range ? Number(range[1]) : Number(r.headers.get("Content-Length") || 0)};
	}

	// Shows a file. source: the text of the file, if it can be edited.
	function show(node, size, content, source) {
		const file = shown = node.path;

		editor = null;
		viewer.replaceChildren(h("div", {class: "bar"}, foreign(nameOf(file), {class: "title mono", title: plain(file)}),
			h("span", {class: "size"}, bytes(size)),
			source && rights() === "act" && !UNSENT.test(nameOf(file)) ? h("button", {type: "button", onclick: () => edit(node, source)}, "Edit") : null,
			h("button", {type: "button", onclick: () => download(file)}, "Download")), content);
		viewer.focus();
	}

	// Opens the editor. The editor has a path of its own, which only a rename changes; null: the file was deleted. While a
	// save waits, the viewer may get another file and another editor.
	function edit(node, source) {
		const mine = createEditor(nameOf(node.path), source, {left: () => void again(), save});
		const again = () => look({path: mine.path, entry: node.entry});

		async function save(now) {
			const file = mine.path, name = nameOf(file), stays = () => mine.path === file;
			let said = name + ": saved.";

			try {
				if (!await isAsBefore(file, source.text) && stays() && !await confirm.ask(
					name + " was changed by somebody else meanwhile. Overwrite it?", "Overwrite"))
					return;
				if (stays())
					await put(folderOf(file), new Blob([now]), name);
				if (stays() && editor === mine) {
					editor = null;
					await again();
				}
			} catch (e) {
				said = e.message;
			}
			if (!stays()) {
				await acting; // that note comes first
				said = name + (mine.path === null ? " was deleted before its text was saved."
					: " was renamed to " + nameOf(mine.path) + " before its text was saved: save it again.");
			}
			say(said);
		}

		turn++; // a file that is still being read does not take the editor's place
		editor = mine;
		mine.path = node.path;
		viewer.replaceChildren(mine.element);
		mine.focus();
	}

	async function isAsBefore(file, before) {
		const {r, size} = await get(file, TEXT_MOST).catch((e) => {
			if (e.status === 416) // a part of nothing
				return {r: new Response(""), size: 0};
			throw e;
		});
		const data = new Uint8Array(await r.arrayBuffer());

		return size <= data.length && editable(data)?.text === before;
	}

	// Returns whether the viewer may show another file.
	async function free() {
		return !editor || !editor.changed() || await confirm.ask("Discard the changes to the text?", "Discard");
	}

	// Uploads a file. With replace false the server refuses a name that is taken with 409.
	async function put(into, blob, name, replace = true) {
		const form = new FormData();

		if (UNSENT.test(name))
			throw new Error("A browser cannot send a name with a quotation mark or a line break: rename " + name + ".");
		form.append("file", blob, name);
		await api.request("upload" + query({destination: into, unpack: "false", replace}), {method: "POST", body: form});
	}

	// Asks the server for a change. Returns false after it has shown why the server refused.
	async function change(what, body) {
		try {
			say("");
			await api.post(what, body);
			choosing(null);
			place(null);
			return true;
		} catch (e) {
			say(e.message);
			return false;
		}
	}

	// Reads again those of these nodes that are open, and shows that something was done, and why a node could not be read.
	async function reread(did, ...nodes) {
		let why = "";

		try {
			for (const node of new Set(nodes))
				if (node === null || node?.li.isConnected)
					await tree.again(node);
		} catch (e) {
			why = " " + e.message;
		}
		say(did + why);
	}

	// Returns whether the file in the viewer is this one, or lies below it.
	const isShown = (path) => shown !== null && (shown + "/").startsWith(path + "/");

	async function move(node) {
		const to = await confirm.ask("New name or path of " + nameOf(node.path), "Rename", nameOf(node.path));

		if (to === null || to === nameOf(node.path))
			return;
		const path = to.startsWith("/") ? to : node.path.slice(0, node.path.lastIndexOf("/") + 1) + to;
		if (!await change("rename", {path: node.path, to: path}))
			return;
		if (isShown(node.path)) {
			shown = path + shown.slice(node.path.length);
			if (editor) {
				editor.path = shown;
				editor.renamed(nameOf(shown));
			}
			else
				await look({path: shown, entry: node.entry});
		}
		await reread("Renamed to " + to + ".", tree.opened(folderOf(node.path)), tree.opened(folderOf(path)));
	}

	async function erase(node) {
		const lost = editor?.changed() && isShown(node.path) ? " The changes to its text are lost." : "";

		if (await confirm.ask("Delete " + node.path + (node.entry.opens && !node.entry.link ? " and all that is in it?" : "?") + lost, "Delete") &&
			await change("remove", {path: node.path})) {
			if (isShown(node.path)) {
				viewer.replaceChildren();
				if (editor)
					editor.path = null;
				editor = shown = null;
			}
			await reread(nameOf(node.path) + ": deleted.", tree.opened(folderOf(node.path)));
		}
	}

	// Makes an empty file, which replaces nothing.
	async function make() {
		const into = here, top = into ? into.path : dir, name = await confirm.ask("Name of the new file in " + top, "Make", "");

		if (name === null)
			return;
		try {
			say("");
			if (name.includes("/"))
				throw new Error("The name of a file has no slash: choose its directory first.");
			await put(top, new Blob([]), name, false);
		} catch (e) {
			say(e.status === 409 ? top.replace(/\/$/, "") + "/" + name + " exists." : e.message);
			return;
		}
		await reread(name + ": made.", into);
	}

	// Shows a file, or opens a link to a directory: only this request finds out where a link leads.
	async function look(node) {
		const file = node.path, ending = /\.([A-Za-z0-9]+)$/.exec(file);
		const mime = ending && PICTURES[ending[1].toLowerCase()];
		const empty = () => show(node, 0, h("p", {class: "note"}, "The file is empty."), editable(new Uint8Array()));

		if (!await free())
			return;
		const mine = ++turn;
		say("");
		try {
			const {r, size} = await get(file, mime ? PICTURE_MOST : TEXT_MOST);
			const blob = await r.blob(), data = mime ? null : new Uint8Array(await blob.arrayBuffer());
			const content = mime && size <= PICTURE_MOST ? await picture(blob, mime)
				: mime ? h("p", {class: "note"}, "This picture is too large to show.") : text(data, size);
			if (mine !== turn)
				return;
			if (blob.size === 0)
				empty();
			else
				show(node, size, content, data && size <= data.length && !data.includes(0) ? editable(data) : null);
		} catch (e) {
			if (mine !== turn)
				return;
			if (e.status === 416) // a part of nothing
				empty();
			else if (node.li && node.entry.link && e.message.includes("is a directory")) {
				tree.opens(node);
				moved(node);
				await tree.open(node);
			}
			else
				say(e.message);
		}
	}

	async function download(file) {
		try {
			say("");
			const {r} = await get(file, 0);
			// browsers save this type and never show it
			const url = URL.createObjectURL(new Blob([await r.blob()], {type: "application/octet-stream"}));
			h("a", {href: url, download: plain(nameOf(file))}).click();
			setTimeout(() => URL.revokeObjectURL(url), 60000);
		} catch (e) {
			say(e.message);
		}
	}

	async function upload() {
		const into = here, top = into ? into.path : dir, done = [];
		let why = "";

		try {
			for (const f of pick.files) {
				say("Uploading " + f.name + "…");
				if (await send(top, f))
					done.push(f.name);
			}
		} catch (e) {
			why = e.message;
		}
		pick.value = "";
		if (done.length > 0)
			await reread(done.join(", ") + ": uploaded." + (why && " " + why), into);
		else
			say(why);
	}

	// Asks before it replaces a file. Returns false if nothing was sent.
	async function send(top, file) {
		try {
			await put(top, file, file.name, false);
			return true;
		} catch (e) {
			if (e.status !== 409)
				throw e;
		}
		if (!await confirm.ask(file.name + " exists in " + top + ". Replace it?", "Replace"))
			return false;
		await put(top, file, file.name);
		return true;
	}

	// The browser asks the user before a reload or a closed tab loses unsaved text.
	addEventListener("beforeunload", (event) => {
		if (element.isConnected && editor?.changed())
			event.preventDefault();
	});
	pick.addEventListener("change", () => void upload());
	higher.addEventListener("click", () => void go(up(dir)));
	const element = h("section", {class: "files", "aria-label": "Files"}, h("div", {class: "side"},
		h("form", {class: "line", onsubmit: (e) => { e.preventDefault(); void go(path.value || "/"); }}, higher, path,
			h("button", {type: "submit"}, "Go")),
		h("div", {class: "bar", hidden: rights() !== "act"}, fresh, rename, remove),
		h("div", {class: "scroll"}, tree.element),
		h("label", {class: "upload", hidden: rights() !== "act"}, h("span", {}, "Upload to ", to), " ", pick), note), viewer);
	return {
		element,
		// start: the shell's directory when the view is opened first
		shown(start) {
			if (dir === null)
				void go(start);
		},
	};
}
