// Plots of the last hour: of each minute what the server has counted, and samples since the page looks on.
import uPlot from "../vendor/uplot/uPlot.esm.js";
import {bytes, h} from "./dom.js";
import {colour} from "./theme.js";

const HOUR = 3600, MOST = 720, HEIGHT = 150;

const PLOTS = [
	{title: "Actions a minute", of: "minutes", show: (v) => v.toFixed(0),
		series: [["answered", "link", (m) => m[1]], ["errors", "bad", (m) => m[2]]]},
	{title: "Seconds in actions, a minute", of: "minutes", show: (v) => v.toFixed(v < 10 ? 2 : 0) + " s", series: [["seconds", "busy", (m) => m[3]]]},
	{title: "Output in answers, a minute", of: "minutes", show: bytes, series: [["bytes", "link", (m) => m[4]]]},
	{title: "Processor of the server", of: "samples", show: (v) => v.toFixed(1) + " %", series: [["percent", "busy", (s) => s.cpu_percent]]},
	{title: "Memory of the server", of: "samples", show: bytes, series: [["resident", "link", (s) => s.resident_bytes]]},
	{title: "Free disk", of: "samples", show: bytes, series: [["free", "good", (s) => s.disk_free]]},
];

export function createMetrics() {
	const grid = h("div", {class: "plots"}), samples = [];
	const element = h("section", {class: "plain", "aria-label": "Metrics"},
		h("p", {class: "note"}, "The last hour, and its sums. Processor, memory and disk since this page looks on."), grid);
	let minutes = [], seen = false, end = 0;

	const boxes = PLOTS.map((p) => {
		const place = h("div", {class: "plot"}), now = h("span", {class: "now mono"});
		const figure = h("figure", {}, h("figcaption", {}, p.title + " ", now), place);

		grid.append(figure);
		return {p, place, now, plot: null};
	});

	function data(p) {
		if (p.of === "samples")
			return [samples.map((s) => s.time), ...p.series.map(([, , f]) => samples.map(f))];
		// a minute in which nothing was answered is 0, and not left out
		const by = new Map(minutes.map((m) => [m[0], m])), times = [];
		for (let t = end - end % 60 - HOUR; t <= end; t += 60)
			times.push(t);
		return [times, ...p.series.map(([, , f]) => times.map((t) => by.has(t) ? f(by.get(t)) : 0))];
	}

	function options(b) {
		const axis = {stroke: colour("faint"), grid: {stroke: colour("line"), width: 1}, ticks: {stroke: colour("line")}, font: "11px sans-serif"};

		return {
			width: Math.max(200, b.place.clientWidth), height: HEIGHT, legend: {show: false}, cursor: {show: false},
			scales: {x: {range: () => [end - HOUR, end]}, y: {range: (u, low, high) => [0, high > 0 ? high * 1.1 : 1]}},
			axes: [axis, Object.assign({size: 64, values: (u, v) => v.map(b.p.show)}, axis)],
			series: [{}, ...b.p.series.map(([label, ink]) => ({label, stroke: colour(ink), width: 1.5, points: {show: false},
				fill: b.p.of === "minutes" ? colour(ink) + "30" : undefined, paths: b.p.of === "minutes" ? uPlot.paths.stepped({align: 1}) : undefined}))],
		};
	}

	// All of the hour, or how it is now.
	function of(p, values) {
		return p.of === "minutes" ? values.reduce((a, b) => a + b, 0) : values[values.length - 1] || 0;
	}

	function draw() {
		if (!seen || end === 0)
			return;
		for (const b of boxes) {
			const d = data(b.p);

			if (b.plot)
				b.plot.setData(d);
			else
				b.plot = new uPlot(options(b), d, b.place);
			// the same for who sees no plot
			b.now.textContent = b.p.series.map(([label], i) => label + " " + b.p.show(of(b.p, d[i + 1]))).join(", ");
		}
	}

	function anew() {
		for (const b of boxes) {
			if (b.plot)
				b.plot.destroy();
			b.plot = null;
		}
		draw();
	}

	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", anew);
	new ResizeObserver(() => {
		for (const b of boxes) {
			if (b.plot && b.place.clientWidth > 0 && b.plot.width !== b.place.clientWidth)
				b.plot.setSize({width: b.place.clientWidth, height: HEIGHT});
		}
	}).observe(grid);
	return {
		element,
		sample(s) {
			if (samples.length > 0 && samples[samples.length - 1].time >= s.time)
				return;
			end = s.time;
			minutes = s.minutes;
			samples.push(s);
			while (samples.length > MOST || samples[0].time < end - HOUR)
				samples.shift();
			draw();
		},
		shown() {
			seen = true;
			draw();
		},
		hidden() {
			seen = false;
		},
	};
}
