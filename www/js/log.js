// Shows the server's log: its last lines, and new ones while this view is seen. The stream reports that there are some; the
// view fetches them while it is open.
import {query} from "./api.js";
import {foreign, h, plain} from "./dom.js";

const MOST = 2000;
const LEVELS = ["error", "warning", "notice"]; // gravest first; all others are below them

function when(text) {
	const t = new Date(text);

	return Number.isNaN(t.getTime()) ? plain(text, 40) : t.toLocaleTimeString([], {hour12: false});
}

export function createLog({api}) {
	const body = h("tbody"), note = h("p", {class: "note", role: "status"}), none = h("p", {class: "note"}, "Nothing was logged yet.");
	const table = h("table", {hidden: true}, h("caption", {class: "unseen"}, "Lines of the log, newest first"),
		h("thead", {}, h("tr", {}, ...["When", "Level", "From", "Message"].map((t) => h("th", {scope: "col"}, t)))), body);
	const level = h("select", {id: "log-level", onchange: filter},
		...["Errors", "Warnings and worse", "Notices and worse", "All levels"].map((t, i) => h("option", {value: i}, t)));
	level.value = LEVELS.length;
	const words = h("input", {type: "search", id: "log-words", placeholder: "Search", "aria-label": "Search the log", spellcheck: "false",
		autocomplete: "off", oninput: filter});
	const count = h("span", {class: "size", role: "status"});
	const element = h("section", {class: "plain log", "aria-label": "Log"},
		h("div", {class: "bar"}, h("label", {for: "log-level", class: "unseen"}, "Level"), level, words, count), note, none, table);
	// next: number of the next line to fetch; end: number of lines; each counts from its epoch, handraild's start
	let next = 0, epoch = 0, end = 0, endEpoch = 0, seen = false, busy = false;

	// Shows the lines of the level that hold the words in any letter case. Lines about the log itself have no level.
	function filter() {
		const most = Number(level.value), wanted = words.value.toLowerCase();
		let shown = 0;

		for (const tr of body.children) {
			tr.hidden = tr.dataset.level !== undefined &&
				(Number(tr.dataset.level) > most || !tr.textContent.toLowerCase().includes(wanted));
			shown += tr.hidden ? 0 : 1;
		}
		count.textContent = shown === body.childElementCount ? "" : `${shown} of ${body.childElementCount} lines`;
	}

	function over(text) {
		body.prepend(h("tr", {}, h("td", {colspan: "4", class: "busy"}, text)));
	}

	function row(l) {
		const grave = l.level === "error" ? "bad" : l.level === "warning" ? "busy" : "";

		const rank = LEVELS.indexOf(l.level);

		return h("tr", {"data-level": rank < 0 ? LEVELS.length : rank}, h("td", {class: "number", title: plain(l.time, 40)}, when(l.time)), h("td", {class: grave}, foreign(l.level)),
			h("td", {class: "number"}, foreign(`${l.module}[${l.pid}]`)), h("td", {class: "mono"}, foreign(l.message)));
	}

	async function fetchNew() {
		if (busy || !seen || next >= end && epoch === endEpoch)
			return;
		busy = true;
		try {
			let a = await api.get("log" + query({after: next || null}));
			if (next > 0 && a.epoch !== epoch) {
				over("handraild was restarted");
				next = 0;
				a = await api.get("log");
			}
			if (next > 0 && a.first > next)
				over(a.first - next + " lines are no longer kept");
			body.prepend(...a.lines.map(row).reverse());
			next = a.next;
			epoch = a.epoch;
			if (epoch > endEpoch)
				[end, endEpoch] = [next, epoch];
			while (body.childElementCount > MOST)
				body.lastChild.remove();
			filter();
			table.hidden = body.childElementCount === 0;
			none.hidden = !table.hidden;
			note.textContent = "";
		} catch (e) {
			note.textContent = plain(e.message, 500);
			return;
		} finally {
			busy = false;
		}
		void fetchNew(); // lines may have come meanwhile
	}

	return {
		element,
		// next: how many lines there are; the server reports it at once when there are more
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
