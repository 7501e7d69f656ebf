// Lists events, newest first, as the stream reports them.
import {clock, foreign, h, plain} from "../dom.js";

const MOST = 500;

export function createEvents() {
	const list = h("ul", {class: "events"}), none = h("p", {class: "note"}, "Nothing has happened yet.");

	function over(item) {
		none.hidden = true;
		list.prepend(item);
		if (list.childElementCount > MOST)
			list.lastChild.remove();
	}

	return {
		element: h("section", {class: "plain", "aria-label": "Events"}, none, list),
		happened: (e) => over(h("li", {}, clock(e.time) + " ", foreign(e.runtime_id, {class: "mono"}), " ", plain(e.what),
			e.detail && e.what !== "logs" ? ": " + plain(e.detail, 300) : "")),
		gap: () => over(h("li", {class: "busy"}, "Some events are no longer kept.")),
	};
}
