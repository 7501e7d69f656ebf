// What is wrong with the sandbox's resources, and what was.
import {clock, foreign, h} from "./dom.js";

function when(text) {
	const t = Date.parse(text);

	return Number.isNaN(t) ? foreign(text) : clock(t / 1000);
}

function figures(a) {
	return `${a.metric}: ${a.value} (limit ${a.threshold})`;
}

export function createAlerts(changed) {
	const now = h("ul", {class: "firing"}), none = h("p", {class: "good"}, "Nothing is wrong."), body = h("tbody");
	const past = h("table", {hidden: true}, h("caption", {}, "Changes, newest first"),
		h("thead", {}, h("tr", {}, ...["When", "Alert", "State", "Figure"].map((t) => h("th", {scope: "col"}, t)))), body);
	const element = h("section", {class: "plain", "aria-label": "Alerts"}, h("div", {role: "status"}, none, now), past);

	return {
		element,
		server({alerts}) {
			now.replaceChildren(...alerts.alerts.map((a) => h("li", {class: "bad"}, foreign(a.alert), " since ", when(a.since))));
			none.hidden = alerts.alerts.length > 0;
			body.replaceChildren(...alerts.history.slice().reverse().map((a) => h("tr", {}, h("td", {class: "number"}, when(a.ts)),
				h("td", {}, foreign(a.alert)), h("td", {class: a.state === "firing" ? "bad" : "good"}, foreign(a.state)),
				h("td", {}, foreign(figures(a))))));
			past.hidden = alerts.history.length === 0;
			changed(alerts.alerts.length);
		},
	};
}
