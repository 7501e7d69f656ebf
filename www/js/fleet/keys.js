// Keys: their names, scopes and quotas. What a key is, nobody is told again. They are made by "handrail fleet keys".
import {clock, foreign, h, plain} from "../dom.js";
import {createTable} from "./table.js";

export function createKeys({api}) {
	const table = createTable("Keys", ["Number", "Name", "Scopes", "Sandboxes", "Factors", "Until", "State"], "There is no key.");
	const most = (n) => n > 0 ? String(n) : "no bound";

	async function refresh() {
		const {keys} = await api.get("keys");

		table.show(keys.map((k) => h("tr", {}, h("td", {class: "number"}, String(k.id)), h("td", {}, foreign(k.name)),
			h("td", {}, plain(k.scopes.join(", "))), h("td", {class: "number"}, most(k.sandboxes)),
			h("td", {class: "number"}, most(k.factors)), h("td", {}, k.expires > 0 ? clock(k.expires) : "for ever"),
			h("td", {class: k.revoked ? "bad" : "good"}, k.revoked ? "revoked" : "valid"))));
	}

	return {element: h("section", {class: "plain", "aria-label": "Keys"}, table.element), refresh};
}
