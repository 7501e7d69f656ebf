// Lists the sandboxes of the key that signed in, or of all keys for an operator, and shows details of one of them.
import {bytes, clock, duration, foreign, h, plain} from "../dom.js";
import {query} from "../api.js";
import {createConfirm} from "../confirm.js";
import {networkOf} from "./network.js";
import {createTable, numbers} from "./table.js";

const GRAVE = {running: "good", warm: "good", died: "bad", starting: "busy", resuming: "busy", pausing: "busy", stopping: "busy"};
const ACTIONS = [["pause", "Pause", ["running"]], ["resume", "Resume", ["paused"]],
	["stop", "Stop", ["starting", "running", "pausing", "paused", "resuming"]]];
const LOSES = {stop: " Its processes end and its files are deleted."};
const MEASURED = 100, MEASURE_MS = 5000; // maximum sandboxes that are asked for their use, and the shortest time between
const TICK_MS = 1000, ASK_TICKS = 15; // the list is asked for each 15 s: the use of a sandbox is no event

// Returns an address that the service made, if it is one of http or https.
function link(url) {
	let to;

	try {
		to = new URL(url.replace(/\/?$/, "/handrail/"));
	} catch {
		return null;
	}
	return to.protocol === "http:" || to.protocol === "https:"
		? h("a", {href: to.href, target: "_blank", rel: "noopener noreferrer"}, "Its page") : null;
}

