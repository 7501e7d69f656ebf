// Lists keys with their names, scopes and quotas; makes and revokes them. The text of a key is shown once.
import {clock, foreign, h, plain} from "../dom.js";
import {createConfirm} from "../confirm.js";
import {createTable, numbers} from "./table.js";

const DAY_S = 86400;

export function createKeys({api, operates, key}, say) {
	const columns = [numbers("Number"), "Name", "Scopes", numbers("Sandboxes", "The most sandboxes of the key at a time"),
		numbers("Factors", "The resource factors of its sandboxes may add up to this"), "Until", "State", ""];
	const table = createTable("Keys", columns, "There is no key."), confirm = createConfirm();
	const number = (id) => h("input", {type: "number", id, min: "1", max: "1000000"});
	const name = h("input", {type: "text", id: "key-name", required: true, maxlength: "63", spellcheck: "false",
		autocomplete: "off"});
	const scope = h("select", {id: "key-scope"}, ...["use", "read", "admin"].map((s) => h("option", {}, s)));
	const sandboxes = number("key-sandboxes"), factors = number("key-factors"), days = number("key-days");
	const form = h("form", {class: "line", hidden: !operates, onsubmit: (e) => { e.preventDefault(); void make(); }},
		h("label", {for: "key-name"}, "Name"), name, h("label", {for: "key-scope"}, "Scope"), scope,
		h("label", {for: "key-sandboxes"}, "Sandboxes"), sandboxes, h("label", {for: "key-factors"}, "Factors"), factors,
		h("label", {for: "key-days"}, "Days"), days, h("button", {type: "submit"}, "Make a key"));
	const made = h("p", {class: "note made", role: "status", hidden: true});
	const most = (n) => n > 0 ? String(n) : "no limit";

	function hide() {
		made.replaceChildren();
		made.hidden = true;
	}

	async function make() {
		try {
			say(null);
			const answer = await api.post("keys", {name: name.value, scope: scope.value,
				sandboxes: Number(sandboxes.value), factors: Number(factors.value),
				expires: days.value ? Math.floor(Date.now() / 1000) + DAY_S * Number(days.value) : 0});
			made.replaceChildren("Key " + answer.id + ", which is shown this once: ", h("code", {}, plain(answer.key)), " ",
				h("button", {type: "button", onclick: hide}, "Hide"));
			made.hidden = false;
			form.reset();
			await refresh();
		} catch (e) {
			say(e);
		}
	}

	async function revoke(k) {
		if (!await confirm.ask(`Revoke key ${k.id}, ${plain(k.name, 80)}?` + (k.id === key ? " You have signed in with it." : ""), "Revoke"))
			return;
		try {
			say(null);
			await api.post("keys/revoke", {id: k.id});
			await refresh();
		} catch (e) {
			say(e);
		}
	}

	async function refresh() {
		const {keys} = await api.get("keys");

		table.show(keys.map((k) => h("tr", {}, h("td", {class: "number"}, String(k.id)), h("td", {}, foreign(k.name)),
			h("td", {}, plain(k.scopes.join(", "))), h("td", {class: "number"}, most(k.sandboxes)),
			h("td", {class: "number"}, most(k.factors)), h("td", {}, k.expires > 0 ? clock(k.expires) : "for ever"),
			h("td", {class: k.revoked ? "bad" : "good"}, k.revoked ? "revoked" : "valid"),
			h("td", {class: "actions"}, operates && !k.revoked ? h("button", {type: "button", "data-id": "revoke" + k.id,
				"aria-label": "Revoke key " + k.id, onclick: () => void revoke(k)}, "Revoke") : null))));
	}

	return {element: h("section", {class: "plain manage", "aria-label": "Keys"}, confirm.element, form, made, table.element), refresh};
}
