// The last commands of the shell: exit code, when, for how long.
import {clock, duration, foreign, h} from "./dom.js";

const SIGNALS = {129: "HUP", 130: "INT", 131: "QUIT", 134: "ABRT", 137: "KILL", 139: "SEGV", 143: "TERM"};

function result(c) {
	if (c.state === "running")
		return ["…", "running", "running"];
	if (c.state === "shell ended")
		return ["†", "bad", "the shell ended"];
	const by = SIGNALS[c.exit_code];
	return [String(c.exit_code), c.exit_code === 0 ? "good" : "bad", "exit code " + c.exit_code + (by ? ", signal " + by : "")];
}

export function createCommands() {
	const body = h("tbody"), none = h("p", {class: "note"}, "No command yet.");
	const table = h("table", {hidden: true}, h("caption", {class: "unseen"}, "Commands, newest first"),
		h("thead", {}, h("tr", {}, ...["Exit", "Command", "Started", "Took"].map((t) => h("th", {scope: "col"}, t)))), body);
	const element = h("section", {class: "commands", "aria-label": "Commands"}, h("h2", {}, "Commands"), none,
		h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": "List of commands"}, table));
	const rows = new Map();
	let timer = 0, going = null;

	function row(c) {
		const [text, kind, said] = result(c), took = h("td", {class: "number"});

		const tr = h("tr", {class: kind}, h("td", {class: "exit", title: said}, h("span", {"aria-label": said}, text)),
			h("td", {class: "mono"}, c.length === 0 ? h("i", {}, "hidden") : foreign(c.command)),
			h("td", {class: "number"}, clock(c.clock.started)), took);
		tr.took = took;
		tr.took.textContent = duration(c.clock.elapsed);
		return tr;
	}

	// One timer, and only while a command runs and somebody sees it.
	function tick() {
		clearTimeout(timer);
		timer = 0;
		if (going === null || document.hidden)
			return;
		going.tr.took.textContent = duration(Math.max(0, (performance.now() - going.began) / 1000));
		timer = setTimeout(tick, 1000);
	}

	document.addEventListener("visibilitychange", tick);
	return {
		element,
		state(list) {
			const seen = new Set();

			going = null;
			for (const c of list) {
				const key = c.id + " " + c.clock.started, now = c.state + c.exit_code;
				const old = rows.get(key);
				seen.add(key);
				if (!old || old.now !== now) {
					const tr = row(c);
					if (old)
						old.tr.replaceWith(tr);
					else
						body.prepend(tr);
					rows.set(key, {tr, now});
				}
				if (c.state === "running")
					going = {tr: rows.get(key).tr, began: performance.now() - 1000 * c.clock.elapsed};
			}
			for (const [key, r] of rows) {
				if (!seen.has(key)) {
					r.tr.remove();
					rows.delete(key);
				}
			}
			table.hidden = list.length === 0;
			none.hidden = !table.hidden;
			tick();
		},
	};
}
