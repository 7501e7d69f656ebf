// What the server is made of, and how each part is: plugins, pools, shells.
import {foreign, h} from "./dom.js";

const GOOD = new Set(["ready"]), RESTING = new Set(["not started", "not ours"]);

function kind(state) {
	return GOOD.has(state) ? "good" : RESTING.has(state) ? "" : state === "failed" || state === "unavailable" ? "bad" : "busy";
}

function row(name, part) {
	const more = [];

	for (const [key, value] of Object.entries(part)) {
		if (key !== "state" && value !== null && typeof value !== "object")
			more.push(key + " " + value);
	}
	return h("tr", {}, h("th", {scope: "row"}, foreign(name)),
		h("td", {class: kind(part.state)}, foreign(part.state === undefined ? "" : part.state)), h("td", {}, foreign(more.join(", "))));
}

function table(caption, head, body) {
	return h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...head.map((t) => h("th", {scope: "col"}, t)))), body);
}

export function createPlugins() {
	const plugins = h("tbody"), parts = h("tbody"), none = h("p", {class: "note"}, "No plugins."), why = h("p", {class: "bad"});
	const list = table("Plugins", ["Plugin", "State", "Details"], plugins);
	const element = h("section", {class: "plain", "aria-label": "Parts of the server"}, why, list, none,
		table("Parts of the server", ["Part", "State", "Details"], parts));

	return {
		element,
		server({ready}) {
			const components = ready.components || {}, names = Object.entries(components.plugins || {});

			why.textContent = ready.status === "ready" ? "" : "Not ready: " + foreign(ready.reason || "").textContent;
			plugins.replaceChildren(...names.map(([name, p]) => row(name, p)));
			list.hidden = names.length === 0;
			none.hidden = !list.hidden;
			parts.replaceChildren(...Object.entries(components).filter(([name]) => name !== "plugins").map(([name, p]) => row(name, p)));
		},
	};
}
