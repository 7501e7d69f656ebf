// Lists the connections that the rules of a sandbox's network refused, newest first, each target once.
import {clock, foreign, h, plain} from "../dom.js";

const MOST = 50;
const isRefusal = (e) => typeof e?.time === "number" && typeof e.port === "number" && typeof (e.name ?? e.address) === "string";

// allow: a function that takes an entry, or null.
export function networkOf({network, events}, allow) {
	const seen = new Set(), allowed = Array.isArray(network.allowOut) ? network.allowOut : [];

	function row(e) {
		const entry = `${e.name ?? e.address}:${e.port}`, target = `${e.method ?? ""} ${entry}${e.path ?? ""}`.trim();

		if (seen.has(target))
			return null;
		seen.add(target);
		return h("li", {}, clock(e.time) + " ", foreign(target, {class: "mono"}), ": ", foreign(e.rule ?? ""), " ",
			allowed.includes(entry) ? h("span", {class: "good"}, "allowed now")
				// an entry has no effect on the requests to a host with rules, nor where one refuses
				: allow && e.rule === "no rule" && e.method === undefined ? h("button", {type: "button", "data-id": "allow " + entry,
					"aria-label": "Allow " + plain(entry, 300), onclick: () => void allow(entry)}, "Allow") : null);
	}
	const rows = events.filter(isRefusal).reverse().map(row).filter((r) => r !== null).slice(0, MOST);

	return rows.length > 0 ? h("ul", {class: "network"}, ...rows) : h("p", {class: "note"}, "Nothing was refused.");
}
