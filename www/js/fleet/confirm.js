// Asks first: what is stopped or revoked is gone.
import {h, plain} from "../dom.js";

export function createConfirm() {
	const element = h("dialog", {"aria-label": "Confirm"});

	return {
		element,
		// verb: the name of the button that confirms. The answer is whether it was pressed.
		ask(text, verb) {
			return new Promise((done) => {
				element.replaceChildren(h("form", {method: "dialog"}, h("p", {}, plain(text)),
					h("button", {value: "no"}, "Cancel"), " ", h("button", {value: "yes"}, verb)));
				element.returnValue = "no";
				element.onclose = () => done(element.returnValue === "yes");
				element.showModal();
			});
		},
	};
}
