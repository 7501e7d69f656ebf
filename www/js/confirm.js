// Asks before something is stopped, deleted or revoked. One question is open at a time; others wait for its answer.
import {h, plain} from "./dom.js";

export function createConfirm() {
	const element = h("dialog", {"aria-label": "Confirm"});
	let last = Promise.resolve(); // the answer to the question before

	function open(text, verb, value) {
		const field = value === undefined ? null
			: h("input", {type: "text", class: "mono", "aria-label": plain(text), required: true, spellcheck: "false", autocomplete: "off"});

		if (field)
			field.value = value;
		return new Promise((done) => {
			element.replaceChildren(h("form", {method: "dialog"}, h("p", {}, plain(text)), field, h("p", {},
				h("button", {type: "button", onclick: () => element.close("no")}, "Cancel"), " ", h("button", {value: "yes"}, verb))));
			element.returnValue = "no";
			element.onclose = () => done(element.returnValue !== "yes" ? null : field ? field.value : true);
			element.showModal();
		});
	}

	return {
		element,
		// verb: label of the button that confirms; value: initial value of a field, if there is one. The answer is the
		// field's value or true, and null if the dialog was left in another way.
		ask(text, verb, value) {
			last = last.catch(() => null).then(() => open(text, verb, value)); // a question that failed stops no other
			return last;
		},
	};
}
