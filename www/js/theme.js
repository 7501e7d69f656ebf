// Returns a colour of the style sheet for the drawn parts, which no style reaches.
export function colour(name) {
	return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

export function theme() {
	const dark = matchMedia("(prefers-color-scheme: dark)").matches;

	return Object.assign({
		background: colour("term"), foreground: colour("text"), cursor: colour("text"), cursorAccent: colour("term"),
		selectionBackground: colour("select"),
	}, dark ? {} : {
		// xterm's own colours are made for a black ground
		black: "#24292f", red: "#b3261e", green: "#1a6e2e", yellow: "#7a5200", blue: "#0b57b0", magenta: "#8a2f8f",
		cyan: "#0f6674", white: "#5d636b", brightBlack: "#50565e", brightRed: "#c5221f", brightGreen: "#137333",
		brightYellow: "#7d5700", brightBlue: "#1a5fc4", brightMagenta: "#9334a8", brightCyan: "#007380",
		brightWhite: "#24292f",
	});
}
