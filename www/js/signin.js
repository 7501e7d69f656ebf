// Signing in with the session key, which goes into a header of one request and nowhere else.
import {h} from "./dom.js";

const WORDS = {label: "Session key", wrong: "That is not the key of this sandbox."};

export function createSignIn(api, done, words = WORDS) {
	const key = h("input", {type: "password", id: "key", autocomplete: "current-password", required: true});
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

	const element = h("main", {class: "alone"}, h("h1", {}, "handrail"),
		h("form", {onsubmit: submit}, h("label", {for: "key"}, words.label), key,
			h("label", {class: "check"}, look, " Look on only"), button, note));
	return {element, focus: () => key.focus(), say: (text) => { note.textContent = text; }};
}