export function createSandboxes({api, admin, acts, operates, key, pages, pauses}, say, listed) {
	const columns = ["Session", ...admin ? [{title: "Key", says: "The key that started it"}] : [], "State", "Image", numbers("Age"),
		numbers("Idle", "Time since its last request"), numbers("CPU", "Percent of one processor since the list was read before"),
		numbers("Memory", "Memory of all its processes"), numbers("Factor", "Its share of memory and processor, as a multiple of the usual one"), ""];
	const table = createTable("Sandboxes", columns, "There is no sandbox.");
	const drained = h("p", {class: "note busy", role: "status"});
	const drain = h("button", {type: "button", hidden: !operates, title: "Starts no new sandbox; running ones continue",
		onclick: () => void toggleDrain()}, "Drain");
	const session = h("input", {type: "text", id: "session", required: true, spellcheck: "false", autocomplete: "off",
		pattern: "[A-Za-z0-9_.:\\-]+"});
	const image = h("input", {type: "text", id: "image", spellcheck: "false", autocomplete: "off"});
	const form = h("form", {class: "line", hidden: !acts, onsubmit: (e) => { e.preventDefault(); void start(); }},
		h("label", {for: "session"}, "Session"), session, h("label", {for: "image"}, "Image"), image,
		h("button", {type: "submit"}, "Start"));
	const details = h("section", {class: "details", "aria-label": "Sandbox", tabindex: "-1", hidden: true});
	const confirm = createConfirm();
	const keys = new Map(); // names, by number
	const names = new Map(); // the sessions of the list, by sandbox
	const uses = new Map(); // the running sandboxes: the last use, and the cells that show it
	let measuring = false;
	let isDrained = false, seen = null, timer = 0, ticks = 0;

	async function act(what, title, id, name) {
		if (!await confirm.ask(`${title} ${name}?` + (LOSES[what] || ""), title))
			return;
		try {
			say(null);
			await api.post(admin ? "sandboxes/" + what : "api/" + what, {runtime_id: id});
			await refresh();
		} catch (e) {
			say(e);
		}
	}

	// Opens the sandbox's page in a window that has no access to this one.
	async function openPage(id, view) {
		try {
			say(null);
			const page = await api.post("open", {runtime_id: id});
			window.open(page.url + "#key=" + page.key + (view ? "&view=" + view : ""), "_blank", "noopener,noreferrer");
		} catch (e) {
			say(e);
		}
	}

	async function start() {
		try {
			say(null);
			await api.post("api/start", Object.assign({session_id: session.value}, image.value ? {image: image.value} : {}));
			form.reset();
			await refresh();
		} catch (e) {
			say(e);
		}
	}

	async function toggleDrain() {
		if (!await confirm.ask(isDrained ? "Let new sandboxes start again?"
			: "Start no new sandbox from now on? Running ones continue.", isDrained ? "End the drain" : "Drain"))
			return;
		try {
			say(null);
			await api.post("drain", {off: isDrained});
			await refresh();
		} catch (e) {
			say(e);
		}
	}

	// Returns a cell whose time counts up.
	function since(seconds) {
		const cell = h("td", {class: "number"});

		cell.since = seconds;
		return age(cell);
	}

	function age(cell) {
		if (cell.since > 0)
			cell.textContent = duration(Math.max(1, Math.floor(Date.now() / 1000 - cell.since)), true);
		return cell;
	}

	function tick() {
		if (document.hidden)
			return;
		for (const cell of table.element.querySelectorAll("td.number"))
			age(cell);
		if (++ticks % ASK_TICKS === 0)
			void refresh().then(() => listed(null), listed);
	}

	function showUse(u) {
		u.cells[0].textContent = u.percent === undefined ? "" : u.percent.toFixed(1) + " %";
		u.cells[1].textContent = u.last ? bytes(u.last.memory_bytes) : "";
	}

	// Returns the two cells of a sandbox. They stay empty, and cause no request, unless the sandbox runs.
	function useOf(s) {
		const cells = [h("td", {class: "number"}), h("td", {class: "number"})];

		if (s.state !== "running") {
			uses.delete(s.runtime_id);
		} else {
			uses.set(s.runtime_id, Object.assign({}, uses.get(s.runtime_id), {cells}));
			showUse(uses.get(s.runtime_id));
		}
		return cells;
	}

	// Asks one sandbox after another, so that slow ones are no load.
	async function measure(ids) {
		if (measuring)
			return;
		measuring = true;
		for (const id of ids) {
			const at = uses.get(id)?.at;
			if (document.hidden || !uses.has(id) || at !== undefined && performance.now() - at < MEASURE_MS)
				continue;
			const now = await api.get("usage" + query({runtime_id: id})).catch(() => null);
			const u = uses.get(id);
			if (!u)
				continue;
			const passed = now && u.last ? now.time - u.last.time : 0;
			u.percent = passed > 0 ? Math.max(0, now.cpu_seconds - u.last.cpu_seconds) / passed * 100 : undefined;
			u.last = now;
			u.at = performance.now();
			showUse(u);
		}
		measuring = false;
	}

	function row(s) {
		const may = admin ? operates : acts, name = s.session_id || s.runtime_id;
		const buttons = ACTIONS.filter(([what, , from]) => may && from.includes(s.state) && (pauses || what !== "pause")).map(([what, title]) =>
			h("button", {type: "button", "data-id": what + s.runtime_id, "aria-label": title + " " + plain(name, 80),
				onclick: () => void act(what, title, s.runtime_id, name)}, title));

		if (acts && pages && s.state === "running" && (!admin || s.key === key))
			buttons.unshift(h("button", {type: "button", "data-id": "page" + s.runtime_id,
				"aria-label": "Page of " + plain(name, 80), onclick: () => void openPage(s.runtime_id)}, "Page"),
			h("button", {type: "button", "data-id": "usage" + s.runtime_id, title: "Opens the plots of its processor, memory and disk",
				"aria-label": "Usage of " + plain(name, 80), onclick: () => void openPage(s.runtime_id, "metrics")}, "Usage"));
		return h("tr", {}, h("td", {}, h("button", {type: "button", class: "link mono", "data-id": "look" + s.runtime_id,
			onclick: () => void look(s, true)}, foreign(name)), origin(s)),
			admin ? h("td", {title: "Key " + s.key}, foreign(keys.get(s.key) ?? String(s.key))) : null,
			h("td", {class: GRAVE[s.state] || "", title: plain(s.reason || "", 500)}, plain(s.state)),
			h("td", {class: "mono"}, foreign(s.image || "")), since(s.created), since(s.state === "running" ? s.active : 0),
			...useOf(s),
			h("td", {class: "number"}, String(s.resource_factor)), h("td", {class: "actions"}, ...buttons));
	}

	// Returns a mark for a branch or a sandbox with the files of a snapshot; null for others.
	function origin(s) {
		const of = s.fork_of && (names.get(s.fork_of) || s.fork_of);

		return of || s.snapshot ? h("div", {class: "note"}, of ? "branch of " : "from the snapshot ", foreign(of || s.snapshot)) : null;
	}

	function part(title, element) {
		return [h("h3", {}, title), element];
	}

	// Returns the rules of the sandbox's network with the connections that they refused; null if there are no rules.
	async function askNetwork(s) {
		if (s.state !== "running" && s.state !== "paused")
			return null;
		const {network} = await api.get("network" + query({runtime_id: s.runtime_id}));

		return network && Object.assign({network}, await api.get("network/log" + query({runtime_id: s.runtime_id})));
	}

	async function allow(s, entry) {
		try {
			say(null);
			await api.post("network", {runtime_id: s.runtime_id, allow: [entry]});
			await look(s, false);
		} catch (e) {
			say(e);
		}
	}

	// Shows a sandbox: its page, its log if the owner of its key asks, its network, and its events.
	async function look(s, focus) {
		const id = s.runtime_id, own = !admin || s.key === key, gone = s.state === "gone";

		seen = s;
		try {
			const [one, happened, net] = await Promise.all([
				own && !gone ? api.get("api/runtime/" + encodeURIComponent(id) + "?logs=true") : null,
				api.get("events" + query({runtime_id: id, all: admin || null})), askNetwork(s).catch(() => null)]);
			if (seen.runtime_id !== id)
				return;
			const had = details.contains(document.activeElement) ? document.activeElement.dataset.id : null;
			const to = one && one.url ? link(one.url) : null, at = details.querySelector(".output")?.scrollTop;
			details.replaceChildren(h("div", {class: "bar"}, h("h2", {class: "title"}, foreign(s.session_id || id)),
				h("button", {type: "button", onclick: close}, "Close")),
			h("p", {class: "note"}, foreign(id, {class: "mono"}), " ", plain(s.state), s.reason ? ": " + plain(s.reason, 500) : ""),
			...to ? [h("p", {}, to)] : [], ...!pages && !to && own && s.state === "running" ? [h("p", {class: "note"},
				"Its page opens from here if the service has a --domain.")] : [],
			...part("Log", one && one.pod_logs ? h("pre", {class: "output", tabindex: "0", "aria-label": "Log"},
				one.pod_logs.split("\n").map((l) => plain(l)).join("\n"))
				: h("p", {class: "note"}, own ? "There is no log." : "Its log is shown only to the key that started it.")),
			...net ? part("Network", networkOf(net, operates ? (entry) => allow(s, entry) : null)) : [],
			...part("Events", h("ul", {}, ...happened.events.slice(-20).reverse().map((e) =>
				h("li", {}, clock(e.time) + " ", plain(e.what), e.detail && e.what !== "logs" ? ": " + plain(e.detail, 300) : "")))));
			details.hidden = false;
			const output = details.querySelector(".output");
			if (output)
				output.scrollTop = focus || at === undefined ? output.scrollHeight : at;
			if (focus)
				details.focus();
			else if (had)
				[...details.querySelectorAll("button")].find((b) => b.dataset.id === had)?.focus();
		} catch (e) {
			say(e);
		}
	}

	function close() {
		seen = null;
		details.hidden = true;
	}

	async function refresh() {
		const answer = await api.get(admin ? "sandboxes" : "api/list");
		const list = admin ? answer.sandboxes : answer.runtimes;

		if (admin) {
			isDrained = answer.drained;
			drained.textContent = isDrained ? "No new sandboxes are started." : "";
			drain.textContent = isDrained ? "End the drain" : "Drain";
		}
		if (admin && list.some((s) => !keys.has(s.key)))
			for (const k of (await api.get("keys")).keys)
				keys.set(k.id, k.name);
		for (const id of uses.keys())
			if (!list.some((s) => s.runtime_id === id))
				uses.delete(id);
		for (const s of list)
			names.set(s.runtime_id, s.session_id);
		table.show(list.map(row));
		void measure([...uses.keys()].slice(0, MEASURED));
		const now = seen && list.find((s) => s.runtime_id === seen.runtime_id);
		if (seen && !details.hidden)
			void look(now || Object.assign({}, seen, {state: "gone"}), false);
	}

	return {element: h("section", {class: "plain fleet", "aria-label": "Sandboxes"}, confirm.element, form, drained, drain, table.element,
		details), refresh,
	shown: () => { timer = setInterval(tick, TICK_MS); },
	hidden: () => clearInterval(timer)};
}
