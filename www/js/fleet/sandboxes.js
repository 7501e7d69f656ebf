// The sandboxes of the key that signed in, or of all keys for an operator; one of them with what is told of it.
import {clock, duration, foreign, h, plain} from "../dom.js";
import {query} from "../api.js";
import {createConfirm} from "./confirm.js";
import {createTable} from "./table.js";

const GRAVE = {running: "good", warm: "good", died: "bad", starting: "busy", resuming: "busy", pausing: "busy", stopping: "busy"};
const ACTIONS = [["pause", "Pause", ["running"]], ["resume", "Resume", ["paused"]],
	["stop", "Stop", ["starting", "running", "pausing", "paused", "resuming"]]];

// An address that the service made; nothing but http leads anywhere.
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

export function createSandboxes({api, admin, acts, operates, key, pages}, say) {
	const columns = ["Session", ...admin ? ["Key"] : [], "State", "Image", "Age", "Idle", "Factor", ""];
	const table = createTable("Sandboxes", columns, "There is no sandbox.");
	const drained = h("p", {class: "note busy", role: "status"});
	const drain = h("button", {type: "button", hidden: !operates, onclick: () => void toggleDrain()}, "Drain");
	const session = h("input", {type: "text", id: "session", required: true, spellcheck: "false", autocomplete: "off",
		pattern: "[A-Za-z0-9_.:\\-]+"});
	const image = h("input", {type: "text", id: "image", spellcheck: "false", autocomplete: "off"});
	const form = h("form", {class: "line", hidden: !acts, onsubmit: (e) => { e.preventDefault(); void start(); }},
		h("label", {for: "session"}, "Session"), session, h("label", {for: "image"}, "Image"), image,
		h("button", {type: "submit"}, "Start"));
	const details = h("section", {class: "details", "aria-label": "Sandbox", tabindex: "-1", hidden: true});
	const confirm = createConfirm();
	let isDrained = false, seen = null, skew = 0;

	async function act(what, title, id, name) {
		if (!await confirm.ask(`${title} ${name}?`))
			return;
		try {
			say(null);
			await api.post(admin ? "sandboxes/" + what : "api/" + what, {runtime_id: id});
		} catch (e) {
			say(e);
		}
	}

	// In a window that knows nothing of this one.
	async function openPage(id) {
		try {
			say(null);
			const page = await api.post("open", {runtime_id: id});
			window.open(page.url + "#key=" + page.key, "_blank", "noopener,noreferrer");
		} catch (e) {
			say(e);
		}
	}

	async function start() {
		try {
			say(null);
			await api.post("api/start", Object.assign({session_id: session.value}, image.value ? {image: image.value} : {}));
			form.reset();
		} catch (e) {
			say(e);
		}
	}

	async function toggleDrain() {
		if (!await confirm.ask(isDrained ? "Let new sandboxes start again?" : "Start nothing new from now on?"))
			return;
		try {
			await api.post("drain", {off: isDrained});
			await refresh();
		} catch (e) {
			say(e);
		}
	}

	function ago(seconds) {
		return seconds > 0 ? duration(Math.max(0, Math.floor(Date.now() / 1000 - seconds - skew))) : "";
	}

	function row(s) {
		const may = admin ? operates : acts, name = s.session_id || s.runtime_id;
		const buttons = ACTIONS.filter(([, , from]) => may && from.includes(s.state)).map(([what, title]) =>
			h("button", {type: "button", "data-id": what + s.runtime_id, "aria-label": title + " " + plain(name, 80),
				onclick: () => void act(what, title, s.runtime_id, name)}, title));

		if (acts && pages && s.state === "running" && (!admin || s.key === key))
			buttons.unshift(h("button", {type: "button", "data-id": "page" + s.runtime_id,
				"aria-label": "Page of " + plain(name, 80), onclick: () => void openPage(s.runtime_id)}, "Page"));
		return h("tr", {}, h("td", {}, h("button", {type: "button", class: "link mono", "data-id": "look" + s.runtime_id,
			onclick: () => void look(s, true)}, foreign(name))),
			admin ? h("td", {class: "number"}, String(s.key)) : null,
			h("td", {class: GRAVE[s.state] || "", title: plain(s.reason || "", 500)}, plain(s.state)),
			h("td", {class: "mono"}, foreign(s.image || "")), h("td", {class: "number"}, ago(s.created)),
			h("td", {class: "number"}, s.state === "running" ? ago(s.active) : ""),
			h("td", {class: "number"}, String(s.resource_factor)), h("td", {class: "actions"}, ...buttons));
	}

	async function look(s, focus) {
		const id = s.runtime_id;

		seen = s;
		try {
			const [one, happened] = await Promise.all([
				admin ? null : api.get("api/runtime/" + encodeURIComponent(id) + "?logs=true"),
				api.get("events" + query({runtime_id: id, all: admin || null}))]);
			if (seen.runtime_id !== id)
				return;
			const to = one && one.url ? link(one.url) : null;
			details.replaceChildren(h("h2", {}, foreign(s.session_id || id)), h("p", {class: "note"}, foreign(id, {class: "mono"}),
				" ", plain(s.state), s.reason ? ": " + plain(s.reason, 500) : ""), ...to ? [h("p", {}, to)] : [],
				h("h3", {}, "Events"), h("ul", {}, ...happened.events.slice(-20).reverse().map((e) =>
					h("li", {}, clock(e.time) + " ", plain(e.what), e.detail && e.what !== "logs" ? ": " + plain(e.detail, 300) : ""))),
				...one && one.pod_logs ? [h("h3", {}, "Last output"), h("pre", {tabindex: "0", "aria-label": "Last output"},
					one.pod_logs.split("\n").map((l) => plain(l)).join("\n"))] : []);
			details.hidden = false;
			if (focus)
				details.focus();
		} catch (e) {
			say(e);
		}
	}

	async function refresh() {
		const answer = await api.get(admin ? "sandboxes" : "api/list");
		const list = admin ? answer.sandboxes : answer.runtimes;

		if (admin) {
			isDrained = answer.drained;
			drained.textContent = isDrained ? "Nothing new is started." : "";
			drain.textContent = isDrained ? "End the drain" : "Drain";
		}
		table.show(list.map(row));
		const now = seen && list.find((s) => s.runtime_id === seen.runtime_id);
		if (seen && !details.hidden)
			void look(now || Object.assign({}, seen, {state: "gone"}), false);
	}

	return {element: h("section", {class: "plain fleet", "aria-label": "Sandboxes"}, confirm.element, form, drained, drain, table.element,
		details), refresh};
}
