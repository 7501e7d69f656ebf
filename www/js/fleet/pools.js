// Pools: how many wait in each. They are set by "handrail fleet pools".
import {foreign, h} from "../dom.js";
import {createTable} from "./table.js";

export function createPools({api}) {
	const table = createTable("Pools", ["Name", "Size", "Being made", "Waiting", "Failed", "Image"], "There is no pool.");

	async function refresh() {
		const {pools} = await api.get("pools");

		table.show(pools.map((p) => h("tr", {}, h("td", {}, foreign(p.name)),
			...[p.size, p.warming, p.warm].map((n) => h("td", {class: "number"}, String(n))),
			h("td", {class: p.failed > 0 ? "bad" : ""}, String(p.failed)),
			h("td", {class: "mono"}, foreign(p.request && p.request.image || "")))));
	}

	return {element: h("section", {class: "plain", "aria-label": "Pools"}, table.element), refresh};
}
