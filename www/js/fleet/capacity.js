// Plots the last hour: sandboxes, resource factors, and the sandboxes that wait in pools.
import {h} from "../dom.js";
import {createPlots} from "../plots.js";

const HOUR = 3600, MINUTE_MS = 60000;
const STEPS = {steps: true, show: (v) => v === null ? "" : Number.isInteger(v) ? String(v) : ""};

const PLOTS = [
	{title: "Sandboxes", ...STEPS, series: [["all", "link", (m) => m.running + m.paused + m.changing + m.warming + m.warm],
		["running", "good", (m) => m.running], ["paused", "busy", (m) => m.paused], ["at most", "bad", (m, most) => most.sandboxes || null]]},
	{title: "Resource factors", ...STEPS, series: [["all", "link", (m) => m.factors], ["at most", "bad", (m, most) => most.factors || null]]},
	{title: "Pools", ...STEPS, series: [["waiting", "good", (m) => m.warm], ["being made", "busy", (m) => m.warming],
		["wanted", "link", (m) => m.wanted]]},
];

export function createCapacity({api}) {
	const plots = createPlots(PLOTS, data, (p, values) => values[values.length - 1]);
	let minutes = [], most = {}, asked = 0, timer = 0;

	// A level lasts until the next one: the last level before the hour reaches into it, and the newest lasts until now.
	function data(p, end) {
		const before = minutes.filter((m) => m.time <= end - HOUR).slice(-1).map((m) => ({...m, time: end - HOUR}));
		const shown = [...before, ...minutes.filter((m) => m.time > end - HOUR && m.time < end), {...minutes[minutes.length - 1], time: end}];

		return [shown.map((m) => m.time), ...p.series.map(([, , f]) => shown.map((m) => f(m, most)))];
	}

	// The plots use the service's clock: its last answer was its present time.
	function draw() {
		if (minutes.length > 0)
			plots.draw(minutes[minutes.length - 1].time + (performance.now() - asked) / 1000);
	}

	return {
		element: h("section", {class: "plain", "aria-label": "Capacity"},
			h("p", {class: "note"}, "The last hour, or the time since the service started, and the present."), plots.element),
		async refresh() {
			const answer = await api.get("capacity");

			({minutes, limits: most} = answer);
			asked = performance.now();
			draw();
		},
		// the plots move even if nothing happens
		shown() {
			timer = setInterval(draw, MINUTE_MS);
			plots.shown();
			draw();
		},
		hidden() {
			clearInterval(timer);
			plots.hidden();
		},
	};
}
