// Shows the plugins of the sandbox in its user's words, and below them the parts of the server in the server's words.
import {foreign, h} from "./dom.js";

const GOOD = new Set(["ready"]), RESTING = new Set(["not started", "not ours"]), BAD = new Set(["failed", "unavailable", "failing"]);
const FOR = {
	"agent-server": ["Agent server", "OpenHands V1's own server, which runs an agent in this sandbox."],
	agent_skills: ["Agent skills", "Functions for cells, such as open_file and edit_file."],
	envd: ["E2B", "Runs commands and watches files for programs that use the SDKs of E2B."],
	browser: ["Browser", "A Chromium that the agent drives; the tab Browser shows it."],
	jupyter: ["Notebook", "Runs Python cells in a kernel that keeps its variables."],
	mcp: ["MCP servers", "Runs MCP servers beside the shell and offers their tools."],
	vscode: ["Editor", "VS Code in the web browser, on a port of its own."],
};
const PARTS = {
	session: "Shell of the agent", named_sessions: "Other shells", static_sessions: "Commands with a shell of their own", nginx: "Web server",
	pool_control: "Requests", pool_files: "File transfers", pool_action: "Actions", pool_live: "Streams of output", pool_page: "Pages like this one",
};
const STATES = {"not started": "starts at its first use", "not ours": "run by somebody else"};

function kind(state) {
	return GOOD.has(state) ? "good" : RESTING.has(state) ? "" : BAD.has(state) ? "bad" : "busy";
}

// Returns all that the server reports about a part, except its state.
function figures(part) {
	if (part.workers !== undefined && part.max !== undefined)
		return part.busy + " at work, " + part.max + " at most";
	if (part.count !== undefined)
		return String(part.count);
	return Object.entries(part).filter(([key, v]) => key !== "state" && v !== null && typeof v !== "object")
		.map(([key, v]) => key === "reason" ? v : key.replaceAll("_", " ") + " " + v).join(", ");
}

function state(part) {
	return h("td", {class: kind(part.state)}, foreign(STATES[part.state] ?? part.state ?? ""));
}

function plugin(name, part) {
	const [title, what] = Object.hasOwn(FOR, name) ? FOR[name] : [name, ""];

	return h("tr", {"data-name": name}, h("th", {scope: "row"}, foreign(title)), h("td", {}, what), state(part),
		h("td", {}, foreign(figures(part))));
}

function row(name, part) {
	return h("tr", {}, h("th", {scope: "row"}, foreign(Object.hasOwn(PARTS, name) ? PARTS[name] : name)), state(part),
		h("td", {}, foreign(figures(part))));
}

function table(caption, head, body) {
	return h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...head.map((t) => h("th", {scope: "col"}, t)))), body);
}

export function createPlugins() {
	const plugins = h("tbody"), parts = h("tbody"), none = h("p", {class: "note"}, "This sandbox has no plugins."), why = h("p", {class: "bad"});
	const list = table("Plugins", ["Plugin", "What it does", "State", "Details"], plugins);
	const element = h("section", {class: "plain", "aria-label": "Plugins"}, why, list, none,
		table("Parts of the server", ["Part", "State", "Now"], parts));

	return {
		element,
		server({ready}) {
			const components = ready.components || {}, names = Object.entries(components.plugins || {});

			why.textContent = ready.status === "ready" ? "" : "Not ready: " + foreign(ready.reason || "").textContent;
			plugins.replaceChildren(...names.map(([name, p]) => plugin(name, p)));
			list.hidden = names.length === 0;
			none.hidden = !list.hidden;
			parts.replaceChildren(...Object.entries(components).filter(([name]) => name !== "plugins").map(([name, p]) => row(name, p)));
		},
	};
}
