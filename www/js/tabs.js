// Shows one of several views: a list of tabs as screen readers know it, which takes arrow keys, too.
import {h} from "./dom.js";

// views: {id, title, element, shown?(), hidden?()}
export function createTabs(label, views) {
	const bar = h("div", {class: "tabs", role: "tablist", "aria-label": label}), element = h("div", {class: "views"});
	let current = null;

	function show(id, focus) {
		const view = views.find((v) => v.id === id);

		if (current === view)
			return;
		for (const v of views) {
			const on = v === view;
			v.tab.setAttribute("aria-selected", String(on));
			v.tab.tabIndex = on ? 0 : -1;
			v.panel.hidden = !on;
		}
		if (current && current.hidden)
			current.hidden();
		current = view;
		if (focus)
			view.tab.focus();
		if (view.shown)
			view.shown();
	}

	function key(event) {
		const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
		const i = views.indexOf(current);

		if (step)
			show(views[(i + step + views.length) % views.length].id, true);
		else if (event.key === "Home")
			show(views[0].id, true);
		else if (event.key === "End")
			show(views[views.length - 1].id, true);
		else
			return;
		event.preventDefault();
	}

	bar.addEventListener("keydown", key);
	for (const v of views) {
		v.tab = h("button", {type: "button", role: "tab", id: "tab-" + v.id, "aria-controls": "view-" + v.id,
			onclick: () => show(v.id)}, v.title);
		v.panel = h("div", {class: "view", role: "tabpanel", id: "view-" + v.id, "aria-labelledby": "tab-" + v.id,
			tabindex: "0", hidden: true},
			v.element);
		bar.append(v.tab);
		element.append(v.panel);
	}
	// Changes a tab's title, to show that its view has news.
	function mark(id, title) {
		views.find((v) => v.id === id).tab.textContent = title;
	}

	// Hides the shown view, since the page ends.
	function close() {
		if (current && current.hidden)
			current.hidden();
		current = null;
	}

	const has = (id) => views.some((v) => v.id === id);

	return {bar, element, show, has, mark, close, current: () => current && current.id};
}
