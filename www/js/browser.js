// Shows the pages of the agent's browser from a stream of its own, which is open while this view is seen.
import {foreign, h, plain} from "./dom.js";
import {createStream} from "./stream.js";

const KINDS = new Set(["image/jpeg", "image/png", "image/webp"]);

export function createBrowser({api}) {
	const address = foreign("", {class: "mono address"}), note = h("p", {class: "note", role: "status"});
	const picture = h("img", {alt: "Picture of the agent's browser", hidden: true}), tabs = h("ol", {class: "pages", "aria-label": "Tabs"});
	const element = h("section", {class: "plain browser", "aria-label": "The agent's browser"}, address, note, picture, tabs);
	let stream = null;

	function show(b) {
		address.textContent = b.url ? plain(b.url) : "";
		note.textContent = !b.open ? "No browser is open; it starts with the first action that needs it."
			: b.crashed ? "The page has crashed." : b.busy ? "An action is running…" : "";
		tabs.replaceChildren(...b.tabs.map((t, i) => h("li", {"aria-current": i === b.active ? "true" : null}, foreign(t, {class: "mono"}))));
		tabs.hidden = b.tabs.length < 2;
		if (b.picture === null || !b.open) {
			picture.hidden = true;
			picture.removeAttribute("src");
		} else if (b.picture && KINDS.has(b.picture.mime)) {
			picture.src = "data:" + b.picture.mime + ";base64," + b.picture.base64;
			picture.hidden = false;
		}
	}

	return {
		element,
		shown() {
			stream = createStream(api, () => "browser/", (event, data) => show(data), (state, why) => {
				note.textContent = state === "live" ? "" : plain(why || "", 500);
			});
			stream.start();
		},
		hidden() {
			if (stream)
				stream.close();
			stream = null;
		},
	};
}
