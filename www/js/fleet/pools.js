// Lists the pools with the number of waiting sandboxes, sets pools and ends them.
import {foreign, h, plain} from "../dom.js";
import {createConfirm} from "../confirm.js";
import {createTable, numbers} from "./table.js";

export function createPools({api, operates}, say) {
	const columns = ["Name", ...["Size", "Being made", "Waiting", "Failed"].map((t) => numbers(t)), "Image", ""];
	const table = createTable("Pools", columns, "There is no pool."), confirm = createConfirm();
	const name = h("input", {type: "text", id: "pool-name", required: true, spellcheck: "false", autocomplete: "off"});
	const size = h("input", {type: "number", id: "pool-size", required: true, min: "1", max: "1000"});
	const image = h("input", {type: "text", id: "pool-image", spellcheck: "false", autocomplete: "off"});
	const form = h("form", {class: "line", hidden: !operates, onsubmit: (e) => { e.preventDefault(); void set(); }},
		h("label", {for: "pool-name"}, "Name"), name, h("label", {for: "pool-size"}, "Size"), size,
		h("label", {for: "pool-image"}, "Image"), image, h("button", {type: "submit"}, "Set"));

	// Sends the present list with a new pool in the place of the one of that name. The service takes the whole list at once.
	async function put(which, one) {
		try {
			say(null);
			const {pools, version} = await api.get("pools");
			const was = pools.find((p) => p.name === which), others = pools.filter((p) => p !== was && p.size > 0);

			await api.post("pools", {version, pools: [...others.map((p) => ({name: p.name, size: p.size, request: p.request})),
				...one ? [one(was)] : []]});
			form.reset();
			await refresh();
		} catch (e) {
			say(e);
		}
	}

	// An existing pool keeps its request if no image is given.
	function set() {
		return put(name.value, (was) => ({name: name.value, size: Number(size.value),
			request: image.value || !was ? image.value ? {image: image.value} : {} : was.request}));
	}

	async function end(p) {
		if (await confirm.ask(`End the pool ${plain(p.name, 80)} and the sandboxes that wait in it?`, "End"))
			await put(p.name, null);
	}

	async function refresh() {
		const {pools} = await api.get("pools");

		table.show(pools.map((p) => h("tr", {}, h("td", {}, foreign(p.name)),
			...[p.size, p.warming, p.warm].map((n) => h("td", {class: "number"}, String(n))),
			h("td", {class: p.failed > 0 ? "number bad" : "number"}, String(p.failed)),
			h("td", {class: "mono"}, foreign(p.request && p.request.image || "")),
			h("td", {class: "actions"}, operates && p.size > 0 ? h("button", {type: "button", "data-id": "end" + p.name,
				"aria-label": "End pool " + plain(p.name, 80), onclick: () => void end(p)}, "End") : null))));
	}

	return {element: h("section", {class: "plain manage", "aria-label": "Pools"}, confirm.element, form, table.element), refresh};
}
