// Chooses the shell that is seen, and makes shells for people: a named session in which an interactive bash runs, so that it
// has a prompt and the keys of one. Such a shell is closed when its bash ends. A page knows it by the command of that bash,
// because anybody can give a session such a name. Any page offers to close a shell of such a name, also after a reload. The
// list is requested where its length has changed, and where somebody opens it.
import {query} from "./api.js";
import {h, plain} from "./dom.js";

// The prompt is the user's: the session's prompt would end the command, and is not passed on.
const BASH = "env -u PROMPT_COMMAND -u PS1 -u PS2 bash";

const MADE = /^page-[0-9]+$/;

// choose(name): shows another shell. `begun()`: the bash of a new shell was started.
export function createShells(api, {rights, choose, begun, say}) {
	const pick = h("select", {"aria-label": "Shell", hidden: true});
	const more = h("button", {type: "button", hidden: rights() !== "act", title: "Opens a shell beside that of the agent",
		onclick: () => void make()}, "New shell");
	const close = h("button", {type: "button", hidden: true, title: "Ends this shell and what runs in it",
		onclick: () => void end(current)}, "Close shell");
	const element = h("span", {class: "shells"}, pick, more, close);
	const made = new Set(), bashes = new Set(); // names of shells: a bash was started in it; such a bash was seen to run
	let current = "default", count = 0, working = "/";

	// Makes a shell with the first name that no shell has.
	async function make() {
		more.disabled = true;
		try {
			const names = new Set((await api.get("sessions")).sessions.map((s) => s.name));
			let n = 1;
			while (names.has("page-" + n))
				n++;
			const name = "page-" + n;
			await api.post("create", {name, working_dir: working});
			made.add(name);
			choose(name);
			// the answer comes after a second, and bash continues
			const a = await api.post("run" + query({session: name}), {action: {action: "run", args: {command: BASH}, timeout: 1, ready_s: 30}});
			const code = a.extras?.metadata?.exit_code;
			if (a.observation === "error") {
				await end(name);
				say("No bash in " + name + ": " + a.content);
			} else if (code !== -1) {
				await end(name);
				if (code !== 0)
					say("The bash of " + name + " ended at once with exit code " + code + ": " + a.content);
			}
		} catch (e) {
			say(e.message);
		}
		more.disabled = false;
	}

	async function end(name) {
		try {
			await api.post("kill" + query({session: name}), {});
		} catch (e) {
			if (e.status !== 404) { // 404: the shell has ended
				say(e.message);
				return;
			}
		}
		made.delete(name);
		bashes.delete(name);
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
		} catch (e) {
			say(e.message);
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
		// takes a report of the shown shell's stream, which may be a little older or newer than its commands
		state({name, running, working_dir}, commands) {
			const command = commands.find((c) => c.state === "running")?.command;

			working = working_dir || working;
			if (!MADE.test(name) || rights() !== "act")
				return;
			if (command === BASH) {
				bashes.add(name);
				if (made.delete(name))
					begun();
			} else if (command !== undefined) {
				bashes.delete(name);
			} else if (!running && bashes.delete(name)) {
				void end(name);
			}
		},
		chosen(name) {
			current = name;
			close.hidden = !MADE.test(name) || rights() !== "act";
			if (pick.value !== name)
				void ask();
		},
	};
}
