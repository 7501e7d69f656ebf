// Files: a directory at a time, text and pictures to look at, download and upload. A file is never HTML of ours: text is
// text, a picture lies in a frame without an origin, and the rest is downloaded.
import {query} from "./api.js";
import {bytes, clock, foreign, h, plain} from "./dom.js";

const PAGE = 500, TEXT_MOST = 256 * 1024, PICTURE_MOST = 8 * 1024 * 1024;
const PICTURES = {png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp"};
const HIDDEN = /[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

function join(dir, name) {
	return (dir.endsWith("/") ? dir : dir + "/") + name;
}

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
	const list = h("ul", {class: "names"}), viewer = h("div", {class: "viewer", tabindex: "-1", "aria-label": "File", role: "region"});
	const more = h("button", {type: "button", hidden: true}, "More"), note = h("p", {class: "note", role: "status"});
	const pick = h("input", {type: "file", multiple: true, "aria-label": "Files to upload", disabled: true});
	let dir = null, next = null, turn = 0;

	function say(text) {
		note.textContent = plain(text, 500);
	}

	function entry(name, size, act) {
		return h("li", {}, h("button", {type: "button", class: "mono" + (name.endsWith("/") ? " dir" : ""), onclick: act}, foreign(name)),
			h("span", {class: "size"}, size));
	}

	function shown(e) {
		const size = e.type === "file" && e.size !== null ? bytes(e.size) : e.type === "directory" ? "" : e.type;
		const li = entry(e.name, size, () => choose(e));

		if (e.modified !== null)
			li.title = clock(e.modified);
		return li;
	}

	// What a link leads to is asked for where it is used.
	function choose(e) {
		if (e.type === "directory")
			return open(join(dir, e.name.slice(0, -1)), true);
		return look(join(dir, e.name), e.type === "link");
	}

	async function read(to, after) {
		return api.get("files" + query({path: to, after, limit: PAGE}));
	}

	function take(page) {
		next = page.next;
		more.hidden = next === null;
		list.append(...page.entries.map(shown));
		say(page.unnamed > 0 ? page.unnamed + " names that are no UTF-8 are left out." : list.childElementCount === 0 ? "Nothing is in it." : "");
	}

	async function open(to, focus) {
		const mine = ++turn;

		try {
			const page = await read(to, null);
			if (mine !== turn)
				return;
			dir = path.value = page.path;
			pick.disabled = rights() !== "act"; // there is a "here" from now on
			list.replaceChildren();
			take(page);
			if (dir !== "/")
				list.prepend(entry("../", "", () => open(up(dir), true)));
			if (focus && list.firstChild)
				list.firstChild.firstChild.focus();
		} catch (e) {
			say(e.message);
		}
	}

	more.addEventListener("click", async () => {
		const mine = ++turn;

		try {
			const page = await read(dir, next);
			if (mine === turn)
				take(page);
		} catch (e) {
			say(e.message);
		}
	});

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

	async function look(file, link) {
		const mine = ++turn, ending = /\.([A-Za-z0-9]+)$/.exec(file);
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
			else if (link && e.message.includes("is a directory"))
				await open(file, true);
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
		const to = dir;

		try {
			for (const f of pick.files) {
				const form = new FormData();

				form.append("file", f, f.name);
				say("Uploading " + f.name + "…");
				await api.request("upload" + query({destination: to, unpack: "false"}), {method: "POST", body: form});
			}
			await open(to);
			say(Array.from(pick.files, (f) => f.name).join(", ") + ": uploaded.");
		} catch (e) {
			say(e.message);
		}
		pick.value = "";
	}

	pick.addEventListener("change", () => void upload());
	const element = h("section", {class: "files", "aria-label": "Files"}, h("div", {class: "side"},
		h("form", {class: "line", onsubmit: (e) => { e.preventDefault(); void open(path.value || "/"); }}, path, h("button", {type: "submit"}, "Go")),
		h("div", {class: "scroll"}, list, more), h("label", {class: "upload", hidden: rights() !== "act"}, "Upload here ", pick), note), viewer);
	return {
		element,
		// where the shell was when it was looked at first
		shown(start) {
			if (dir === null)
				void open(start);
		},
	};
}
