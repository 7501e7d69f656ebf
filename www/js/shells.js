// Which shell is seen, and shells of one's own: a named session in which an interactive bash runs, so that it has a prompt
// and the keys of one. Such a shell is closed when its bash ends. The list is asked for where its length has changed, and
// where somebody opens it.
import {query} from "./api.js";
import {h, plain} from "./dom.js";

// Its prompt is its user's: that of the session, which would end the command, is not passed on.
const BASH = "env -u PROMPT_COMMAND -u PS1 -u PS2 bash";

// choose(name): another shell is to be seen. begun(): the bash of an own one was started.
export function createShells(api, {rights, choose, begun, say}) {
	const pick = h("select", {"aria-label": "Shell", hidden: true});
	const more = h("button", {type: "button", hidden: rights() !== "act", title: "Opens a shell beside that of the agent",
		onclick: () => void make()}, "New shell");
	const close = h("button", {type: "button", hidden: true, title: "Ends this shell and what runs in it",
		onclick: () => void end(current)}, "Close shell");
	const element = h("span", {class: "shells"}, pick, more, close), own = new Map(); // whether its bash was seen, by name
	let current = "default", count = 0, working = "/";

	// The first name that no shell has.
	async function make() {
		more.disabled = true;
		try {
			const names = new Set((await api.get("sessions")).sessions.map((s) => s.name));
			let n = 1;
			while (names.has("page-" + n))
				n++;
			const name = "page-" + n;
			await api.post("create", {name, working_dir: working});
			own.set(name, false);
			choose(name);
			// the answer comes after a second, and bash goes on
			await api.post("run" + query({session: name}), {action: {action: "run", args: {command: BASH}, timeout: 1}});
		} catch (e) {
			say(e.message);
		}
		more.disabled = false;
	}

	async function end(name) {
		own.delete(name);
		try {
			await api.post("kill" + query({session: name}), {});
		} catch (e) {
			if (e.status !== 404)
				say(e.message);
		}
		if (current === name)
			choose("default");
	}

	function show(names) {
		pick.replaceChildren(...names.map((name) => h("option", {value: name}, plain(name))));
		pick.value = current;
		pick.hidden = names.length < 2;
	}

	async function ask() {
		try {
			const names = (await api.get("sessions")).sessions.map((s) => s.name);
			show(names.includes(current) ? names : [current, ...names]);
		} catch {
			// the list stays as it was
		}
	}

	pick.addEventListener("focus", () => void ask());
	pick.addEventListener("change", () => choose(pick.value));
	return {
		element,
		server({ready}) {
			const now = ready.components && ready.components.named_sessions ? ready.components.named_sessions.count : 0;

			if (now !== count)
				void ask();
			count = now;
		},
		// what the stream of the seen shell reports of it
		state({name, running, working_dir}) {
			working = working_dir || working;
			const was = own.get(name);

			if (was === undefined || was === running)
				return;
			own.set(name, running);
			if (running)
				begun();
			else
				void end(name);
		},
		chosen(name) {
			current = name;
			close.hidden = !own.has(name);
			if (pick.value !== name)
				void ask();
		},
	};
}
