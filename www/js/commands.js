// Lists the last commands of the shell and the last notebook cells: how each ended, when, and how long it took.
import {clock, duration, foreign, h} from "./dom.js";

const SIGNALS = {129: "HUP", 130: "INT", 131: "QUIT", 134: "ABRT", 137: "KILL", 139: "SEGV", 143: "TERM"};

const CELLS = {running: ["…", "running", "running"], completed: ["✓", "good", "completed"], failed: ["✗", "bad", "failed"]};

function result(c) {
	if (c.code !== undefined)
		return Object.hasOwn(CELLS, c.state) ? CELLS[c.state] : ["?", "busy", "unknown"];
	if (c.state === "running")
		return ["…", "running", "running"];
	if (c.state === "shell ended")
		return ["†", "bad", "the shell ended"];
	const by = SIGNALS[c.exit_code];
	return [String(c.exit_code), c.exit_code === 0 ? "good" : "bad", "exit code " + c.exit_code + (by ? ", signal " + by : "")];
}

export function createCommands() {
	const body = h("tbody"), none = h("p", {class: "note"}, "No command yet.");
	const table = h("table", {hidden: true}, h("caption", {class: "unseen"}, "Commands and cells, newest first"),
		h("thead", {}, h("tr", {}, ...["Exit", "Command", "Started", "Took"].map((t) => h("th", {scope: "col"}, t)))), body);
	const element = h("section", {class: "commands", "aria-label": "Commands"}, h("h2", {}, "Commands"), none,
		h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "List of commands"}, table));
	const lists = {commands: [], cells: []}, rows = new Map();
	let timer = 0, going = [];

	function row(c) {
		const [text, kind, said] = result(c), took = h("td", {class: "number"});

		const tr = h("tr", {class: kind}, h("td", {class: "exit", title: said}, h("span", {"aria-label": said}, text)),
			h("td", {class: "mono"}, c.code !== undefined ? h("span", {class: "size"}, "cell ") : null,
				c.length === 0 && c.code === undefined ? h("i", {}, "hidden") : foreign(c.code ?? c.command)),
			h("td", {class: "number"}, clock(c.clock.started)), took);
		tr.took = took;
		tr.took.textContent = duration(c.clock.elapsed);
		return tr;
	}

	// Keeps one timer, which runs only while something runs and the page is visible.
	function tick() {
		clearTimeout(timer);
		timer = 0;
		if (going.length === 0 || document.hidden)
			return;
		for (const g of going)
			g.tr.took.textContent = duration(Math.max(0, (performance.now() - g.began) / 1000));
		timer = setTimeout(tick, 1000);
	}

	// Rows are sorted by their start, newest first.
	function insert(tr, started) {
		tr.started = started;
		body.insertBefore(tr, [...body.children].find((e) => e.started <= started) ?? null);
	}

	function show(name, list) {
		const seen = new Set(), at = performance.now();

		lists[name] = list.map((c) => ({c, began: at - 1000 * c.clock.elapsed}));
		going = [];
		for (const {c, began} of [...lists.commands, ...lists.cells]) {
			const key = (c.code === undefined ? "" : "cell ") + c.id + " " + c.clock.started, now = c.state + c.exit_code;
			const old = rows.get(key);
			seen.add(key);
			if (!old || old.now !== now) {
				const tr = row(c);
				old?.tr.remove();
				insert(tr, c.clock.started);
				rows.set(key, {tr, now});
			}
			if (c.state === "running")
				going.push({tr: rows.get(key).tr, began});
		}
		for (const [key, r] of rows) {
			if (!seen.has(key)) {
				r.tr.remove();
				rows.delete(key);
			}
		}
		table.hidden = rows.size === 0;
		none.hidden = !table.hidden;
		tick();
	}

	document.addEventListener("visibilitychange", tick);
	return {
		element,
		state: (list) => show("commands", list),
		cells: (list) => show("cells", list),
		isRunning: () => lists.cells.some(({c}) => c.state === "running"),
	};
}
