// Lists the alerts of a sandbox's resources, or of a fleet: the present ones and the past ones.
import {clock, foreign, h} from "./dom.js";

function when(t) {
	const seconds = typeof t === "number" ? t : Date.parse(t) / 1000;

	return Number.isNaN(seconds) ? foreign(t) : clock(seconds);
}

function figures(a) {
	return a.detail ?? `${a.metric}: ${a.value} (limit ${a.threshold})`;
}

export function createAlerts(changed) {
	const now = h("ul", {class: "firing"}), none = h("p", {class: "good"}, "Nothing is wrong."), body = h("tbody");
	const past = h("table", {hidden: true}, h("caption", {}, "Changes, newest first"),
		h("thead", {}, h("tr", {}, ...["When", "Alert", "State", "Details"].map((t) => h("th", {scope: "col"}, t)))), body);
	const element = h("section", {class: "plain alerts", "aria-label": "Alerts"}, h("div", {role: "status"}, none, now), past);

	return {
		element,
		server({alerts}) {
			now.replaceChildren(...alerts.alerts.map((a) => h("li", {class: "bad"}, foreign(a.alert), " since ", when(a.since),
				a.detail ? ": " : null, a.detail ? foreign(a.detail) : null)));
			none.hidden = alerts.alerts.length > 0;
			body.replaceChildren(...alerts.history.slice().reverse().map((a) => h("tr", {}, h("td", {class: "number"}, when(a.ts)),
				h("td", {}, foreign(a.alert)), h("td", {class: a.state === "firing" ? "bad" : "good"}, foreign(a.state)),
				h("td", {}, foreign(figures(a))))));
			past.hidden = alerts.history.length === 0;
			changed(alerts.alerts.length);
		},
	};
}
