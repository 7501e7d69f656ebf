// Signs in with the session key, which goes into a header of one request and nowhere else.
import {foreign, h} from "./dom.js";

const WORDS = {
	title: "Sandbox", label: "Session key", wrong: "That is not the key of this sandbox.",
	where: ["It is the SESSION_API_KEY with which the sandbox was started. If the command handrail started it, ",
		h("code", {}, "handrail url --json NAME"), " prints it as \"key\"."],
};

export function createSignIn(api, done, words = WORDS) {
	const key = h("input", {type: "password", id: "key", autocomplete: "current-password", required: true,
		"aria-describedby": "key-where"});
	const look = h("input", {type: "checkbox", id: "look"});
	const note = h("p", {class: "note bad", role: "alert"});
	const button = h("button", {type: "submit"}, "Sign in");

	async function submit(event) {
		event.preventDefault();
		button.disabled = true;
		note.textContent = "";
		try {
			const me = await api.signIn(key.value, look.checked);
			key.value = "";
			done(me);
		} catch (e) {
			note.textContent = e.status === 403 ? words.wrong : e.message;
			if (e.status === 403 && e.message.includes("page_rights"))
				note.textContent = e.message;
			key.select();
		} finally {
			button.disabled = false;
		}
	}

	const title = h("h1", {}, words.title);
	const element = h("main", {class: "alone"}, title, h("p", {class: "note"}, foreign(location.host)),
		h("form", {onsubmit: submit}, h("label", {for: "key"}, words.label), key,
			h("p", {class: "note", id: "key-where"}, ...words.where.map((w) => w.cloneNode ? w.cloneNode(true) : w)),
			h("label", {class: "check"}, look, " Watch only: change nothing"), button, note));

	// Says which sandbox asks.
	function name(text) {
		title.append(" ", foreign(text));
		element.querySelector("#key-where code").textContent = "handrail url --json " + text;
	}

	return {element, name, focus: () => key.focus(), say: (text) => { note.textContent = text; }};
}
