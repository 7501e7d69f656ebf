// Plots the last hour: the server's counts of each minute, and samples taken since the page was opened.
import {bytes, h} from "./dom.js";
import {createPlots} from "./plots.js";

const HOUR = 3600, MOST = 720;
const MINUTES = {steps: true, fill: true};

const PLOTS = [
	{title: "Actions a minute", ...MINUTES, show: (v) => v.toFixed(0),
		series: [["answered", "link", (m) => m[1]], ["errors", "bad", (m) => m[2]]]},
	{title: "Seconds in actions, a minute", ...MINUTES, show: (v) => v.toFixed(v < 10 ? 2 : 0) + " s", series: [["seconds", "busy", (m) => m[3]]]},
	{title: "Output in answers, a minute", ...MINUTES, show: bytes, series: [["bytes", "link", (m) => m[4]]]},
	{title: "Processor of the sandbox", show: (v) => v === null ? "" : v.toFixed(1) + " %", series: [["of one processor", "busy", (s) => s.sandbox.cpu_percent]]},
	{title: "Memory of the sandbox", show: bytes, series: [["all processes", "link", (s) => s.sandbox.memory_bytes]]},
	{title: "Free disk", show: bytes, series: [["free", "good", (s) => s.disk_free]]},
];

export function createMetrics() {
	const samples = [], plots = createPlots(PLOTS, data, now);
	const element = h("section", {class: "plain", "aria-label": "Metrics"},
		h("p", {class: "note"}, "The last hour, and its sums. Processor, memory and disk since this page was opened."), plots.element);
	let minutes = [];

	function data(p, end) {
		if (!p.steps)
			return [samples.map((s) => s.time), ...p.series.map(([, , f]) => samples.map(f))];
		// a minute without an answer is drawn as 0, and not left out
		const by = new Map(minutes.map((m) => [m[0], m])), times = [];
		for (let t = end - end % 60 - HOUR; t <= end; t += 60)
			times.push(t);
		return [times, ...p.series.map(([, , f]) => times.map((t) => by.has(t) ? f(by.get(t)) : 0))];
	}

	// Returns the sum of the hour, or the present value.
	function now(p, values) {
		return p.steps ? values.reduce((a, b) => a + b, 0) : values[values.length - 1];
	}

	return {
		element,
		sample(s) {
			if (samples.length > 0 && samples[samples.length - 1].time >= s.time)
				return;
			minutes = s.minutes;
			samples.push(s);
			while (samples.length > MOST || samples[0].time < s.time - HOUR)
				samples.shift();
			plots.draw(s.time);
		},
		shown: plots.shown,
		hidden: plots.hidden,
	};
}
