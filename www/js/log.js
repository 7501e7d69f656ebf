// The server's log: its last lines, and those that come while this view is seen. That there are some is told by the
// stream; they are fetched when somebody looks.
import {query} from "./api.js";
import {foreign, h, plain} from "./dom.js";

const MOST = 2000;

function when(text) {
	const t = new Date(text);

	return Number.isNaN(t.getTime()) ? plain(text, 40) : t.toLocaleTimeString([], {hour12: false});
}

export function createLog({api}) {
	const body = h("tbody"), note = h("p", {class: "note", role: "status"}), none = h("p", {class: "note"}, "Nothing was logged yet.");
	const table = h("table", {hidden: true}, h("caption", {class: "unseen"}, "Lines of the log, newest first"),
		h("thead", {}, h("tr", {}, ...["When", "Level", "From", "Message"].map((t) => h("th", {scope: "col"}, t)))), body);
	const element = h("section", {class: "plain log", "aria-label": "Log"}, note, none, table);
	// what comes next and how many there are, each as counted since its epoch: handraild's start
	let next = 0, epoch = 0, end = 0, endEpoch = 0, seen = false, busy = false;

	function over(text) {
		body.prepend(h("tr", {}, h("td", {colspan: "4", class: "busy"}, text)));
	}

	function row(l) {
		const grave = l.level === "error" ? "bad" : l.level === "warning" ? "busy" : "";

		return h("tr", {}, h("td", {class: "number", title: plain(l.time, 40)}, when(l.time)), h("td", {class: grave}, foreign(l.level)),
			h("td", {class: "number"}, foreign(`${l.module}[${l.pid}]`)), h("td", {class: "mono"}, foreign(l.message)));
	}

	async function fetchNew() {
		if (busy || !seen || next >= end && epoch === endEpoch)
			return;
		busy = true;
		try {
			let a = await api.get("log" + query({after: next || null}));
			if (next > 0 && a.epoch !== epoch) {
				over("handraild was started anew");
				next = 0;
				a = await api.get("log");
			}
			if (next > 0 && a.first > next)
				over(a.first - next + " lines are not kept any more");
			body.prepend(...a.lines.map(row).reverse());
			next = a.next;
			epoch = a.epoch;
			if (epoch > endEpoch)
				[end, endEpoch] = [next, epoch];
			while (body.childElementCount > MOST)
				body.lastChild.remove();
			table.hidden = body.childElementCount === 0;
			none.hidden = !table.hidden;
			note.textContent = "";
			busy = false;
			void fetchNew(); // what was told of meanwhile
		} catch (e) {
			note.textContent = plain(e.message, 500);
		}
		busy = false;
	}

	return {
		element,
		// how many lines there were so far: said at once when there are more
		told(d) {
			end = d.next;
			endEpoch = d.epoch;
			void fetchNew();
		},
		shown() {
			seen = true;
			void fetchNew();
		},
		hidden: () => { seen = false; },
	};
}
