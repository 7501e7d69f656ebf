// Lists the connections that the sandbox's rules refused. The rules are outside the sandbox, so this page cannot change them: the
// owner of the sandbox does, by the command in the row.
import {foreign, h, plain} from "./dom.js";

const MOST = 200;
const isRefusal = (r) => typeof r?.time === "number" && typeof r.target === "string" && typeof r.text === "string";

export function createNetwork({api}) {
	const body = h("tbody"), note = h("p", {class: "note", role: "status"}, "Nothing was refused.");
	const table = h("table", {hidden: true}, h("caption", {class: "unseen"}, "Refused connections, newest first"),
		h("thead", {}, h("tr", {}, ...["When", "What was refused", "To allow it"].map((t) => h("th", {scope: "col"}, t)))), body);
	const element = h("section", {class: "plain", "aria-label": "Network"}, note, table);
	let seen = false, asking = false;

	function row(r) {
		// an entry has no effect on a host with rules, nor on a name that leads nowhere
		const command = r.text.endsWith(" was refused: no rule") ? "handrail net allow NAME " + plain(r.target, 300) : "";

		return h("tr", {}, h("td", {class: "number"}, new Date(r.time * 1000).toLocaleTimeString([], {hour12: false})),
			h("td", {}, foreign(r.text)), h("td", {class: "mono"}, foreign(command)));
	}

	async function refresh() {
		if (!seen || asking)
			return;
		asking = true;
		try {
			const {rules, refused} = await api.get("network");
			const list = Array.isArray(refused) ? refused.filter(isRefusal).slice(-MOST).reverse() : [];

			body.replaceChildren(...list.map(row));
			table.hidden = list.length === 0;
			note.textContent = !rules ? "This sandbox has no rules for its network." : list.length === 0 ? "Nothing was refused." : "";
		} catch (e) {
			note.textContent = e.message;
		} finally {
			asking = false;
		}
	}

	return {
		element,
		shown() {
			seen = true;
			void refresh();
		},
		hidden() {
			seen = false;
		},
		sample: () => void refresh(),
	};
}
