// Which shell is looked at. The list is asked for where its length has changed, and where somebody opens it.
import {h, plain} from "./dom.js";

export function createShells(api, choose) {
	const pick = h("select", {"aria-label": "Shell"}), element = h("span", {class: "shells", hidden: true}, pick);
	let current = "default", count = 0;

	function show(names) {
		pick.replaceChildren(...names.map((name) => h("option", {value: name}, plain(name))));
		pick.value = current;
		element.hidden = names.length < 2;
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
		chosen(name) {
			current = name;
			if (pick.value !== name)
				void ask();
		},
	};
}
