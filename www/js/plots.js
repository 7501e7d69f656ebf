// Draws plots of the last hour side by side, each with its figures in words for readers who see no plot.
import uPlot from "../vendor/uplot/uPlot.esm.js";
import {h} from "./dom.js";
import {colour} from "./theme.js";

const HOUR = 3600, HEIGHT = 150;

// plots: {title, show(value), steps: whether a value lasts until the next one, series: [[label, colour, ...]]}.
// data(plot, end): the times and the values of each series, null where there is none; now(plot, values): their text.
export function createPlots(plots, data, now) {
	const element = h("div", {class: "plots"});
	let seen = false, end = 0;

	const boxes = plots.map((p) => {
		const place = h("div", {class: "plot"}), said = h("span", {class: "now mono"});

		element.append(h("figure", {}, h("figcaption", {}, p.title + " ", said), place));
		return {p, place, said, plot: null};
	});

	function options(b) {
		const axis = {stroke: colour("faint"), grid: {stroke: colour("line"), width: 1}, ticks: {stroke: colour("line")}, font: "11px sans-serif"};

		return {
			width: Math.max(200, b.place.clientWidth), height: HEIGHT, legend: {show: false}, cursor: {show: false},
			scales: {x: {range: () => [end - HOUR, end]}, y: {range: (u, low, high) => [0, high > 0 ? high * 1.1 : 1]}},
			axes: [axis, Object.assign({size: 64, values: (u, v) => v.map(b.p.show)}, axis)],
			series: [{}, ...b.p.series.map(([label, ink]) => ({label, stroke: colour(ink), width: 1.5, points: {show: false},
				fill: b.p.fill ? colour(ink) + "30" : undefined, paths: b.p.steps ? uPlot.paths.stepped({align: 1}) : undefined}))],
		};
	}

	function figures(b, values) {
		return b.p.series.flatMap(([label, ink], i) => {
			const v = now(b.p, values[i]), e = h("span", {}, label + " " + b.p.show(v));

			e.style.color = colour(b.p.series.length > 1 ? ink : "faint");
			return v === null ? [] : [", ", e];
		}).slice(1);
	}

	function draw() {
		if (!seen || end === 0)
			return;
		for (const b of boxes) {
			const d = data(b.p, end);

			if (b.plot)
				b.plot.setData(d);
			else
				b.plot = new uPlot(options(b), d, b.place);
			b.said.replaceChildren(...figures(b, d.slice(1)));
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
	}).observe(element);
	return {
		element,
		// draws until that time, the end of the known values
		draw(to) {
			end = to;
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
