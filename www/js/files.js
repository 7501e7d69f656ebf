// Files: directories as a tree, text and pictures to look at, download and upload. A file is never HTML of ours: text is
// text, a picture lies in a frame without an origin, and the rest is downloaded.
import {query} from "./api.js";
import {bytes, clock, foreign, h, plain} from "./dom.js";
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

// The element in which a picture is shown: a document of its own, without an origin, script or address.
async function picture(blob, mime) {
	const frame = h("iframe", {sandbox: "", title: "Picture", referrerpolicy: "no-referrer"});

	// nothing but letters of base64 comes into it
	frame.srcdoc = "<!DOCTYPE html><img alt=\"\" src=\"data:" + mime + ";base64," + await base64(blob) + "\">";
	return frame;
}

async function text(blob, size) {
	const data = new Uint8Array(await blob.arrayBuffer());

	if (data.subarray(0, 8192).includes(0))
		return h("p", {class: "note"}, "This is no text.");
	const pre = h("pre", {tabindex: "0", "aria-label": "Text"});
	pre.textContent = new TextDecoder().decode(data).replace(HIDDEN, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
	return size > data.length ? h("div", {}, h("p", {class: "note"}, "The first " + bytes(data.length) + ":"), pre) : pre;
}

export function createFiles({api, rights}) {
	const path = h("input", {type: "text", class: "mono", "aria-label": "Directory", spellcheck: "false", autocomplete: "off"});
	const higher = h("button", {type: "button", title: "The directory above", "aria-label": "Up"}, "↑");
	const viewer = h("div", {class: "viewer", tabindex: "-1", "aria-label": "File", role: "region"});
	const note = h("p", {class: "note", role: "status"});
	const pick = h("input", {type: "file", multiple: true, "aria-label": "Files to upload", disabled: true});
	const to = foreign("", {class: "mono"});
	const tree = createTree("Files", {read, choose: look, moved, failed: (node, e) => say(e.message)});
	let dir = null, here = null, turn = 0;

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

		say(page.unnamed > 0 ? page.unnamed + " names that are no UTF-8 are left out."
			: after === null && page.entries.length === 0 ? "Nothing is in it." : "");
		return {path: page.path, next: page.next, entries: page.entries.map(entryOf)};
	}

	// where files go that are uploaded: into the directory that is chosen, or beside the file that is
	function place(node) {
		here = node;
		to.textContent = plain(node ? node.path : dir, 200);
	}

	function moved(node) {
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
			pick.disabled = rights() !== "act"; // there is a "here" from now on
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

	function show(file, size, content) {
		const name = file.slice(file.lastIndexOf("/") + 1);

		viewer.replaceChildren(h("div", {class: "bar"}, foreign(name, {class: "title mono", title: plain(file)}),
			h("span", {class: "size"}, bytes(size)), h("button", {type: "button", onclick: () => download(file)}, "Download")), content);
		viewer.focus();
	}

	// What a link leads to is asked for where it is used.
	async function look(node) {
		const file = node.path, mine = ++turn, ending = /\.([A-Za-z0-9]+)$/.exec(file);
		const mime = ending && PICTURES[ending[1].toLowerCase()];

		say("");
		try {
			const {r, size} = await get(file, mime ? PICTURE_MOST : TEXT_MOST);
			const blob = await r.blob();
			const content = blob.size === 0 ? h("p", {class: "note"}, "It is empty.") : mime && size <= PICTURE_MOST ? await picture(blob, mime) : mime ? h("p", {class: "note"}, "It is too large to be shown.")
				: await text(blob, size);
			if (mine === turn)
				show(file, size, content);
		} catch (e) {
			if (mine !== turn)
				return;
			if (e.status === 416) // a part of nothing
				show(file, 0, h("p", {class: "note"}, "It is empty."));
			else if (node.entry.link && e.message.includes("is a directory")) {
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
			const {r} = await get(file, 0);
			// of a type that no browser shows, and only ever saved
			const url = URL.createObjectURL(new Blob([await r.blob()], {type: "application/octet-stream"}));
			h("a", {href: url, download: plain(file.slice(file.lastIndexOf("/") + 1))}).click();
			setTimeout(() => URL.revokeObjectURL(url), 60000);
		} catch (e) {
			say(e.message);
		}
	}

	async function upload() {
		const into = here;

		try {
			for (const f of pick.files) {
				const form = new FormData();

				form.append("file", f, f.name);
				say("Uploading " + f.name + "…");
				await api.request("upload" + query({destination: into ? into.path : dir, unpack: "false"}), {method: "POST", body: form});
			}
			await tree.again(into);
			say(Array.from(pick.files, (f) => f.name).join(", ") + ": uploaded.");
		} catch (e) {
			say(e.message);
		}
		pick.value = "";
	}

	pick.addEventListener("change", () => void upload());
	higher.addEventListener("click", () => void go(up(dir)));
	const element = h("section", {class: "files", "aria-label": "Files"}, h("div", {class: "side"},
		h("form", {class: "line", onsubmit: (e) => { e.preventDefault(); void go(path.value || "/"); }}, higher, path,
			h("button", {type: "submit"}, "Go")),
		h("div", {class: "scroll"}, tree.element),
		h("label", {class: "upload", hidden: rights() !== "act"}, h("span", {}, "Upload to ", to), " ", pick), note), viewer);
	return {
		element,
		// where the shell was when it was looked at first
		shown(start) {
			if (dir === null)
				void go(start);
		},
	};
}
